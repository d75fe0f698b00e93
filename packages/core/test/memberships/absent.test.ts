import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { MembershipNotFound } from "../../src/memberships/membership.ts"
import { membershipsAt } from "../support/memberships.ts"
import { test } from "../support/test.ts"

const project = { projectId: "p1" }
const member = { ...project, userId: "1001" }
const now = Date.UTC(2026, 0, 31, 9)
// The end of the day in Berlin. Keys are known for longer than until then.
const tonight = Date.UTC(2026, 0, 31, 23)
const in2027 = Date.UTC(2027, 0, 1)
const in2028 = Date.UTC(2028, 0, 1)

const { membershipsWith, opened } = membershipsAt(now, "Europe/Berlin")

const iso = (endDate: number): string => new Date(endDate).toISOString()

describe("a grant to somebody absent", () => {
  test("creates a membership, and leaves an expired one, of which nobody is told", function* () {
    const { end, extend, grant, history, told, update } = yield* opened
    const trial = { ...member, endDate: in2027, ifAbsent: true }
    const created = yield* grant({ ...trial, endDate: new Date(0) })
    expect(created).toMatchObject({ ...member, endDate: 0, state: "expired", created: true })
    const left = yield* grant({ ...trial, metadata: { plan: "gold" } })
    expect(left).toEqual({ ...created, created: false })
    expect(told()).toHaveLength(1)
    expect(yield* history(member)).toHaveLength(1)
    expect(yield* grant({ ...trial, ifAbsent: false })).not.toHaveProperty("created")
    yield* end(member)
    expect(yield* grant(trial)).toMatchObject({ endDate: in2027, created: true })
    // Other calls take a returned membership.
    yield* update({ ...created, metadata: { plan: "gold" } })
    yield* extend({ ...created, endDate: in2028, through: undefined })
    yield* end(created)
  })

  test("answers a repetition as at first, whatever has become of it and of the time zone", function* () {
    const { end, extend, grant, updateProject } = yield* opened
    const asked = { ...member, through: "2026-01-31", metadata: { plan: "gold" } }
    const keyed = { ...asked, ifAbsent: true, idempotencyKey: "sign-up" }
    const first = yield* grant(keyed)
    expect(first).toMatchObject({ through: "2026-01-31", created: true, endDate: tonight })
    const left = { ...asked, through: "2028-01-31", ifAbsent: true, idempotencyKey: "again" }
    const second = yield* grant(left)
    expect(second).toEqual({ ...first, created: false })
    const plain = { ...asked, userId: "1002", idempotencyKey: "plain" }
    const third = yield* grant(plain)
    yield* extend({ ...member, endDate: in2028 })
    yield* updateProject({ ...project, timeZone: "Asia/Kathmandu" })
    expect(yield* grant(keyed)).toEqual(first)
    expect(yield* grant(left)).toEqual(second)
    expect(yield* grant(plain)).toEqual(third)
    yield* TestClock.setTime(tonight)
    yield* end(member)
    expect(yield* grant(keyed)).toEqual(first)
    expect(yield* grant(left)).toEqual(second)
    const other = grant({ ...keyed, ifAbsent: false })
    expect(yield* Effect.flip(other)).toMatchObject({ _tag: "IdempotencyMismatch" })
  })

  test("creates one membership, if many ask at the same time", function* () {
    const { grant, told } = yield* opened
    const asked = Array.from({ length: 9 }, (_, index) =>
      grant({ ...member, endDate: in2027 + index, ifAbsent: true }),
    )
    const results = yield* Effect.all(asked, { concurrency: "unbounded" })
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect(new Set(results.map(({ endDate }) => endDate)).size).toBe(1)
    expect(told()).toHaveLength(1)
  })
})

