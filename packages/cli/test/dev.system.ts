/** `tenure dev`, as a process. */

import { execFile, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { createTenure } from "@tenure/core"
import { embedded } from "@tenure/embedded"
import { freePort } from "@tenure/testing/conformance"
import { afterAll, expect, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { startWith, tenureWith } from "./in-process.ts"
import { bareEnvironment, binary, command } from "./programs.ts"

const home = mkdtempSync(join(tmpdir(), "tenure-dev-"))
afterAll(() => rmSync(home, { recursive: true }))

const env = { ...bareEnvironment, XDG_CONFIG_HOME: home }

const start = async (...args: ReadonlyArray<string>) => {
  const [node = "", ...rest] = command("dev", "--port", "0", ...args)
  const child = spawn(node, rest, { env, stdio: "pipe" })
  onTestFinished(() => void child.kill("SIGKILL"))
  const ended = new Promise((resolve) => child.once("close", resolve))
  let printed = ""
  child.stdout.on("data", (chunk) => {
    printed += String(chunk)
  })
  child.stderr.on("data", (chunk) => {
    printed += String(chunk)
  })
  await expect.poll(() => printed).toContain("Webhooks that have arrived")
  return {
    printed: () => printed,
    stop: () => {
      child.kill("SIGINT")
      return ended
    },
  }
}

/** Runs a line in a shell that knows nothing of the lines before. */
const paste = (line: string) =>
  promisify(execFile)("/bin/sh", ["-c", line.replace("npx tenure", binary)], { env })

it("prints lines each of which can be pasted, and the verified events of what they do", async () => {
  const { printed, stop } = await start()
  const shown = printed()
  const [list = "", extend = "", curl = ""] = shown
    .split("\n")
    .filter((line) => /^(npx|curl) /.test(line))
  expect((await paste(list)).stdout).toMatch(/^1001 +20\d\d-.* active +–$/m)
  expect((await paste(extend)).stdout).toContain("2099-01-01")
  expect(JSON.parse((await paste(curl)).stdout)).toMatchObject({ ok: true })
  await expect
    .poll(() => printed().match(/membership\.extended +\{.*"user_id":"1001"/g))
    .toHaveLength(2)
  expect((await fetch(/http:\S+\/console\//.exec(shown)?.[0] ?? "")).status).toBe(200)
  expect(await stop()).toBe(130)
})

it("listens on the port of the environment, and refuses what is none", async () => {
  const port = await freePort()
  const environment = { XDG_CONFIG_HOME: join(home, "port"), PORT: String(port) }
  const running = startWith(environment)("dev")
  onTestFinished(() => void running.interrupt())
  await expect.poll(() => running.printed.stdout).toContain(`http://127.0.0.1:${port} `)
  for (const wrong of ["http", "-1", "65536", "1.5"])
    expect(await tenureWith({ ...environment, PORT: wrong })("dev")).toMatchObject({
      code: 2,
      stderr: "PORT must be a port, from 0 to 65535.\n",
    })
  expect(await tenureWith(environment)("dev", "--port", "65536")).toMatchObject({ code: 2 })
})

it("has a profile of its own beside others that run, and runs without one", async () => {
  const environment = { XDG_CONFIG_HOME: join(home, "other") }
  const startHere = async () => {
    const running = startWith(environment)("dev", "--port", "0")
    onTestFinished(() => void running.interrupt())
    await expect.poll(() => running.printed.stdout).toContain("Webhooks that have arrived")
    return running
  }
  const keyBy = async (profile: string) => {
    const args = ["keys", "list", "--json", "--profile", profile]
    const { code, stdout } = await tenureWith(environment)(...args)
    return code === 0 ? JSON.parse(stdout).id : code
  }
  const first = await startHere()
  const firstKey = await keyBy("tenure-dev")
  const second = await startHere()
  expect(second.printed.stdout).toContain("--profile tenure-dev-2\n")
  expect(await keyBy("tenure-dev")).toBe(firstKey)
  expect(await keyBy("tenure-dev-2")).not.toBe(firstKey)
  await first.interrupt()
  expect(await keyBy("tenure-dev")).toBe(2)
  expect(await keyBy("tenure-dev-2")).toMatch(/-/)
  await second.interrupt()
  expect(await keyBy("tenure-dev-2")).toBe(2)

  const profiles = join(home, "other", "tenure", "profiles.json")
  const left = { url: "http://127.0.0.1:9", token: "of-one-that-was-killed" }
  writeFileSync(profiles, JSON.stringify({ "tenure-dev": left }), { mode: 0o600 })
  const third = await startHere()
  expect(third.printed.stdout).toContain("--profile tenure-dev\n")
  await third.interrupt()
  writeFileSync(profiles, "{", { mode: 0o600 })
  expect((await startHere()).printed.stderr).toContain("mend it, or remove it")
})

it("keeps what is in a folder, and leaves no valid key", async () => {
  const folder = await folderWithDatabase()
  const { stop } = await start(folder)
  await stop()
  const tenure = await createTenure({ stores: embedded({ path: folder }) })
  onTestFinished(tenure.close)
  expect(await tenure.memberships.list({ projectId: "demo" })).toHaveLength(3)
  expect(await tenure.apiKeys.list()).toMatchObject([{ revokedAt: expect.any(Number) }])
})
