/** `tenure dev`, as a process: its lines are pasted into a shell, and it keeps a folder. */

import { execFile, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { createTenure } from "@tenure/core"
import { embedded } from "@tenure/embedded"
import { afterAll, expect, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
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

it("keeps what is in a folder, and leaves no valid key", async () => {
  const folder = await folderWithDatabase()
  const { stop } = await start(folder)
  await stop()
  const tenure = await createTenure({ stores: embedded({ path: folder }) })
  onTestFinished(tenure.close)
  expect(await tenure.memberships.list({ projectId: "demo" })).toHaveLength(3)
  expect(await tenure.apiKeys.list()).toMatchObject([{ revokedAt: expect.any(Number) }])
})
