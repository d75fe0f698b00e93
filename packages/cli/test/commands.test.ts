/** The commands, against the bundled server and on a database in a folder. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { createServer, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest"
import { lockFolder } from "../../embedded/src/folder.ts"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import type { DatedChange } from "../src/commands/members-why.ts"
import { withoutPassword } from "../src/support/target.ts"
import { startWith, tenureWith } from "./in-process.ts"
import { bareEnvironment, binary } from "./programs.ts"
import { type Server, startServer, token } from "./server.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

let server: Server
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tenure-cli-"))
  const { TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema } = database
  const tenure = await createTenure({ stores: postgres({ url, schema }) })
  await tenure.close()
  server = await startServer()
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const atServer = (...args: ReadonlyArray<string>) =>
  tenureWith({ TENURE_URL: server.url, TENURE_TOKEN: token, XDG_CONFIG_HOME: folder })(...args)

const database = { TENURE_DATABASE_URL: inject("databaseUrl"), TENURE_SCHEMA: "cli" }

const onDatabase = (...args: ReadonlyArray<string>) =>
  tenureWith({ ...database, XDG_CONFIG_HOME: folder })(...args)

const json = (text: string): unknown => JSON.parse(text)

const lines = (text: string): ReadonlyArray<unknown> => text.trim().split("\n").map(json)

describe.each([
  { at: "at a server", tenure: atServer },
  { at: "on a database", tenure: onDatabase },
])("$at", ({ tenure }) => {
  const succeed = async (...args: ReadonlyArray<string>): Promise<string> => {
    const { code, stderr, stdout } = await tenure(...args)
    expect(stderr).toBe("")
    expect(code).toBe(0)
    return stdout
  }

  it("members are granted, listed, extended and ended", async () => {
    expect(await succeed("projects", "create", "members")).toBe("Created the project members.\n")
    expect(await succeed("projects", "create", "members")).toBe(
      "The project members existed already.\n",
    )
    const inProject = ["--project", "members"]
    await succeed("members", "grant", "1", "2098-01-01", ...inProject, "--set", "plan=a=b")
    await succeed("members", "update", "1", ...inProject, "--set=seat=1", "--unset", "trial")
    expect((await tenure("members", "update", "1", ...inProject)).stderr).toContain("--set")
    expect((await tenure("members", "update", "1", ...inProject, "--set=x")).code).toBe(2)
    await succeed("members", "grant", "2", "2001-01-01", ...inProject, "--reason", "a test")
    expect(await succeed("members", "list", ...inProject)).toBe(
      [
        "USER ID  END DATE                  STATE    METADATA",
        "1        2098-01-01T00:00:00.000Z  active   plan=a=b, seat=1",
        "2        2001-01-01T00:00:00.000Z  expired  –",
        "",
      ].join("\n"),
    )
    const expired = await succeed("members", "list", ...inProject, "--state=expired", "--json")
    expect(lines(expired)).toEqual([
      { user_id: "2", end_date: "2001-01-01T00:00:00.000Z", state: "expired", metadata: {} },
    ])
    await succeed("members", "extend", "2", "2099-01-01T00:00:00.000Z", ...inProject)
    const expecting = ["--expected", "2098-01-01", ...inProject]
    const conflict = await tenure("members", "extend", "2", "2097-01-01", ...expecting)
    expect(conflict).toMatchObject({ code: 1 })
    expect(conflict.stderr).toContain("END_DATE_CONFLICT")
    const later = ["members", "extend", "2", "2097-01-01", "--never-shorten", ...inProject]
    expect(json(await succeed(...later, "--json"))).toEqual({
      new_end_date: "2099-01-01T00:00:00.000Z",
      previous_end_date: "2099-01-01T00:00:00.000Z",
    })
    const earlier = ["members", "extend", "2", "2098-01-01", ...inProject]
    const [from, to] = ["2099-01-01T00:00:00.000Z", "2098-01-01T00:00:00.000Z"]
    expect(await succeed(...earlier, "--dry-run")).toBe(
      `${from} → ${to}\nThis was a dry run: nothing was changed.\n`,
    )
    const dates = [["+1mo"], ["+1y"], ["+3d"], ["P2W"], ["--by", "+2w"], ["--by", "PT36H"]].map(
      (one) => succeed("members", "extend", "2", ...one, ...inProject, "--dry-run", "--json"),
    )
    expect((await Promise.all(dates)).map((text) => Object(json(text)).new_end_date)).toEqual([
      "2099-02-01T00:00:00.000Z",
      "2100-01-01T00:00:00.000Z",
      "2099-01-04T00:00:00.000Z",
      "2099-01-15T00:00:00.000Z",
      "2099-01-15T00:00:00.000Z",
      "2099-01-02T12:00:00.000Z",
    ])
    const wrongDuration = await tenure("members", "extend", "2", "--by", "1 month", ...inProject)
    expect(wrongDuration).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("a duration, such as P1M, PT36H, +1mo or +30d"),
    })
    for (const command of ["extend", "grant"]) {
      const wrong = await tenure("members", command, "2", "+30", ...inProject)
      expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("tomorrow, +30d") })
    }
    const tomorrow = await succeed("members", "grant", "3", "tomorrow", ...inProject, "--json")
    expect(json(tomorrow)).toMatchObject({ end_date: expect.stringMatching(/T00:00:00\.000Z$/) })
    await succeed("members", "grant", "3", "+30d", ...inProject)
    await succeed("members", "end", "3", ...inProject)
    const refused = await tenure(...earlier)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(`ends ${from}, and would end earlier: ${to}. Shorten it?`)
    expect(await succeed(...earlier, "--yes")).toBe(`${from} → ${to}\n`)
    const byNow = await tenure("members", "extend", "2", "--by=P1D", "--from=now", ...inProject)
    expect(byNow.stderr).toContain("would end earlier")
    const history = lines(await succeed("members", "history", "2", ...inProject, "--json"))
    expect(history).toMatchObject([
      { action: "extended" },
      { action: "extended" },
      { action: "granted", reason: "a test" },
    ])
    await succeed("members", "end", "2", ...inProject)
    expect(await tenure("members", "get", "2", ...inProject)).toMatchObject({ code: 3 })
  })

  it("members ends shows a bar for each day, and what an extension of all would change", async () => {
    await succeed("projects", "create", "by-day")
    const inProject = ["--project", "by-day"]
    for (const [id, date] of [
      ["a1", "2098-01-01"],
      ["a2", "2098-01-01T12:00:00.000Z"],
      ["b1", "2098-01-02"],
      ["b2", "2001-01-01"],
    ]) {
      await succeed("members", "grant", String(id), String(date), ...inProject)
    }
    const range = ["--from", "2097-12-31", "--to", "2098-01-02", ...inProject]
    const text = await succeed("members", "ends", ...range)
    expect(text).toMatch(/^active +3$/m)
    expect(text).toMatch(/^expired +1$/m)
    expect(text.split("\n").slice(-5)).toEqual([
      "DAY         EXTENDED  ENDS",
      "2097-12-31  0         0",
      `2098-01-01  0         2     ${"█".repeat(40)}`,
      `2098-01-02  0         1     ${"█".repeat(20)}`,
      "",
    ])
    const days = async (...args: ReadonlyArray<string>) =>
      Object(json(await succeed("members", "ends", ...range, "--json", ...args))).days.map(
        ({ ends }: { readonly ends: number }) => ends,
      )
    expect(await days()).toEqual([0, 2, 1])
    expect(await days("--extend-by", "P1D")).toEqual([0, 0, 2])
    expect(await days("--extend", "2098-01-02")).toEqual([0, 0, 4])
    expect(await days("--extend", "2098-01-01", "--never-shorten")).toEqual([0, 3, 1])
    expect((await tenure("members", "ends", ...range, "--never-shorten")).code).toBe(2)
    expect((await tenure("members", "ends", ...range, "--extend-by", "P1M")).code).toBe(1)
    expect(await succeed("projects", "get", "by-day")).toMatch(/^ends in 7 days +0$/m)
    const found = await succeed("members", "list", "--prefix", "b", ...inProject, "--json")
    expect(lines(found)).toMatchObject([{ user_id: "b1" }, { user_id: "b2" }])
  })

  it("a dry run shows the webhooks that would be sent", async () => {
    await succeed("projects", "create", "dry")
    const inProject = ["--project", "dry"]
    await succeed("members", "grant", "1", "2098-01-01", ...inProject)
    await succeed("webhooks", "create", "https://receiver.example/dry", ...inProject, "--json")
    const dry = [...inProject, "--dry-run", "--events"]
    const one = await succeed("members", "extend", "1", "2099-01-01", ...dry)
    expect(one).toContain("\n1 webhook would be sent: 1 × membership.extended.")
    expect(one).toMatch(/\nThis was a dry run: nothing was changed\.\n$/)
    expect(one).toContain("membership.extended → https://receiver.example/dry (")
    expect(one).toContain('"new_end_date":"2099-01-01T00:00:00.000Z"')
    expect(await succeed("extend-all", "--by", "P3D", ...dry)).toContain("1 × memberships.extended")
    const file = join(folder, "dry.ndjson")
    writeFileSync(file, '{"user_id":"2","end_date":"2098-01-01"}\n')
    expect(await succeed("members", "import", file, ...dry)).toContain("1 × memberships.imported")
    expect(json(await succeed("members", "import", file, ...dry, "--json"))).toMatchObject({
      members: 1,
      events: { total: 1, by_type: { "memberships.imported": 1 } },
    })
    const listed = await succeed("members", "list", ...inProject, "--json")
    expect(lines(listed)).toMatchObject([{ user_id: "1", end_date: "2098-01-01T00:00:00.000Z" }])
    for (const command of [
      ["members", "extend", "1", "2099-01-01"],
      ["extend-all", "2099-01-01"],
    ]) {
      const refused = await tenure(...command, ...inProject, "--events")
      expect(refused).toMatchObject({ code: 2 })
      expect(refused.stderr).toContain("--dry-run")
    }
    await succeed("members", "import", file, ...inProject)
    expect(lines(await succeed("members", "list", ...inProject, "--json"))).toHaveLength(2)
    // With its webhook, whose delivery would wait.
    await succeed("projects", "delete", "dry", "--yes")
  })

  it("extend-all tells how many would end earlier, and asks", async () => {
    await succeed("projects", "create", "all")
    await succeed("members", "grant", "1", "2098-01-01", "--project", "all")
    await succeed("members", "grant", "2", "2001-01-01", "--project", "all")
    expect(
      json(await succeed("extend-all", "all", "2097-01-01", "--dry-run", "--json")),
    ).toMatchObject({
      total: 2,
      new_end_date: "2097-01-01T00:00:00.000Z",
      would_shorten: 1,
    })
    const flagged = ["extend-all", "2097-01-01", "--project", "all", "--dry-run", "--json"]
    expect(json(await succeed(...flagged))).toMatchObject({ total: 2 })
    expect(await succeed("extend-all", "2097-01-01", "-p=all", "--dry-run")).toMatch(
      /would shorten +1\n.*This was a dry run: nothing was changed\.\n$/s,
    )
    const { code, stderr } = await tenure("extend-all", "all", "2097-01-01", "--json")
    expect(code).toBe(2)
    expect(stderr).toContain("1 ends later and would be shortened. Confirm it by --yes.")
    const gently = ["extend-all", "all", "2097-01-01", "--never-shorten"]
    expect((await tenure(...gently)).stderr).toContain("Those that end later stay as they are.")
    await succeed(...gently, "--yes")
    expect(await succeed("members", "get", "1", "--project", "all")).toContain("2098-01-01")
    await succeed("extend-all", "all", "2097-01-01", "--yes")
    expect(await succeed("members", "get", "1", "--project", "all")).toContain("2097-01-01")
  })

  it("members why tells how an end date came about, and by whom", async () => {
    await succeed("projects", "create", "why")
    const inWhy = ["--project", "why"]
    const day = (text: string) => `${text}T00:00:00.000Z`
    const why = async (id: string) =>
      Object(json(await succeed("members", "why", id, ...inWhy, "--json")))
    const datesOf = ({ changes }: { readonly changes: ReadonlyArray<DatedChange> }) =>
      changes.map((one) => [one.action, one.from, one.to, one.sets_current_date])
    await succeed("members", "grant", "1", "2098-01-01", ...inWhy, "--reason", "paid")
    await succeed("members", "update", "1", ...inWhy, "--set=seat=1")
    await succeed("members", "extend", "1", "2098-02-01", ...inWhy)
    await succeed("extend-all", "why", "--by=P1D", "--reason=outage", "--yes")
    const made = json(await succeed("members", "bulk-extensions", ...inWhy, "--json"))
    await succeed("extend-all", "why", "2098-01-15", "--never-shorten", "--yes")
    await succeed("members", "grant", "2", "2097-01-01", ...inWhy)
    const extended = [
      ["granted", null, day("2098-01-01"), false],
      ["extended", day("2098-01-01"), day("2098-02-01"), false],
    ]
    // The other extension of all members left the member as it was.
    expect(datesOf(await why("1"))).toEqual([
      ...extended,
      ["bulk_extended_by", day("2098-02-01"), day("2098-02-02"), true],
    ])
    const text = await succeed("members", "why", "1", ...inWhy)
    expect(text).toMatch(/^1 of why is active until 2098-02-02T00:00:00.000Z$/m)
    expect(text).toMatch(/^→ .* all extended +2098-02-01\S+ +2098-02-02\S+ +.+ outage /m)
    expect(text).toMatch(
      /^The date that holds now was set on \d{4}-\S+ by (seed admin|tenure:\S+)\.$/m,
    )
    await succeed("members", "undo", Object(made).id, ...inWhy, "--yes")
    expect(datesOf(await why("1"))).toEqual([
      ...extended,
      ["bulk_extended_by", day("2098-02-01"), day("2098-02-02"), false],
      ["bulk_undone", day("2098-02-02"), day("2098-02-01"), true],
    ])
    await succeed("extend-all", "why", "2098-01-01", "--yes")
    expect(datesOf(await why("2"))).toEqual([
      ["granted", null, day("2097-01-01"), false],
      ["bulk_extended", day("2097-01-01"), day("2098-01-01"), true],
    ])
    await succeed("members", "end", "2", ...inWhy)
    const gone = await why("2")
    expect(gone).toMatchObject({ end_date: null, state: null })
    expect(datesOf(gone).at(-1)).toEqual(["ended", day("2098-01-01"), null, false])
    expect(await succeed("members", "why", "2", ...inWhy)).toContain("2 of why is no member")
    expect(await tenure("members", "why", "3", ...inWhy)).toMatchObject({ code: 3 })
  })

  it("members are extended by a duration, and all of that is undone", async () => {
    await succeed("projects", "create", "longer")
    const inLonger = ["--project", "longer"]
    const endOf = async (user: string) => {
      const { end_date }: { readonly end_date: string } = JSON.parse(
        await succeed("members", "get", user, ...inLonger, "--json"),
      )
      return end_date
    }
    await succeed("members", "grant", "1", "2098-01-31", ...inLonger)
    await succeed("members", "grant", "2", "2001-01-01", ...inLonger)
    expect((await tenure("members", "extend", "1", ...inLonger)).code).toBe(2)
    expect((await tenure("extend-all", "longer", "2097-01-01", "--by", "P3D")).code).toBe(2)
    expect((await tenure("extend-all", "longer", "--by", "P1M", "--yes")).code).toBe(1)
    await succeed("members", "extend", "1", "--by", "P1M", ...inLonger)
    expect(await endOf("1")).toBe("2098-02-28T00:00:00.000Z")
    const threeDays = ["extend-all", "longer", "--by", "P3D"]
    expect(await succeed(...threeDays, "--dry-run")).toContain("2098-03-03T00:00:00.000Z")
    const asked = await tenure(...threeDays)
    expect(asked.code).toBe(2)
    expect(asked.stderr).toContain("end later by P3D? None would end earlier.")
    await succeed(...threeDays, "--yes", "--reason", "outage")
    expect(await endOf("1")).toBe("2098-03-03T00:00:00.000Z")
    const made: { readonly id: string } = JSON.parse(
      await succeed("members", "bulk-extensions", ...inLonger, "--json"),
    )
    expect(made).toMatchObject({ mode: "extend_by", extend_by: "P3D", reason: "outage", total: 2 })
    const undo = ["members", "undo", made.id, ...inLonger]
    expect((await tenure(...undo)).stderr).toContain("2 members would end earlier.")
    expect(await succeed(...undo, "--dry-run")).toContain(
      "\nThis was a dry run: nothing was changed.\n",
    )
    await succeed(...undo, "--yes")
    expect(await endOf("1")).toBe("2098-02-28T00:00:00.000Z")
    expect((await tenure(...undo, "--yes")).stderr).toContain("undone already")
    expect(await succeed("members", "bulk-extensions", ...inLonger)).toContain("P3D")
  })

  it("a project is deleted after a question", async () => {
    await succeed("projects", "create", "gone")
    expect(await tenure("projects", "delete", "gone")).toMatchObject({ code: 2 })
    await succeed("projects", "delete", "gone", "--yes")
    expect(await tenure("projects", "get", "gone", "--json")).toMatchObject({ code: 3 })
    const { stderr } = await tenure("projects", "get", "gone", "--json")
    expect(json(stderr)).toMatchObject({ error: { code: "PROJECT_NOT_FOUND" } })
  })

  it("keys are issued and revoked", async () => {
    expect(await tenure("keys", "issue")).toMatchObject({ code: 2 })
    const issued = json(await succeed("keys", "issue", "--all-projects", "--name", "k", "--json"))
    expect(issued).toMatchObject({ token: expect.stringMatching(/^tnr_/) })
    const key = lines(await succeed("keys", "list", "--json")).find((one) =>
      JSON.stringify(one).includes('"name":"k"'),
    )
    if (typeof key !== "object" || key === null || !("id" in key)) expect.fail("no key")
    await succeed("keys", "revoke", String(key.id))
    expect(await succeed("keys", "list")).toMatch(
      new RegExp(`${String(key.id)} +revoked .*20\\d\\d-`),
    )
  })

  it("the audit trail says who changed what, newest first, since a date", async () => {
    await succeed("projects", "create", "audited")
    await succeed("members", "grant", "1", "2098-01-01", "-p", "audited", "--reason", "a test")
    await succeed("members", "extend", "1", "2099-01-01", "-p", "audited")
    const changes = lines(await succeed("audit", "audited", "--json"))
    expect(changes).toMatchObject([
      { action: "extended", user_id: "1", to: "2099-01-01T00:00:00.000Z" },
      { action: "granted", user_id: "1", key_id: expect.any(String), reason: "a test" },
    ])
    expect(await succeed("audit", "audited")).toMatch(/^AT +ACTION +OF +FROM +TO +BY +REASON\n/)
    expect(await succeed("audit", "audited", "--since", "2099-01-01")).toBe("There are none.\n")
    expect(await succeed("audit", "--since", "2001-01-01")).toMatch(/ project_created +audited /)
    expect(await tenure("audit", "unknown")).toMatchObject({ code: 3 })
    expect(await succeed("audit", "--project", "audited", "--since", "2099-01-01")).toBe(
      "There are none.\n",
    )
  })

  it("what a terminal would obey is escaped, as JSON too", async () => {
    await succeed("projects", "create", "hostile")
    const reason = "\u001b]0;mine\u0007 \u009b2J \u202e\r\u2028"
    await succeed("members", "grant", "1", "2098-01-01", "-p", "hostile", "--reason", reason)
    const commands = [
      ["members", "history", "1", "-p", "hostile"],
      ["audit", "hostile"],
    ]
    for (const command of commands) {
      expect(await succeed(...command)).not.toMatch(/(?!\n)\p{C}/u)
      const asJson = await succeed(...command, "--json")
      expect(asJson).not.toMatch(/(?!\n)\p{C}/u)
      expect(json(asJson)).toMatchObject({ reason })
    }
  })

  it("the status is shown", async () => {
    expect(await succeed("status")).toContain("all answer")
    expect(json(await succeed("status", "--json"))).toMatchObject({ backlog: { waiting: 0 } })
  })

  it.each([
    "membership.granted",
    "membership.extended",
    "membership.ended",
    "memberships.imported",
  ])("triggers %s without leaving a member", async (type) => {
    await succeed("projects", "create", "triggers")
    await succeed("trigger", type, "--project", "triggers")
    expect(await succeed("members", "list", "-p", "triggers")).toBe("There are none.\n")
  })

  it("triggers events of the host, and events for all only in an empty project", async () => {
    await succeed("projects", "create", "own")
    await succeed("trigger", "payment.completed", "-p", "own", "--data", '{"amount":1}')
    await succeed("trigger", "memberships.extended", "-p", "own")
    await succeed("members", "grant", "0", "2098-01-01", "-p", "own")
    expect(await tenure("trigger", "memberships.extended", "-p", "own")).toMatchObject({ code: 1 })
    expect(await tenure("trigger", "membership.ended", "-p", "own")).toMatchObject({ code: 1 })
  })
})

describe("trigger leaves no member", () => {
  const none = "There are none.\n"

  const listed = async (project: string) =>
    (await onDatabase("members", "list", "-p", project)).stdout

  it("when it is interrupted", async () => {
    await onDatabase("projects", "create", "interrupted")
    // No server announces anything here, so it waits.
    const args = ["trigger", "membership.expired", "-p", "interrupted"]
    const running = startWith({ ...database, XDG_CONFIG_HOME: folder })(...args)
    await expect.poll(() => listed("interrupted")).not.toBe(none)
    await running.interrupt()
    expect(await listed("interrupted")).toBe(none)
  })

  it("when what it does fails", async () => {
    await atServer("projects", "create", "failing")
    const proxy = createServer(({ headers, method = "", url: path = "" }, response) => {
      if (method === "PATCH") return void response.writeHead(403).end()
      const onward = request(new URL(path, server.url), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      response.req.pipe(onward)
    })
    onTestFinished(() => void proxy.close())
    const port = await freePort()
    await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve))
    const failing = tenureWith({ TENURE_URL: `http://127.0.0.1:${port}`, TENURE_TOKEN: token })
    expect(await failing("trigger", "membership.extended", "-p", "failing")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("403"),
    })
    expect((await atServer("members", "list", "-p", "failing")).stdout).toBe(none)
  })

  it("of an earlier run that was killed", async () => {
    await onDatabase("projects", "create", "killed")
    const child = spawn("/bin/sh", ["-c", `exec ${binary} trigger membership.expired -p killed`], {
      env: { ...bareEnvironment, ...database },
      stdio: "ignore",
    })
    const closed = once(child, "close")
    await expect.poll(() => listed("killed")).not.toBe(none)
    child.kill("SIGKILL")
    await closed
    expect(await listed("killed")).not.toBe(none)
    const again = await onDatabase("trigger", "memberships.imported", "-p", "killed")
    expect(again).toMatchObject({ code: 0 })
    expect(await listed("killed")).toBe(none)
  })

  it("but those who are members otherwise", async () => {
    await onDatabase("projects", "create", "kept")
    await onDatabase("trigger", "membership.granted", "-p", "kept")
    await onDatabase("members", "grant", "0", "2099-01-01", "-p", "kept")
    expect(await onDatabase("trigger", "membership.granted", "-p", "kept")).toMatchObject({
      code: 1,
      stderr: "0 is already a member. Pass a --user that is not.\n",
    })
    expect(await listed("kept")).toContain("2099")
  })
})

it("triggers the disabling of a webhook without leaving one", async () => {
  await atServer("projects", "create", "disabling")
  const { close, received, until, url } = await startReceiver()
  onTestFinished(close)
  await atServer("webhooks", "create", url, "-p", "disabling", "--type", "webhook.disabled")
  expect(await atServer("trigger", "webhook.disabled", "-p", "disabling")).toMatchObject({
    code: 0,
  })
  await until(1)
  expect(received[0]?.body).toContain("webhook.disabled")
  expect(lines((await atServer("webhooks", "list", "-p", "disabling", "--json")).stdout)).toEqual([
    expect.objectContaining({ url, disabled_at: null }),
  ])
})

it.each(["membership.expiring", "membership.expired"])(
  "triggers %s without leaving a member",
  async (type) => {
    await atServer("projects", "create", "ends")
    expect(await atServer("trigger", type, "-p", "ends")).toMatchObject({ code: 0 })
    expect((await atServer("members", "list", "-p", "ends")).stdout).toBe("There are none.\n")
    const { stdout } = await atServer("members", "history", "0", "-p", "ends")
    expect(stdout).toContain(type.replace("membership.", ""))
  },
)

describe("webhooks", () => {
  it("are created, pinged, rotated and deleted, and their secret is hidden", async () => {
    const { close, received, until, url } = await startReceiver()
    onTestFinished(close)
    await atServer("projects", "create", "hooks")
    const created = json(
      (await atServer("webhooks", "create", url, "-p", "hooks", "--json")).stdout,
    )
    if (
      typeof created !== "object" ||
      created === null ||
      !("id" in created && "secret" in created)
    )
      expect.fail("no webhook")
    const [id, secret] = [String(created.id), String(created.secret)]
    const about = [id, "-p", "hooks"]

    await atServer("webhooks", "ping", ...about)
    await until(1)
    const [ping] = received
    if (ping === undefined) expect.fail("no ping")

    for (const args of [
      ["list", "-p", "hooks"],
      ["get", ...about],
    ]) {
      expect((await atServer("webhooks", ...args)).stdout).toContain(id)
      expect((await atServer("webhooks", ...args)).stdout).not.toContain(secret)
      expect((await atServer("webhooks", ...args, "--json")).stdout).not.toContain(secret)
    }
    expect((await atServer("webhooks", "get", ...about, "--show-secret")).stdout).toContain(secret)

    const body = join(folder, "body.json")
    writeFileSync(body, ping.body)
    const withSecret = tenureWith({ TENURE_WEBHOOK_SECRET: secret })
    const { headers } = ping
    const about2 = ["--id", String(headers["webhook-id"])]
    about2.push("--timestamp", String(headers["webhook-timestamp"]))
    const verify = ["verify", body, ...about2, "--signature", String(headers["webhook-signature"])]
    expect(await withSecret(...verify)).toMatchObject({
      code: 0,
      stdout: "Genuine: webhook.ping\n",
    })
    expect((await withSecret("sign", body, ...about2)).stdout).toContain(
      `webhook-signature: ${headers["webhook-signature"]}\n`,
    )
    writeFileSync(body, "{}")
    expect(await withSecret(...verify)).toMatchObject({ code: 1 })

    await expect
      .poll(async () => (await atServer("webhooks", "deliveries", ...about)).stdout)
      .toMatch(/webhook\.ping +delivered +1/)
    const connection = { TENURE_URL: server.url, TENURE_TOKEN: token }
    const onTerminal = await tenureWith(connection, 80)("webhooks", "deliveries", ...about)
    expect(onTerminal.stdout).toMatch(/^EVENT ID +TYPE +STATE +ATTEMPTS/)
    expect(Math.max(...onTerminal.stdout.split("\n").map((line) => line.length))).toBe(80)
    const delivery = ["delivery", id, String(headers["webhook-id"]), "-p", "hooks"]
    const shown = (await atServer("webhooks", ...delivery)).stdout
    expect(shown).toContain(`POST ${url}`)
    expect(shown).toMatch(/^attempt 1 .*answered 2\d\d/m)
    expect((await atServer("webhooks", "list", "-p", "hooks")).stdout).toMatch(
      / enabled +HTTP 2\d\d · \d+ s ago +http\S+ +– +0$/m,
    )
    expect((await atServer("webhooks", "replay", ...about)).code).toBe(2)
    // The ping is not sent again.
    await atServer("members", "grant", "1", "2098-01-01", "-p", "hooks")
    await expect
      .poll(async () => (await atServer("webhooks", "deliveries", ...about)).stdout)
      .toMatch(/membership\.granted +delivered +1/)
    const since = ["--since", "2001-01-01"]
    const dry = await atServer(
      "webhooks",
      "replay",
      ...about,
      ...since,
      "--only",
      "all",
      "--dry-run",
    )
    expect(dry.stdout).toBe(
      "1 event would be sent again.\nThis was a dry run: nothing was changed.\n",
    )
    const types = ["--type", "membership.extended", "--type", "membership.ended"]
    const replayed = await atServer("webhooks", "replay", ...about, ...since, ...types)
    expect(replayed.stdout).toBe("0 events are sent again.\n")
    const asked = await atServer("webhooks", "replay", ...about, ...since, "--only", "all")
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("Send 1 event to")])
    const all = await atServer("webhooks", "replay", ...about, ...since, "--only", "all", "--yes")
    expect(all.stdout).toBe("1 event is sent again.\n")
    const edited = join(folder, "headers")
    writeFileSync(edited, "X-Hidden: whisper\nX-Other:also: this\n")
    const edit = (...changes: ReadonlyArray<string>) =>
      atServer("webhooks", "edit", ...about, "--json", ...changes)
    const described = ["--type", "test.happened", "--description", "A shop", "--rate", "500"]
    const changes = [...described, "--header", "X-A: 1", "--header", `@${edited}`]
    expect(json((await edit(...changes)).stdout)).toMatchObject({
      event_types: ["test.happened"],
      rate: 500,
      description: "A shop",
      header_names: ["x-a", "x-hidden", "x-other"],
    })
    const back = ["--all-types", "--any-rate", "--description", "", "--remove-header", "x-a"]
    const disabled = (await edit(...back, "--disable")).stdout
    expect(json(disabled)).toMatchObject({
      event_types: null,
      rate: null,
      description: null,
      header_names: ["x-hidden", "x-other"],
      disabled_by: "request",
    })
    expect(disabled).not.toContain("whisper")
    expect((await edit()).code).toBe(2)
    expect((await edit("--rate", "1", "--any-rate")).code).toBe(2)
    expect((await edit("--header", "X-Hidden whisper")).stderr).not.toContain("whisper")
    expect(json((await edit("--enable")).stdout)).toMatchObject({ disabled_by: null })
    expect((await atServer("webhooks", "enable", ...about)).code).toBe(0)
    expect((await atServer("webhooks", "rotate", ...about)).stdout).toContain("secret")
    expect((await atServer("webhooks", "delete", ...about)).code).toBe(0)
    expect((await atServer("webhooks", "get", ...about)).code).toBe(3)
  })
})

describe("a connection", () => {
  const environment = (given: Readonly<Record<string, string>> = {}) =>
    tenureWith({ XDG_CONFIG_HOME: join(folder, "config"), ...given })

  it("is asked for", async () => {
    const { code, stderr } = await environment()("projects", "list")
    expect(code).toBe(2)
    expect(stderr).toContain("Set TENURE_URL and TENURE_TOKEN")
  })

  it("needs a token", async () => {
    const { code, stderr } = await environment({ TENURE_URL: server.url })("projects", "list")
    expect(code).toBe(2)
    expect(stderr).toContain("TENURE_TOKEN")
  })

  it("with a wrong token is refused", async () => {
    const given = { TENURE_URL: server.url, TENURE_TOKEN: "wrong" }
    const { code, stderr } = await environment(given)("projects", "list")
    expect(code).toBe(1)
    expect(stderr).toContain("UNAUTHORIZED")
  })

  it("that cannot be reached is exit code 4", async () => {
    const given = { TENURE_URL: "http://127.0.0.1:9", TENURE_TOKEN: "any" }
    expect(await environment(given)("projects", "list")).toMatchObject({ code: 4 })
    const unreachable = { TENURE_DATABASE_URL: "postgres://nobody@127.0.0.1:9/none" }
    expect(await environment(unreachable)("projects", "list")).toMatchObject({ code: 4 })
  })

  it("that is no URL is named as users know it", async () => {
    const { code, stderr } = await environment({ TENURE_URL: "127.0.0.1", TENURE_TOKEN: "any" })(
      "projects",
      "list",
    )
    expect(code).toBe(2)
    expect(stderr).toMatch(/^The URL must be an http or https URL/)
  })

  it("is one, not several", async () => {
    const given = { TENURE_URL: server.url, TENURE_DATABASE_URL: "file:./data" }
    expect(await environment(given)("projects", "list")).toMatchObject({ code: 2 })
  })

  it("has no password in an argument", async () => {
    for (const url of [
      "postgres://someone:hidden@127.0.0.1/none",
      "postgres://someone:hidden@/none?host=/cloudsql/p:r:i",
      "postgres://someone@127.0.0.1/none?password=hidden",
    ]) {
      const { code, stderr } = await environment()("projects", "list", "--database", url)
      expect(code).toBe(2)
      expect(stderr).toContain("TENURE_DATABASE_URL")
      expect(stderr).not.toContain("hidden")
    }
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
    const add = ["profiles", "add", "default", "--url", server.url]
    expect(await environment({ TENURE_TOKEN: token })(...add)).toMatchObject({ code: 0 })
    const file = join(folder, "config", "tenure", "profiles.json")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await environment()("projects", "list", "--profile", "default")).toMatchObject({
      code: 0,
    })
    expect(await environment()("projects", "list")).toMatchObject({ code: 0 })
    const listed = await environment()("profiles", "list", "--json")
    expect(lines(listed.stdout)).toEqual([{ name: "default", place: server.url }])
    expect(await environment()("projects", "list", "--profile", "none")).toMatchObject({ code: 2 })

    const nonsense = await environment()("profiles", "add", "x", "--url", "nonsense")
    expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringMatching(/^The URL must be/) })

    chmodSync(file, 0o644)
    const refused = await environment()("projects", "list")
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain(`chmod 600 ${file}`)
    chmodSync(file, 0o600)

    writeFileSync(`${file}.kept`, readFileSync(file))
    writeFileSync(file, "{")
    const broken = await environment()("projects", "list")
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringContaining("mend it, or remove") })
    rmSync(file)
    mkdirSync(file, { mode: 0o700 })
    const unreadable = await environment()("projects", "list")
    expect(unreadable).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^The file .* it is a/),
    })
    rmdirSync(file)
    renameSync(`${file}.kept`, file)
    chmodSync(file, 0o600)

    expect(await environment()("profiles", "remove", "default")).toMatchObject({ code: 0 })
    expect(await environment()("profiles", "remove", "default")).toMatchObject({ code: 3 })
    expect(json(readFileSync(file, "utf8"))).toEqual({})
  })

  it("is kept beside those that are added at the same time, and after a process was killed", async () => {
    const tenure = tenureWith({ XDG_CONFIG_HOME: join(folder, "many"), TENURE_TOKEN: token })
    const names = Array.from({ length: 10 }, (_, index) => `profile-${index}`)
    const add = (name: string) => tenure("profiles", "add", name, "--url", server.url)
    await Promise.all(names.map(add))
    const file = join(folder, "many", "tenure", "profiles.json")
    expect(Object.keys(Object(json(readFileSync(file, "utf8")))).toSorted()).toEqual(names)
    // Of a process that was killed in the middle.
    writeFileSync(`${file}.lock`, "")
    utimesSync(`${file}.lock`, 1_000_000_000, 1_000_000_000)
    expect(await tenure("profiles", "remove", "profile-0")).toMatchObject({ code: 0 })
    expect(readdirSync(join(folder, "many", "tenure"))).toEqual(["profiles.json"])
  })
})

describe("a wrong command line", () => {
  it.each([
    ["projects", "lst"],
    ["projects", "delete"],
    ["members", "list", "--state", "none"],
    ["members", "grant", "1", "2026-02-30", "-p", "p"],
    ["projects", "list", "--token", "tnr_secret"],
  ])("%s %s %s is exit code 2, and prints nothing to standard output", async (...args) => {
    const { code, stderr, stdout } = await atServer(...args)
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr).toMatch(/See tenure .*--help/)
    expect(stderr).not.toContain("tnr_secret")
  })

  it.each([
    [["members", "import", "nofile", "-p", "p"], /^The file nofile cannot be used: no such file/],
    [
      ["verify", "nofile", "--id=1", "--timestamp=1", "--signature=v1,a"],
      /^The file nofile cannot/,
    ],
    [["members", "grant", "1", "someday", "-p", "p"], /Expected: a date, such as 2027-01-31/],
    [["trigger", "a.b", "-p", "p", "--data", "{"], /Expected: JSON, such as/],
    [
      ["trigger", "a.b", "-p", "p", "--data", `{"order":9007199254740993}`],
      /Expected: JSON, .* with numbers beyond 2\^53 as text/,
    ],
  ])("%j is told in plain words", async (args, told) => {
    const { stderr } = await tenureWith({
      TENURE_URL: server.url,
      TENURE_TOKEN: token,
      TENURE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString("base64")}`,
    })(...args)
    expect(stderr).toMatch(told)
    expect(stderr).not.toMatch(/FileSystem|Schema/)
  })

  it.each(["members list", "projects get", "projects export", "extend-all 2099-01-01"])(
    "names the flag and the variable for a project: %s",
    async (command) => {
      const { code, stderr } = await atServer(...command.split(" "))
      expect(code).toBe(2)
      expect(stderr).toContain("--project ID, or TENURE_PROJECT")
    },
  )

  it("is told as JSON to programs", async () => {
    const { code, stderr } = await atServer("projects", "delete", "--json")
    expect(code).toBe(2)
    expect(json(stderr)).toEqual({
      error: { message: "Missing required argument: project. See tenure projects delete --help" },
    })
  })
})

describe("as a process", () => {
  const env = { ...bareEnvironment, TENURE_TOKEN: token }

  beforeAll(() => {
    Object.assign(env, { TENURE_URL: server.url })
  })

  const run = (command: string): Promise<string> =>
    new Promise((resolve) => {
      execFile("/bin/sh", ["-c", command], { env }, (_, stdout, stderr) => resolve(stdout + stderr))
    })

  it("warns of TENURE_ variables that are misspelled", async () => {
    const warning = "There is no variable TENURE_PROJCT. Did you mean TENURE_PROJECT?"
    const errorsOf = (rest: string) =>
      run(`TENURE_PROJCT=p TENURE_PORT=tcp://x ${binary} ${rest} 2>&1 >/dev/null`)
    expect(await errorsOf("--version")).toBe(`${warning}\n`)
    expect(await errorsOf("profiles list --json")).toBe(`{"warning":{"message":"${warning}"}}\n`)
  })

  it("ends with its exit code", async () => {
    expect(await run(`${binary} projects get none --json; echo "code $?"`)).toContain("code 3")
    expect(await run(`${binary} nothing; echo "code $?"`)).toContain("code 2")
  })

  it("prints completions", async () => {
    expect(await run(`${binary} --completions bash`)).toContain("extend-all")
  })

  it.runIf(process.platform === "linux")("asks on a terminal", async () => {
    await atServer("projects", "create", "terminal")
    await atServer("members", "grant", "1", "2098-01-01", "-p", "terminal")
    const extend = `${binary} extend-all terminal 2097-01-01`
    const child = spawn("script", ["-qefc", extend, "/dev/null"], { env })
    let shown = ""
    child.stdout.on("data", (chunk) => {
      if (!shown.includes("shortened") && String(chunk).includes("shortened"))
        child.stdin.write("y")
      shown += String(chunk)
    })
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0)
    expect(shown).toContain("new end date")
  })
})

it("works in the project of a flag, or of TENURE_PROJECT", async () => {
  await atServer("projects", "create", "chosen")
  const environment = { TENURE_URL: server.url, TENURE_TOKEN: token, XDG_CONFIG_HOME: folder }
  const inChosen = tenureWith({ ...environment, TENURE_PROJECT: "chosen" })
  const flagged: typeof atServer = (...args) => atServer(...args, "--project", "chosen")
  for (const tenure of [flagged, inChosen]) {
    expect((await tenure("projects", "get")).stdout).toMatch(/^id +chosen\n/)
    const path = join(folder, "chosen.ndjson")
    expect(await tenure("projects", "export", "-o", path)).toMatchObject({ code: 0 })
    expect(readFileSync(path, "utf8")).toContain('"project_id":"chosen"')
    expect((await tenure("audit")).stdout).toBe("There are none.\n")
  }
  expect((await inChosen("projects", "delete", "--yes")).code).toBe(2)
  const outside = tenureWith({ ...environment, TENURE_PROJECT: "" })
  expect((await outside("audit")).stdout).toMatch(/ project_created +chosen /)
})

it("a folder is used, and says when another process has it", async () => {
  const path = await folderWithDatabase()
  const url = `file:${path}`
  await tenureWith({})("migrate", "--database", url)
  const { code, stdout } = await tenureWith({})("projects", "create", "p", "--database", url)
  expect(stdout).toBe("Created the project p.\n")
  expect(code).toBe(0)
  const { release } = await lockFolder(path)
  onTestFinished(release)
  const mistyped = await tenureWith({})("projects", "list", "--database", `${url}x`)
  expect(mistyped).toMatchObject({ code: 2, stderr: expect.stringContaining("no database") })
  expect(existsSync(`${path}x`)).toBe(false)
  const refused = await tenureWith({})("projects", "list", "--database", url)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("process") })
})
