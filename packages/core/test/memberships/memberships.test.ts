import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import type { OriginInput } from "../../src/base/change-context.ts"
import * as Setting from "../../src/base/setting.ts"
import { hooksLayer } from "../../src/events/event.ts"
import { InvalidEndDate } from "../../src/memberships/end-date.ts"
import { type Member, MoveConflict } from "../../src/memberships/membership.ts"
import { Memberships, membershipsOptions } from "../../src/memberships/memberships.ts"
import { MembershipStore } from "../../src/memberships/store.ts"

const member = { projectId: "p1", userId: "1001" }
const in1973 = Date.UTC(1973, 0, 1)
const in2027 = Date.UTC(2027, 0, 1)
const in2028 = Date.UTC(2028, 0, 1)

/** Runs a test in 2026 on a store with the project `p1`; `bodies` collects the events as JSON. */
const withMemberships = <A, E>(
  test: (memberships: Memberships["Service"], bodies: ReadonlyArray<string>) => Effect.Effect<A, E>,
) => {
  const bodies: Array<string> = []
  const hooks = hooksLayer({ onEvent: ({ body }) => void bodies.push(body) })
  return Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 0, 1))
    const memberships = yield* Memberships
    yield* memberships.createProject("p1")
    return yield* test(memberships, bodies)
  }).pipe(Effect.provide(Memberships.layer().pipe(Layer.provide(memory()), Layer.provide(hooks))))
}

describe("a move", () => {
  const to = "ada@example.com"
  const moving = { ...member, to, reason: "signed up" }

  it.effect("returns the other membership, and tells of the end before", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2028, metadata: { plan: "gold" } })
        yield* memberships.grant({ ...member, userId: to, endDate: in2027 })
        const moved = yield* memberships.move(moving, { requestId: "r1" })
        expect(moved).toEqual({ projectId: "p1", userId: to, endDate: in2028 })
        const told = bodies.slice(2).map((body) => JSON.parse(body))
        const both = { project_id: "p1", reason: "signed up", request_id: "r1" }
        expect(told).toMatchObject([
          {
            type: "membership.ended",
            data: { ...both, user_id: "1001", moved_to: to, metadata: { plan: "gold" } },
          },
          {
            type: "membership.granted",
            data: {
              ...both,
              user_id: to,
              moved_from: "1001",
              new_end_date: "2028-01-01T00:00:00.000Z",
              metadata: { plan: "gold" },
            },
          },
        ])
        const failure = yield* Effect.flip(memberships.move(moving))
        expect(failure).toMatchObject({ _tag: "MembershipNotFound", userId: "1001" })
      }),
    ),
  )

  it.effect("has its events in the feed in their order", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1))
      const memberships = yield* Memberships
      yield* memberships.createProject("p1")
      yield* memberships.grant({ ...member, endDate: in2028 })
      for (let round = 0; round < 20; round++) {
        const [userId, other] = round % 2 === 0 ? ["1001", to] : [to, "1001"]
        const ids: Array<string> = []
        const hooks = { onEvent: ({ id }: { readonly id: string }) => void ids.push(id) }
        yield* Effect.provide(
          Effect.flatMap(Memberships, (told) => told.move({ ...member, userId, to: other })),
          Layer.fresh(Memberships.layer()).pipe(Layer.provide(hooksLayer(hooks))),
        )
        expect(ids).toEqual(ids.toSorted())
        expect(ids).toHaveLength(2)
      }
    }).pipe(Effect.provide(Layer.provideMerge(Memberships.layer(), memory()))),
  )

  it.effect("is made once with an idempotency key, and answers the same", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2028 })
        const keyed = { ...moving, idempotencyKey: "k1" }
        const moved = yield* memberships.move(keyed)
        yield* memberships.grant({ ...member, userId: to, endDate: in2027 })
        yield* memberships.grant({ ...member, endDate: in2027 })
        expect(yield* memberships.move(keyed)).toEqual(moved)
        const failure = yield* Effect.flip(memberships.move({ ...keyed, to: "1002" }))
        expect(failure._tag).toBe("IdempotencyMismatch")
        expect((yield* memberships.history({ ...member, userId: to }))[0]?.action).toBe("granted")
        const ended = yield* Effect.flip(memberships.end({ ...member, idempotencyKey: "k1" }))
        expect(ended._tag).toBe("IdempotencyMismatch")
      }),
    ),
  )

  it.effect("is invalid to the same user, to none, and with too much metadata", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        const names = Array.from({ length: 9 }, (_, index) => index)
        const noted = (prefix: string) =>
          Object.fromEntries(names.map((index) => [`${prefix}${index}`, "x"]))
        yield* memberships.grant({ ...member, endDate: in2028, metadata: noted("a") })
        yield* memberships.grant({ ...member, userId: to, endDate: in2028, metadata: noted("b") })
        const before = bodies.length
        for (const other of ["1001", "", "a b", to]) {
          const failure = yield* Effect.flip(memberships.move({ ...member, to: other }))
          expect(failure).toMatchObject({ _tag: "InvalidInput", field: "to" })
        }
        expect(bodies).toHaveLength(before)
      }),
    ),
  )

  it.effect("is repeated if a membership is changed meanwhile", () =>
    Effect.gen(function* () {
      const store = yield* MembershipStore
      let changes = 3
      const memberships = yield* Effect.provide(
        Memberships,
        Memberships.layer().pipe(
          Layer.provide(
            Layer.succeed(MembershipStore, {
              ...store,
              move: (move) => (changes-- > 0 ? Effect.fail(new MoveConflict()) : store.move(move)),
            }),
          ),
        ),
      )
      yield* memberships.createProject("p1")
      yield* memberships.grant({ ...member, endDate: in2028 })
      const fiber = yield* Effect.forkChild(memberships.move(moving))
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toMatchObject({ userId: to, endDate: in2028 })
    }).pipe(Effect.provide(memory())),
  )

  it.effect("takes other user ids alone that can become members", () =>
    Effect.gen(function* () {
      const memberships = yield* Memberships
      const failure = yield* Effect.flip(memberships.move({ ...member, to: "ada" }))
      expect(failure).toMatchObject({ field: "to", message: expect.stringContaining("digits") })
    }).pipe(
      Effect.provide(
        Memberships.layer(Setting.parse(membershipsOptions, { userIds: "digits" })).pipe(
          Layer.provide(memory()),
        ),
      ),
    ),
  )
})

