/** Imports and exports of members, against the bundled server. */

import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { exportFormat } from "../src/commands/members-export.ts"
import { useProjects } from "./projects.ts"

const { begin } = useProjects()

const fileLines = (path: string): ReadonlyArray<unknown> =>
  readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

it.each(["csv", "ndjson"])("fails if the file cannot be read: %s", async (format) => {
  const { folder, pathOf, tenure } = await begin()
  const given = ["members", "import", folder, "--format", format, "--refused", pathOf("none")]
  const { code, stderr } = await tenure(...given)
  expect(code).toBe(1)
  expect(stderr).toMatch(/^The members cannot be read: EISDIR/)
})

it.each([
  { path: "members.csv", isJson: true, expected: "csv" },
  { path: "members.ndjson", isJson: false, expected: "ndjson" },
  { path: "", isJson: false, expected: "csv" },
  { path: "", isJson: true, expected: "ndjson" },
])("the format of an export to '$path', --json $isJson, is $expected", (given) => {
  expect(exportFormat(given.path, given.isJson)).toBe(given.expected)
})

describe("an import", () => {
  it("takes CSV with quotes, a mark of the encoding, other columns, and dates as people write them", async () => {
    const { fileWith, tenure } = await begin()
    const path = fileWith(
      "members.csv",
      `\uFEFF"name", end_date ,user_id\r`,
      `"a, b",2098-01-01,1\r`,
      "",
      `"x ""y""\nz",2098-01-01T12:00:00.000Z,2`,
      "c,4070908800000,3",
    )
    const { code, stdout } = await tenure("members", "import", path, "--json")
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ members: 3, refused: 0 })
    expect((await tenure("members", "get", "2")).stdout).toContain("2098-01-01T12:00:00.000Z")
  })

  it("takes NDJSON, and a user twice, of whom the last line holds", async () => {
    const { fileWith, tenure } = await begin()
    const path = fileWith(
      "members.ndjson",
      `{"user_id":"1","end_date":"2097-01-01"}`,
      `{"user_id":"1","end_date":4070908800000,"other":true}`,
    )
    expect(await tenure("members", "import", path)).toMatchObject({ code: 0 })
    expect((await tenure("members", "get", "1")).stdout).toContain("2099-01-01")
  })

  it("keeps lines that are refused, and imports the others", async () => {
    const { fileWith, tenure } = await begin()
    const path = fileWith(
      "bad.csv",
      "user_id,end_date",
      "1,2098-01-01",
      "a b,2098-01-01",
      "2,2098-02-30",
    )
    const { code, stderr } = await tenure("members", "import", path)
    expect(code).toBe(1)
    expect(stderr).toContain(`2 lines were refused: see ${path}.refused. 1 × user_id must be`)
    expect(stderr).toContain("(first in line 3); 1 × end_date must be a date")
    expect(fileLines(`${path}.refused`)).toEqual([
      expect.objectContaining({ line: 3, given: { user_id: "a b", end_date: "2098-01-01" } }),
      expect.objectContaining({ line: 4, given: { user_id: "2", end_date: "2098-02-30" } }),
    ])
    expect((await tenure("members", "list", "--json")).stdout.trim().split("\n")).toHaveLength(1)
  })

  it("says in a dry run what it would refuse, and changes nothing else", async () => {
    const { fileWith, pathOf, tenure } = await begin()
    const path = fileWith("dry.csv", "user_id,end_date", "1,2098-01-01", "a b,2098-01-01")
    const fine = fileWith("fine.csv", "user_id,end_date", "1,2098-01-01")
    const kept = "from an earlier run"
    for (const file of [path, fine]) writeFileSync(`${file}.refused`, kept)
    expect(await tenure("members", "import", path, "--dry-run")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("This was a dry run: nothing was changed."),
      stderr: expect.stringContaining(
        `1 line was refused: see ${path}.refused. 1 × user_id must be`,
      ),
    })
    expect(fileLines(`${path}.refused`)).toEqual([expect.objectContaining({ line: 3 })])
    await tenure("members", "grant", "2", "2098-01-01")
    await tenure("members", "grant", "3", "2098-01-01")
    const rows = ["user_id,end_date", "1,2098-01-01", "2,2097-01-01", "3,2098-01-01"]
    const counted = fileWith("counted.csv", ...rows)
    const { stdout } = await tenure("members", "import", counted, "--dry-run", "--json")
    expect(JSON.parse(stdout)).toMatchObject({
      members: 3,
      would_grant: 1,
      would_shorten: 1,
      would_stay: 1,
    })
    expect(await tenure("members", "import", fine, "--dry-run")).toMatchObject({ code: 0 })
    expect(readFileSync(`${fine}.refused`, "utf8")).toBe(kept)
    const named = pathOf("named.refused")
    const writing = ["--dry-run", "--refused", named]
    expect((await tenure("members", "import", path, ...writing)).stderr).toContain(`see ${named}.`)
    expect(fileLines(named)).toEqual([expect.objectContaining({ line: 3 })])
    expect((await tenure("members", "list", "--json")).stdout.trim().split("\n")).toHaveLength(2)
    const done = await tenure("members", "import", fine)
    expect(done.stdout).not.toContain("dry run")
    expect(existsSync(`${fine}.refused`)).toBe(false)
  })

  it("takes the columns and dates of a spreadsheet as flags say", async () => {
    const { fileWith, tenure } = await begin()
    const path = fileWith("kunden.csv", "Kundennummer;Ablaufdatum\r", "1001;31.01.2098\r", "")
    expect(await tenure("members", "import", path)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"Kundennummer", "Ablaufdatum"'),
    })
    const map = ["--map", "user_id=Kundennummer", "--map", "end_date=Ablaufdatum"]
    expect(await tenure("members", "import", path, ...map)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("--dates DD.MM.YYYY"),
    })
    const flags = [...map, "--dates", "DD.MM.YYYY"]
    expect(await tenure("members", "import", path, ...flags)).toMatchObject({ code: 0 })
    expect((await tenure("members", "get", "1001")).stdout).toContain("2098-01-31T00:00:00.000Z")
    for (const wrong of [
      ["--dates", "DD.MM"],
      ["--map", "id=x"],
      ["--map", "user_id="],
      [...map, ...map],
    ])
      expect(await tenure("members", "import", path, ...wrong)).toMatchObject({ code: 2 })
  })

  it("is not repeated, unless it is asked to", async () => {
    const { fileWith, tenure } = await begin()
    const path = fileWith("again.csv", "user_id,end_date", "1,2098-01-01")
    await tenure("members", "import", path)
    await tenure("members", "extend", "1", "2099-01-01")
    const again = await tenure("members", "import", path, "--json")
    expect(JSON.parse(again.stdout)).toMatchObject({ members: 1, repeated: 1 })
    expect((await tenure("members", "get", "1")).stdout).toContain("2099-01-01")
    await tenure("members", "import", path, "--run", "2")
    expect((await tenure("members", "get", "1")).stdout).toContain("2098-01-01")
  })

  it("refuses a file that is not there, or has no titles", async () => {
    const { fileWith, pathOf, tenure } = await begin()
    for (const path of [pathOf("none.csv"), fileWith("bare.csv", "1,2098-01-01")])
      expect(await tenure("members", "import", path)).toMatchObject({ code: 2 })
  })
})

it.each(["csv", "ndjson"])(
  "members with metadata are exported as %s and imported, in requests that are not too large",
  async (format) => {
    const { fileWith, pathOf, tenure } = await begin()
    const metadata = { note: "é".repeat(255), plan: `"gold", or 'more'` }
    const lines = Array.from({ length: 6000 }, (_, index) =>
      JSON.stringify({ user_id: String(10_000 + index), end_date: "2098-01-01", metadata }),
    )
    const path = fileWith(`given-${format}.ndjson`, ...lines)
    expect(await tenure("members", "import", path)).toMatchObject({ code: 0 })
    const output = pathOf(`with-metadata.${format}`)
    expect(await tenure("members", "export", "-o", output)).toMatchObject({ code: 0 })
    const other = await begin()
    expect(await other.tenure("members", "import", output)).toMatchObject({ code: 0 })
    const { stdout } = await other.tenure("members", "get", "15999", "--json")
    expect(JSON.parse(stdout)).toMatchObject({ metadata })
  },
)
