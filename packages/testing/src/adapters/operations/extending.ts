/** Extending memberships: to a date or by a duration, one or all, tried in dry runs, and undone. */

import { describe, expect } from "vitest"
import {
  type Incoming,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNoDate,
  expectSuccess,
  instant,
  itemsOf,
} from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  asLines,
  endDatesOf,
  extendAll,
  extendOne,
  imports,
  initialEndDate,
  keyed,
  members,
  project,
} from "../harness.ts"

export const validDate = "2099-02-28T12:34:56.789Z"

const later = "2200-01-01T00:00:00.000Z"

/** Values in neither end-date format. The core tests the formats themselves. */
const invalidDates: ReadonlyArray<unknown> = [
  null,
  "",
  [validDate],
  999_999_999_999,
  1_900_000_000_000.5,
  "1900000000000",
  "2099-02-28",
  "2099-02-28T12:34:56.789+00:00",
  "2099-02-29T12:34:56.789Z",
]

/** The same without `null`, which is the end date of a membership for life. */
export const impossibleDates = invalidDates.filter((date) => date !== null)

const unchanged = [initialEndDate, initialEndDate, initialEndDate]

const grant = ({ tenure }: Fixture, endDate: string, userId = "1001") =>
  tenure.memberships.grant({ projectId: "p1", userId, endDate })

/** Extends one membership or all with the client's key. */
const extend = ({ call }: Fixture, path: string, body: unknown, key?: string): Promise<Incoming> =>
  call("PATCH", path, { body, ...(key !== undefined && { headers: keyed(key) }) })

const dateTests = (test: ServerTest): void => {
  test("of one membership returns the new end date in ISO format, and only documented fields", async (fixture) => {
    for (const [input, new_end_date] of [
      [validDate, validDate],
      [4_102_444_800_000, "2100-01-01T00:00:00.000Z"],
      ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ]) {
      // Undocumented fields are ignored.
      const body = { extend: input, total: 7, ok: false, user_id: "1" }
      expectSuccess(await extend(fixture, extendOne, body), { total: 1, data: { new_end_date } })
      expect(await endDatesOf(fixture)).toEqual([new_end_date, initialEndDate, initialEndDate])
    }
    const encoded = "/v2/projects/%701/memberships/%31001/extend"
    expectSuccess(await extend(fixture, encoded, { extend: validDate }), {
      total: 1,
      data: { new_end_date: validDate },
    })
  })

  test("of all memberships counts them, and by default sets also those that end later", async (fixture) => {
    await grant(fixture, later)
    expectSuccess(await extend(fixture, extendAll, { extend: validDate }), {
      total: 3,
      data: { new_end_date: validDate },
    })
    expect(await endDatesOf(fixture)).toEqual([validDate, validDate, validDate])
  })

  test("fails with two errors, one for each format, if `extend` is in neither", async (fixture) => {
    for (const path of [extendOne, extendAll]) {
      for (const input of [undefined, ...invalidDates]) {
        expectNoDate(await extend(fixture, path, { extend: input }))
      }
    }
    expect(await endDatesOf(fixture)).toEqual(unchanged)
  })

  test("fails with one error if `extend` is not in the future", async (fixture) => {
    for (const path of [extendOne, extendAll]) {
      for (const past of [1_000_000_000_000, Date.now() - 1, "0000-01-01T00:00:00.000Z"]) {
        const response = await extend(fixture, path, { extend: past })
        expectInvalid(response, "extend must be a future timestamp")
      }
    }
    expect(await endDatesOf(fixture)).toEqual(unchanged)
  })

  test("fails if the user has no membership, or the user id is invalid, in a dry run too", async (fixture) => {
    for (const user of ["9999", "abc", "%31%30x", "a%20b", "__proto__"]) {
      for (const dry_run of [false, true]) {
        const body = { extend: validDate, dry_run }
        const response = await extend(fixture, `${members}/${user}/extend`, body)
        expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
      }
    }
  })
}

/** Both endpoints refuse these fields beside the date, with their names in the message. */
const refusedByBoth: ReadonlyArray<readonly [body: object, problem: string]> = [
  ...["neverShorten", "SET", "", null, ["set"]].map((mode) => [{ mode }, "mode"] as const),
  ...["", "r".repeat(501), "\ud800", null, 7].map((reason) => [{ reason }, "reason"] as const),
  ...["true", 1, null].map((dry_run) => [{ dry_run }, "dry_run"] as const),
  ...["true", null].map((events) => [{ events, dry_run: true }, "events"] as const),
  [{ events: true }, "events"],
  [{ events: true, dry_run: false }, "events"],
  [{ extend_by: "P1D" }, "extend"],
]

