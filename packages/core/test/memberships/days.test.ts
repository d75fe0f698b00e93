/** Whole days and months in process: what the suites of stores and adapters do not see. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { storedTimeZone } from "../../src/memberships/project-settings.ts"
import { membershipsAt } from "../support/memberships.ts"
import { test } from "../support/test.ts"

const project = { projectId: "p1" }
const member = { ...project, userId: "1001" }
const zone = "Europe/Berlin"
const january = { through: "2027-01-31" }

// 10:00 in Berlin.
const { membershipsWith, opened } = membershipsAt(Date.UTC(2027, 0, 10, 9), zone)

const iso = (instant: number): string => new Date(instant).toISOString()

describe("a whole day", () => {
  test("ends with the first instant of the next one in the project's time zone, or in another", function* () {
    const { extend, extendAll, find, grant, import: add } = yield* opened
    const end = "2027-01-31T23:00:00.000Z"
    const granted = yield* grant({ ...member, ...january })
    expect(granted).toMatchObject({ ...january, endDate: Date.parse(end), keptDay: undefined })
    for (const timeZone of ["Asia/Tokyo", "america/new_york"]) {
      const { endDate } = yield* extend({ ...member, ...january, timeZone })
      expect(iso(endDate)).toBe(
        timeZone === "Asia/Tokyo" ? "2027-01-31T15:00:00.000Z" : "2027-02-01T05:00:00.000Z",
      )
      // It is none in Berlin.
      expect((yield* find(member)).through).toBeUndefined()
    }
    expect(yield* extendAll({ ...project, ...january })).toMatchObject({ endDate: Date.parse(end) })
    expect(yield* find(member)).toMatchObject(january)
    const rows = [
      { userId: "1", ...january },
      { userId: "2", ...january, timeZone: "UTC" },
      { userId: "3", endDate: end },
    ]
    yield* add({ ...project, memberships: rows })
    const found = yield* Effect.forEach(rows, ({ userId }) => find({ ...project, userId }))
    expect(found.map(({ endDate, through }) => [iso(endDate), through])).toEqual([
      [end, "2027-01-31"],
      ["2027-02-01T00:00:00.000Z", undefined],
      [end, undefined],
    ])
  })

  test("is not given beside a date or a duration, and is a day of the calendar", function* () {
    const { extend, grant, import: add } = yield* opened
    yield* grant({ ...member, ...january })
    const endDate = "2028-01-01T00:00:00.000Z"
    const invalid: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
      ["endDate", grant(JSON.parse(JSON.stringify({ ...member, ...january, endDate })))],
      ["endDate", extend(JSON.parse(JSON.stringify({ ...member, ...january, endDate })))],
      ["through", extend(JSON.parse(JSON.stringify({ ...member, ...january, by: "P1M" })))],
      ["through", grant({ ...member, through: "2027-02-29" })],
      ["through", extend({ ...member, through: "2027-02-01T00:00:00.000Z" })],
      ["timeZone", extend({ ...member, ...january, timeZone: "+01:00" })],
      [
        "memberships[0].endDate",
        add({ ...project, memberships: [{ userId: "1", endDate, ...january }] }),
      ],
      ["memberships[0].through", add({ ...project, memberships: [{ userId: "1", through: "x" }] })],
      [
        "memberships[0].timeZone",
        add({ ...project, memberships: [{ userId: "1", endDate, timeZone: zone }] }),
      ],
    ]
    for (const [field, call] of invalid) {
      expect(yield* Effect.flip(call)).toMatchObject({ _tag: "InvalidInput", field })
    }
  })

  test("is over tomorrow for an extension, and may be over for a grant", function* () {
    const { countEnds, extend, extendAll, grant } = yield* opened
    yield* grant({ ...member, through: "2027-01-09" })
    const past = { through: "2027-01-09" }
    const late = { _tag: "EndDateNotInFuture" }
    expect(yield* Effect.flip(extend({ ...member, ...past }))).toMatchObject(late)
    expect(yield* Effect.flip(extendAll({ ...project, ...past }))).toMatchObject(late)
    const what = countEnds({ ...project, extension: past })
    expect(yield* Effect.flip(what)).toMatchObject(late)
    const today = { through: "2027-01-10" }
    expect(yield* countEnds({ ...project, extension: today })).toMatchObject({ active: 1 })
    expect(yield* extend({ ...member, ...today })).toMatchObject({
      endDate: Date.UTC(2027, 0, 10, 23),
    })
  })

  test("is the same call with the same idempotency key, and has its first answer in another time zone", function* () {
    const { extend, find, grant, updateProject } = yield* opened
    yield* grant({ ...member, ...january })
    const asked = { ...member, through: "2027-02-28", idempotencyKey: "k1" }
    const first = yield* extend(asked)
    yield* updateProject({ ...project, timeZone: "UTC" })
    expect(yield* extend(asked)).toEqual(first)
    const other = extend({ ...asked, through: "2027-03-31" })
    expect(yield* Effect.flip(other)).toMatchObject({ _tag: "IdempotencyMismatch" })
    // A new zone moves no date.
    expect((yield* find(member)).endDate).toBe(first.endDate)
  })
})

describe("a time zone that this runtime does not know", () => {
  test("must be replaced to count with it, and nothing else fails", function* () {
    let stored = {}
    const memberships = yield* membershipsWith((store) => ({
      find: (...of) => Effect.map(store.find(...of), (found) => ({ ...found, ...stored })),
      findProject: (...of) =>
        Effect.map(store.findProject(...of), (found) => ({ ...found, ...stored })),
    }))
    stored = { timeZone: storedTimeZone("Mars/Olympus_Mons") }
    const { countEnds, extend, extendAll, find, grant, import: add } = memberships
    yield* grant({ ...member, ...january, timeZone: zone })
    expect((yield* find(member)).through).toBeUndefined()
    expect(yield* countEnds(project)).toMatchObject({ total: 1 })
    const month = { ...member, by: "P1M", idempotencyKey: "k1" }
    const rows = { ...project, memberships: [{ userId: "1", ...january }] }
    const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      grant({ ...member, ...january }),
      extend({ ...member, ...january }),
      extend(month),
      extendAll({ ...project, ...january }),
      add(rows),
      countEnds({ ...project, extension: january }),
    ]
    for (const call of calls) {
      expect(yield* Effect.flip(call)).toMatchObject({
        _tag: "InvalidInput",
        field: "timeZone",
        problem: expect.stringContaining("Mars/Olympus_Mons"),
      })
    }
    expect(yield* extend({ ...month, timeZone: zone })).toMatchObject({
      endDate: Date.UTC(2027, 1, 28, 23),
    })
  })
})

describe("a month", () => {
  test("counts from the end of today if the membership is in days, and from now otherwise", function* () {
    const { extend, find, grant } = yield* opened
    yield* grant({ ...member, through: "2027-01-05" })
    yield* extend({ ...member, by: "P1M", idempotencyKey: "k1" })
    expect(yield* find(member)).toMatchObject({ through: "2027-02-10" })
    yield* extend({ ...member, by: "P1D", from: "now", idempotencyKey: "k2" })
    expect(yield* find(member)).toMatchObject({ through: "2027-01-11" })
    yield* grant({ ...member, endDate: "2027-01-05T23:00:00.000Z" })
    yield* extend({ ...member, by: "P1M", idempotencyKey: "k3" })
    const found = yield* find(member)
    expect([found.through, iso(found.endDate)]).toEqual([undefined, "2027-02-10T09:00:00.000Z"])
  })

  test("is decided again if the date keeps its instant and changes its form meanwhile", function* () {
    let meanwhile: Effect.Effect<unknown, unknown> = Effect.void
    const { extend, find, grant } = yield* membershipsWith((store) => ({
      extend: (change) => {
        const first = meanwhile
        meanwhile = Effect.void
        return Effect.andThen(Effect.orDie(first), store.extend(change))
      },
    }))
    for (const expectedEndDate of [undefined, "2027-02-28T23:00:00.000Z"]) {
      yield* grant({ ...member, endDate: "2027-02-28T23:00:00.000Z" })
      // The last of a month, where it was midnight after the 28th.
      meanwhile = grant({ ...member, through: "2027-02-28" })
      const asked = { ...member, by: "P1M", expectedEndDate, idempotencyKey: `k${expectedEndDate}` }
      const fiber = yield* Effect.forkChild(extend(asked))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      expect(yield* find(member)).toMatchObject({ through: "2027-03-31" })
    }
  })

  test("leaves the day that it had when a bulk extension is undone", function* () {
    const { extend, extendAll, find, grant, undoBulkExtension, bulkExtensions } = yield* opened
    yield* grant({ ...member, through: "2027-01-30" })
    yield* extend({ ...member, by: "P1M", idempotencyKey: "k1" })
    const kept = { through: "2027-02-28", keptDay: 30 }
    expect(yield* find(member)).toMatchObject(kept)
    yield* extendAll({ ...project, by: "P1D", idempotencyKey: "k2" })
    expect(yield* find(member)).toMatchObject({ through: "2027-03-01", keptDay: undefined })
    const [last] = yield* bulkExtensions(project)
    yield* undoBulkExtension({ ...project, id: last?.id ?? "" })
    expect(yield* find(member)).toMatchObject(kept)
    yield* extend({ ...member, by: "P1M", idempotencyKey: "k3" })
    expect(yield* find(member)).toMatchObject({ through: "2027-03-30", keptDay: undefined })
  })
})