describe("end dates", () => {
  it.effect.each([
    ["a Date", new Date(in2027)],
    ["text", "2027-01-01T00:00:00.000Z"],
    ["milliseconds", in2027],
  ] as const)("may be %s", ([_name, endDate]) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const expected = { ...member, endDate: in2027 }
        const granted = { ...expected, metadata: {}, state: "active" }
        expect(yield* memberships.grant({ ...member, endDate })).toEqual(granted)
        expect(yield* memberships.extend({ ...member, endDate })).toEqual(expected)
        const bulk = yield* memberships.extendAll({ projectId: "p1", endDate })
        expect(bulk).toEqual({ endDate: in2027, total: 1 })
      }),
    ),
  )

  it.effect("may be of any year, and as milliseconds from 1973 on", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const [year0, year9999] = [
          Date.UTC(2000, 0, 1) - 5 * 146_097 * 86_400_000,
          253_402_300_799_999,
        ]
        for (const millis of [year0, -1, 0, 1, in1973 - 1, in1973, 999_999_999_999, year9999]) {
          const endDate = millis < in1973 ? new Date(millis) : millis
          yield* memberships.grant({ ...member, endDate })
          expect((yield* memberships.find(member)).endDate).toBe(millis)
        }
        yield* memberships.extend({ ...member, endDate: year9999 })
      }),
    ),
  )

  it.effect("may be those of memberships that were returned", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const granted = yield* memberships.grant({ ...member, endDate: in2027 })
        expect(yield* memberships.grant(granted)).toEqual(granted)
        expect(yield* memberships.extend(yield* memberships.find(member))).toMatchObject({
          endDate: in2027,
        })
      }),
    ),
  )

  it.effect.each([NaN, 0.5, new Date(NaN), "2027-01-01", 253_402_300_800_000])(
    "are rejected by every operation if they are invalid: %s",
    (endDate) =>
      withMemberships((memberships) =>
        Effect.gen(function* () {
          const failures = yield* Effect.all([
            Effect.flip(memberships.grant({ ...member, endDate })),
            Effect.flip(memberships.extend({ ...member, endDate })),
            Effect.flip(memberships.extendAll({ projectId: "p1", endDate })),
          ])
          for (const failure of failures) {
            expect(failure).toBeInstanceOf(InvalidEndDate)
            expect(failure.message).toContain("must be a valid Date, text such as")
          }
        }),
      ),
  )

  it.effect("are rejected by both extensions if they are not in the future", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const endDate = new Date(Date.UTC(2026, 0, 1))
        const failures = yield* Effect.all([
          Effect.flip(memberships.extend({ ...member, endDate })),
          Effect.flip(memberships.extendAll({ projectId: "p1", endDate })),
        ])
        for (const failure of failures) expect(failure._tag).toBe("EndDateNotInFuture")
      }),
    ),
  )
})