/** Misspelled fields. Ignoring them would remove a protection the client expects. */
const misspelled: ReadonlyArray<readonly [body: object, problem: string]> = [
  ["dryRun", "dry_run"],
  ["dry-run", "dry_run"],
  ["_DRY__run", "dry_run"],
  ["expected_enddate", "expected_end_date"],
  ["Mode", "mode"],
  ["Reason", "reason"],
  ["Events", "events"],
  ["neverShorten", 'mode": "never_shorten'],
  ["never_shorten", 'mode": "never_shorten'],
].map(([wrong = "", right = ""]) => [{ [wrong]: true }, `${wrong} must be written "${right}"`])

/** Duration fields, and their refusals. */
const refusedDurations: ReadonlyArray<readonly [body: object, problem: string]> = [
  ...["", "P", "P0D", "P-1D", "P1.5D", "1 day", 3, null, []].map(
    (extend_by) => [{ extend_by }, "extend_by"] as const,
  ),
  [{ extend_by: "P1D", mode: "set" }, "mode"],
  [{ extend_by: "P1D", dry_run: 1 }, "dry_run"],
  [{ extendBy: "P1D", extend: validDate }, "extend_by"],
]

const refusalTests = (test: ServerTest): void => {
  test("fails if another field is invalid or misspelled, which changes nothing", async (fixture) => {
    const ofOne = impossibleDates.map(
      (date) => [{ expected_end_date: date }, "expected_end_date"] as const,
    )
    const ofAll = [[{ expected_end_date: initialEndDate }, "expected_end_date"]] as const
    for (const [path, more] of [
      [extendOne, ofOne],
      [extendAll, ofAll],
    ] as const) {
      for (const [fields, problem] of [...refusedByBoth, ...misspelled, ...more]) {
        expectInvalid(await extend(fixture, path, { extend: validDate, ...fields }), problem)
      }
    }
    expect(await endDatesOf(fixture)).toEqual(unchanged)
  })

  test("by a duration fails if a field is invalid, or there is no idempotency key", async (fixture) => {
    const ofOne = [
      [{ extend_by: "P1D", from: "yesterday" }, "from"],
      [{ extend_by: "P9000Y" }, "extend_by"],
      [{ extend_by: "P1D", expected_end_date: "soon" }, "expected_end_date"],
    ] as const
    const ofAll = [
      [{ extend_by: "P1M" }, "extend_by"],
      [{ extend_by: "P3654D" }, "extend_by"],
      [{ extend_by: "P1D", from: "now" }, "from"],
      [{ extend_by: "P1D", expected_end_date: validDate }, "expected_end_date"],
    ] as const
    for (const [path, more] of [
      [extendOne, ofOne],
      [extendAll, ofAll],
    ] as const) {
      for (const [body, problem] of [...refusedDurations, ...more]) {
        expectInvalid(await extend(fixture, path, body, "refused"), problem)
      }
      expectInvalid(await extend(fixture, path, { extend_by: "P1D" }), "Idempotency-Key")
    }
    expect(await endDatesOf(fixture)).toEqual(unchanged)
  })

  test("fails if a field that it reads is there twice, and ignores whatever it does not know", async (fixture) => {
    const date = `"extend":"${validDate}"`
    for (const path of [extendOne, extendAll]) {
      for (const field of ["extend", "dry_run", "reason", "mode", "events"]) {
        const response = await extend(fixture, path, `{${date},"${field}":1,"${field}":1}`)
        expectInvalid(response, `${field} must not be there twice`)
      }
      expect(await endDatesOf(fixture)).toEqual(unchanged)
    }
    const others = `"days":30,"":1,"id":12345678901234567890,"of":{"mode":1,"mode":2},"days":1e400`
    for (const path of [extendOne, extendAll]) {
      expect((await extend(fixture, path, `{${date},${others}}`)).status).toBe(200)
    }
  })
}

