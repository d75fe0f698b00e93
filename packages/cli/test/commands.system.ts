/** All commands on a database, and what one leaves that is killed. */

import { beforeAll, describe, expect, inject, it } from "vitest"
import { testCommands } from "./commands.ts"
import { temporaryFolder, tenureWith } from "./in-process.ts"
import { startCommand } from "./programs.ts"

const environment = {
  TENURE_DATABASE_URL: inject("databaseUrl"),
  TENURE_SCHEMA: `cli_${crypto.randomUUID().replaceAll("-", "")}`,
  XDG_CONFIG_HOME: temporaryFolder(),
}
const tenure = tenureWith(environment)

beforeAll(() => tenure.print`migrate`)

describe("on a database", () => {
  testCommands(tenure)
})

it("trigger leaves no member of an earlier run that was killed", async () => {
  const listed = () => tenure.print`members list -p killed`
  const none = "There are none.\n"
  await tenure.print`projects create killed`
  const { child, ended } = startCommand(
    environment,
    "trigger",
    "membership.expired",
    "-p",
    "killed",
  )
  await expect.poll(listed).not.toBe(none)
  child.kill("SIGKILL")
  await ended
  expect(await listed()).not.toBe(none)
  await tenure.print`trigger memberships.imported -p killed`
  expect(await listed()).toBe(none)
})