/** Every operation that changes memberships, with an origin and a reason. */
const changeAll = (memberships: Memberships["Service"], origin?: OriginInput, reason?: string) =>
  Effect.gen(function* () {
    const project = { projectId: "p1", reason }
    yield* memberships.grant({ ...member, endDate: in2027, reason }, origin)
    yield* memberships.extend({ ...member, endDate: in2028, reason }, origin)
    yield* memberships.extendAll({ ...project, endDate: in2028 }, origin)
    yield* memberships.end({ ...member, reason }, origin)
    yield* memberships.import({ ...project, memberships: [] }, origin)
    yield* memberships.import(
      { ...project, memberships: [{ ...member, endDate: new Date(0) }] },
      origin,
    )
  })

describe("the origin of a change", () => {
  it.effect("is in the audit trail and in the event, whatever the operation", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        const origin = { keyId: "alice", requestId: "invoice 7" }
        yield* changeAll(memberships, origin)
        const rows = yield* memberships.history({ projectId: "p1" })
        const actions = ["imported", "ended", "bulk_extended", "extended", "granted"]
        expect(rows).toMatchObject(actions.map((action) => ({ action, origin })))
        for (const body of bodies) {
          expect(JSON.parse(body)).toMatchObject({ data: { request_id: "invoice 7" } })
        }
        expect(bodies).toHaveLength(6)
      }),
    ),
  )

  it.effect.each([undefined, {}])("may be omitted: %o", (origin) =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* changeAll(memberships, origin)
        for (const row of yield* memberships.history({ projectId: "p1" })) {
          expect(row.origin).toEqual({ keyId: undefined, requestId: undefined })
        }
        for (const body of bodies) {
          expect(JSON.parse(body)).toMatchObject({ data: { request_id: null } })
        }
      }),
    ),
  )

  it.effect.each([
    ["origin.keyId", { keyId: "" }],
    ["origin.keyId", { keyId: "a\u0000" }],
    ["origin.keyId", { keyId: "a".repeat(256) }],
    ["origin.requestId", { requestId: "a\nb" }],
    ["origin.requestId", { requestId: "\ud800" }],
    ["origin.requestId", JSON.parse('{"requestId":7}')],
  ] as const)("is rejected if its %s is invalid: %j", ([field, origin]) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const failures = yield* Effect.all([
          Effect.flip(memberships.grant({ ...member, endDate: in2027 }, origin)),
          Effect.flip(memberships.extend({ ...member, endDate: in2027 }, origin)),
          Effect.flip(memberships.extendAll({ projectId: "p1", endDate: in2027 }, origin)),
          Effect.flip(memberships.end(member, origin)),
          Effect.flip(memberships.import({ projectId: "p1", memberships: [] }, origin)),
        ])
        for (const failure of failures) {
          expect(failure).toMatchObject({ _tag: "InvalidInput", field })
        }
        expect(yield* memberships.history({ projectId: "p1" })).toEqual([])
      }),
    ),
  )
})