const conditionTests = (test: ServerTest): void => {
  test("is made if the membership has the expected end date, in either format, and is told another", async (fixture) => {
    for (const expected_end_date of [initialEndDate, Date.parse(initialEndDate)]) {
      await grant(fixture, initialEndDate)
      const body = { extend: validDate, expected_end_date }
      expect((await extend(fixture, extendOne, body)).status).toBe(200)
      for (const more of [{}, { dry_run: true }, { mode: "never_shorten" }]) {
        const response = await extend(fixture, extendOne, { ...body, ...more })
        expectFailure(response, 409, "END_DATE_CONFLICT", { current_end_date: validDate })
      }
    }
  })

  test("with `never_shorten` extends what ends earlier, leaves what ends later, and answers when it ends", async (fixture) => {
    const { tenure } = fixture
    const keeping = { extend: validDate, mode: "never_shorten" }
    const kept = { total: 1, data: { new_end_date: later } }
    const triedToKeep = { total: 1, data: { new_end_date: later, announcements: noneAnnounced } }
    await grant(fixture, later)
    const before = await tenure.memberships.history({ projectId: "p1" })
    for (const fields of [{}, { dry_run: true }, { expected_end_date: later }]) {
      const response = await extend(fixture, extendOne, { ...keeping, ...fields })
      const expected = "dry_run" in fields ? triedToKeep : kept
      expect(expectSuccess(response, expected).message).toContain("nothing was changed")
    }
    const first = expectSuccess(await extend(fixture, extendOne, keeping, "left"), kept)
    expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    await grant(fixture, initialEndDate)
    const repeated = expectSuccess(await extend(fixture, extendOne, keeping, "left"), kept)
    expect(repeated.message).toBe(first.message)
    const extended = { total: 1, data: { new_end_date: validDate } }
    expectSuccess(await extend(fixture, extendOne, { ...keeping, dry_run: true }), {
      total: 1,
      data: { ...extended.data, announcements: noneAnnounced },
    })
    expect(await endDatesOf(fixture)).toEqual(unchanged)
    expectSuccess(await extend(fixture, extendOne, keeping), extended)
    await grant(fixture, later, "1003")
    const dry = await extend(fixture, extendAll, { ...keeping, dry_run: true })
    expect(dry.body).toMatchObject({ total: 3, data: { would_shorten: 0 } })
    expect((await extend(fixture, extendAll, keeping)).body).toMatchObject({ total: 3 })
    expect(await endDatesOf(fixture)).toEqual([validDate, validDate, later])
  })

  test.with({ bulk: "neverShorten" })(
    "of all leaves what ends later if the host says so, unless the request says otherwise",
    async (fixture) => {
      await grant(fixture, later)
      for (const [mode, end] of [
        [undefined, later],
        ["set", validDate],
      ]) {
        const response = await extend(fixture, extendAll, { extend: validDate, mode })
        expect(response.body).toMatchObject({ total: 3 })
        expect(await endDatesOf(fixture)).toEqual([end, validDate, validDate])
      }
      // The option is for all memberships alone.
      for (const mode of [undefined, "set"]) {
        await grant(fixture, later)
        await extend(fixture, extendOne, { extend: validDate, mode })
        expect(await endDatesOf(fixture)).toEqual([validDate, validDate, validDate])
      }
    },
  )

  test("in a dry run answers as it would, and changes nothing", async (fixture) => {
    const { tenure } = fixture
    await grant(fixture, later, "1003")
    const before = await tenure.memberships.history({ projectId: "p1" })
    const body = { extend: validDate, dry_run: true }
    const data = { new_end_date: validDate }
    const one = expectSuccess(await extend(fixture, extendOne, body), {
      total: 1,
      data: { ...data, announcements: noneAnnounced },
    })
    const all = expectSuccess(await extend(fixture, extendAll, body), {
      total: 3,
      data: {
        ...data,
        total: 3,
        would_shorten: 1,
        would_reactivate: 0,
        would_be_capped: 0,
        would_end_lifetime: 0,
        announcements: noneAnnounced,
        examples: [
          { user_id: "1001", end_date: initialEndDate, would_end: validDate },
          { user_id: "1002", end_date: initialEndDate, would_end: validDate },
          { user_id: "1003", end_date: later, would_end: validDate },
        ],
      },
    })
    for (const { message } of [one, all]) expect(message).toContain("nothing was changed")
    expect(await endDatesOf(fixture)).toEqual([initialEndDate, initialEndDate, later])
    expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    expectInvalid(await extend(fixture, extendAll, { ...body, extend: 1_000_000_000_000 }))
    const real = await extend(fixture, extendAll, { ...body, dry_run: false })
    expectSuccess(real, { total: 3, data })
  })
}

