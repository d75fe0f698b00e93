/** Imports and exports at a server. */

import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { memory } from "@tenure/memory"
import { describe, expect, it } from "vitest"
import { exportFormat } from "../src/commands/members-export.ts"
import { jsonLines, refused, tenureWith } from "./in-process.ts"
import { startProxy, useServer } from "./server.ts"

// With all members' changes.
const { begin } = useServer({ stores: memory({ history: 100_000 }) })

const fileLines = (path: string) => jsonLines(readFileSync(path, "utf8"))

it.each([
  { path: "members.csv", isJson: true, expected: "csv" },
  { path: "members.ndjson", isJson: false, expected: "ndjson" },
  { path: "", isJson: false, expected: "csv" },
  { path: "", isJson: true, expected: "ndjson" },
])("the format of an export to '$path', --json $isJson, is $expected", (given) => {
  expect(exportFormat(given.path, given.isJson)).toBe(given.expected)
})

describe("an import", () => {
  it.each(["csv", "ndjson"])("fails if the file cannot be read: %s", async (format) => {
    const { folder, pathOf, run } = await begin()
    const ended = await run`members import ${folder} --format ${format} --refused ${pathOf("none")}`
    expect(ended).toMatchObject(refused(1, "The members cannot be read: EISDIR"))
  })

  it("refuses a file that is not there, or has no titles", async () => {
    const { fileWith, pathOf, run } = await begin()
    for (const path of [pathOf("none.csv"), fileWith("bare.csv", "1,2098-01-01")])
      expect(await run`members import ${path}`).toMatchObject({ code: 2 })
  })

  it("takes CSV, with dates as people write them", async () => {
    const { fileWith, json, print } = await begin()
    const path = fileWith(
      "members.csv",
      `\uFEFF"name", end_date ,user_id\r`,
      `"a, b",2098-01-01,1\r`,
      "",
      `"x ""y""\nz",2098-01-01T12:00:00.000Z,2`,
      "c,4070908800000,3",
    )
    expect(await json`members import ${path}`).toMatchObject({ members: 3, refused: 0 })
    expect(await print`members get 2`).toContain("2098-01-01T12:00:00.000Z")
  })

  it("takes NDJSON, and a user twice, of whom the last line holds", async () => {
    const { fileWith, print } = await begin()
    const path = fileWith(
      "members.ndjson",
      `{"user_id":"1","end_date":"2097-01-01"}`,
      `{"user_id":"1","end_date":4070908800000,"other":true}`,
    )
    await print`members import ${path}`
    expect(await print`members get 1`).toContain("2099-01-01")
  })

  it("keeps lines that are refused, and imports the others", async () => {
    const { fileWith, lines, run } = await begin()
    const rows = ["1,2098-01-01", "a b,2098-01-01", "2,2098-02-30"]
    const path = fileWith("bad.csv", "user_id,end_date", ...rows)
    const { code, stderr } = await run`members import ${path}`
    expect(code).toBe(1)
    expect(stderr).toContain(`2 lines were refused: see ${path}.refused. 1 × user_id must be`)
    expect(stderr).toContain("(first in line 3); 1 × end_date must be a date")
    const problem = expect.any(String)
    expect(fileLines(`${path}.refused`)).toEqual([
      { line: 3, problem, given: { user_id: "a b", end_date: "2098-01-01" } },
      { line: 4, problem, given: { user_id: "2", end_date: "2098-02-30" } },
    ])
    expect(await lines`members list`).toHaveLength(1)
  })

  it("says in a dry run what it would refuse, and changes nothing else", async () => {
    const { fileWith, json, lines, pathOf, print, run } = await begin()
    const path = fileWith("dry.csv", "user_id,end_date", "1,2098-01-01", "a b,2098-01-01")
    const fine = fileWith("fine.csv", "user_id,end_date", "1,2098-01-01")
    const kept = "from an earlier run"
    for (const file of [path, fine]) writeFileSync(`${file}.refused`, kept)
    const told = `1 line was refused: see ${path}.refused. 1 × user_id must be`
    expect(await run`members import ${path} --dry-run`).toMatchObject({
      ...refused(1, told),
      stdout: expect.stringContaining("This was a dry run: nothing was changed."),
    })
    expect(fileLines(`${path}.refused`)).toMatchObject([{ line: 3 }])
    for (const user of ["2", "3"]) await print`members grant ${user} 2098-01-01`
    const rows = ["user_id,end_date", "1,2098-01-01", "2,2097-01-01", "3,2098-01-01"]
    const counted = fileWith("counted.csv", ...rows)
    const would = { members: 3, would_grant: 1, would_shorten: 1, would_stay: 1 }
    expect(await json`members import ${counted} --dry-run`).toMatchObject(would)
    await print`members import ${fine} --dry-run`
    expect(readFileSync(`${fine}.refused`, "utf8")).toBe(kept)
    const named = pathOf("named.refused")
    const writing = await run`members import ${path} --dry-run --refused ${named}`
    expect(writing.stderr).toContain(`see ${named}.`)
    expect(fileLines(named)).toMatchObject([{ line: 3 }])
    expect(await lines`members list`).toHaveLength(2)
    expect(await print`members import ${fine}`).not.toContain("dry run")
    expect(existsSync(`${fine}.refused`)).toBe(false)
  })

  it("takes the columns and dates of a spreadsheet as flags say", async () => {
    const { fileWith, print, run } = await begin()
    const path = fileWith("kunden.csv", "Kundennummer;Ablaufdatum\r", "1001;31.01.2098\r", "")
    const command = ["members", "import", path]
    const titles = '"Kundennummer", "Ablaufdatum"'
    expect(await run`${command}`).toMatchObject(refused(2, titles))
    const map = ["--map", "user_id=Kundennummer", "--map", "end_date=Ablaufdatum"]
    expect(await run`${command} ${map}`).toMatchObject(refused(1, "--dates DD.MM.YYYY"))
    await print`${command} ${map} --dates DD.MM.YYYY`
    expect(await print`members get 1001`).toContain("through 2098-01-31 (2098-02-01T00:")
    for (const wrong of [
      ["--dates", "DD.MM"],
      ["--map", "id=x"],
      ["--map", "user_id="],
    ])
      expect(await run`${command} ${wrong}`).toMatchObject({ code: 2 })
    expect(await run`${command} ${map} ${map}`).toMatchObject({ code: 2 })
  })

  it("counts days in another time zone than that of the project, unless a line has its own", async () => {
    const { fileWith, json, lines, run } = await begin()
    const rows = ["1,2098-01-31,", "2,2098-01-31,UTC", "3,2098-01-31T12:00:00.000Z,"]
    const path = fileWith("zone.csv", "user_id,end_date,time_zone", ...rows)
    const command = ["members", "import", path, "--time-zone"]
    const wrong = await run`${command} +01:00`
    expect(wrong).toMatchObject(refused(2, "--time-zone must be the name of an IANA time zone"))
    expect(await json`members import ${path}`).toMatchObject({ repeated: 0 })
    // Another zone is another import.
    expect(await json`${command} europe/berlin`).toMatchObject({ members: 3, repeated: 0 })
    expect(await lines`members list`).toMatchObject([
      { user_id: "1", end_date: "2098-01-31T23:00:00.000Z", through: null },
      { user_id: "2", end_date: "2098-02-01T00:00:00.000Z", through: "2098-01-31" },
      { user_id: "3", end_date: "2098-01-31T12:00:00.000Z" },
    ])
  })

  it("is not repeated, unless it is asked to", async () => {
    const { fileWith, json, print } = await begin()
    const path = fileWith("again.csv", "user_id,end_date", "1,2098-01-01")
    await print`members import ${path}`
    await print`members extend 1 2099-01-01`
    expect(await json`members import ${path}`).toMatchObject({ members: 1, repeated: 1 })
    expect(await print`members get 1`).toContain("2099-01-01")
    await print`members import ${path} --run 2`
    expect(await print`members get 1`).toContain("2098-01-01")
  })

  it("arrives once, though it was interrupted while an answer was lost", async () => {
    const { environment, fileWith, json, lines } = await begin()
    const ids = Array.from({ length: 11_000 }, (_, index) => String(100_000 + index))
    const path = fileWith("long.csv", "user_id,end_date", ...ids.map((id) => `${id},2098-01-01`))
    let left = 1
    const proxy = await startProxy(environment.TENURE_URL, () => (left-- > 0 ? "passed" : "lost"))
    const losing = tenureWith({ ...environment, TENURE_URL: proxy }).start`members import ${path}`
    // The second part is applied, and its answer is lost.
    await expect.poll(() => left).toBeLessThan(0)
    await losing.interrupt()
    const again = await json`members import ${path}`
    expect(again).toMatchObject({ members: ids.length, refused: 0 })
    expect(again.repeated).toBeGreaterThanOrEqual(10_000)
    for (const id of ["100000", "109999", "110999"])
      expect(await lines`members history ${id}`).toHaveLength(1)
  })
})

