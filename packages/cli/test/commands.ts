/** The tests of commands that are the same at a server and on a database. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import type { DatedChange } from "../src/commands/members-why.ts"
import type { tenureWith } from "./in-process.ts"

export const json = (text: string): unknown => JSON.parse(text)

export const lines = (text: string): ReadonlyArray<unknown> => text.trim().split("\n").map(json)

/** Tests them by a command that is connected. */
export const testCommands = (tenure: ReturnType<typeof tenureWith>): void => {
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
    const folder = mkdtempSync(join(tmpdir(), "tenure-dry-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
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
}