/** The announcements in a dry run if all ends are far. */
const noneAnnounced = { expiring: 0, overdue: 0, expired: 0, next_24_hours: 0 }

const unpaused = { paused_at: null, resumes_at: null }

const durationTests = (test: ServerTest): void => {
  test("of one ends it later by the calendar in UTC: from its end, from now, or from the later of both", async (fixture) => {
    const past = "2001-01-01T00:00:00.000Z"
    for (const [start, fields, end] of [
      ["2098-01-31T10:00:00.000Z", { extend_by: "P1M" }, "2098-02-28T10:00:00.000Z"],
      ["2098-01-31T10:00:00.000Z", { extend_by: "PT36H", from: "end" }, "2098-02-01T22:00:00.000Z"],
      ["2098-01-31T10:00:00.000Z", { extend_by: "P1D", from: "now" }, "tomorrow"],
      [past, { extend_by: "P1D" }, "tomorrow"],
    ] as const) {
      await grant(fixture, start)
      const dry = await extend(fixture, extendOne, { ...fields, dry_run: true })
      const date = end === "tomorrow" ? instant : end
      // A reminder of an end tomorrow is late.
      const expired = end === "tomorrow" ? 1 : 0
      const announcements = { ...noneAnnounced, expired, next_24_hours: expired }
      const foreseen = { new_end_date: date, end_date: date, announcements }
      expectSuccess(dry, { total: 1, data: foreseen })
      expect((await endDatesOf(fixture))[0]).toBe(start)
      const response = await extend(fixture, extendOne, fields, crypto.randomUUID())
      const [found = ""] = await endDatesOf(fixture)
      const difference = Date.parse(found) - Date.now() - 86_400_000
      if (end === "tomorrow") expect(Math.abs(difference)).toBeLessThan(60_000)
      else expect(found).toBe(end)
      expectSuccess(response, { total: 1, data: { new_end_date: found, end_date: found } })
    }
    await grant(fixture, past)
    expectInvalid(await extend(fixture, extendOne, { extend_by: "P1D", from: "end" }, "past"))
  })

  test("of one by a duration is made once with an idempotency key, or by whoever expects the date", async (fixture) => {
    const body = { extend_by: "P1D" }
    const end = "2097-01-02T00:00:00.000Z"
    const next = "2097-01-03T00:00:00.000Z"
    for (const replayed of [undefined, "true"]) {
      const response = await extend(fixture, extendOne, body, "once")
      expectSuccess(response, { total: 1, data: { new_end_date: end, end_date: end } })
      expect(response.headers["idempotent-replayed"]).toBe(replayed)
    }
    const expecting = { ...body, expected_end_date: end }
    expectSuccess(await extend(fixture, extendOne, expecting), {
      total: 1,
      data: { new_end_date: next, end_date: next },
    })
    const late = await extend(fixture, extendOne, expecting)
    expectFailure(late, 409, "END_DATE_CONFLICT", { current_end_date: next })
  })

  test("with `create` creates a missing membership, for operators only, and says so", async (fixture) => {
    const { call, operate, tenure } = fixture
    const missing = `${members}/2001/extend`
    const body = { extend: validDate, create: true }
    for (const refused of [body, { ...body, expected_end_date: later }]) {
      expectFailure(await call("PATCH", missing, { body: refused }), 403, "FORBIDDEN")
      expectFailure(await call("PATCH", extendOne, { body: refused }), 403, "FORBIDDEN")
    }
    const uncreated = await call("PATCH", missing, { body: { ...body, create: false } })
    expectFailure(uncreated, 404, "MEMBERSHIP_NOT_FOUND")
    for (const [fields, problem] of [
      [{ expected_end_date: later }, "create must be left out beside expected_end_date"],
      [{ create: "true" }, "create"],
      [{ Create: true, create: undefined }, 'Create must be written "create"'],
    ] as const) {
      expectInvalid(await operate("PATCH", missing, { ...body, ...fields }), problem)
    }
    const strange = await operate("PATCH", `${members}/a%20b/extend`, body)
    expectInvalid(strange, "user_id")

    const data = { new_end_date: validDate, created: true }
    const dry = await operate("PATCH", missing, { ...body, dry_run: true })
    expectSuccess(dry, { total: 1, data: { ...data, announcements: noneAnnounced } })
    expect(await endDatesOf(fixture)).toEqual(unchanged)
    const headers = keyed()
    for (const replayed of [undefined, "true"]) {
      const response = await operate("PATCH", missing, body, headers)
      expectSuccess(response, { total: 1, data })
      expect(response.headers["idempotent-replayed"]).toBe(replayed)
    }
    const again = await operate("PATCH", missing, { extend: later, create: true })
    expectSuccess(again, { total: 1, data: { new_end_date: later, created: false } })
    const rows = await tenure.memberships.history({ projectId: "p1", userId: "2001" })
    expect(rows.map(({ action }) => action)).toEqual(["extended", "granted"])

    const byDay = { extend_by: "P1D", create: true }
    expectInvalid(await operate("PATCH", `${members}/2002/extend`, byDay), "Idempotency-Key")
    const renewed = await operate("PATCH", `${members}/2002/extend`, byDay, keyed())
    const tomorrow = { new_end_date: instant, end_date: instant, created: true }
    expectSuccess(renewed, { total: 1, data: tomorrow })
    const through = { through: "2099-01-31", create: true }
    expectSuccess(await operate("PATCH", `${members}/2003/extend`, through), {
      total: 1,
      data: { new_end_date: "2099-02-01T00:00:00.000Z", created: true },
    })
    expect(dataOf(await operate("GET", `${members}/2003`))).toMatchObject({ through: "2099-01-31" })
  })

  test("of a membership for life changes nothing, until all get a date, and again when that is undone", async (fixture) => {
    const { operate } = fixture
    const member = `${members}/1001`
    const forLife = {
      data: expect.objectContaining({
        user_id: "1001",
        end_date: null,
        through: null,
        state: "active",
      }),
    }
    expectSuccess(await operate("PUT", member, { end_date: null }), forLife)
    for (const from of ["end", "now", "later"]) {
      const body = { extend_by: "P1M", from, expected_end_date: null }
      const { message } = expectSuccess(await extend(fixture, extendOne, body), {
        total: 1,
        data: { new_end_date: "9999-12-31T23:59:59.999Z", end_date: null },
      })
      expect(message).toContain("nothing was changed")
    }
    await extend(fixture, extendAll, { extend_by: "P3D" }, "all")
    expectSuccess(await operate("GET", member), forLife)
    const body = { extend: validDate }
    const preview = await extend(fixture, extendAll, { ...body, dry_run: true })
    expect(dataOf(preview)).toMatchObject({
      would_end_lifetime: 1,
      examples: expect.arrayContaining([{ user_id: "1001", end_date: null, would_end: validDate }]),
    })
    await extend(fixture, extendAll, body)
    const stale = await extend(fixture, extendOne, { ...body, expected_end_date: null })
    expectFailure(stale, 409, "END_DATE_CONFLICT", { current_end_date: validDate })
    const [last] = itemsOf(await operate("GET", bulkExtensions))
    await operate("POST", `${bulkExtensions}/${last?.["id"]}/undo`)
    expectSuccess(await operate("GET", member), forLife)
  })

  test("counts months in the project's time zone, and keeps the day of the month", async (fixture) => {
    const { operate } = fixture
    const member = `${members}/1001`
    await operate("PATCH", project, { time_zone: "Europe/Berlin" })
    const next = async (by: string, fields: object = {}) => {
      const response = await extend(
        fixture,
        extendOne,
        { extend_by: by, ...fields },
        crypto.randomUUID(),
      )
      expect(response.status).toBe(200)
      const { end_date, kept_day, through } = dataOf(await operate("GET", member))
      return [through ?? end_date, kept_day]
    }
    // Midnight in Berlin, in winter and in summer.
    await operate("PUT", member, { end_date: "2098-02-28T23:00:00.000Z" })
    expect(await next("P1M")).toEqual(["2098-03-31T22:00:00.000Z", null])
    await operate("PUT", member, { end_date: "2098-01-31T08:00:00.000Z" })
    expect(await next("P1M")).toEqual(["2098-02-28T08:00:00.000Z", 31])
    expect(await next("P1M")).toEqual(["2098-03-31T07:00:00.000Z", null])
    // Whole days count by the last one.
    const granted = { through: "2098-01-30", end_date: "2098-01-30T23:00:00.000Z", kept_day: null }
    expectSuccess(await operate("PUT", member, { through: "2098-01-30" }), {
      data: {
        user_id: "1001",
        ...granted,
        state: "active",
        grace_until: null,
        ...unpaused,
        metadata: {},
      },
    })
    expect(await next("P1M")).toEqual(["2098-02-28", 30])
    expect(await next("P1M")).toEqual(["2098-03-30", null])
    expect(await next("P2W")).toEqual(["2098-04-13", null])
    expect(await next("PT1H")).toEqual(["2098-04-13T23:00:00.000Z", null])
    await operate("PUT", member, { through: "2098-02-28", time_zone: "UTC" })
    // A day in UTC ends in the middle of one in Berlin.
    expect(await next("P1M")).toEqual(["2098-03-31T23:00:00.000Z", null])
    await operate("PUT", member, { through: "2098-02-28", time_zone: "UTC" })
    expect(await next("P1M", { time_zone: "UTC" })).toEqual(["2098-04-01T00:00:00.000Z", null])
    await operate("PATCH", project, { time_zone: "UTC" })
    expect(dataOf(await operate("GET", member))).toMatchObject({ through: "2098-03-31" })
  })

  test("goes through a whole day, which one or all still have", async (fixture) => {
    const { operate } = fixture
    await operate("PATCH", project, { time_zone: "America/New_York" })
    const end = "2098-02-01T05:00:00.000Z"
    const body = { through: "2098-01-31" }
    for (const path of [extendOne, extendAll]) {
      const total = path === extendOne ? 1 : 3
      const response = await extend(fixture, path, body)
      expectSuccess(response, { total, data: { new_end_date: end } })
    }
    const [last] = itemsOf(await operate("GET", bulkExtensions))
    const listed = async () =>
      itemsOf(await operate("GET", members)).map(({ end_date, through }) => [end_date, through])
    expect(await listed()).toEqual(Array.from({ length: 3 }, () => [end, "2098-01-31"]))
    await operate("POST", `${bulkExtensions}/${last?.["id"]}/undo`)
    const others = [initialEndDate, null]
    expect(await listed()).toEqual([[end, "2098-01-31"], others, others])
    const elsewhere = { ...body, time_zone: "Asia/Tokyo", dry_run: true }
    const data = { new_end_date: "2098-01-31T15:00:00.000Z", announcements: noneAnnounced }
    expectSuccess(await extend(fixture, extendOne, elsewhere), { total: 1, data })
    const yesterday = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10)
    for (const path of [extendOne, extendAll]) {
      const past = await extend(fixture, path, { through: yesterday })
      expect(past.status).toBe(422)
    }
  })

  test("through a day answers a repetition as the first time, even in another time zone, and if a later date is left", async (fixture) => {
    const { operate } = fixture
    await operate("PATCH", project, { time_zone: "America/New_York" })
    const day = { through: "2098-01-31" }
    const end = "2098-02-01T05:00:00.000Z"
    const calls = [
      [extendOne, day, end],
      [extendOne, { ...day, mode: "never_shorten" }, end],
      [extendOne, { through: "2090-01-31", mode: "never_shorten" }, end],
      [extendAll, day, end],
      [extendAll, { ...day, mode: "never_shorten" }, end],
    ] as const
    const makeAll = async () => {
      for (const [index, [path, body, new_end_date]] of calls.entries()) {
        const response = await extend(fixture, path, body, `day-${index}`)
        const total = path === extendOne ? 1 : 3
        const { message } = expectSuccess(response, { total, data: { new_end_date } })
        const mayBeLeft = path === extendOne && "mode" in body
        expect(String(message).includes("unless it ends later")).toBe(mayBeLeft)
      }
    }
    await makeAll()
    await operate("PATCH", project, { time_zone: "Asia/Tokyo" })
    await makeAll()
  })

  test("by a day or in a time zone fails if that is invalid or has no use, and changes nothing", async (fixture) => {
    const day = { through: "2098-01-31" }
    const refused: ReadonlyArray<readonly [body: object, problem: string]> = [
      ...[
        null,
        "",
        "2098-02-30",
        "2098-01-31T00:00:00.000Z",
        "9999-12-31",
        "0000-01-01",
        20_980_131,
      ].map((through) => [{ through }, "through"] as const),
      [{ ...day, extend: validDate }, "extend"],
      [{ ...day, extend_by: "P1D" }, "through"],
      ...["+01:00", "Europe/Nowhere", "", null, 1].map(
        (time_zone) => [{ ...day, time_zone }, "time_zone"] as const,
      ),
      [{ ...day, timeZone: "UTC" }, "time_zone"],
    ]
    for (const path of [extendOne, extendAll]) {
      for (const [body, problem] of refused) {
        expectInvalid(await extend(fixture, path, body, crypto.randomUUID()), problem)
      }
    }
    expectInvalid(
      await extend(fixture, extendOne, { extend_by: "P1M", time_zone: "UTC+1" }, "zone"),
      "time_zone",
    )
    expect(await endDatesOf(fixture)).toEqual(unchanged)
  })

  test("of all ends every membership later, once with an idempotency key, after a preview", async (fixture) => {
    const ended = new Date(Date.now() - 3_600_000).toISOString()
    await grant(fixture, ended, "1003")
    const body = { extend_by: "P3D" }
    const end = "2097-01-04T00:00:00.000Z"
    const after = new Date(Date.parse(ended) + 3 * 86_400_000).toISOString()
    expectSuccess(await extend(fixture, extendAll, { ...body, dry_run: true }), {
      total: 3,
      data: {
        extend_by: "P3D",
        total: 3,
        would_shorten: 0,
        would_reactivate: 1,
        would_be_capped: 0,
        would_end_lifetime: 0,
        // For the one that ends in three days.
        announcements: { expiring: 1, overdue: 0, expired: 1, next_24_hours: 0 },
        examples: [
          { user_id: "1001", end_date: initialEndDate, would_end: end },
          { user_id: "1002", end_date: initialEndDate, would_end: end },
          { user_id: "1003", end_date: ended, would_end: after },
        ],
      },
    })
    expect(await endDatesOf(fixture)).toEqual([initialEndDate, initialEndDate, ended])
    for (let count = 0; count < 2; count++) {
      expectSuccess(await extend(fixture, extendAll, body, "all"), {
        total: 3,
        data: { extend_by: "P3D", total: 3 },
      })
    }
    expect(await endDatesOf(fixture)).toEqual([end, end, after])
  })
}

