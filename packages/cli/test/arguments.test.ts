/** The command line as people write it. */

import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { readArguments } from "../src/support/arguments.ts"
import { refused, tenureWith, wordsOf } from "./in-process.ts"
import { useServer } from "./server.ts"

const server = useServer()
const { json, lines, print, run } = server

it.each([
  ["--project a members list", "members list --project a"],
  ["members -p a list -x", "members list -x -p a"],
  ["members --project=a list", "members list --project=a"],
  ["x --project", "x --project"],
  ["x -- --project a", "x -- --project a"],
  ["--project a x -- y", "x --project a -- y"],
  ["help members list", "members list --help"],
  ["version", "--version"],
  ["members", "members --help"],
  ["", ""],
])("'%s' is read as '%s'", (line, read) => {
  expect(readArguments(wordsOf(line), ["members"])).toEqual(wordsOf(read))
})

describe("flags", () => {
  it("stand before or after the command", async () => {
    await print`projects create --project p`
    await print`--project p members grant 1 2098-01-01`
    await print`members -p p grant 1 2098-01-01 --json`
    await print`--json --yes members grant 1 2098-01-01 --project=p`
  })

  it("answer questions in advance in every command, also where there are none", async () => {
    await print`projects create q`
    for (const id of ["1", "2"]) await print`members grant ${id} 2098-01-01 -p q`
    const webhook = await json`webhooks create https://x.example/ -p q`
    const key = await json`keys issue -p q --yes`
    await print`keys revoke ${key.id} --yes`
    await print`webhooks rotate ${webhook.id} -y -p q`
    await print`webhooks delete --yes ${webhook.id} -p q`
    await print`members end 1 --yes -p q`
    await print`members erase 2 --project q -y`
    await print`--yes projects delete --project q`
    const revoked = { id: key.id, revoked_at: expect.stringMatching(/^2/) }
    expect(await lines`keys list`).toContainEqual(expect.objectContaining(revoked))
    expect(await print`projects list`).not.toContain("q ")
  })
})

it("a command that erases asks, and a project is deleted only by its name", async () => {
  const given = tenureWith({ ...server.environment(), TENURE_PROJECT: "p" })
  expect(await given.run`members erase 1`).toMatchObject(refused(2, "--yes"))
  expect(await given.run`projects delete --yes`).toMatchObject({ code: 2 })
})

it("a group of commands shows its help without a server", async () => {
  const without = tenureWith({})
  for (const group of ["members", "projects", "keys", "webhooks", "profiles"])
    expect(await without.print`${group}`).toContain("SUBCOMMANDS")
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  expect(await without.print`version`).toContain(version)
})

describe("a wrong command line", () => {
  it("has an unknown command as its only error", async () => {
    const { code, stderr } = await run`members erace 1001 --project p`
    expect(code).toBe(2)
    expect(stderr).toMatch(/Unknown subcommand "erace"[^]*erase/)
    expect(stderr).not.toContain("Unrecognized flag")
  })

  it.each([
    "projects lst",
    "projects delete",
    "members list --state none",
    "members grant 1 2026-02-30 -p p",
    "projects list --token tnr_secret",
  ])("is exit code 2, and prints nothing to standard output: %s", async (line) => {
    const { code, stderr, stdout } = await run`${wordsOf(line)}`
    expect([code, stdout]).toEqual([2, ""])
    expect(stderr).toMatch(/See tenure .*--help/)
    expect(stderr).not.toContain("tnr_secret")
  })

  it.each([
    ["members import nofile -p p", /^The file nofile cannot be used: no such file/],
    ["verify nofile --id=1 --timestamp=1 --signature=v1,a", /^The file nofile cannot/],
    ["members grant 1 someday -p p", /Expected: a date, such as 2027-01-31/],
    ["trigger a.b -p p --data {", /Expected: JSON, such as/],
    [
      'trigger a.b -p p --data {"order":9007199254740993}',
      /Expected: JSON, .* with numbers beyond 2\^53 as text/,
    ],
  ])("is told in plain words: %s", async (line, told) => {
    const secret = `whsec_${Buffer.alloc(32).toString("base64")}`
    const withSecret = tenureWith({ ...server.environment(), TENURE_WEBHOOK_SECRET: secret })
    const { stderr } = await withSecret.run`${wordsOf(line)}`
    expect(stderr).toMatch(told)
    expect(stderr).not.toMatch(/FileSystem|Schema/)
  })

  it.each(["members list", "projects get", "projects export", "extend-all 2099-01-01"])(
    "names the flag and the variable for a project: %s",
    async (line) => {
      const told = "--project ID, or TENURE_PROJECT"
      expect(await run`${wordsOf(line)}`).toMatchObject(refused(2, told))
    },
  )

  it("is told as JSON to programs", async () => {
    const { code, stderr } = await run`projects delete --json`
    expect(code).toBe(2)
    expect(JSON.parse(stderr)).toEqual({
      error: { message: "Missing required argument: project. See tenure projects delete --help" },
    })
  })
})