describe("an extension that may create", () => {
  const dated = { ...member, endDate: in2027, create: true }

  test("creates the membership, and says that it was granted, and extends one that exists", function* () {
    const { extend, history, told } = yield* opened
    const reason = "order 117"
    expect(yield* extend({ ...dated, reason })).toEqual({
      ...member,
      endDate: in2027,
      created: true,
    })
    const later = { ...dated, endDate: in2028 }
    expect(yield* extend(later)).toEqual({ ...member, endDate: in2028, created: false })
    const shorter = { ...dated, mode: "neverShorten" } as const
    expect(yield* extend(shorter)).toEqual({ ...member, endDate: in2028, created: false })
    expect(yield* extend({ ...later, create: false })).toEqual({ ...member, endDate: in2028 })
    expect(told()).toMatchObject([
      { type: "membership.granted", data: { user_id: "1001", new_end_date: iso(in2027), reason } },
      { type: "membership.extended" },
      { type: "membership.extended" },
    ])
    expect(yield* history(member)).toMatchObject([
      { action: "extended" },
      { action: "extended" },
      { action: "granted", from: undefined, to: in2027, reason },
    ])
  })

  test("counts a duration from now, and keeps the day", function* () {
    const { extend, find } = yield* opened
    const byMonth = { ...member, by: "P1M", create: true }
    const key = { idempotencyKey: "order-1" }
    const first = yield* extend({ ...byMonth, ...key })
    const inFebruary = Date.UTC(2026, 1, 28, 9)
    expect(first).toEqual({ ...member, endDate: inFebruary, created: true })
    expect(yield* find(member)).toMatchObject({ keptDay: 31, through: undefined })
    const second = yield* extend({ ...byMonth, idempotencyKey: "order-2" })
    // The 31st, one hour earlier: it is summer in Berlin.
    expect(second).toEqual({ ...member, endDate: Date.UTC(2026, 2, 31, 8), created: false })
    expect(yield* extend({ ...byMonth, ...key })).toEqual(first)
    for (const [index, from] of (["end", "now", "later"] as const).entries()) {
      const other = { ...byMonth, userId: `200${index}`, from, timeZone: "UTC" }
      const made = yield* extend({ ...other, idempotencyKey: from })
      expect(made).toMatchObject({ endDate: inFebruary, created: true })
    }
    const missing = yield* Effect.flip(extend(byMonth))
    expect(missing).toMatchObject({ _tag: "InvalidInput", field: "idempotencyKey" })
  })

  test("takes a day, and answers a repetition as at first", function* () {
    const { end, extend, find, updateProject } = yield* opened
    const through = { ...member, through: "2026-01-31", create: true, idempotencyKey: "k1" }
    const first = yield* extend(through)
    expect(first).toEqual({ ...member, endDate: tonight, created: true })
    expect(yield* find(member)).toMatchObject({ through: "2026-01-31" })
    const instant = { ...dated, endDate: tonight - 1, idempotencyKey: "k2" }
    const second = yield* extend(instant)
    expect(second).toMatchObject({ created: false })
    yield* updateProject({ ...project, timeZone: "Asia/Kathmandu" })
    yield* end(member)
    expect(yield* extend(through)).toEqual(first)
    expect(yield* extend(instant)).toEqual(second)
    yield* TestClock.setTime(tonight)
    expect(yield* extend(through)).toEqual(first)
    expect(yield* extend(instant)).toEqual(second)
    const late = yield* Effect.flip(extend({ ...instant, idempotencyKey: "k3" }))
    expect(late).toMatchObject({ _tag: "EndDateNotInFuture" })
  })

  test("can be tried", function* () {
    const { extend, list, told } = yield* opened
    const dryRun = { dryRun: true, events: true } as const
    const none = { total: 0, byType: {}, first: [] }
    for (const goal of [{ endDate: in2027 }, { by: "P335DT15H" }, { through: "2026-12-31" }]) {
      const tried = yield* extend({ ...member, ...goal, ...dryRun, create: true })
      expect(tried).toMatchObject({ created: true, events: none })
    }
    expect(yield* list(project)).toEqual([])
    expect(told()).toEqual([])
    yield* extend(dated)
    expect(yield* extend({ ...dated, ...dryRun })).toMatchObject({ created: false })
    const elsewhere = { ...dated, projectId: "p9" }
    for (const change of [elsewhere, { ...elsewhere, ...dryRun }]) {
      const failure = yield* Effect.flip(extend(change))
      expect(failure).toMatchObject({ _tag: "MembershipNotFound", projectId: "p9" })
    }
  })

  test("refuses an expected date, and new members whom the option does not allow", function* () {
    const { extend, list } = yield* membershipsWith(() => ({}), { userIds: "digits" })
    const expecting = { ...dated, expectedEndDate: in2027 }
    expect(yield* Effect.flip(extend(expecting))).toMatchObject({ field: "create" })
    const keyed = { by: "P1M", create: true, idempotencyKey: "k1" }
    for (const userId of ["ada", "a b"]) {
      const strange = { ...project, userId }
      const changes = [
        { ...dated, ...strange },
        { ...dated, ...strange, dryRun: true },
        { ...keyed, ...strange },
      ]
      for (const change of changes) {
        const failure = yield* Effect.flip(extend(change))
        expect(failure).toMatchObject({ _tag: "InvalidInput", field: "userId" })
      }
    }
    expect(yield* list(project)).toEqual([])
  })

  test("creates once and extends otherwise, if many ask at the same time", function* () {
    const { extend, find, told } = yield* opened
    const months = Array.from({ length: 6 }, (_, index) =>
      extend({ ...member, by: "P1M", create: true, idempotencyKey: `order-${index}` }),
    )
    const fiber = yield* Effect.forkChild(Effect.all(months, { concurrency: "unbounded" }))
    yield* TestClock.adjust("1 minute")
    const results = yield* Fiber.join(fiber)
    expect(results.filter(({ created }) => created)).toHaveLength(1)
    expect((yield* find(member)).endDate).toBe(Date.UTC(2026, 6, 31, 8))
    expect(told().map(({ type }) => type)).toEqual([
      "membership.granted",
      ...Array.from({ length: 5 }, () => "membership.extended"),
    ])
  })

  test("is repeated if the membership comes and goes meanwhile", function* () {
    let refusals = 1
    const { extend } = yield* membershipsWith((store) => ({
      extend: (given) =>
        Effect.suspend(() =>
          refusals-- > 0
            ? Effect.fail(new MembershipNotFound({ projectId: "p1", userId: "1001" }))
            : store.extend(given),
        ),
    }))
    yield* extend({ ...dated, endDate: in2027 })
    refusals = 3
    for (const change of [
      { ...dated, endDate: in2028 },
      { ...member, by: "P1M", create: true, idempotencyKey: "k1" },
    ]) {
      const fiber = yield* Effect.forkChild(extend(change))
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toMatchObject({ created: false })
      refusals = 3
    }
  })
})
