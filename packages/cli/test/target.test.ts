/** What a command is connected to: a server, a database or a profile, and the project. */

import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { withoutPassword } from "../src/support/target.ts"
import { type Environment, refused, temporaryFolder, tenureWith } from "./in-process.ts"
import { token, useServer } from "./server.ts"

const server = useServer()

it.each<readonly [string, () => Environment, number, string]>([
  ["none is given", () => ({}), 2, "Set TENURE_URL and TENURE_TOKEN"],
  ["there is no token", () => ({ TENURE_URL: server.url() }), 2, "TENURE_TOKEN"],
  [
    "the token is wrong",
    () => ({ TENURE_URL: server.url(), TENURE_TOKEN: "wrong" }),
    1,
    "UNAUTHORIZED",
  ],
  ["no server is there", () => ({ TENURE_URL: "http://127.0.0.1:9", TENURE_TOKEN: "any" }), 4, ""],
  [
    "no database is there",
    () => ({ TENURE_DATABASE_URL: "postgres://nobody@127.0.0.1:9/none" }),
    4,
    "",
  ],
  [
    "the URL is none",
    () => ({ TENURE_URL: "127.0.0.1", TENURE_TOKEN: "any" }),
    2,
    "The URL must be an http or https URL",
  ],
  [
    "a server and a database are given",
    () => ({ TENURE_URL: server.url(), TENURE_DATABASE_URL: "file:./data" }),
    2,
    "",
  ],
])("a connection fails if %s", async (_, environment, code, told) => {
  const given = { XDG_CONFIG_HOME: temporaryFolder(), ...environment() }
  expect(await tenureWith(given).run`projects list`).toMatchObject(refused(code, told))
})

it.each([
  "postgres://someone:hidden@127.0.0.1/none",
  "postgres://someone:hidden@/none?host=/cloudsql/p:r:i",
  "postgres://someone@127.0.0.1/none?password=hidden",
])("a connection has no password in an argument: %s", async (url) => {
  const ended = await tenureWith({}).run`projects list --database ${url}`
  expect(ended).toMatchObject(refused(2, "TENURE_DATABASE_URL"))
  expect(ended.stderr).not.toContain("hidden")
})

it.each([
  ["postgres://someone:hidden@db/none", "postgres://someone@db/none"],
  ["postgres://someone:hid@den@db/none", "postgres://someone@db/none"],
  [
    "postgres://someone:hidden@/none?host=/cloudsql/p:r:i",
    "postgres://someone@/none?host=/cloudsql/p:r:i",
  ],
  ["postgres://someone@db:5433/none?password=hidden", "postgres://someone@db:5433/none"],
  ["postgres://db/none?password=hidden&user=a", "postgres://db/none?user=a"],
  ["postgres://db:5433/none?user=a@b", "postgres://db:5433/none?user=a@b"],
])("shows %s without its password", (url, shown) => {
  expect(withoutPassword(url)).toBe(shown)
})

it("can be a profile, in a file that only its owner may read", async () => {
  const home = temporaryFolder()
  const file = join(home, "tenure", "profiles.json")
  const { lines, print, run } = tenureWith({ XDG_CONFIG_HOME: home })
  const withToken = tenureWith({ XDG_CONFIG_HOME: home, TENURE_TOKEN: token })
  await withToken.print`profiles add default --url ${server.url()}`
  expect(statSync(file).mode & 0o777).toBe(0o600)
  await print`projects list --profile default`
  await print`projects list`
  expect(await lines`profiles list`).toEqual([{ name: "default", place: server.url() }])
  expect(await run`projects list --profile none`).toMatchObject({ code: 2 })
  const nonsense = await run`profiles add x --url nonsense`
  expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringMatching(/^The URL must be/) })

  chmodSync(file, 0o644)
  expect(await run`projects list`).toMatchObject(refused(2, `chmod 600 ${file}`))
  chmodSync(file, 0o600)

  renameSync(file, `${file}.kept`)
  writeFileSync(file, "{", { mode: 0o600 })
  expect(await run`projects list`).toMatchObject(refused(2, "mend it, or remove"))
  renameSync(file, `${file}.broken`)
  mkdirSync(file, { mode: 0o700 })
  expect(await run`projects list`).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The file .* it is a/),
  })
  rmdirSync(file)
  renameSync(`${file}.kept`, file)

  await print`profiles remove default`
  expect(await run`profiles remove default`).toMatchObject({ code: 3 })
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({})
})

it("keeps profiles that are added at the same time, and after a process was killed", async () => {
  const home = temporaryFolder()
  const folder = join(home, "tenure")
  const file = join(folder, "profiles.json")
  const { print } = tenureWith({ XDG_CONFIG_HOME: home, TENURE_TOKEN: token })
  const names = Array.from({ length: 10 }, (_, index) => `profile-${index}`)
  await Promise.all(names.map((name) => print`profiles add ${name} --url ${server.url()}`))
  const kept: object = JSON.parse(readFileSync(file, "utf8"))
  expect(Object.keys(kept).toSorted()).toEqual(names)
  // Of a process that was killed in the middle.
  writeFileSync(`${file}.lock`, "")
  utimesSync(`${file}.lock`, 1_000_000_000, 1_000_000_000)
  await print`profiles remove profile-0`
  expect(readdirSync(folder)).toEqual(["profiles.json"])
})

it("works in the project of a flag, or of TENURE_PROJECT", async () => {
  const { environment, print, pathOf, run } = await server.begin()
  const project = environment.TENURE_PROJECT
  const path = pathOf("exported.ndjson")
  for (const { flags, tenure } of [
    { flags: ["--project", project], tenure: server },
    { flags: [], tenure: { print } },
  ]) {
    expect(await tenure.print`projects get ${flags}`).toMatch(new RegExp(`^id +${project}\\n`))
    await tenure.print`projects export -o ${path} ${flags}`
    expect(readFileSync(path, "utf8")).toContain(`"project_id":"${project}"`)
    expect(await tenure.print`audit ${flags}`).toBe("There are none.\n")
  }
  expect(await run`projects delete --yes`).toMatchObject({ code: 2 })
  const outside = tenureWith({ ...environment, TENURE_PROJECT: "" })
  expect(await outside.print`audit`).toContain(` project_created  ${project} `)
})