describe("the reason for a change", () => {
  it.effect.each(["r", "Kulanz 🎉\nCase 7", "🎉".repeat(500)])(
    "is in the audit trail and in the event, whatever the operation: %j",
    (reason) =>
      withMemberships((memberships, bodies) =>
        Effect.gen(function* () {
          yield* changeAll(memberships, undefined, reason)
          const rows = yield* memberships.history({ projectId: "p1" })
          expect(rows.map((row) => row.reason)).toEqual(Array.from({ length: 5 }, () => reason))
          for (const body of bodies) expect(JSON.parse(body)).toMatchObject({ data: { reason } })
          expect(bodies).toHaveLength(6)
        }),
      ),
  )

  it.effect("is nowhere if there is none", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* changeAll(memberships)
        for (const { reason } of yield* memberships.history({ projectId: "p1" })) {
          expect(reason).toBeUndefined()
        }
        for (const body of bodies) expect(body).not.toContain("reason")
      }),
    ),
  )

  it.effect.each(["", "r".repeat(501), "a\u0000", "\ud800", JSON.parse("7"), JSON.parse("null")])(
    "is rejected by every operation if it is invalid: %j",
    (reason) =>
      withMemberships((memberships) =>
        Effect.gen(function* () {
          const project = { projectId: "p1", reason }
          const failures = yield* Effect.all([
            Effect.flip(memberships.grant({ ...member, endDate: in2027, reason })),
            Effect.flip(memberships.extend({ ...member, endDate: in2027, reason })),
            Effect.flip(memberships.extendAll({ ...project, endDate: in2027 })),
            Effect.flip(memberships.end({ ...member, reason })),
            Effect.flip(memberships.import({ ...project, memberships: [] })),
          ])
          for (const failure of failures) {
            expect(failure).toMatchObject({ _tag: "InvalidInput", field: "reason" })
          }
          expect(yield* memberships.history({ projectId: "p1" })).toEqual([])
        }),
      ),
  )
})

describe("an extension that expects an end date", () => {
  it.effect("is made if the membership has it, in any form, and fails otherwise", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2027 })
        const extension = { ...member, endDate: in2028 }
        for (const expectedEndDate of [new Date(in2027), "2028-01-01T00:00:00.000Z", in2028]) {
          yield* memberships.extend({ ...extension, expectedEndDate })
        }
        const stale = memberships.extend({ ...member, endDate: in2027, expectedEndDate: in2027 })
        const error = yield* Effect.flip(stale)
        expect(error).toMatchObject({ _tag: "EndDateConflict", currentEndDate: in2028 })
        expect(error.message).toContain("2028-01-01T00:00:00.000Z")
        expect((yield* memberships.find(member)).endDate).toBe(in2028)
        expect(bodies).toHaveLength(4)
      }),
    ),
  )

  it.effect.each([NaN, "soon", new Date(NaN), JSON.parse("null"), JSON.parse("true")])(
    "fails if that is invalid: %s",
    (expectedEndDate) =>
      withMemberships((memberships) =>
        Effect.gen(function* () {
          yield* memberships.grant({ ...member, endDate: in2027 })
          const extension = { ...member, endDate: in2028, expectedEndDate }
          const error = yield* Effect.flip(memberships.extend(extension))
          expect(error).toMatchObject({ _tag: "InvalidInput", field: "expectedEndDate" })
          expect((yield* memberships.find(member)).endDate).toBe(in2027)
        }),
      ),
  )
})

