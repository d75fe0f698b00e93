/** Command tests that are the same at a server and on a database. */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { DatedChange } from "../src/commands/members-why.ts"
import { type Tenure, jsonLines, refused, temporaryFolder } from "./in-process.ts"

const day = (text: string) => `${text}T00:00:00.000Z`
const dryRun = "\nThis was a dry run: nothing was changed.\n"

/** Tests them by a command that is connected. */
export const testCommands = ({ json, lines, print, run }: Tenure): void => {
  const create = async (project: string, ...members: ReadonlyArray<readonly [string, string]>) => {
    await print`projects create ${project}`
    for (const [user, end] of members) await print`members grant ${user} ${end} -p ${project}`
  }

  it("members are granted, listed, updated and ended", async () => {
    expect(await print`projects create members`).toBe("Created the project members.\n")
    expect(await print`projects create members`).toBe("The project members existed already.\n")
    const p = ["--project", "members"]
    await print`members grant 1 2098-01-01T00:00Z ${p} --set plan=a=b`
    await print`members update 1 ${p} --set=seat=1 --unset trial`
    expect(await run`members update 1 ${p}`).toMatchObject(refused(2, "--set"))
    expect(await run`members update 1 ${p} --set=x`).toMatchObject({ code: 2 })
    await print`members grant 2 2001-01-01T00:00Z ${p} --reason "a test"`
    expect(await print`members list ${p}`).toBe(
      [
        "USER ID  END DATE                  STATE    METADATA",
        "1        2098-01-01T00:00:00.000Z  active   plan=a=b, seat=1",
        "2        2001-01-01T00:00:00.000Z  expired  –",
        "",
      ].join("\n"),
    )
    expect(await lines`members list ${p} --state=expired`).toEqual([
      {
        user_id: "2",
        end_date: day("2001-01-01"),
        through: null,
        kept_day: null,
        state: "expired",
        grace_until: null,
        paused_at: null,
        resumes_at: null,
        metadata: {},
      },
    ])
    expect(await json`members grant 3 tomorrow ${p}`).toMatchObject({
      end_date: expect.stringMatching(/T00:00:00\.000Z$/),
    })
    const before = await json`members get 3 ${p}`
    expect(await json`members grant 3 never --if-absent ${p}`).toEqual({
      ...before,
      created: false,
    })
    expect(await print`members grant 4 never --if-absent ${p}`).toMatch(/^created +yes\n/)
    await print`members end 4 ${p} --yes`
    await print`members grant 3 +30d ${p}`
    expect(await run`members grant 3 +30 ${p}`).toMatchObject(refused(2, "tomorrow, +30d"))
    await print`members end 3 ${p}`
    expect(await run`members get 3 ${p}`).toMatchObject({ code: 3 })
  })

  it("a member is extended, after a question if the end would be earlier", async () => {
    await create("extended")
    const p = ["--project", "extended"]
    await print`members grant 2 2001-01-01T00:00Z ${p} --reason "a test"`
    await print`members extend 2 2099-01-01T00:00:00.000Z ${p}`
    const conflict = await run`members extend 2 2097-01-01T00:00Z --expected 2098-01-01T00:00Z ${p}`
    expect(conflict).toMatchObject(refused(1, "END_DATE_CONFLICT"))
    const [from, to] = [day("2099-01-01"), day("2098-01-01")]
    const kept = { new_end_date: from, previous_end_date: from }
    expect(await json`members extend 2 2097-01-01T00:00Z --never-shorten ${p}`).toEqual(kept)
    const earlier = ["members", "extend", "2", "2098-01-01T00:00Z", ...p]
    expect(await print`${earlier} --dry-run`).toBe(`${from} → ${to}${dryRun}`)
    const question = `ends ${from}, and would end earlier: ${to}. Shorten it?`
    expect(await run`${earlier}`).toMatchObject(refused(2, question))
    expect(await print`${earlier} --yes`).toBe(`${from} → ${to}\n`)
    const byNow = await run`members extend 2 --by=P1D --from=now ${p}`
    expect(byNow).toMatchObject(refused(2, "would end earlier"))
    expect(await lines`members history 2 ${p}`).toMatchObject([
      { action: "extended" },
      { action: "extended" },
      { action: "granted", reason: "a test" },
    ])
  })

  it("a user without a membership is extended with --create, and told to be a member", async () => {
    await create("absent")
    const p = ["--project", "absent"]
    const extend = ["members", "extend", "1", ...p]
    expect(await run`${extend} 2098-01-31`).toMatchObject({ code: 3 })
    const january = `Created: through 2098-01-31 (${day("2098-02-01")}, UTC)`
    expect(await print`${extend} 2098-01-31 --create --dry-run`).toBe(`${january}${dryRun}`)
    expect(await print`${extend} 2098-01-31 --create`).toBe(`${january}\n`)
    expect(await print`${extend} +1mo --create`).toBe(
      `through 2098-01-31 → through 2098-02-28 (${day("2098-03-01")}, UTC)\n`,
    )
    const question = `and would end earlier: ${day("2098-01-01")}. Shorten it?`
    expect(await run`${extend} 2097-12-31 --create`).toMatchObject(refused(2, question))
    const to = day("2098-03-01")
    const kept = { created: false, new_end_date: to, previous_end_date: to }
    expect(await json`${extend} 2097-12-31 --create --never-shorten`).toEqual(kept)
    expect(await json`members extend 2 2098-02-28 --create ${p}`).toEqual({
      created: true,
      new_end_date: to,
    })
    expect(await print`members extend 3 +1mo --create ${p}`).toMatch(/^Created: \S+Z\n$/)
    expect(await lines`members history 3 ${p}`).toMatchObject([{ action: "granted" }])
    const expecting = await run`${extend} 2098-12-31 --create --expected 2098-02-28`
    expect(expecting).toMatchObject(refused(2, "leave out --expected"))
    expect(await run`members extend 1 +1mo --create -p nowhere`).toMatchObject({ code: 3 })
  })

  it("members for life never end, unless a date is set for one or for all", async () => {
    await create("life", ["1", "never"], ["2", "2098-01-01T00:00Z"])
    const p = ["--project", "life"]
    const life = { end_date: null, state: "active" }
    expect(await print`members list ${p}`).toMatch(/^1 +never +active/m)
    expect(await print`members get 1 ${p}`).toMatch(/^end date +never$/m)
    expect(await json`members get 1 ${p}`).toMatchObject(life)
    expect(await print`members history 1 ${p}`).toMatch(/granted +– +never/)
    expect(await print`audit life`).toMatch(/granted +1 +– +never/)

    const told = "a date in the future. Use tenure members grant to make a membership for life"
    expect(await run`members extend 2 never ${p}`).toMatchObject(refused(2, told))
    const byMonth = ["members", "extend", "1", "+1mo", ...p]
    expect(await print`${byMonth}`).toBe("It never ends, as before\n")
    expect(await json`${byMonth} --expected never`).toMatchObject({
      end_date: null,
      previous_end_date: null,
    })
    const later = await run`members extend 2 2099-01-01T00:00Z --expected never ${p}`
    expect(later).toMatchObject(refused(1, "END_DATE_CONFLICT"))
    const dated = ["members", "extend", "1", "2098-01-01T00:00Z", ...p]
    const kept = await print`${dated} --never-shorten`
    expect(kept).toBe("It never ends, as before\n")
    const question = `is for life, and would end: ${day("2098-01-01")}. Shorten it?`
    expect(await run`${dated}`).toMatchObject(refused(2, question))

    await print`extend-all life --by P3D --yes`
    const why = await print`members why 1 ${p}`
    expect(why).toMatch(/^1 of life is a member for life: the membership never ends$/m)
    expect(why).toMatch(/all extended +never +never/)
    expect(await json`members why 1 ${p}`).toMatchObject(life)

    const ended = "1 member for life would get an end date."
    const all = ["extend-all", "life", "2097-01-01T00:00Z"]
    const dry = await print`${all} --dry-run`
    expect(dry).toContain(`1: never → ${day("2097-01-01")}`)
    expect(dry).toContain(`\n${ended}${dryRun}`)
    expect(await json`${all} --dry-run`).toMatchObject({ would_end_lifetime: 1 })
    expect(await run`${all}`).toMatchObject(refused(2, `would be shortened. ${ended}`))
    await print`${all} --yes`
    expect(await json`members get 1 ${p}`).toMatchObject({ end_date: day("2097-01-01") })
    const [bulk] = await lines`members bulk-extensions ${p}`
    await print`members undo ${String(Object(bulk).id)} ${p} --yes`
    expect(await json`members get 1 ${p}`).toMatchObject(life)
    expect(await print`${dated} --yes`).toBe(`never → ${day("2098-01-01")}\n`)
  })

  it("a day as an end date is the last one in the time zone of the project", async () => {
    await print`projects create days`
    await print`projects update days --time-zone Europe/Berlin`
    const p = ["--project", "days"]
    const january = { through: "2098-01-31", end_date: "2098-01-31T23:00:00.000Z" }
    const shown = "through 2098-01-31 (2098-01-31T23:00:00.000Z, Europe/Berlin)"
    expect(await json`members grant 1 2098-01-31 ${p}`).toMatchObject(january)
    expect(await print`members grant 2 --through 2098-01-31 ${p}`).toContain(`end date  ${shown}\n`)
    expect(await print`members get 1 ${p}`).toBe(
      `user id   1\nend date  ${shown}\nstate     active\nmetadata  –\n`,
    )
    expect(await print`members list ${p}`).toMatch(/^1 +through 2098-01-31 +active/m)
    const why = await print`members why 1 ${p}`
    expect(why).toMatch(/^1 of days is active through 2098-01-31, until 2098-01-31T23:00:00.000Z$/m)

    const to = (end: string) => `through 2098-01-31 → ${end}`
    const [february, utc] = ["2098-02-28T23:00:00.000Z", "2098-03-01T00:00:00.000Z"]
    const extend = ["members", "extend", "1", ...p]
    const days = `through 2098-02-28 (${february}, Europe/Berlin)`
    expect(await print`${extend} 2098-02-28 --dry-run`).toBe(`${to(days)}${dryRun}`)
    expect(await print`${extend} --through 2098-02-28 --time-zone UTC --dry-run`).toBe(
      `${january.end_date} → ${utc}${dryRun}`,
    )
    expect(await print`${extend} +1mo --dry-run`).toBe(`${january.end_date} → ${february}${dryRun}`)
    const kept = await run`${extend} 2098-01-30 --expected 2098-02-28`
    expect(kept).toMatchObject(refused(1, "END_DATE_CONFLICT"))
    const earlier = `ends ${january.end_date} (through 2098-01-31), and would end earlier: 2098-01-29T23`
    expect(await run`${extend} 2098-01-29`).toMatchObject(refused(2, earlier))
    expect(await print`${extend} +1mo --expected 2098-01-31`).toBe(`${to(days)}\n`)
    expect(await print`${extend} 2098-02-28`).toBe(`It ends as before: ${days}\n`)
    expect(await print`members get 1 ${p}`).not.toContain("kept day")
    await print`members grant 2 2098-01-30 ${p}`
    await print`members extend 2 --by P1M --time-zone Europe/Berlin ${p}`
    expect(await print`members get 2 ${p}`).toMatch(/^kept day +30$/m)

    await print`members grant 3 2098-01-31 --time-zone UTC ${p}`
    expect(await json`members get 3 ${p}`).toMatchObject({
      through: null,
      end_date: day("2098-02-01"),
    })
    expect(await run`members extend 3 2098-03-31 --expected 2098-01-31 ${p}`).toMatchObject(
      refused(1, `its end date is ${day("2098-02-01")}`),
    )
    const all = ["extend-all", "days", "--through", "2098-03-31"]
    const march = "through 2098-03-31 (2098-03-31T22:00:00.000Z, Europe/Berlin)"
    const asked = `Set the end date of 3 members of days to ${march}?`
    expect(await run`${all}`).toMatchObject(refused(2, asked))
    expect(await print`${all} --dry-run`).toContain(march)
    expect(await json`${all} --yes`).toMatchObject({ new_end_date: "2098-03-31T22:00:00.000Z" })
    expect(await json`${all} --time-zone UTC --dry-run`).toMatchObject({
      new_end_date: day("2098-04-01"),
    })
    expect(await lines`members list ${p}`).toMatchObject(
      ["1", "2", "3"].map((user_id) => ({ user_id, through: "2098-03-31" })),
    )
    const range = ["--from", "2098-03-31", "--to", "2098-05-01", ...p]
    const assumed = async (...args: ReadonlyArray<string>) =>
      (await json`members ends ${range} ${args}`).days.filter(
        ({ ends }: { readonly ends: number }) => ends > 0,
      )
    // The instant at which they end begins the next day.
    const april = [{ day: "2098-05-01", ends: 3, extended: expect.anything() }]
    expect(await assumed("--through", "2098-04-30")).toMatchObject(april)
    expect(await assumed("--extend", "2098-04-30")).toMatchObject(april)
  })

  it("a membership is paused and resumed, and ends later by the time paused", async () => {
    await create("pauses", ["1", "2098-01-31"], ["2", "never"], ["3", "2001-01-01"])
    const p = ["--project", "pauses"]
    const end = day("2098-02-01")
    const paused = await print`members pause 1 --reason summer ${p}`
    expect(paused).toContain(`end date  through 2098-01-31 (${end}, UTC)\n`)
    const { paused_at, ...rest } = await json`members get 1 ${p}`
    expect(rest).toMatchObject({ state: "paused", end_date: end, resumes_at: null })
    expect(paused).toContain(`state     paused since ${paused_at}\n`)
    expect(await lines`members list --state paused ${p}`).toMatchObject([{ user_id: "1" }])
    const listed = await print`members list ${p}`
    expect(listed).toMatch(new RegExp(`^1 +through 2098-01-31 +paused since ${paused_at} `, "m"))
    expect(await print`members ends ${p}`).toMatch(/^active +1$\n^overdue +0$\n^paused +1$/m)
    expect(await print`projects get pauses`).toMatch(/^paused +1$/m)
    const again = await run`members pause 1 ${p}`
    expect(again).toMatchObject(refused(1, "STATE_CONFLICT"))
    expect(await run`members pause 3 ${p}`).toMatchObject(refused(1, "is expired"))
    expect(await run`members pause 4 ${p}`).toMatchObject({ code: 3 })
    expect(await run`members move 1 4 ${p}`).toMatchObject(refused(1, "STATE_CONFLICT"))

    const standing = `1 of pauses is paused since ${paused_at}: the end date ${end} stands`
    const why = await print`members why 1 ${p}`
    expect(why).toContain(standing)
    expect(why).toMatch(new RegExp(`^ +${paused_at} +paused +${end} +${end} .* summer `, "m"))
    expect(why).toMatch(/^→ .* granted /m)
    expect(why).toMatch(/^The date that holds now was set on /m)
    expect(await json`members why 1 ${p}`).toMatchObject({
      state: "paused",
      paused_at,
      resumes_at: null,
      changes: [
        { action: "granted", to: end, sets_current_date: true },
        { action: "paused", from: end, to: end, sets_current_date: false },
      ],
    })
    const resumed = await json`members resume 1 --reason autumn ${p}`
    expect(resumed).toMatchObject({ state: "active", paused_at: null, resumes_at: null })
    expect(Date.parse(resumed.end_date)).toBeGreaterThan(Date.parse(end))
    expect(await json`members why 1 ${p}`).toMatchObject({
      changes: [
        { action: "granted" },
        { action: "paused" },
        { action: "resumed", from: end, to: resumed.end_date, sets_current_date: true },
      ],
    })
    expect(await run`members resume 1 ${p}`).toMatchObject(refused(1, "is active"))
    expect(await print`members pause 2 ${p}`).toMatch(/^end date +never$/m)
    expect(await print`members why 2 ${p}`).toMatch(/paused since \S+: a member for life$/m)
    await print`members end 2 ${p}`
    expect((await json`members why 2 ${p}`).changes).toMatchObject([{}, {}, { action: "ended" }])
  })

  it("a pause ends by itself, with a day or at an instant", async () => {
    await create("until", ["1", "2098-01-01T00:00Z"], ["2", "2098-01-01T00:00Z"])
    const zone = "Pacific/Kiritimati"
    await print`projects update until --time-zone ${zone}`
    const p = ["--project", "until"]
    const endOfDay = (date: string) => ({ resumes_at: expect.stringContaining(date) })
    const through = await json`members pause 1 --through tomorrow ${p}`
    expect(through).toMatchObject(endOfDay("T10:00:00.000Z"))
    await print`members resume 1 ${p}`
    const bare = ["--until", "tomorrow", "--time-zone", "UTC"]
    expect(await json`members pause 1 ${bare} ${p}`).toMatchObject(endOfDay("T00:00:00.000Z"))
    const later = await json`members pause 2 --until +30d ${p}`
    const days = (Date.parse(later.resumes_at) - Date.parse(later.paused_at)) / 86_400_000
    expect(days).toBeCloseTo(30, 2)
    const state = `paused since ${later.paused_at}, until ${later.resumes_at}`
    expect(await print`members get 2 ${p}`).toContain(`state     ${state}\n`)
    expect(await print`members why 2 ${p}`).toContain(`2 of until is ${state}: the end date`)
    await print`members resume 2 ${p}`
    expect(await run`members pause 2 --until 2001-01-01 ${p}`).toMatchObject(
      refused(1, "must be in the future"),
    )

    const soon = new Date(Date.now() + 500).toISOString()
    await print`members pause 2 --until ${soon} ${p}`
    const find = async () => await json`members get 2 ${p}`
    await expect.poll(find, { timeout: 5000 }).toMatchObject({ state: "active", paused_at: null })
    expect(await print`members why 2 ${p}`).toMatch(
      /^The (pause of \S+ has ended by itself, and|date that holds now was set)/m,
    )
  })

  it("a membership is moved to another user id", async () => {
    await create("moves", ["1", "2098-01-31"], ["2", "2097-01-01"])
    const p = ["--project", "moves"]
    const moved = `Moved the membership of 1 to 2. End date: ${day("2098-02-01")}\n`
    expect(await print`members move 1 2 --reason "new id" ${p}`).toBe(moved)
    expect(await run`members get 1 ${p}`).toMatchObject({ code: 3 })
    expect(await json`members get 2 ${p}`).toMatchObject({ through: "2098-01-31" })
    expect(await lines`members history 1 ${p} --action moved`).toMatchObject([{ reason: "new id" }])
    const back = { user_id: "1", end_date: day("2098-02-01") }
    expect(await json`members move 2 1 ${p}`).toEqual(back)
    expect(await run`members move 2 1 ${p}`).toMatchObject({ code: 3 })
    expect(await run`members move 1 1 ${p}`).toMatchObject({ code: 1 })
  })

  it("today and tomorrow are days in the time zone of the project, or another one", async () => {
    await print`projects create today`
    const zone = "Pacific/Kiritimati"
    await print`projects update today --time-zone ${zone}`
    const dayIn = (timeZone: string, later = 0) =>
      new Date(Date.now() + later * 86_400_000).toLocaleDateString("sv", { timeZone })
    const p = ["-p", "today"]
    expect(await json`members grant 1 today ${p}`).toMatchObject({ through: dayIn(zone) })
    expect(await json`members extend 1 tomorrow ${p}`).toMatchObject({
      new_end_date: expect.stringContaining("T10:00:00.000Z"),
    })
    expect(await json`members get 1 ${p}`).toMatchObject({ through: dayIn(zone, 1) })
    expect(await json`members grant 1 --through today --time-zone UTC ${p}`).toMatchObject({
      end_date: day(dayIn("UTC", 1)),
    })
    const wrong = await run`members grant 1 today --time-zone +01:00 ${p}`
    expect(wrong).toMatchObject(refused(2, "--time-zone must be"))
  })

  it.each([
    ["members grant 1 2098-01-31 --through 2098-01-31", "Give either a date"],
    ["members grant 1", "Give either a date"],
    ["members grant 1 never --time-zone UTC", "--time-zone is for a day"],
    ["members grant 1 --through +1mo", "a day, such as 2027-01-31"],
    ["members extend 1 2098-01-31 --by P1M", "Give either a date"],
    ["members extend 1 2098-01-31T00:00Z --time-zone UTC", "--time-zone is for a day"],
    ["members extend 1 2098-01-31 --expected +1mo", "a date, such as"],
    ["members pause 1 --until never", "Without --until, the pause lasts"],
    ["members pause 1 --until 2098-01-31 --through 2098-01-31", "Give either --until"],
    ["members pause 1 --time-zone UTC", "--time-zone is for a day"],
    ["extend-all --by P3D --time-zone UTC", "a day of a duration has 24 hours"],
    ["members ends --extend 2098-01-31 --through 2098-01-31", "Give either --extend"],
    ["members ends --extend never", "--extend must be a date"],
  ])("a wrong end date is refused: %s", async (line, told) => {
    expect(await run`${line.split(" ")} -p none`).toMatchObject(refused(2, told))
  })

  it("a duration from now counts in UTC, or in a time zone", async () => {
    await print`projects create from-now`
    const grant = async (...words: ReadonlyArray<string>) =>
      (await json`members grant 1 ${words} -p from-now`).end_date
    const hours = (end: string) => Math.round((Date.parse(end) - Date.now()) / 3_600_000)
    expect(hours(await grant("+30d"))).toBe(720)
    const shifted = hours(await grant("+1y", "--time-zone", "Europe/Berlin"))
    expect([365 * 24, 366 * 24]).toContain(shifted)
  })

  it("dates and durations are written in several ways", async () => {
    await create("dates", ["2", "2099-01-01T00:00Z"])
    const by = async (...date: ReadonlyArray<string>) =>
      (await json`members extend 2 ${date} -p dates --dry-run`).new_end_date
    expect(await by("+1mo")).toBe(day("2099-02-01"))
    expect(await by("+1y")).toBe(day("2100-01-01"))
    expect(await by("+3d")).toBe(day("2099-01-04"))
    expect(await by("P2W")).toBe(day("2099-01-15"))
    expect(await by("--by", "+2w")).toBe(day("2099-01-15"))
    expect(await by("--by", "PT36H")).toBe("2099-01-02T12:00:00.000Z")
    const wrong = await run`members extend 2 --by "1 month" -p dates`
    expect(wrong).toMatchObject(refused(2, "a duration, such as P1M, PT36H, +1mo or +30d"))
    expect(await run`members extend 2 -p dates`).toMatchObject({ code: 2 })
    expect(await run`members extend 2 +30 -p dates`).toMatchObject(refused(2, "tomorrow, +30d"))
  })

  it("members ends shows a bar for each day, and what an extension of all would change", async () => {
    await create(
      "by-day",
      ["a1", "2098-01-01T00:00Z"],
      ["a2", "2098-01-01T12:00:00.000Z"],
      ["b1", "2098-01-02T00:00Z"],
      ["b2", "2001-01-01T00:00Z"],
    )
    const range = ["--from", "2097-12-31", "--to", "2098-01-02", "--project", "by-day"]
    const text = await print`members ends ${range}`
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
      (await json`members ends ${range} ${args}`).days.map(
        ({ ends }: { readonly ends: number }) => ends,
      )
    expect(await days()).toEqual([0, 2, 1])
    expect(await days("--extend-by", "P1D")).toEqual([0, 0, 2])
    expect(await days("--extend", "2098-01-02T00:00Z")).toEqual([0, 0, 4])
    expect(await days("--extend", "2098-01-01T00:00Z", "--never-shorten")).toEqual([0, 3, 1])
    expect(await run`members ends ${range} --never-shorten`).toMatchObject({ code: 2 })
    expect(await run`members ends ${range} --extend-by P1M`).toMatchObject({ code: 1 })
    expect(await print`projects get by-day`).toMatch(/^ends in 7 days +0$/m)
    const found = await lines`members list --prefix b -p by-day`
    expect(found).toMatchObject([{ user_id: "b1" }, { user_id: "b2" }])
  })

  it("a dry run shows the webhooks that would be sent", async () => {
    await create("dry", ["1", "2098-01-01T00:00Z"])
    await print`webhooks create https://receiver.example/dry -p dry --json`
    const dry = ["-p", "dry", "--dry-run", "--events"]
    const one = await print`members extend 1 2099-01-01T00:00Z ${dry}`
    expect(one).toContain("\n1 webhook would be sent: 1 × membership.extended.")
    expect(one.endsWith(dryRun)).toBe(true)
    expect(one).toContain("membership.extended → https://receiver.example/dry (")
    expect(one).toContain('"new_end_date":"2099-01-01T00:00:00.000Z"')
    expect(await print`extend-all --by P3D ${dry}`).toContain("1 × memberships.extended")
    const file = join(temporaryFolder(), "dry.ndjson")
    writeFileSync(file, '{"user_id":"2","end_date":"2098-01-01"}\n')
    expect(await print`members import ${file} ${dry}`).toContain("1 × memberships.imported")
    expect(await json`members import ${file} ${dry}`).toMatchObject({
      members: 1,
      events: { total: 1, by_type: { "memberships.imported": 1 } },
    })
    const unchanged = [{ user_id: "1", end_date: day("2098-01-01") }]
    expect(await lines`members list -p dry`).toMatchObject(unchanged)
    for (const words of ["members extend 1 2099-01-01T00:00Z", "extend-all 2099-01-01T00:00Z"]) {
      const answer = await run`${words.split(" ")} -p dry --events`
      expect(answer).toMatchObject(refused(2, "--dry-run"))
    }
    await print`members import ${file} -p dry`
    expect(await lines`members list -p dry`).toHaveLength(2)
    // With its webhook, whose delivery would wait.
    await print`projects delete dry --yes`
  })

  it("extend-all tells how many would end earlier, and asks", async () => {
    await create("all", ["1", "2098-01-01T00:00Z"], ["2", "2001-01-01T00:00Z"])
    const counted = { total: 2, new_end_date: day("2097-01-01"), would_shorten: 1 }
    expect(await json`extend-all all 2097-01-01T00:00Z --dry-run`).toMatchObject(counted)
    expect(await json`extend-all 2097-01-01T00:00Z --project all --dry-run`).toMatchObject(counted)
    expect(await print`extend-all 2097-01-01T00:00Z -p=all --dry-run`).toMatch(
      /would shorten +1\n.*This was a dry run: nothing was changed\.\n$/s,
    )
    const told = "1 ends later and would be shortened. Confirm it by --yes."
    expect(await run`extend-all all 2097-01-01T00:00Z --json`).toMatchObject(refused(2, told))
    const gently = ["extend-all", "all", "2097-01-01T00:00Z", "--never-shorten"]
    const stay = "Those that end later stay as they are."
    expect(await run`${gently}`).toMatchObject(refused(2, stay))
    const equal = await run`extend-all all 2098-01-01T00:00Z`
    expect(equal).toMatchObject(refused(2, "? None would end earlier."))
    await print`${gently} --yes`
    expect(await print`members get 1 --project all`).toContain("2098-01-01")
    const soon = new Date(Date.now() + 3 * 86_400_000).toISOString()
    const goesOut = "In 7 days, 2 reminders and 2 ends would be announced, 0 of these in 24 hours."
    expect(await run`extend-all all ${soon}`).toMatchObject(refused(2, goesOut))
    expect(await print`extend-all all ${soon} --dry-run`).toContain(goesOut)
    await print`extend-all all 2097-01-01T00:00Z --yes`
    expect(await print`members get 1 --project all`).toContain("2097-01-01")
  })

  it("members that match are extended, after a question, and once if it is interrupted", async () => {
    const p = ["-p", "some"]
    await print`projects create some`
    for (const [user, plan] of [
      ["1", "gold"],
      ["2", "silver"],
      ["3", "gold"],
    ] as const) {
      await print`members grant ${user} 2098-01-01T00:00Z --set plan=${plan} ${p}`
    }
    const extending = ["members", "extend-some", "--by", "P1D", "--metadata", "plan=gold", ...p]
    const dry = await print`${extending} --dry-run`
    expect(dry).toContain("2 members would be extended. None would end earlier.\n  1: 2098-01-01")
    const question = "Extend 2 members of some? None would end earlier."
    expect(await run`${extending}`).toMatchObject(refused(2, question))
    for (const _ of [1, 2]) {
      expect(await print`${extending} --yes`).toBe("Extended 2 members.\n")
    }
    const dates = (await lines`members list ${p}`).map((one) => Object(one).end_date)
    expect(dates).toEqual(["02", "01", "02"].map((of) => `2098-01-${of}T00:00:00.000Z`))
    const shorter = ["members", "extend-some", "2097-01-01T00:00Z", "--user", "2", ...p]
    const asked = "Extend 1 member of some? 1 member would end earlier."
    expect(await run`${shorter}`).toMatchObject(refused(2, asked))
    expect(await json`${shorter} --yes`).toEqual({ total: 1 })
    const nobody = await run`members extend-some --by P1D ${p}`
    expect(nobody).toMatchObject(refused(2, "Say which members"))
  })

  it("members why tells how an end date came about, and by whom", async () => {
    const why = async (id: string) => {
      const { changes, ...rest } = await json`members why ${id} -p why`
      const dates = changes.map((one: DatedChange) => [
        one.action,
        one.from,
        one.to,
        one.sets_current_date,
      ])
      return { dates, ...rest }
    }
    await print`projects create why`
    await print`members grant 1 2098-01-01T00:00Z -p why --reason paid`
    await print`members update 1 -p why --set=seat=1`
    await print`members extend 1 2098-02-01T00:00Z -p why`
    await print`extend-all why --by=P1D --reason=outage --yes`
    const { id } = await json`members bulk-extensions -p why`
    await print`extend-all why 2098-01-15T00:00Z --never-shorten --yes`
    await print`members grant 2 2097-01-01T00:00Z -p why`
    const extended = [
      ["granted", null, day("2098-01-01"), false],
      ["extended", day("2098-01-01"), day("2098-02-01"), false],
    ]
    const bulk = ["bulk_extended_by", day("2098-02-01"), day("2098-02-02")]
    // The other bulk extension left the member as it was.
    expect((await why("1")).dates).toEqual([...extended, [...bulk, true]])
    const text = await print`members why 1 -p why`
    expect(text).toMatch(/^1 of why is active until 2098-02-02T00:00:00.000Z$/m)
    expect(text).toMatch(/^→ .* all extended +2098-02-01\S+ +2098-02-02\S+ +.+ outage /m)
    expect(text).toMatch(
      /^The date that holds now was set on \d{4}-\S+ by (an admin|tenure:\S+)\.$/m,
    )
    await print`members undo ${id} -p why --yes`
    const undone = ["bulk_undone", day("2098-02-02"), day("2098-02-01"), true]
    expect((await why("1")).dates).toEqual([...extended, [...bulk, false], undone])
    await print`extend-all why 2098-01-01T00:00Z --yes`
    expect((await why("2")).dates).toEqual([
      ["granted", null, day("2097-01-01"), false],
      ["bulk_extended", day("2097-01-01"), day("2098-01-01"), true],
    ])
    await print`members end 2 -p why`
    const gone = await why("2")
    expect(gone).toMatchObject({ end_date: null, state: null })
    expect(gone.dates.at(-1)).toEqual(["ended", day("2098-01-01"), null, false])
    expect(await print`members why 2 -p why`).toContain("2 of why is no member")
    expect(await run`members why 3 -p why`).toMatchObject({ code: 3 })
  })

  it("members are extended by a duration, and all of that is undone", async () => {
    await create("longer", ["1", "2098-01-31T00:00Z"], ["2", "2001-01-01T00:00Z"])
    const p = ["--project", "longer"]
    const endOf = async (user: string) => (await json`members get ${user} ${p}`).end_date
    expect(await run`extend-all longer 2097-01-01T00:00Z --by P3D`).toMatchObject({ code: 2 })
    expect(await run`extend-all longer --by P1M --yes`).toMatchObject({ code: 1 })
    await print`members extend 1 --by P1M ${p}`
    expect(await endOf("1")).toBe(day("2098-02-28"))
    const threeDays = ["extend-all", "longer", "--by", "P3D"]
    expect(await print`${threeDays} --dry-run`).toContain(day("2098-03-03"))
    const question = "end later by P3D? None would end earlier."
    expect(await run`${threeDays}`).toMatchObject(refused(2, question))
    await print`${threeDays} --yes --reason outage`
    expect(await endOf("1")).toBe(day("2098-03-03"))
    const made = await json`members bulk-extensions ${p}`
    expect(made).toMatchObject({ mode: "extend_by", extend_by: "P3D", reason: "outage", total: 2 })
    const undo = ["members", "undo", String(made.id), ...p]
    expect((await run`${undo}`).stderr).toContain("2 members would end earlier.")
    expect(await print`${undo} --dry-run`).toContain(dryRun)
    await print`${undo} --yes`
    expect(await endOf("1")).toBe(day("2098-02-28"))
    expect((await run`${undo} --yes`).stderr).toContain("undone already")
    expect(await print`members bulk-extensions ${p}`).toContain("P3D")
  })

  it("a project is deleted after a question", async () => {
    await print`projects create gone`
    expect(await run`projects delete gone`).toMatchObject({ code: 2 })
    await print`projects delete gone --yes`
    const { code, stderr } = await run`projects get gone --json`
    expect(code).toBe(3)
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "PROJECT_NOT_FOUND" } })
  })

  it("keys are issued and revoked", async () => {
    expect(await run`keys issue`).toMatchObject({ code: 2 })
    const { id, token } = await json`keys issue --all-projects --name k`
    expect(token).toMatch(/^tnr_/)
    expect(await lines`keys list`).toContainEqual(expect.objectContaining({ id, name: "k" }))
    await print`keys revoke ${id}`
    expect(await print`keys list`).toMatch(new RegExp(`${id} +revoked .*20\\d\\d-`))
  })

  it("a project has a time zone, which a dry run leaves", async () => {
    await print`projects create zoned`
    const update = ["projects", "update", "zoned", "--time-zone", "Europe/Berlin"]
    const tried = await print`${update} --dry-run`
    expect(tried).toMatch(/^time zone +Europe\/Berlin$/m)
    expect(tried).toContain(dryRun)
    expect(await print`projects get zoned`).toMatch(/^time zone +UTC$/m)
    expect(await json`${update} --reason moved`).toMatchObject({ time_zone: "Europe/Berlin" })
    expect(await print`projects get zoned`).toMatch(/^time zone +Europe\/Berlin$/m)
    expect(await lines`audit zoned`).toMatchObject([
      { action: "project_changed", subject: "zoned", reason: "moved" },
    ])
    expect(await run`projects update zoned`).toMatchObject(
      refused(2, "--time-zone NAME or --grace"),
    )
    const offset = await run`projects update zoned --time-zone +01:00`
    expect(offset).toMatchObject(refused(1, "time_zone"))
    expect(await run`projects update unknown --time-zone UTC`).toMatchObject({ code: 3 })
  })

  it("a project has grace, and asks before a shorter one lets members expire", async () => {
    const ended = new Date(Date.now() - 3_600_000).toISOString()
    const over = new Date(Date.parse(ended) + 2 * 86_400_000).toISOString()
    await create("grace", ["1", ended], ["2", "2098-01-01T00:00Z"])
    const p = ["--project", "grace"]
    const update = ["projects", "update", "grace", "--grace"]
    const tried = await print`${update} P2D --dry-run`
    expect(tried).toMatch(/^grace +P2D$\n^would reactivate +1$\n^would expire +0$/m)
    expect(tried).toContain(dryRun)
    expect(await print`projects get grace`).toMatch(/^grace +–$/m)
    expect(await print`members why 1 ${p}`).toMatch(`1 of grace has expired: it ended at ${ended}`)

    expect(await json`${update} +2d`).toMatchObject({ grace: "P2D" })
    expect(await print`projects get grace`).toMatch(
      /^active +2$\n^overdue +1$\n^paused +0$\n^expired +0$/m,
    )
    expect(await json`members get 1 ${p}`).toMatchObject({ state: "active", grace_until: over })
    const shown = `active, in grace until ${over}`
    expect(await print`members get 1 ${p}`).toContain(`state     ${shown}\n`)
    expect(await print`members list ${p}`).toContain(`${ended}  ${shown}  –\n`)
    const soon = ["members", "list", "--ending-before", "2098-02-01", ...p]
    expect(await lines`${soon}`).toMatchObject([{ user_id: "1" }, { user_id: "2" }])
    expect(await print`members ends ${p}`).toMatch(/^overdue +1$/m)
    const why = `1 of grace is active, in grace until ${over}: it ended at ${ended}`
    expect(await print`members why 1 ${p}`).toContain(why)
    expect(await json`members why 1 ${p}`).toMatchObject({ grace_until: over })
    // The used days are paid.
    expect(await json`members extend 1 +1d --dry-run ${p}`).toMatchObject({
      new_end_date: new Date(Date.parse(ended) + 86_400_000).toISOString(),
    })

    expect(await json`${update} none --dry-run`).toMatchObject({ would_expire: 1 })
    const question =
      "1 member of grace would expire at once. In 7 days, 0 reminders and 1 end would be announced, 1 of these in 24 hours. Change the grace?"
    expect(await run`${update} none`).toMatchObject(refused(2, question))
    await print`${update} P1D`
    expect(await print`${update} none --yes`).toMatch(/^grace +–$/m)
    expect(await lines`members list --state expired ${p}`).toMatchObject([{ user_id: "1" }])
    expect(await run`${update} soon`).toMatchObject(refused(2, "P7D or +7d, or none"))
    expect(await run`${update} P1M`).toMatchObject(refused(1, "grace"))
  })

  it("the audit trail says who changed what, newest first, since a date", async () => {
    await print`projects create audited`
    await print`members grant 1 2098-01-01T00:00Z -p audited --reason "a test"`
    await print`members extend 1 2099-01-01T00:00Z -p audited`
    expect(await lines`audit audited`).toMatchObject([
      { action: "extended", user_id: "1", to: day("2099-01-01") },
      { action: "granted", user_id: "1", key_id: expect.any(String), reason: "a test" },
    ])
    expect(await print`audit audited`).toMatch(/^AT +ACTION +OF +FROM +TO +BY +REASON\n/)
    for (const project of ["audited", "--project=audited"])
      expect(await print`audit ${project} --since 2099-01-01`).toBe("There are none.\n")
    expect(await print`audit --since 2001-01-01`).toMatch(/ project_created +audited /)
    const [{ key_id, request_id } = {}] = await lines`audit audited`
    const by = [`--key=${String(key_id)}`, `--request=${String(request_id)}`, "--no-announcements"]
    const mine = [{ action: "extended", request_id, key_id }]
    expect(await lines`audit audited ${by} --user 1 --action extended`).toMatchObject(mine)
    expect(await lines`members history 1 -p audited ${by}`).toMatchObject(mine)
    expect(await print`audit audited ${by} --user 2`).toBe("There are none.\n")
    expect(await print`audit audited --until 2001-01-01`).toBe("There are none.\n")
    expect(await lines`audit audited --since 2001-01-01 --action granted`).toHaveLength(1)
    expect(await run`audit audited --action renewed`).toMatchObject({ code: 2 })
    expect(await run`audit --project= --user 1`).toMatchObject({ code: 2 })
    expect(await run`audit unknown`).toMatchObject({ code: 3 })
  })

  it("what a terminal would obey is escaped, as JSON too", async () => {
    await print`projects create hostile`
    const reason = "\u001b]0;mine\u0007 \u009b2J \u202e\r\u2028"
    await print`members grant 1 2098-01-01T00:00Z -p hostile --reason ${reason}`
    for (const words of ["members history 1 -p hostile", "audit hostile"]) {
      expect(await print`${words.split(" ")}`).not.toMatch(/(?!\n)\p{C}/u)
      const asJson = await print`${words.split(" ")} --json`
      expect(asJson).not.toMatch(/(?!\n)\p{C}/u)
      expect(jsonLines(asJson)).toMatchObject([{ reason }])
    }
  })

  it("the status is shown", async () => {
    expect(await print`status`).toContain("all answer")
    expect(await json`status`).toMatchObject({ backlog: { waiting: 0 } })
  })

  describe("trigger", () => {
    it.each([
      "membership.granted",
      "membership.extended",
      "membership.paused",
      "membership.resumed",
      "membership.ended",
      "memberships.imported",
    ])("makes %s happen, and leaves no member", async (type) => {
      await print`projects create triggers`
      await print`trigger ${type} --project triggers`
      expect(await print`members list -p triggers`).toBe("There are none.\n")
    })

    it("publishes events of the host, and events for all only in an empty project", async () => {
      await print`projects create own`
      await print`trigger payment.completed -p own --data ${'{"amount":1}'}`
      await print`trigger memberships.extended -p own`
      await print`members grant 0 2098-01-01T00:00Z -p own`
      for (const type of ["memberships.extended", "membership.ended"])
        expect(await run`trigger ${type} -p own`).toMatchObject({ code: 1 })
    })
  })
}
