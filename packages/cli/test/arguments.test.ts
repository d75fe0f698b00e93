/** The command line as people write it. */

import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { readArguments } from "../src/support/arguments.ts"
import { tenureWith } from "./in-process.ts"
import { useServer } from "./server.ts"

const server = useServer()

const tenure = (...args: ReadonlyArray<string>) => tenureWith(server.environment())(...args)

const groups = ["members"]

it.each([
  { args: ["--project", "a", "members", "list"], read: ["members", "list", "--project", "a"] },
  { args: ["members", "-p", "a", "list", "-x"], read: ["members", "list", "-x", "-p", "a"] },
  { args: ["members", "--project=a", "list"], read: ["members", "list", "--project=a"] },
  { args: ["x", "--project"], read: ["x", "--project"] },
  { args: ["x", "--", "--project", "a"], read: ["x", "--", "--project", "a"] },
  { args: ["--project", "a", "x", "--", "y"], read: ["x", "--project", "a", "--", "y"] },
  { args: ["help", "members", "list"], read: ["members", "list", "--help"] },
  { args: ["version"], read: ["--version"] },
  { args: ["members"], read: ["members", "--help"] },
  { args: [], read: [] },
])("$args are read as $read", ({ args, read }) => {
  expect(readArguments(args, groups)).toEqual(read)
})

describe("flags", () => {
  it("stand before or after the command", async () => {
    expect(await tenure("projects", "create", "--project", "p")).toMatchObject({ code: 0 })
    const grant = ["members", "grant", "1", "2098-01-01"]
    for (const args of [
      ["--project", "p", ...grant],
      ["members", "-p", "p", ...grant.slice(1), "--json"],
      ["--json", "--yes", ...grant, "--project=p"],
    ])
      expect(await tenure(...args)).toMatchObject({ code: 0 })
  })

  it("answer questions in advance in every command, also where there are none", async () => {
    await tenure("projects", "create", "q")
    for (const id of ["1", "2"]) await tenure("members", "grant", id, "2098-01-01", "-p", "q")
    const created = await tenure("webhooks", "create", "https://x.example/", "-p", "q", "--json")
    const webhook = String(JSON.parse(created.stdout).id)
    const issued = await tenure("keys", "issue", "-p", "q", "--yes", "--json")
    const key = String(JSON.parse(issued.stdout).id)
    for (const args of [
      ["keys", "revoke", key, "--yes"],
      ["webhooks", "rotate", webhook, "-y", "-p", "q"],
      ["webhooks", "delete", "--yes", webhook, "-p", "q"],
      ["members", "end", "1", "--yes", "-p", "q"],
      ["members", "erase", "2", "--project", "q", "-y"],
      ["--yes", "projects", "delete", "--project", "q"],
    ])
      expect(await tenure(...args)).toMatchObject({ code: 0, stderr: "" })
    const keys = await tenure("keys", "list", "--json")
    expect(keys.stdout).toMatch(new RegExp(`"${key}".*"revoked_at":"2`))
    expect((await tenure("projects", "list")).stdout).not.toContain("q ")
  })
})

it("a command that erases asks, and a project is deleted only by its name", async () => {
  expect(await tenure("members", "erase", "1", "-p", "p")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--yes"),
  })
  const given = tenureWith({ ...server.environment(), TENURE_PROJECT: "p" })
  expect(await given("projects", "delete", "--yes")).toMatchObject({ code: 2 })
})

it("an unknown command is the only error", async () => {
  const { code, stderr } = await tenure("members", "erace", "1001", "--project", "p")
  expect(code).toBe(2)
  expect(stderr).toContain('Unknown subcommand "erace"')
  expect(stderr).toContain("erase")
  expect(stderr).not.toContain("Unrecognized flag")
})

it("a group of commands shows its help without a server", async () => {
  for (const group of ["members", "projects", "keys", "webhooks", "profiles"]) {
    const { code, stdout } = await tenureWith({})(group)
    expect(code).toBe(0)
    expect(stdout).toContain("SUBCOMMANDS")
  }
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  expect((await tenureWith({})("version")).stdout).toContain(version)
})