describe("a dry run", () => {
  it.effect("calls no hook, and returns what the change would", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2028 })
        const endDate = in2027
        const one = yield* memberships.extend({ ...member, endDate, dryRun: true })
        expect(one).toEqual({ ...member, endDate })
        const all = yield* memberships.extendAll({ projectId: "p1", endDate, dryRun: true })
        expect(all).toMatchObject({ endDate, total: 1, preview: { shortened: 1 } })
        expect(bodies).toHaveLength(1)
      }),
    ),
  )

  it.effect("fails for all that the change fails for", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2028 })
        const one = { ...member, endDate: in2028, dryRun: true }
        const all = { projectId: "p1", endDate: in2028, dryRun: true }
        const failures = yield* Effect.all([
          Effect.flip(memberships.extend({ ...one, endDate: new Date(0) })),
          Effect.flip(memberships.extend({ ...one, userId: "7" })),
          Effect.flip(memberships.extend({ ...one, expectedEndDate: in2027 })),
          Effect.flip(memberships.extend({ ...one, reason: "" })),
          Effect.flip(memberships.extend(one, { keyId: "" })),
          Effect.flip(memberships.extendAll({ ...all, endDate: new Date(0) })),
          Effect.flip(memberships.extendAll({ ...all, projectId: "p9" })),
          Effect.flip(memberships.extendAll({ ...all, reason: "" })),
        ])
        expect(failures.map(({ _tag }) => _tag)).toEqual([
          "EndDateNotInFuture",
          "MembershipNotFound",
          "EndDateConflict",
          "InvalidInput",
          "InvalidInput",
          "EndDateNotInFuture",
          "ProjectNotFound",
          "InvalidInput",
        ])
      }),
    ),
  )

  it.effect.each([null, "true", 1, 0])("is refused if it is %j", (given) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const dryRun = JSON.parse(JSON.stringify(given))
        const error = yield* Effect.flip(
          memberships.extendAll({ projectId: "p1", endDate: in2028, dryRun }),
        )
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "dryRun" })
        expect(yield* memberships.history({ projectId: "p1" })).toEqual([])
      }),
    ),
  )
})

describe("an import", () => {
  const users = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ userId: String(index), endDate: in2027 }))

  it.effect("sets the end dates of all users, with one event that tells how many", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        const dates = [new Date(in2028), "2027-01-01T00:00:00.000Z", new Date(-1)]
        const listed = dates.map((endDate, index) => ({ userId: String(index), endDate }))
        yield* memberships.import({ projectId: "p1", memberships: listed })
        expect(yield* memberships.list({ projectId: "p1" })).toMatchObject([
          { userId: "0", endDate: in2028 },
          { userId: "1", endDate: in2027 },
          { userId: "2", endDate: -1 },
        ])
        expect(bodies.map((body) => JSON.parse(body))).toEqual([
          {
            type: "memberships.imported",
            timestamp: "2026-01-01T00:00:00.000Z",
            data: { project_id: "p1", total: 3, request_id: null, sequence: 3 },
          },
        ])
      }),
    ),
  )

  it.effect("takes up to 10,000 memberships", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        yield* memberships.import({ projectId: "p1", memberships: users(10_000) })
        const { total } = yield* memberships.extendAll({ projectId: "p1", endDate: in2028 })
        expect(total).toBe(10_000)
      }),
    ),
  )

  it.effect.each([
    ["memberships", users(10_001)],
    ["memberships", JSON.parse("{}")],
    ["memberships", undefined],
    ["memberships[1].userId", [...users(1), { userId: "a b", endDate: in2027 }]],
    ["memberships[1].userId", [...users(1), JSON.parse(`{"userId":7,"endDate":0}`)]],
    ["memberships[1].userId", [...users(1), JSON.parse("null")]],
    ["memberships[1].endDate", [...users(1), { userId: "7", endDate: "soon" }]],
    ["memberships[1].endDate", [...users(1), { userId: "7", endDate: NaN }]],
    ["memberships[2].userId", [...users(2), ...users(1)]],
  ])("changes nothing if its %s is invalid", ([field, listed]) =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        const importing = memberships.import({ projectId: "p1", memberships: listed })
        expect(yield* Effect.flip(importing)).toMatchObject({ _tag: "InvalidInput", field })
        expect(yield* memberships.history({ projectId: "p1" })).toEqual([])
        expect(bodies).toEqual([])
      }),
    ),
  )
})

