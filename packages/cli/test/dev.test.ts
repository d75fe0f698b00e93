/** `tenure dev`, as a process. */

import { execFile, spawn } from "node:child_process"
import { promisify } from "node:util"
import { expect, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { tenureWith } from "./inProcess.ts"
import { command } from "./programs.ts"

const start = async (...args: ReadonlyArray<string>) => {
  const [node = "", ...rest] = command("dev", "--port", "0", ...args)
  const child = spawn(node, rest, { env: { PATH: process.env["PATH"] }, stdio: "pipe" })
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
  const tenure = tenureWith({ TENURE_DATABASE_URL: `file:${folder}` })
  expect((await tenure("members", "list", "-p", "demo")).stdout).toContain("1001")
  const keys = (await tenure("keys", "list", "--json")).stdout.trim().split("\n")
  expect(keys.map((key) => JSON.parse(key))).toMatchObject([{ revoked_at: expect.any(String) }])
})
