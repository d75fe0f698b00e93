/** `tenure dev`, as a process: its lines are pasted into a shell, and it keeps a folder. */

import { createTenure } from "@tenure/core"
import { embedded } from "@tenure/embedded"
import { expect, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { temporaryFolder } from "./in-process.ts"
import { shell, startCommand } from "./programs.ts"

const env = { XDG_CONFIG_HOME: temporaryFolder() }

const start = async (...args: ReadonlyArray<string>) => {
  const { child, ended, printed } = startCommand(env, "dev", "--port", "0", ...args)
  await expect.poll(() => printed.stdout).toContain("Webhooks that have arrived")
  const stop = () => {
    child.kill("SIGINT")
    return ended
  }
  return { printed, stop }
}

it("prints lines each of which can be pasted, and the verified events of what they do", async () => {
  const { printed, stop } = await start()
  const shown = printed.stdout
  const lines = shown.split("\n").filter((line) => /^(npx|curl) /.test(line))
  const [list = "", extend = "", curl = ""] = lines
  const paste = async (line: string) => {
    const { code, stdout } = await shell(line, env)
    expect(code, line).toBe(0)
    return stdout
  }
  expect(await paste(list)).toMatch(/^1001 +20\d\d-.* active +–$/m)
  expect(await paste(extend)).toContain("2099-01-01")
  expect(JSON.parse(await paste(curl))).toMatchObject({ ok: true })
  await expect
    .poll(() => printed.stdout.match(/membership\.extended +\{.*"user_id":"1001"/g))
    .toHaveLength(2)
  expect((await fetch(/http:\S+\/console\//.exec(shown)?.[0] ?? "")).status).toBe(200)
  expect(await stop()).toMatchObject({ code: 130 })
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