describe("isActive", () => {
  it.effect("tells of the membership that the user has at this time", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const isActive = memberships.isActive(member)
        expect(yield* memberships.isActive({ ...member, projectId: "p2" })).toBe(false)
        expect(yield* isActive).toBe(false)
        yield* memberships.grant({ ...member, endDate: in2027 })
        expect(yield* isActive).toBe(true)
        yield* TestClock.setTime(in2027 - 1)
        expect(yield* isActive).toBe(true)
        yield* TestClock.setTime(in2027)
        expect(yield* isActive).toBe(false)
        yield* memberships.extendAll({ projectId: "p1", endDate: in2028 })
        expect(yield* isActive).toBe(true)
        yield* memberships.end(member)
        expect(yield* isActive).toBe(false)
      }),
    ),
  )

  it.effect.each([
    { userId: "" },
    { userId: "a b" },
    { userId: ".." },
    { userId: "1".repeat(500) },
    { userId: "\uD800" },
    { projectId: "" },
    { projectId: ".." },
    { projectId: "p\n" },
  ])("is false for text that is no id, as for an id that nobody has: %j", (given) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        expect(yield* memberships.isActive({ ...member, ...given })).toBe(false)
      }),
    ),
  )

  it.effect.each([
    ["projectId", { userId: "1" }],
    ["userId", { projectId: "p1" }],
    ["userId", { projectId: "p1", userId: 1001 }],
    ["projectId", { projectId: null, userId: "a b" }],
    ["user_id", { projectId: "p1", user_id: "1001" }],
  ] as const)("fails for a mistake of the host's: %s in %j", ([field, given]) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const untyped: Member = JSON.parse(JSON.stringify(given))
        const error = yield* Effect.flip(memberships.isActive(untyped))
        expect(error).toMatchObject({ _tag: "InvalidInput", field })
      }),
    ),
  )
})

describe("a page of a list", () => {
  it.effect.each([
    ["after", { after: "a b" }],
    ["limit", { limit: 0 }],
    ["limit", { limit: 10_001 }],
    ["limit", { limit: 1.5 }],
    ["userIds", { userIds: ["1001", "a b"] }],
    ["userIds", { userIds: Array.from({ length: 1001 }, (_, index) => String(index)) }],
  ] as const)("is rejected if its %s is invalid: %o", ([field, page]) =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(memberships.list({ projectId: "p1", ...page }))
        expect(failure).toMatchObject({ _tag: "InvalidInput", field })
      }),
    ),
  )
})

