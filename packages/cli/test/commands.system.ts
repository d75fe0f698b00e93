/** All commands on a database, and what one leaves that is killed. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { testCommands } from "./commands.ts"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, command } from "./programs.ts"

const folder = mkdtempSync(join(tmpdir(), "tenure-cli-"))
afterAll(() => rmSync(folder, { recursive: true }))

const database = {
  TENURE_DATABASE_URL: inject("databaseUrl"),
  TENURE_SCHEMA: "cli_all",
  XDG_CONFIG_HOME: folder,
}
const tenure = tenureWith(database)

beforeAll(async () => {
  expect(await tenure("migrate")).toMatchObject({ code: 0 })
})

describe("on a database", () => {
  testCommands(tenure)
})

it("trigger leaves no member of an earlier run that was killed", async () => {
  const listed = async () => (await tenure("members", "list", "-p", "killed")).stdout
  const none = "There are none.\n"
  await tenure("projects", "create", "killed")
  const [node = "", ...args] = command("trigger", "membership.expired", "-p", "killed")
  const child = spawn(node, args, { env: { ...bareEnvironment, ...database }, stdio: "ignore" })
  const closed = once(child, "close")
  await expect.poll(listed).not.toBe(none)
  child.kill("SIGKILL")
  await closed
  expect(await listed()).not.toBe(none)
  expect(await tenure("trigger", "memberships.imported", "-p", "killed")).toMatchObject({ code: 0 })
  expect(await listed()).toBe(none)
})
