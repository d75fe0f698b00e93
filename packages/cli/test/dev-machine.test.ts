/** `tenure dev --from`, from an export to requests for the clock. */

import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createClient } from "@tenure/client"
import { expect, it } from "vitest"
import { wordsOf } from "./in-process.ts"
import { shell } from "./programs.ts"
import { token, useServer } from "./server.ts"

const server = useServer()

const fileWith = (name: string, ...lines: ReadonlyArray<object | string>): string => {
  const path = join(server.folder, name)
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
  writeFileSync(path, texts.join("\n"))
  return path
}

/** What the clock shows. */
interface Shown {
  readonly now: string
}

/** Starts a machine, and waits until it serves. */
const startMachine = async (...args: ReadonlyArray<string>) => {
  const { printed } = server.start`dev --port 0 ${args}`
  await expect.poll(() => printed.stdout).toContain("What happens, and the requests")
  const url = /The API +(\S+)/.exec(printed.stdout)?.[1] ?? ""
  const key = /The token +(\S+)/.exec(printed.stdout)?.[1] ?? ""
  const authorization = `Bearer ${key}`
  const post = async (body: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${url}/dev/clock`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    })
    const shown: Shown = JSON.parse(await response.text())
    return { status: response.status, ...shown }
  }
  const client = createClient({ baseUrl: url, token: key })
  return { url, authorization, post, client, stdout: () => printed.stdout }
}

type Client = ReturnType<typeof createClient>

/** Makes a project with bulk extensions and webhooks at the server, and exports it. */
const exportProject = async () => {
  const project_id = "shop"
  const client = createClient({ baseUrl: server.url(), token })
  const { memberships, projects, webhooks } = client
  const now = Date.now()
  const until = (days: number) => new Date(now + days * 86_400_000).toISOString()
  await projects.create({ project_id })
  const lines = [-1, 3, 5, 40].map((days) => ({ user_id: `u${days}`, end_date: until(days) }))
  const pause = { paused_at: until(-1), resumes_at: until(50) }
  const paused = { user_id: "paused", end_date: until(9), ...pause }
  const life = { user_id: "life", end_date: null }
  await memberships.import({ project_id, lines: [...lines, life, paused] })
  await memberships.extendAll({ project_id, extend_by: "P2D" })
  await memberships.extendAll({ project_id, extend: until(6), mode: "never_shorten" })
  await memberships.extend({ project_id, user_id: "u5", extend: until(20) })
  await projects.update({ project_id, time_zone: "Europe/Berlin", grace: "PT6H" })
  await memberships.grant({ project_id, user_id: "day", through: until(60).slice(0, 10) })
  const url = "http://127.0.0.1:9/hook"
  const headers = { "X-Tenant": "hidden" }
  const options = { ordered: true, rate: 500, description: "A shop", headers }
  await webhooks.create({ project_id, url, ...options })
  await webhooks.create({ project_id, url: `${url}/2`, event_types: ["membership.expired"] })
  const path = join(server.folder, "shop.ndjson")
  await server.print`projects export ${project_id} -o ${path}`
  return { project_id, client, path }
}

it("has the members, end dates and webhooks of an export, and shows what a month brings", async () => {
  const { client, path, project_id } = await exportProject()
  const text = readFileSync(path, "utf8")
  expect(text).not.toMatch(/whsec_|hidden/)
  expect(text).toContain('"header_names":["x-tenant"]')
  const records = text.split("\n").slice(0, 5)
  expect(records.map((line) => JSON.parse(line).record)).toEqual([
    "project",
    "bulk_extension",
    "bulk_extension",
    "webhook",
    "webhook",
  ])

  const month = ["--at", "+30d", "--fail", "127.0.0.1:9=503"]
  const machine = await startMachine("--from", path, ...month)
  const stdout = machine.stdout()
  expect(stdout).toContain("7 members, 2 webhooks")
  expect(stdout).toContain("Bulk extensions before then: 2")
  const pick = (rows: ReadonlyArray<object>, ...fields: ReadonlyArray<string>) =>
    rows.map((row) => fields.map((field): unknown => Reflect.get(row, field)))
  const options = ["url", "event_types", "ordered", "rate", "description"]
  const storedBy = async ({ memberships, projects, webhooks }: Client) => [
    ...pick([(await projects.get({ project_id })).data], "time_zone", "grace"),
    ...pick(
      (await memberships.list({ project_id })).data,
      "user_id",
      "end_date",
      "through",
      "kept_day",
      "paused_at",
      "resumes_at",
    ),
    ...pick((await webhooks.health({ project_id })).data, ...options),
  ]
  expect(await storedBy(client)).toHaveLength(1 + 7 + 2)
  expect(await storedBy(machine.client)).toEqual(await storedBy(client))
  // Two end in a month, both after 6 days: they were reminded before.
  expect(stdout).toMatch(/^DAY +MEMBERSHIP.EXPIRED +MEMBERSHIP.EXPIRING +MEMBERSHIP.OVERDUE /m)
  expect(stdout).toMatch(/^all +3 +\d+ +3( +\d+){4}$/m)
  expect(stdout).toContain("→ 503  http://127.0.0.1:9/hook  membership.expiring of u-1")
  expect(stdout).toMatch(/^It is .*, and time stands still/m)
  const expired = await machine.client.memberships.list({ project_id, state: "expired" })
  expect(expired.total).toBe(3)
})

it("an export of a project is imported into another", async () => {
  const { path } = await exportProject()
  await server.print`projects create other`
  const counted = { members: 7, refused: 0 }
  expect(await server.json`members import ${path} -p other`).toMatchObject(counted)
})

const start = "2027-01-01T00:00:00.000Z"
const project = { record: "project", project_id: "p1", exported_at: start }

it("moves, steps, plays and pauses, and answers while time stands still", async () => {
  const path = fileWith(
    "clock.ndjson",
    project,
    { user_id: "1", end_date: "2027-02-01T00:00:00.000Z" },
    { user_id: "2", end_date: "2027-06-01T00:00:00.000Z" },
  )
  const { authorization, client, post, stdout, url } = await startMachine("--from", path)
  const next = { at: "2027-01-25T00:00:00.000Z", what: "a reminder for 1, 7 d before the end" }
  const begin = { status: 200, now: start, start, next, playing: false }
  expect(await post({ advance: 0 })).toEqual(begin)
  expect(await post({ step: true })).toMatchObject({ now: next.at })
  await expect.poll(stdout).toContain("It is 2027-01-25T00:00:00.000Z: 1 event")

  // More requests than any rate limit allows.
  const { memberships } = client
  const member = { project_id: "p1", user_id: "1" }
  await Promise.all(Array.from({ length: 400 }, () => memberships.get(member)))
  await memberships.extendAll({ project_id: "p1", extend_by: "P1D" })
  await expect.poll(stdout).toContain("memberships.extended")
  const end = "2027-01-31T00:00:00.000Z"
  expect(await post({ to: end })).toMatchObject({
    next: { at: "2027-02-01T00:00:00.000Z", what: "a reminder for 1, 1 d before the end" },
  })
  expect(await post({ play: { days: 300, seconds: 300 } })).toMatchObject({ playing: true })
  const now = async () => {
    const response = await fetch(`${url}/dev/clock`, { headers: { authorization } })
    const shown: Shown = JSON.parse(await response.text())
    return shown.now
  }
  await expect.poll(now).not.toBe(end)
  const paused = await post({ pause: true })
  expect(paused).toMatchObject({ status: 200, playing: false })
  expect(paused.now > end).toBe(true)
  expect(await post({ to: start })).toMatchObject({ status: 400 })
  const past = { status: 400, error: expect.stringContaining("must lead to a time from") }
  expect(await post({ advance: "36525 days" })).toMatchObject(past)
  expect(await post({ to: "2127-01-02T00:00:00.001Z" })).toMatchObject(past)
})

it("refuses to move its clock for pages elsewhere and for programs without the token", async () => {
  const path = fileWith("one.csv", "user_id,end_date", "1,2027-02-01")
  const { authorization, post, url } = await startMachine("--from", path)
  const { now } = await post({ advance: 0 })
  const page = { authorization: "", "sec-fetch-site": "same-origin" }
  const answers = [
    await post({ step: true }, { authorization: "" }),
    await post({ step: true }, { authorization: `${authorization}x` }),
    await post({ step: true }, { ...page, "sec-fetch-site": "cross-site" }),
    await post({ step: true }, { ...page, "sec-fetch-site": "same-site" }),
    await post({ step: true }, { "content-type": "text/plain" }),
    await post("{"),
    await post("1"),
    await post(" ".repeat(2000)),
  ]
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 415, 400, 400, 413])
  expect(await post({ pause: true }, page)).toMatchObject({ status: 200, now })
  const statusOf = async (init: RequestInit) => (await fetch(`${url}/dev/clock`, init)).status
  expect(await statusOf({})).toBe(403)
  expect(await statusOf({ headers: { authorization } })).toBe(200)
  expect(await statusOf({ method: "DELETE", headers: { authorization } })).toBe(405)
})

it("tells the console where the clock is, whose sessions work while time stands still", async () => {
  const path = fileWith("two", "User ID;Ends", "1;01.02.2027")
  const flags = ["--map", "end_date=Ends", "--dates", "DD.MM.YYYY"]
  const { authorization, post, url } = await startMachine("--from", path, ...flags)
  const html = await (await fetch(`${url}/console/`)).text()
  expect(html).toContain('<meta name="tenure-clock" content="/dev/clock" />\n  </head>')
  const fromPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" }
  const signingIn = { method: "POST", headers: { ...fromPage, authorization }, body: "{}" }
  const signedIn = await fetch(`${url}/console/session`, signingIn)
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
  await post({ advance: "400 days" })
  const headers = { ...fromPage, cookie }
  const listed = await fetch(`${url}/console/api/v2/projects`, { headers })
  expect(await listed.json()).toMatchObject({ ok: true, total: 1 })
})

it("does what its page says", async () => {
  const { path } = await exportProject()
  const page = readFileSync(new URL("../../../docs/testing.md", import.meta.url), "utf8")
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code)
  const lines = blocks.join("").trim().split("\n")
  expect(lines).toHaveLength(5)
  const machine = await startMachine("--from", path)
  for (const line of lines) {
    const args = wordsOf(line.replaceAll("shop.ndjson", path)).slice(2)
    if (line.startsWith("npx tenure dev")) await startMachine(...args.slice(1))
    else if (line.startsWith("npx")) {
      expect(await server.run`${args}`, line).toMatchObject({ code: 0 })
    } else {
      const script = line.replace("http://127.0.0.1:3000", machine.url)
      const TOKEN = machine.authorization.slice("Bearer ".length)
      const { stdout } = await shell(script, { TOKEN })
      expect(JSON.parse(stdout)).toMatchObject({ playing: false })
    }
  }
})

it.each<readonly [string, ReadonlyArray<object | string> | undefined, string, RegExp]>([
  [
    "no line is a member",
    [project, "nonsense", { user_id: "a b", end_date: "2027-01-01" }],
    "--from FILE",
    /^2 No line is a member: 1 × it must be JSON/,
  ],
  ["there is no file", undefined, "--from FILE", /^2 .*no such file/],
  ["there is no copy", [], "--at +1d", /^2 --at, --fail, --map and --dates are for a copy/],
  ["a folder is given", [project], "folder --from FILE", /^2 A copy is in memory/],
  ["it is to be left in the past", [project], "--from FILE --at 2026-01-01", /^2 --at must be/],
  ["nothing is to fail", [project], "--from FILE --fail x", /^2/],
  ["the project", [{ ...project, project_id: "\u0000" }], "--from FILE", /^2 .*project_id must be/],
  ["its time zone", [{ ...project, time_zone: "+01:00" }], "--from FILE", /^2 .*time_zone must be/],
  ["its grace", [{ ...project, grace: "P1M" }], "--from FILE", /^2 .*grace must be a duration/],
  [
    "its time",
    [{ ...project, exported_at: "2026-02-30T00:00:00.000Z" }],
    "--from FILE",
    /^2 .*Line 1 is wrong: exported_at must be/,
  ],
  [
    "a webhook's project",
    [{ record: "webhook", url: "https://a.example/" }],
    "--from FILE",
    /^2 .*does not name its project/,
  ],
  ["a webhook's URL", [project, { record: "webhook", url: "ftp://x" }], "--from FILE", /^1 .*url/],
])("says what is wrong with an export: %s", async (name, lines, args, told) => {
  const file = `wrong ${name}.ndjson`
  const path = lines === undefined ? file : fileWith(file, ...lines)
  const words = args.split(" ").map((word) => (word === "FILE" ? path : word))
  const { code, stderr } = await server.run`dev --port 0 ${words}`
  expect(`${code} ${stderr.trim()}`).toMatch(told)
})

it("says which lines of an export are left out", async () => {
  const some = fileWith(
    "some.ndjson",
    project,
    { user_id: "1", end_date: "2027-01-01", metadata: { plan: "" } },
    { user_id: "2", end_date: "2027-01-01" },
    { ...project, project_id: "p2" },
  )
  const { stdout } = await startMachine("--from", some)
  expect(stdout()).toContain("A copy of p1 of 2027-01-01T00:00:00.000Z: 1 member,")
  const left = /^Lines left out: .*$/m.exec(stdout())?.[0]
  expect(left).toContain("1 × it must come before the members (first in line 4)")
  expect(left).toContain("1 × metadata.plan must be")
})