describe("a call with an idempotency key", () => {
  it.effect("is answered again after its date has passed, and not made if it was not", () =>
    withMemberships((memberships, bodies) =>
      Effect.gen(function* () {
        yield* memberships.grant({ ...member, endDate: in2027 })
        const endDate = Date.UTC(2026, 0, 1, 12)
        const one = { ...member, endDate, idempotencyKey: "one" }
        const all = { projectId: "p1", endDate, idempotencyKey: "all" }
        const first = [yield* memberships.extend(one), yield* memberships.extendAll(all)]
        expect(bodies).toHaveLength(3)
        yield* TestClock.adjust("13 hours")
        expect([yield* memberships.extend(one), yield* memberships.extendAll(all)]).toEqual(first)
        const late: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          memberships.extend({ ...one, idempotencyKey: "new" }),
          memberships.extendAll({ ...all, idempotencyKey: "new" }),
          memberships.extend({ ...member, endDate }),
        ]
        for (const call of late) {
          expect(yield* Effect.flip(call)).toMatchObject({ _tag: "EndDateNotInFuture" })
        }
        expect(bodies).toHaveLength(3)
      }),
    ),
  )

  it.effect("answers what it has answered, after all of that has changed", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const created = memberships.createProject("p2", undefined, { idempotencyKey: "project" })
        const granted = memberships.grant({ ...member, endDate: in2027, idempotencyKey: "grant" })
        const metadata = { plan: "gold" }
        const updated = memberships.update({ ...member, metadata, idempotencyKey: "metadata" })
        const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [created, granted, updated]
        const first = yield* Effect.all(calls)
        expect(first).toMatchObject([
          { id: "p2", memberships: 0, lastBulkEndDate: undefined },
          { metadata: {}, state: "active" },
          { endDate: in2027, metadata, state: "active" },
        ])
        yield* memberships.grant({ ...member, projectId: "p2", endDate: in2028 })
        yield* memberships.extendAll({ projectId: "p2", endDate: in2028 })
        yield* memberships.grant({ ...member, endDate: in2028, metadata: { plan: "silver" } })
        expect(yield* Effect.all(calls)).toEqual(first)
        yield* memberships.end(member)
        expect(yield* Effect.all(calls)).toEqual(first)
      }),
    ),
  )

  it.effect("answers that a membership was active, after its end date has passed", () =>
    withMemberships((memberships) =>
      Effect.gen(function* () {
        const endDate = Date.UTC(2026, 0, 1, 12)
        const granted = memberships.grant({ ...member, endDate, idempotencyKey: "grant" })
        const metadata = { plan: "gold" }
        const updated = memberships.update({ ...member, metadata, idempotencyKey: "metadata" })
        const first = [yield* granted, yield* updated]
        yield* TestClock.adjust("13 hours")
        expect([yield* granted, yield* updated]).toEqual(first)
        expect(first.map(({ state }) => state)).toEqual(["active", "active"])
      }),
    ),
  )

  it.effect.each([
    [
      "an extension by a duration",
      { endDate: in2027 + 86_400_000 },
      ({ extend }: Memberships["Service"]) =>
        extend({ ...member, by: "P1D", expectedEndDate: in2027, idempotencyKey: "days" }),
    ],
    [
      "a change of metadata",
      { metadata: { plan: "pro" } },
      ({ update }: Memberships["Service"]) =>
        update({ ...member, metadata: { plan: "pro" }, idempotencyKey: "plan" }),
    ],
  ] as const)("is made once if its repetition is faster: %s", ([_name, answer, make]) => {
    const bodies: Array<string> = []
    let meanwhile: Effect.Effect<unknown> = Effect.void
    /** A store in which others make changes before a membership is read. */
    const slow = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({
        ...store,
        find: (...asked: Parameters<typeof store.find>) =>
          Effect.suspend(() => {
            const first = meanwhile
            meanwhile = Effect.void
            return Effect.andThen(first, store.find(...asked))
          }),
      })),
    ).pipe(Layer.provideMerge(memory()))
    return Effect.gen(function* () {
      const memberships = yield* Memberships
      yield* memberships.createProject("p1")
      yield* memberships.grant({ ...member, endDate: in2027 })
      const call: Effect.Effect<unknown, unknown> = make(memberships)
      const other = memberships.update({ ...member, metadata: { plan: "basic" } })
      meanwhile = Effect.orDie(Effect.andThen(call, other))
      expect(yield* call).toMatchObject(answer)
      expect(yield* call).toMatchObject(answer)
      expect(bodies).toHaveLength(3)
    }).pipe(
      Effect.provide(
        Memberships.layer().pipe(
          Layer.provide(hooksLayer({ onEvent: ({ body }) => void bodies.push(body) })),
          Layer.provide(slow),
        ),
      ),
    )
  })
})

describe("a list by ends", () => {
  it.effect(
    "has members whom the store lists as active, whatever the time is in the process",
    () => {
      /** A store whose clock is behind that of the process. */
      const late = Layer.effect(
        MembershipStore,
        Effect.map(MembershipStore, (store) => ({
          ...store,
          listEnding: (...asked: Parameters<typeof store.listEnding>) =>
            Effect.tap(store.listEnding(...asked), () => TestClock.setTime(in2028)),
        })),
      ).pipe(Layer.provideMerge(memory()))
      return Effect.gen(function* () {
        yield* TestClock.setTime(Date.UTC(2026, 0, 1))
        const memberships = yield* Memberships
        yield* memberships.createProject("p1")
        yield* memberships.grant({ ...member, endDate: in2027 })
        const page = yield* memberships.listEnding({ projectId: "p1", before: in2028 })
        expect(page.memberships).toMatchObject([{ ...member, endDate: in2027, state: "active" }])
      }).pipe(
        Effect.provide(
          Memberships.layer().pipe(
            Layer.provide(hooksLayer({ onEvent: undefined })),
            Layer.provide(late),
          ),
        ),
      )
    },
  )
})
