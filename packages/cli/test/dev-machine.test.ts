/** `tenure dev --from`, from an export to requests for the clock. */

import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { createClient } from "@tenure/client"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { startWith, tenureWith } from "./in-process.ts"
import { bareEnvironment } from "./programs.ts"
import { token, useServer } from "./server.ts"

const server = useServer()
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tenure-machine-"))
})

afterAll(() => rmSync(folder, { recursive: true }))

const day = 86_400_000

const fileWith = (name: string, ...lines: ReadonlyArray<object | string>): string => {
  const path = join(folder, name)
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
  writeFileSync(path, texts.join("\n"))
  return path
}

const environment = () => ({
  ...server.environment(),
  XDG_CONFIG_HOME: folder,
})

/** What the clock shows, or why it does not. */
interface Shown {
  readonly now: string
  readonly next?: { readonly at: string; readonly what: string } | null
  readonly playing?: boolean
}

/** Starts a machine, and waits until it serves. */
const startMachine = async (...args: ReadonlyArray<string>) => {
  const running = startWith(environment())("dev", "--port", "0", ...args)
  onTestFinished(() => void running.interrupt())
  await expect.poll(() => running.printed.stdout).toContain("What happens, and the requests")
  const { stdout } = running.printed
  const url = /The API +(\S+)/.exec(stdout)?.[1] ?? ""
  const key = /The token +(\S+)/.exec(stdout)?.[1] ?? ""
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
  return {
    ...running,
    url,
    authorization,
    post,
    client: createClient({ baseUrl: url, token: key }),
    stdout: () => running.printed.stdout,
  }
}

/** Makes a project with bulk extensions and webhooks at the server, and exports it. */
const exportProject = async () => {
  const project_id = "shop"
  const client = createClient({ baseUrl: server.url(), token })
  const now = Date.now()
  const until = (days: number) => new Date(now + days * day).toISOString()
  await client.projects.create({ project_id })
  await client.memberships.import({
    project_id,
    lines: [-1, 3, 5, 40].map((days) => ({ user_id: `u${days}`, end_date: until(days) })),
  })
  await client.memberships.extendAll({ project_id, extend_by: "P2D" })
  await client.memberships.extendAll({ project_id, extend: until(6), mode: "never_shorten" })
  await client.memberships.extend({ project_id, user_id: "u5", extend: until(20) })
  const url = "http://127.0.0.1:9/hook"
  await client.webhooks.create({
    project_id,
    url,
    ordered: true,
    rate: 500,
    description: "A shop",
    headers: { "X-Tenant": "hidden" },
  })
  await client.webhooks.create({ project_id, url: `${url}/2`, event_types: ["membership.expired"] })
  const path = join(folder, "shop.ndjson")
  const exported = await tenureWith(environment())("projects", "export", project_id, "-o", path)
  expect(exported).toMatchObject({ code: 0 })
  return { project_id, client, path }
}

