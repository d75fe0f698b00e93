/** Imports and exports of members, against the bundled server on PostgreSQL. */

import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as Http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest"
import { exportFormat } from "../src/commands/members-export.ts"
import { tenureWith } from "./in-process.ts"
import { bareEnvironment, command } from "./programs.ts"
import { type Server, startServer, token } from "./server.ts"

let server: Server
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tenure-import-"))
  server = await startServer({ DATABASE_URL: inject("databaseUrl"), DATABASE_SCHEMA: "imports" })
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const environment = (project: string) => ({
  TENURE_URL: server.url,
  TENURE_TOKEN: token,
  TENURE_PROJECT: project,
})

/** Runs the command in a new project. */
const inProject = async (project: string) => {
  const tenure = tenureWith(environment(project))
  expect(await tenure("projects", "create", project)).toMatchObject({ code: 0 })
  return tenure
}

const fileWith = (name: string, ...lines: ReadonlyArray<string>): string => {
  const path = join(folder, name)
  writeFileSync(path, lines.join("\n"))
  return path
}

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const fileLines = (path: string): ReadonlyArray<unknown> =>
  readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

it.each(["csv", "ndjson"])("fails if the file cannot be read: %s", async (format) => {
  const given = ["members", "import", folder, "--format", format, "--refused", join(folder, "none")]
  const { code, stderr } = await tenureWith(environment("any"))(...given)
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
    const tenure = await inProject("csv")
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
    const tenure = await inProject("ndjson")
    const path = fileWith(
      "members.ndjson",
      `{"user_id":"1","end_date":"2097-01-01"}`,
      `{"user_id":"1","end_date":4070908800000,"other":true}`,
    )
    expect(await tenure("members", "import", path)).toMatchObject({ code: 0 })
    expect((await tenure("members", "get", "1")).stdout).toContain("2099-01-01")
  })

  it("keeps lines that are refused, and imports the others", async () => {
    const tenure = await inProject("refused")
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
    const tenure = await inProject("dry")
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
    const named = join(folder, "named.refused")
    const writing = ["--dry-run", "--refused", named]
    expect((await tenure("members", "import", path, ...writing)).stderr).toContain(`see ${named}.`)
    expect(fileLines(named)).toEqual([expect.objectContaining({ line: 3 })])
    expect((await tenure("members", "list", "--json")).stdout.trim().split("\n")).toHaveLength(2)
    const done = await tenure("members", "import", fine)
    expect(done.stdout).not.toContain("dry run")
    expect(existsSync(`${fine}.refused`)).toBe(false)
  })

  it("takes the columns and dates of a spreadsheet as flags say", async () => {
    const tenure = await inProject("spreadsheet")
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
    const tenure = await inProject("repeated")
    const path = fileWith("again.csv", "user_id,end_date", "1,2098-01-01")
    await tenure("members", "import", path)
    await tenure("members", "extend", "1", "2099-01-01")
    const again = await tenure("members", "import", path, "--json")
    expect(JSON.parse(again.stdout)).toMatchObject({ members: 1, repeated: 1 })
    expect((await tenure("members", "get", "1")).stdout).toContain("2099-01-01")
    await tenure("members", "import", path, "--run", "2")
    expect((await tenure("members", "get", "1")).stdout).toContain("2098-01-01")
  })

  it.each([
    { what: "a file that is not there", path: () => join(folder, "none.csv") },
    { what: "a file without titles", path: () => fileWith("bare.csv", "1,2098-01-01") },
  ])("refuses $what", async ({ path }) => {
    const tenure = await inProject("wrong")
    expect(await tenure("members", "import", path())).toMatchObject({ code: 2 })
  })
})

/** Passes on a number of requests, and breaks the connections of those that follow, after the server has them. */
const startBreaking = async (url: string, after: number) => {
  let left = after
  const proxy = Http.createServer((request, response) => {
    const isCut = left-- <= 0
    const { headers, method = "GET", url: path = "/" } = request
    const onward = Http.request(new URL(path, url), { method, headers }, (answer) => {
      if (isCut) return void request.socket.destroy()
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    onward.on("error", () => request.socket.destroy())
    request.pipe(onward)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${port}`, left: () => left }
}

describe("40,000 members", () => {
  const total = 40_000

  it("arrive once, though the command is killed in the middle, and what they were is exported", async () => {
    const tenure = await inProject("large")
    const members = Array.from(
      { length: total },
      (_, index) => `${100_000 + index},2098-01-01T00:00:00.000Z`,
    )
    const path = fileWith("large.csv", "user_id,end_date", ...members)
    const { left, url } = await startBreaking(server.url, 2)
    const [node = "", ...args] = command("members", "import", path)
    const child = spawn(node, args, {
      env: { ...bareEnvironment, ...environment("large"), TENURE_URL: url },
      stdio: "ignore",
    })
    const ended = new Promise((resolve) => child.once("close", resolve))
    // The third part has been applied, and its answer was lost.
    await expect.poll(left).toBeLessThan(0)
    child.kill("SIGKILL")
    await ended

    const { code, stdout } = await tenure("members", "import", path, "--json")
    expect(code).toBe(0)
    const result = JSON.parse(stdout)
    expect(result).toMatchObject({ members: total, refused: 0 })
    expect(result.repeated).toBeGreaterThanOrEqual(20_000)
    const history = (await tenure("members", "history", "100000", "--json")).stdout
    expect(history.trim().split("\n")).toHaveLength(1)

    const output = join(folder, "exported.csv")
    expect(await tenure("members", "export", "-o", output)).toMatchObject({ code: 0 })
    const exported = readFileSync(output, "utf8").trim().split("\n")
    expect(exported[0]).toBe("user_id,end_date,state,metadata")
    const digest = (lines: ReadonlyArray<string>) =>
      createHash("sha256").update(lines.join("\n")).digest("hex")
    expect(digest(exported.slice(1))).toBe(digest(members.map((line) => `${line},active,`)))
  })
})

it.each(["csv", "ndjson"])(
  "members with metadata are exported as %s and imported, in requests that are not too large",
  async (format) => {
    const tenure = await inProject(`from-${format}`)
    const metadata = { note: "é".repeat(255), plan: `"gold", or 'more'` }
    const lines = Array.from({ length: 6000 }, (_, index) =>
      JSON.stringify({ user_id: String(10_000 + index), end_date: "2098-01-01", metadata }),
    )
    const path = fileWith(`given-${format}.ndjson`, ...lines)
    expect(await tenure("members", "import", path)).toMatchObject({ code: 0 })
    const output = join(folder, `with-metadata.${format}`)
    expect(await tenure("members", "export", "-o", output)).toMatchObject({ code: 0 })
    const other = await inProject(`to-${format}`)
    expect(await other("members", "import", output)).toMatchObject({ code: 0 })
    const { stdout } = await other("members", "get", "15999", "--json")
    expect(JSON.parse(stdout)).toMatchObject({ metadata })
  },
)