it.each(["csv", "ndjson"])("members for life are exported as %s, and imported", async (format) => {
  const { pathOf, print } = await begin()
  await print`members grant 1 never`
  const output = pathOf(`life.${format}`)
  await print`members export -o ${output}`
  const written = format === "csv" ? "\n1,never,,,,,,active,\n" : '"end_date":null,'
  expect(readFileSync(output, "utf8")).toContain(written)
  const other = await begin()
  await other.print`members import ${output}`
  expect(await other.json`members get 1`).toMatchObject({ end_date: null })
})

it.each(["csv", "ndjson"])("pauses are exported as %s, and imported", async (format) => {
  const { json, lines, pathOf, print } = await begin()
  await print`members grant active 2098-01-31`
  await print`members grant endless 2098-01-31T08:00Z`
  await print`members grant until 2098-01-31`
  await print`members pause endless`
  await print`members pause until --until +30d`
  const output = pathOf(`pauses.${format}`)
  await print`members export -o ${output}`
  const { paused_at, resumes_at } = await json`members get until`
  const written =
    format === "csv"
      ? `\nuntil,,2098-01-31,UTC,,${paused_at},${resumes_at},paused,\n`
      : `"paused_at":"${paused_at}","resumes_at":"${resumes_at}","state":"paused"`
  const exported = readFileSync(output, "utf8")
  expect(exported).toContain(written)
  expect(exported).not.toContain("null")
  const other = await begin()
  await other.print`members import ${output}`
  expect(await other.lines`members list`).toEqual(await lines`members list`)
  // A file that says nothing leaves a pause.
  await other.print`members grant endless 2098-02-28T08:00Z`
  expect(await other.json`members get endless`).toMatchObject({
    state: "paused",
    end_date: "2098-02-28T08:00:00.000Z",
  })
})