const bulkExtensions = `${project}/bulk-extensions`

/** Makes a bulk extension. Returns its id. */
const made = async (fixture: Fixture, extend_by: string): Promise<string> => {
  await extend(fixture, extendAll, { extend_by, reason: "outage" }, crypto.randomUUID())
  const [newest] = itemsOf(await fixture.call("GET", bulkExtensions))
  return String(newest?.["id"])
}

const undoTests = (test: ServerTest): void => {
  test("of all is listed, newest first, and undone by an operator, once", async (fixture) => {
    const { administer, call, operate, otherToken } = fixture
    const first = await made(fixture, "P1D")
    const second = await made(fixture, "P2D")
    expectSuccess(await call("GET", `${bulkExtensions}?limit=1`), {
      total: 1,
      next: second,
      data: [
        {
          id: second,
          mode: "extend_by",
          end_date: null,
          extend_by: "P2D",
          at: instant,
          reason: "outage",
          key_id: expect.any(String),
          request_id: expect.any(String),
          total: 3,
          undone_at: null,
          undone_by: null,
        },
      ],
    })
    const rest = itemsOf(await call("GET", `${bulkExtensions}?after=${second}`))
    expect(rest).toMatchObject([{ id: first }])
    const undo = `${bulkExtensions}/${first}/undo`
    expectFailure(await call("POST", undo), 403, "FORBIDDEN")
    const preview = await operate("POST", undo, { dry_run: true })
    expect(dataOf(preview)).toMatchObject({ total: 3, would_shorten: 3 })
    const undone = await operate("POST", undo, { reason: "a mistake" })
    expectSuccess(undone, { total: 3, data: { total: 3 } })
    const end = "2097-01-03T00:00:00.000Z"
    expect(await endDatesOf(fixture)).toEqual([end, end, end])
    expectFailure(await operate("POST", undo), 409, "BULK_EXTENSION_UNDONE")
    expect(itemsOf(await operate("GET", `${members}/1001/history`))).toMatchObject([
      { action: "bulk_undone", extend_by: null, reason: "a mistake" },
      { action: "bulk_extended_by", extend_by: "P2D", to: null },
      { action: "bulk_extended_by", extend_by: "P1D" },
      { action: "granted", extend_by: null },
    ])
    const hidden = await call("GET", bulkExtensions, { token: otherToken })
    expectFailure(hidden, 404, "PROJECT_NOT_FOUND")
    for (const path of [
      `/v2/projects/p2/bulk-extensions/${second}/undo`,
      `${bulkExtensions}/nothing/undo`,
      `${bulkExtensions}/${crypto.randomUUID()}/undo`,
    ]) {
      expectFailure(await administer("POST", path), 404, "BULK_EXTENSION_NOT_FOUND")
    }
    expectInvalid(await operate("POST", `${bulkExtensions}/${second}/undo`, { dryRun: true }))
  })

  test.with({ undoPeriod: "1 millis" })(
    "of all cannot be undone after the period that the server sets",
    async (fixture) => {
      const undo = `${bulkExtensions}/${await made(fixture, "P1D")}/undo`
      await new Promise((resolve) => void setTimeout(resolve, 5))
      expectFailure(await fixture.operate("POST", undo), 409, "BULK_EXTENSION_SETTLED")
    },
  )
}