describe("tenure dev --from", () => {
  it("has the members, end dates and webhooks of an export, and shows what a month brings", async () => {
    const { client, path, project_id } = await exportProject()
    const text = readFileSync(path, "utf8")
    expect(text).not.toMatch(/whsec_|hidden/)
    expect(text).toContain('"header_names":["x-tenant"]')
    expect(
      text
        .split("\n")
        .slice(0, 5)
        .map((line) => JSON.parse(line).record),
    ).toEqual(["project", "bulk_extension", "bulk_extension", "webhook", "webhook"])

    const machine = await startMachine("--from", path, "--at", "+30d", "--fail", "127.0.0.1:9=503")
    const stdout = machine.stdout()
    expect(stdout).toContain("4 members, 2 webhooks")
    expect(stdout).toContain("Bulk extensions before then: 2")
    const datesOf = async (of: typeof client) =>
      (await of.memberships.list({ project_id })).data.map(({ end_date, user_id }) => [
        user_id,
        end_date,
      ])
    expect(await datesOf(machine.client)).toEqual(await datesOf(client))
    const urlsOf = async (of: typeof client) =>
      (await of.webhooks.health({ project_id })).data.map(
        ({ description, event_types, ordered, rate, url }) => [
          url,
          event_types,
          ordered,
          rate,
          description,
        ],
      )
    expect(await urlsOf(machine.client)).toEqual(await urlsOf(client))
    // Two end in a month, both after 6 days: they were reminded of that before.
    const all = /^all +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$/m.exec(stdout)?.slice(1)
    expect(all?.[0]).toBe("3")
    expect(stdout).toContain("→ 503  http://127.0.0.1:9/hook  membership.expiring of u-1")
    expect(stdout).toMatch(/^It is .*, and time stands still/m)
    const expired = await machine.client.memberships.list({ project_id, state: "expired" })
    expect(expired.total).toBe(3)
  })

  it("imports the members of the export of a project", async () => {
    const { path } = await exportProject()
    const tenure = tenureWith(environment())
    await tenure("projects", "create", "other")
    const imported = await tenure("members", "import", path, "--project", "other", "--json")
    expect(imported).toMatchObject({ code: 0 })
    expect(JSON.parse(imported.stdout)).toMatchObject({ members: 4, refused: 0 })
  })

  it("moves, steps, plays and pauses, and answers while time stands still", async () => {
    const member = (user_id: string, end_date: string) => ({ user_id, end_date })
    const path = fileWith(
      "clock.ndjson",
      { record: "project", project_id: "p1", exported_at: "2027-01-01T00:00:00.000Z" },
      member("1", "2027-02-01T00:00:00.000Z"),
      member("2", "2027-06-01T00:00:00.000Z"),
    )
    const { authorization, client, post, stdout, url } = await startMachine("--from", path)
    const start = "2027-01-01T00:00:00.000Z"
    const first = { at: "2027-01-25T00:00:00.000Z", what: "a reminder for 1, 7 d before the end" }
    expect(await post({ advance: 0 })).toEqual({
      status: 200,
      now: start,
      start,
      next: first,
      playing: false,
    })
    expect(await post({ step: true })).toMatchObject({ now: first.at })
    await expect.poll(stdout).toContain("It is 2027-01-25T00:00:00.000Z: 1 event")

    // More requests than any rate limit allows.
    await Promise.all(
      Array.from({ length: 400 }, () => client.memberships.get({ project_id: "p1", user_id: "1" })),
    )
    await client.memberships.extendAll({ project_id: "p1", extend_by: "P1D" })
    await expect.poll(stdout).toContain("memberships.extended")
    expect(await post({ to: "2027-01-31T00:00:00.000Z" })).toMatchObject({
      next: { at: "2027-02-01T00:00:00.000Z", what: "a reminder for 1, 1 d before the end" },
    })
    expect(await post({ play: { days: 300, seconds: 300 } })).toMatchObject({ playing: true })
    const now = async () => {
      const response = await fetch(`${url}/dev/clock`, { headers: { authorization } })
      const shown: Shown = JSON.parse(await response.text())
      return shown.now
    }
    await expect.poll(now).not.toBe("2027-01-31T00:00:00.000Z")
    const paused = await post({ pause: true })
    expect(paused).toMatchObject({ status: 200, playing: false })
    expect(paused.now > "2027-01-31T00:00:00.000Z").toBe(true)
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
    const refused = [
      await post({ step: true }, { authorization: "" }),
      await post({ step: true }, { authorization: `${authorization}x` }),
      await post({ step: true }, { ...page, "sec-fetch-site": "cross-site" }),
      await post({ step: true }, { ...page, "sec-fetch-site": "same-site" }),
      await post({ step: true }, { "content-type": "text/plain" }),
      await post("{"),
      await post("1"),
      await post(" ".repeat(2000)),
    ].map(({ status }) => status)
    expect(refused).toEqual([403, 403, 403, 403, 415, 400, 400, 413])
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
    const signedIn = await fetch(`${url}/console/session`, {
      method: "POST",
      headers: { ...fromPage, authorization },
      body: "{}",
    })
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
    await post({ advance: "400 days" })
    const listed = await fetch(`${url}/console/api/v2/projects`, {
      headers: { ...fromPage, cookie },
    })
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
      const args = line.replaceAll("shop.ndjson", path).split(" ").slice(2)
      if (line.startsWith("npx tenure dev")) await startMachine(...args.slice(1))
      else if (line.startsWith("npx")) {
        expect(await tenureWith(environment())(...args), line).toMatchObject({ code: 0 })
      } else {
        const script = line.replace("http://127.0.0.1:3000", machine.url)
        const env = { ...bareEnvironment, TOKEN: machine.authorization.slice("Bearer ".length) }
        const { stdout } = await promisify(execFile)("/bin/sh", ["-ec", script], { env })
        expect(JSON.parse(stdout)).toMatchObject({ playing: false })
      }
    }
  })

  it("says what is wrong with an export", async () => {
    const tenure = tenureWith(environment())
    const run = async (...args: ReadonlyArray<string>) => {
      const { code, stderr } = await tenure("dev", "--port", "0", ...args)
      return `${code} ${stderr.trim()}`
    }
    const project = { record: "project", project_id: "p1", exported_at: "2027-01-01T00:00:00.000Z" }
    const bad = fileWith("bad.ndjson", project, "nonsense", {
      user_id: "a b",
      end_date: "2027-01-01",
    })
    expect(await run("--from", bad)).toMatch(/^2 No line is a member: 1 × it must be JSON/)
    expect(await run("--from", join(folder, "none.ndjson"))).toMatch(/^2 .*no such file/)
    expect(await run("--at", "+1d")).toMatch(/^2 --at, --fail, --map and --dates are for a copy/)
    expect(await run("folder", "--from", bad)).toMatch(/^2 A copy is in memory/)
    expect(await run("--from", bad, "--at", "2026-01-01")).toMatch(/^2 --at must be/)
    expect(await run("--from", bad, "--fail", "x")).toMatch(/^2/)
    const named = fileWith("named.ndjson", { ...project, project_id: "\u0000" })
    expect(await run("--from", named)).toMatch(/^2 .*project_id must be/)
    const dateless = fileWith("dateless.ndjson", {
      ...project,
      exported_at: "2026-02-30T00:00:00.000Z",
    })
    expect(await run("--from", dateless)).toMatch(/^2 .*Line 1 is wrong: exported_at must be/)
    const nameless = fileWith("nameless.ndjson", { record: "webhook", url: "https://a.example/" })
    expect(await run("--from", nameless)).toMatch(/^2 .*does not name its project/)
    const hooked = fileWith("hooked.ndjson", project, { record: "webhook", url: "ftp://x" })
    expect(await run("--from", hooked)).toMatch(/^1 .*url/)

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
})