it.each(["csv", "ndjson"])(
  "days and kept days are exported as %s, and imported into a project in another time zone",
  async (format) => {
    const { json, lines, pathOf, print } = await begin()
    await print`projects update --time-zone Europe/Berlin`
    await print`members grant day 2098-01-31`
    await print`members grant kept 2098-01-30`
    await print`members extend kept +1mo`
    await print`members grant elsewhere 2098-01-31 --time-zone UTC`
    await print`members grant cut 2098-01-31T08:00Z`
    await print`members extend cut +1mo`
    await print`members grant life never`
    const output = pathOf(`days.${format}`)
    await print`members export -o ${output}`
    const members = await lines`members list`
    expect(members).toMatchObject([
      { user_id: "cut", through: null, kept_day: 31 },
      { user_id: "day", through: "2098-01-31", kept_day: null },
      { user_id: "elsewhere", through: null },
      { user_id: "kept", through: "2098-02-28", kept_day: 30 },
      { user_id: "life", end_date: null },
    ])
    const written =
      format === "csv"
        ? "\nkept,,2098-02-28,Europe/Berlin,30,,,active,\n"
        : '{"user_id":"kept","through":"2098-02-28","time_zone":"Europe/Berlin","kept_day":30,'
    expect(readFileSync(output, "utf8")).toContain(written)

    const other = await begin()
    await other.print`projects update --time-zone Asia/Tokyo`
    await other.print`members import ${output}`
    const dates = (rows: ReadonlyArray<unknown>) =>
      rows.map((row) => Reflect.get(Object(row), "end_date"))
    expect(dates(await other.lines`members list`)).toEqual(dates(members))
    await other.print`projects update --time-zone Europe/Berlin`
    expect(await other.lines`members list`).toEqual(members)
    expect(await json`members import ${output} --dry-run`).toMatchObject({ would_stay: 5 })
  },
)

const unusual = ['"', "#?/a", "'a';b", "a,b", 'a,"b"', "auth0|1", "gid://a/B/1", "~%2F\\"]

it.each(["csv", "ndjson"])(
  "members with metadata and any ids are exported as %s and imported, in requests that are not too large",
  async (format) => {
    const { fileWith, pathOf, print } = await begin()
    const metadata = { note: "é".repeat(255), plan: `"gold", or 'more'` }
    const usual = Array.from({ length: 6000 }, (_, index) => String(10_000 + index))
    const members = [...usual, ...unusual].map((user_id) => ({
      user_id,
      end_date: "2098-01-01",
      metadata,
    }))
    const lines = members.map((member) => JSON.stringify(member))
    await print`members import ${fileWith("given.ndjson", ...lines)}`
    const output = pathOf(`exported.${format}`)
    await print`members export -o ${output}`
    const other = await begin()
    await other.print`members import ${output}`
    for (const user_id of [...unusual, "15999"])
      expect(await other.json`members get ${user_id}`).toMatchObject({ user_id, metadata })
    expect(await other.json`projects get`).toMatchObject({ memberships: members.length })
    expect(await other.print`members end -- ${unusual[0] ?? ""}`).toContain(unusual[0])
  },
)