const url = "https://receiver.example/hook"

/** A dry run's events for a webhook. */
const preview = (webhook_id: string, type: string, data: object) => ({
  total: 1,
  by_type: { [type]: 1 },
  first: [
    {
      webhook_id,
      url,
      type,
      body: {
        type,
        timestamp: instant,
        data: {
          project_id: "p1",
          request_id: expect.any(String),
          sequence: expect.any(Number),
          ...data,
        },
      },
    },
  ],
})

const previewTests = (test: ServerTest): void => {
  test("shows the webhooks that an extension, a bulk extension, its undoing and an import would send", async (fixture) => {
    const { operate, tenure } = fixture
    const dry = { dry_run: true, events: true }
    const one = { extend: validDate, reason: "invoice 117", ...dry }
    const line = `{"user_id":"1001","end_date":"${validDate}"}`
    const importBy = (query: string) => operate("POST", `${imports}?${query}`, line, asLines)
    const nobody = dataOf(await extend(fixture, extendOne, one))
    expect(nobody["events"]).toEqual({ total: 0, by_type: {}, first: [] })
    const { id } = await tenure.webhooks.create({ projectId: "p1", url })
    await tenure.webhooks.create({ projectId: "p1", url, eventTypes: ["membership.granted"] })
    const kept = { ...dry, extend: "2096-12-31T00:00:00.000Z", mode: "never_shorten" }
    const none = dataOf(await extend(fixture, extendOne, kept))
    expect(none["events"]).toEqual({ total: 0, by_type: {}, first: [] })
    const changed = { user_id: "1001", new_end_date: validDate, reason: "invoice 117" }
    expectSuccess(await extend(fixture, extendOne, one), {
      total: 1,
      data: {
        new_end_date: validDate,
        announcements: noneAnnounced,
        events: preview(id, "membership.extended", changed),
      },
    })
    const all = dataOf(await extend(fixture, extendAll, { extend_by: "P3D", ...dry }))
    const by = { mode: "extend_by", extend_by: "P3D" }
    expect(all["events"]).toEqual(preview(id, "memberships.extended", by))
    const counts = {
      would_grant: 0,
      would_shorten: 0,
      would_stay: 0,
      announcements: noneAnnounced,
    }
    expectSuccess(await importBy("dry_run=true&events=true"), {
      total: 1,
      data: { ...counts, events: preview(id, "memberships.imported", { total: 1 }) },
    })
    expectSuccess(await importBy("dry_run=true"), { total: 1, data: counts })
    for (const query of [
      "events=true",
      "dry_run=false&events=true",
      "dry_run=yes",
      "dry_run=true&events=1",
      "dry_run=true&dry_run=true",
      "dryRun=true",
    ]) {
      expectInvalid(await importBy(query))
    }
    const bad = await operate("POST", `${imports}?dry_run=true`, `${line}\n{}`, asLines)
    expect(bad.status).toBe(422)
    expect(await endDatesOf(fixture)).toEqual(unchanged)
    await tenure.memberships.extendAll({ projectId: "p1", endDate: validDate })
    const [bulk] = await tenure.memberships.bulkExtensions({ projectId: "p1" })
    const undone = dataOf(await operate("POST", `${bulkExtensions}/${bulk?.id}/undo`, dry))
    const undoing = { bulk_extension_id: bulk?.id }
    expect(undone["events"]).toEqual(preview(id, "memberships.extension_undone", undoing))
  })
}

export const extendingTests = (test: ServerTest): void => {
  describe("an extension", () => {
    dateTests(test)
    refusalTests(test)
    conditionTests(test)
    durationTests(test)
    undoTests(test)
  })
  describe("a dry run with events", () => {
    previewTests(test)
  })
}
