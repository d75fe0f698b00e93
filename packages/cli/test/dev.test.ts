/** `tenure dev`, as a process. */

import { execFile, spawn } from "node:child_process"
import { promisify } from "node:util"
import * as Tenure from "@tenure/core/Tenure"
import { embedded } from "@tenure/embedded"
import { expect, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { bareEnvironment, command } from "./programs.ts"

const start = async (...args: ReadonlyArray<string>) => {
  const [node = "", ...rest] = command("dev", "--port", "0", ...args)
  const child = spawn(node, rest, { env: bareEnvironment, stdio: "pipe" })
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

const lineWith = (text: string, beginning: string): string =>
  text.split("\n").find((line) => line.startsWith(beginning)) ?? ""

it("shows how to call it, and prints the verified events of what was pasted", async () => {
  const { printed, stop } = await start()
  const shown = printed()
  const script = `${lineWith(shown, "export")}; ${lineWith(shown, "curl")}`
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", script])
  expect(JSON.parse(stdout)).toMatchObject({ ok: true })
  await expect.poll(printed).toMatch(/membership\.extended +\{.*"user_id":"1001"/)
  expect((await fetch(/http:\S+\/console\//.exec(shown)?.[0] ?? "")).status).toBe(200)
  expect(await stop()).toBe(130)
})

it("keeps what is in a folder, and leaves no valid key", async () => {
  const folder = await folderWithDatabase()
  const { stop } = await start(folder)
  await stop()
  const tenure = await Tenure.make({ stores: embedded({ path: folder }) })
  onTestFinished(tenure.close)
  expect(await tenure.memberships.list({ projectId: "demo" })).toHaveLength(3)
  expect(await tenure.apiKeys.list()).toMatchObject([{ revokedAt: expect.any(Number) }])
})
