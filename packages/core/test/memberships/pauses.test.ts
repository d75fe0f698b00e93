import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { EndDate, lastEndDate } from "../../src/memberships/end-date.ts"
import { endAfterPause, isOver } from "../../src/memberships/pause.ts"
import { membershipsAt } from "../support/memberships.ts"
import { test } from "../support/test.ts"

const day = 86_400_000
const project = { projectId: "p1" }
const member = { ...project, userId: "1001" }
const now = Date.UTC(2026, 0, 31, 9)
const in2027 = Date.UTC(2027, 0, 1)

const { opened } = membershipsAt(now, "Europe/Berlin")

/** A project with a member who ends in 2027. */
const prepared = Effect.tap(opened, ({ grant }) => grant({ ...member, endDate: in2027 }))

const tagOf = <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(call), ({ _tag }) => _tag)

describe("a pause", () => {
  test("lasts until an instant, through a day in the project's zone or another, or until it is resumed", function* () {
    const { find, pause, resume } = yield* prepared
    const until = Date.UTC(2026, 1, 10, 12)
    const lengths = [
      [{ until }, until],
      [{ until: new Date(until) }, until],
      // Midnight in Berlin, and in Kathmandu.
      [{ through: "2026-02-09" }, Date.UTC(2026, 1, 9, 23)],
      [{ through: "2026-02-09", timeZone: "Asia/Kathmandu" }, Date.UTC(2026, 1, 9, 18, 15)],
      [{ through: "2026-01-31" }, Date.UTC(2026, 0, 31, 23)],
      [{}, undefined],
    ] as const
    for (const [length, resumesAt] of lengths) {
      const paused = yield* pause({ ...member, ...length })
      expect(paused).toMatchObject({ state: "paused", pausedAt: now, resumesAt, endDate: in2027 })
      expect(yield* find(member)).toEqual(paused)
      expect(yield* resume(member)).toMatchObject({ state: "active", endDate: in2027 })
    }
  })

  test("is in the future, and at most two years long", function* () {
    const { find, pause } = yield* prepared
    const twoYears = now + 731 * day
    const invalid = [
      { until: now },
      { until: now - 1 },
      { until: twoYears + 1 },
      { through: "2026-01-30" },
      { through: "2028-02-01" },
      { through: "2026-02-30" },
      { until: in2027, through: "2026-02-09" },
      { through: "2026-02-09", timeZone: "+01:00" },
    ]
    for (const length of invalid) {
      expect(yield* tagOf(pause(Object({ ...member, ...length })))).toBe("InvalidInput")
    }
    expect(yield* find(member)).toMatchObject({ state: "active", pausedAt: undefined })
    expect(yield* pause({ ...member, until: twoYears })).toMatchObject({ resumesAt: twoYears })
  })

  test("needs an active membership before its end, and a resumption a paused one", function* () {
    const { find, grant, move, pause, resume, updateProject } = yield* prepared
    const conflictOf = (call: ReturnType<typeof pause>) =>
      Effect.map(Effect.flip(call), (error) =>
        error._tag === "StateConflict" ? error.currentState : error._tag,
      )
    expect(yield* conflictOf(resume(member))).toBe("active")
    expect(yield* conflictOf(pause({ ...member, userId: "1002" }))).toBe("MembershipNotFound")
    expect(yield* conflictOf(resume({ ...member, userId: "1002" }))).toBe("MembershipNotFound")
    yield* pause(member)
    expect(yield* conflictOf(pause(member))).toBe("paused")
    const moved = move({ ...member, to: "1002" })
    expect(yield* Effect.flip(moved)).toMatchObject({ currentState: "paused" })
    yield* grant({ ...member, userId: "1002", endDate: now - 1 })
    expect(yield* conflictOf(pause({ ...member, userId: "1002" }))).toBe("expired")
    expect(yield* Effect.flip(move({ ...member, userId: "1002", to: "1001" }))).toMatchObject({
      currentState: "paused",
    })
    yield* updateProject({ ...project, grace: "P3D" })
    // It has ended, and is in grace.
    expect(yield* conflictOf(pause({ ...member, userId: "1002" }))).toBe("active")
    expect(yield* find(member)).toMatchObject({ state: "paused", endDate: in2027 })
  })

  test("tells hosts and receivers when it begins and ends", function* () {
    const { history, pause, resume, told } = yield* prepared
    const until = now + 30 * day
    yield* pause({ ...member, until, reason: "ill" }, { requestId: "r1" })
    yield* TestClock.adjust("10 days")
    const resumed = yield* resume({ ...member, reason: "well again" })
    const iso = (at: number) => new Date(at).toISOString()
    expect(resumed.endDate).toBe(in2027 + 10 * day)
    expect(told().slice(-2)).toMatchObject([
      {
        type: "membership.paused",
        data: { end_date: iso(in2027), resumes_at: iso(until), request_id: "r1", reason: "ill" },
      },
      {
        type: "membership.resumed",
        data: { end_date: iso(resumed.endDate), resumes_at: iso(now + 10 * day) },
      },
    ])
    expect(yield* history(member)).toMatchObject([
      { action: "resumed", from: in2027, to: resumed.endDate, reason: "well again" },
      { action: "paused", from: in2027, to: in2027, reason: "ill" },
      { action: "granted" },
    ])
  })

  test("answers a repetition as at first, also after it has ended", function* () {
    const { pause, resume, told } = yield* prepared
    const [first, last] = [
      { ...member, idempotencyKey: "pause" },
      { ...member, idempotencyKey: "resume" },
    ]
    const paused = yield* pause(first)
    expect(yield* pause(first)).toMatchObject({ state: "paused", pausedAt: now })
    yield* TestClock.adjust("1 hour")
    const resumed = yield* resume(last)
    expect(yield* resume(last)).toMatchObject({ state: "active", endDate: resumed.endDate })
    expect(yield* pause(first)).toEqual(paused)
    expect(told()).toHaveLength(3)
    expect(yield* tagOf(pause({ ...first, until: now + 2 * day }))).toBe("IdempotencyMismatch")
  })

  test("counts durations from its beginning, so that a payment counts in full", function* () {
    const { end, extend, find, grant, pause, resume } = yield* opened
    const soon = now + 5 * day
    const payments = [
      ["later", soon + 10 * day],
      ["end", soon + 10 * day],
      ["now", now + 10 * day],
    ] as const
    for (const [from, expected] of payments) {
      yield* TestClock.setTime(now)
      yield* grant({ ...member, endDate: soon })
      yield* pause(member)
      yield* TestClock.adjust("100 days")
      const extended = extend({ ...member, by: "P10D", from, idempotencyKey: from })
      expect((yield* extended).endDate).toBe(expected)
      expect((yield* extended).endDate).toBe(expected)
      expect(yield* find(member)).toMatchObject({ state: "paused", endDate: expected })
      expect(yield* resume(member)).toMatchObject({
        state: "active",
        endDate: expected + 100 * day,
      })
      yield* end(member)
    }
  })

  test("leaves a membership for life as it is", function* () {
    const { grant, pause, resume } = yield* opened
    yield* grant({ ...member, endDate: null })
    yield* pause(member)
    yield* TestClock.adjust("10 days")
    expect(yield* resume(member)).toMatchObject({ state: "active", endDate: lastEndDate })
  })

  test("adds no time if the clock was set back", function* () {
    const { pause, resume } = yield* prepared
    yield* pause(member)
    yield* TestClock.setTime(now - day)
    expect(yield* resume(member)).toMatchObject({ endDate: in2027 })
  })

  test("is kept when a grant sets the date that stands, which says so", function* () {
    const { grant, isActive, list, pause } = yield* prepared
    const until = now + 3 * day
    yield* pause({ ...member, until })
    const keyed = { ...member, endDate: in2027 + day, idempotencyKey: "paid" }
    const granted = yield* grant(keyed)
    expect(granted).toMatchObject({ state: "paused", pausedAt: now, resumesAt: until })
    expect(yield* grant(keyed)).toEqual(granted)
    const left = yield* grant({ ...member, endDate: in2027, ifAbsent: true })
    expect(left).toEqual({ ...granted, created: false })
    expect(yield* isActive(member)).toBe(false)
    expect(yield* list({ ...project, state: "paused" })).toEqual([granted])
    yield* TestClock.setTime(until)
    expect(yield* isActive(member)).toBe(true)
    expect(yield* list({ ...project, state: "paused" })).toEqual([])
    expect(yield* list(project)).toMatchObject([{ endDate: in2027 + 4 * day, state: "active" }])
  })

  test("is imported as a returned membership has it", function* () {
    const { import: importAll, list, pause } = yield* prepared
    yield* pause({ ...member, until: now + 3 * day })
    const exported = yield* list(project)
    const rows = exported.map(({ through: _, ...row }) => ({ ...row, userId: `x${row.userId}` }))
    yield* importAll({ ...project, memberships: rows })
    const copied = yield* list({ ...project, prefix: "x" })
    expect(copied).toEqual(exported.map((one) => ({ ...one, userId: `x${one.userId}` })))
    const invalid = [
      { resumesAt: now },
      { pausedAt: now, resumesAt: now },
      { pausedAt: "2026-01-31" },
      { pausedAt: now, resumesAt: 7 },
      { pausedAt: now + 1 },
    ]
    for (const given of invalid) {
      const memberships = [{ ...member, endDate: in2027, ...given }]
      expect(yield* tagOf(importAll({ ...project, memberships }))).toBe("InvalidInput")
    }
  })
})

describe("the end date after a pause", () => {
  const millis = fc.integer({ min: 0, max: 4_102_444_800_000 })

  test("is later by the time paused, whatever was added meanwhile, and never earlier", function* () {
    yield* Effect.sync(() =>
      fc.assert(
        fc.property(millis, millis, millis, fc.nat(), (end, since, at, payment) => {
          const pause = { since, until: undefined }
          const endDate = EndDate(end)
          const after = endAfterPause(endDate, pause, at)
          expect(after - endDate).toBe(Math.max(0, at - since))
          expect(endAfterPause(EndDate(end + payment), pause, at)).toBe(after + payment)
          expect(endAfterPause(lastEndDate, pause, at)).toBe(lastEndDate)
          expect(isOver(pause, at)).toBe(false)
          expect(isOver({ since, until: at }, at)).toBe(true)
          expect(isOver({ since, until: at + 1 }, at)).toBe(false)
        }),
      ),
    )
  })
})
