import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import type { OriginInput } from "../../src/base/change-context.ts"
import type { EndDateInput } from "../../src/memberships/end-date.ts"
import { type Member, MoveConflict, ProjectConflict } from "../../src/memberships/membership.ts"
import type { Memberships } from "../../src/memberships/memberships.ts"
import { membershipsAt } from "../support/memberships.ts"
import { test } from "../support/test.ts"

const project = { projectId: "p1" }
const member = { ...project, userId: "1001" }
const to = "ada@example.com"
const in2026 = Date.UTC(2026, 0, 1)
const in2027 = Date.UTC(2027, 0, 1)
const in2028 = Date.UTC(2028, 0, 1)

const { membershipsWith, opened } = membershipsAt(in2026)

describe("a move", () => {
  const moving = { ...member, to, reason: "signed up" }

  test("returns the other membership, and tells of the end before", function* () {
    const { grant, move, told } = yield* opened
    const metadata = { plan: "gold" }
    yield* grant({ ...member, endDate: in2028, metadata })
    yield* grant({ ...member, userId: to, endDate: in2027 })
    const moved = yield* move(moving, { requestId: "r1" })
    expect(moved).toEqual({ projectId: "p1", userId: to, endDate: in2028 })
    const both = { project_id: "p1", reason: "signed up", request_id: "r1", metadata }
    const new_end_date = "2028-01-01T00:00:00.000Z"
    expect(told().slice(2)).toMatchObject([
      { type: "membership.ended", data: { ...both, user_id: "1001", moved_to: to } },
      {
        type: "membership.granted",
        data: { ...both, user_id: to, moved_from: "1001", new_end_date },
      },
    ])
    const failure = yield* Effect.flip(move(moving))
    expect(failure).toMatchObject({ _tag: "MembershipNotFound", userId: "1001" })
  })

  test("has its events in the feed in their order", function* () {
    const { grant, ids, move } = yield* opened
    yield* grant({ ...member, endDate: in2028 })
    for (let round = 0; round < 20; round++) {
      const [userId, other] = round % 2 === 0 ? ["1001", to] : [to, "1001"]
      yield* move({ ...member, userId, to: other })
      const pair = ids.slice(-2)
      expect(pair).toEqual(pair.toSorted())
    }
    expect(ids).toHaveLength(41)
  })

  test("is made once with an idempotency key, and answers the same", function* () {
    const { end, grant, history, move } = yield* opened
    yield* grant({ ...member, endDate: in2028 })
    const keyed = { ...moving, idempotencyKey: "k1" }
    const moved = yield* move(keyed)
    yield* grant({ ...member, userId: to, endDate: in2027 })
    yield* grant({ ...member, endDate: in2027 })
    expect(yield* move(keyed)).toEqual(moved)
    expect((yield* history({ ...member, userId: to }))[0]?.action).toBe("granted")
    const others: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      move({ ...keyed, to: "1002" }),
      end({ ...member, idempotencyKey: "k1" }),
    ]
    for (const other of others) {
      expect(yield* Effect.flip(other)).toMatchObject({ _tag: "IdempotencyMismatch" })
    }
  })

  test("is invalid to the same user, to none, and with too much metadata", function* () {
    const { bodies, grant, move } = yield* opened
    const noted = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`${prefix}${index}`, "x"]))
    yield* grant({ ...member, endDate: in2028, metadata: noted("a") })
    yield* grant({ ...member, userId: to, endDate: in2028, metadata: noted("b") })
    for (const other of ["1001", "", "a b", to]) {
      const failure = yield* Effect.flip(move({ ...member, to: other }))
      expect(failure).toMatchObject({ _tag: "InvalidInput", field: "to" })
    }
    expect(bodies).toHaveLength(2)
  })

  test("is repeated if a membership is changed meanwhile", function* () {
    let changes = 3
    const { grant, move } = yield* membershipsWith((store) => ({
      move: (given) => (changes-- > 0 ? Effect.fail(new MoveConflict()) : store.move(given)),
    }))
    yield* grant({ ...member, endDate: in2028 })
    const fiber = yield* Effect.forkChild(move(moving))
    yield* TestClock.adjust("1 minute")
    expect(yield* Fiber.join(fiber)).toMatchObject({ userId: to, endDate: in2028 })
  })

  test("takes other user ids alone that can become members", function* () {
    const { move } = yield* membershipsWith(() => ({}), { userIds: "digits" })
    const failure = yield* Effect.flip(move({ ...member, to: "ada" }))
    expect(failure).toMatchObject({ field: "to", message: expect.stringContaining("digits") })
  })
})

test.each([
  ["a Date", new Date(in2027)],
  ["text", "2027-01-01T00:00:00.000Z"],
  ["milliseconds", in2027],
] as const)("an end date may be %s", function* ([, endDate]) {
  const { extend, extendAll, grant } = yield* opened
  const expected = { ...member, endDate: in2027 }
  const granted = { ...expected, metadata: {}, state: "active" }
  expect(yield* grant({ ...member, endDate })).toEqual(granted)
  expect(yield* extend({ ...member, endDate })).toEqual(expected)
  expect(yield* extendAll({ ...project, endDate })).toEqual({ endDate: in2027, total: 1 })
})

/** The options common to all changes. */
interface Asked {
  readonly endDate?: EndDateInput
  readonly reason?: string | undefined
  readonly origin?: OriginInput | undefined
}

/** Returns every operation that changes memberships, in an order in which all succeed. */
const changesOf = (
  memberships: Memberships["Service"],
  { endDate = in2028, origin, ...rest }: Asked,
) => {
  const { end, extend, extendAll, grant, import: add } = memberships
  const all = { ...project, ...rest }
  const one = { ...all, userId: "1001" }
  const setting: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    grant({ ...one, endDate }, origin),
    extend({ ...one, endDate }, origin),
    extendAll({ ...all, endDate }, origin),
  ]
  const others: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    end(one, origin),
    add({ ...all, memberships: [] }, origin),
    add({ ...all, memberships: [{ ...member, endDate: new Date(0) }] }, origin),
  ]
  return { setting, all: [...setting, ...others] }
}

const actions = ["imported", "ended", "bulk_extended", "extended", "granted"]

describe("every change", () => {
  const nobody = { keyId: undefined, requestId: undefined }

  test.each<readonly [Asked, object, object]>([
    [
      { origin: { keyId: "alice", requestId: "invoice 7" } },
      { origin: { keyId: "alice", requestId: "invoice 7" }, reason: undefined },
      { request_id: "invoice 7" },
    ],
    [{ origin: {} }, { origin: nobody, reason: undefined }, { request_id: null }],
    [{}, { origin: nobody, reason: undefined }, { request_id: null }],
    ...["r", "Kulanz 🎉\nCase 7", "🎉".repeat(500)].map(
      (reason) => [{ reason }, { origin: nobody, reason }, { request_id: null, reason }] as const,
    ),
  ])(
    "has its origin and its reason in the audit trail and in its event: %j",
    function* ([asked, row, data]) {
      const { bodies, history, memberships, told } = yield* opened
      yield* Effect.all(changesOf(memberships, asked).all)
      const rows = yield* history(project)
      expect(rows).toMatchObject(actions.map((action) => ({ action, ...row })))
      expect(told()).toMatchObject(Array.from({ length: 6 }, () => ({ data })))
      if (asked.reason === undefined) expect(bodies.join()).not.toContain("reason")
    },
  )

  const longReason = "r".repeat(501)

  test.each<readonly [string, Asked]>([
    ["origin.keyId", { origin: { keyId: "" } }],
    ["origin.keyId", { origin: { keyId: "a\u0000" } }],
    ["origin.keyId", { origin: { keyId: "a".repeat(256) } }],
    ["origin.requestId", { origin: { requestId: "a\nb" } }],
    ["origin.requestId", { origin: { requestId: "\ud800" } }],
    ["origin.requestId", { origin: JSON.parse('{"requestId":7}') }],
    ...["", longReason, "a\u0000", "\ud800", JSON.parse("7"), JSON.parse("null")].map(
      (reason) => ["reason", { reason }] as const,
    ),
  ])("is rejected if its %s is invalid: %j", function* ([field, asked]) {
    const { history, memberships } = yield* opened
    for (const change of changesOf(memberships, asked).all) {
      expect(yield* Effect.flip(change)).toMatchObject({ _tag: "InvalidInput", field })
    }
    expect(yield* history(project)).toEqual([])
  })

  test("is rejected if its end date is invalid or, of extensions, not in the future", function* () {
    const { memberships } = yield* opened
    for (const change of changesOf(memberships, { endDate: "2027-01-01" }).setting) {
      expect(yield* Effect.flip(change)).toMatchObject({ _tag: "InvalidEndDate" })
    }
    const [, ...extensions] = changesOf(memberships, { endDate: new Date(in2026) }).setting
    for (const change of extensions) {
      expect(yield* Effect.flip(change)).toMatchObject({ _tag: "EndDateNotInFuture" })
    }
  })
})

describe("an extension that expects an end date", () => {
  test("is made if the membership has it, in any form, and fails otherwise", function* () {
    const { bodies, extend, find, grant } = yield* opened
    yield* grant({ ...member, endDate: in2027 })
    for (const expectedEndDate of [new Date(in2027), "2028-01-01T00:00:00.000Z", in2028]) {
      yield* extend({ ...member, endDate: in2028, expectedEndDate })
    }
    const stale = extend({ ...member, endDate: in2027, expectedEndDate: in2027 })
    const message = expect.stringContaining("2028-01-01T00:00:00.000Z")
    const conflict = { _tag: "EndDateConflict", currentEndDate: in2028, message }
    expect(yield* Effect.flip(stale)).toMatchObject(conflict)
    expect((yield* find(member)).endDate).toBe(in2028)
    expect(bodies).toHaveLength(4)
  })

  test.each([NaN, "soon", new Date(NaN), JSON.parse("true")])(
    "fails if that is invalid: %s",
    function* (expectedEndDate) {
      const { extend, find, grant } = yield* opened
      yield* grant({ ...member, endDate: in2027 })
      const error = yield* Effect.flip(extend({ ...member, endDate: in2028, expectedEndDate }))
      expect(error).toMatchObject({ _tag: "InvalidInput", field: "expectedEndDate" })
      expect((yield* find(member)).endDate).toBe(in2027)
    },
  )
})

describe("a dry run", () => {
  test("calls no hook, and returns what the change would", function* () {
    const { bodies, extend, extendAll, grant } = yield* opened
    yield* grant({ ...member, endDate: in2028 })
    const endDate = in2027
    const one = yield* extend({ ...member, endDate, dryRun: true })
    const announcements = { expiring: 0, overdue: 0, expired: 0, next24Hours: 0 }
    expect(one).toEqual({ ...member, endDate, announcements })
    const all = yield* extendAll({ ...project, endDate, dryRun: true })
    expect(all).toMatchObject({ endDate, total: 1, preview: { shortened: 1 } })
    expect(bodies).toHaveLength(1)
  })

  test("fails for all that the change fails for", function* () {
    const { extend, extendAll, grant } = yield* opened
    yield* grant({ ...member, endDate: in2028 })
    const one = { ...member, endDate: in2028, dryRun: true }
    const all = { ...project, endDate: in2028, dryRun: true }
    const failing: ReadonlyArray<readonly [string, Effect.Effect<unknown, { _tag: string }>]> = [
      ["EndDateNotInFuture", extend({ ...one, endDate: new Date(0) })],
      ["MembershipNotFound", extend({ ...one, userId: "7" })],
      ["EndDateConflict", extend({ ...one, expectedEndDate: in2027 })],
      ["InvalidInput", extend({ ...one, reason: "" })],
      ["InvalidInput", extend(one, { keyId: "" })],
      ["EndDateNotInFuture", extendAll({ ...all, endDate: new Date(0) })],
      ["ProjectNotFound", extendAll({ ...all, projectId: "p9" })],
      ["InvalidInput", extendAll({ ...all, reason: "" })],
    ]
    for (const [tag, call] of failing) expect((yield* Effect.flip(call))._tag).toBe(tag)
  })

  test.each([null, "true", 1, 0])("is refused if it is %j", function* (given) {
    const { extendAll, history } = yield* opened
    const dryRun = JSON.parse(JSON.stringify(given))
    const error = yield* Effect.flip(extendAll({ ...project, endDate: in2028, dryRun }))
    expect(error).toMatchObject({ _tag: "InvalidInput", field: "dryRun" })
    expect(yield* history(project)).toEqual([])
  })
})

describe("a change of a project", () => {
  const asked = { ...project, timeZone: "Europe/Berlin" }
  const zoned = { id: "p1", timeZone: "Europe/Berlin", memberships: 1, webhooks: 0 }

  test("sets the time zone, and moves no end date", function* () {
    const { bodies, createProject, find, findProject, grant, updateProject } = yield* opened
    yield* grant({ ...member, endDate: in2027 })
    expect(yield* findProject("p1")).toMatchObject({ timeZone: "UTC" })
    expect(yield* updateProject(asked)).toMatchObject(zoned)
    expect(yield* findProject("p1")).toMatchObject(zoned)
    expect(yield* createProject("p1")).toMatchObject(zoned)
    expect(yield* find(member)).toMatchObject({ endDate: in2027 })
    expect(bodies).toHaveLength(1)
  })

  test("can be tried", function* () {
    const { findProject, history, updateProject } = yield* opened
    expect(yield* updateProject({ ...asked, dryRun: true })).toMatchObject({
      timeZone: "Europe/Berlin",
    })
    expect(yield* findProject("p1")).toMatchObject({ timeZone: "UTC" })
    expect(yield* history(project)).toEqual([])
    const absent = { ...asked, projectId: "p9" }
    for (const dryRun of [true, false]) {
      const failure = yield* Effect.flip(updateProject({ ...absent, dryRun }))
      expect(failure).toMatchObject({ _tag: "ProjectNotFound", projectId: "p9" })
    }
  })

  test("is made once with an idempotency key, and answers the same", function* () {
    const { findProject, grant, history, updateProject } = yield* opened
    const keyed = { ...asked, idempotencyKey: "zone" }
    const first = yield* updateProject(keyed)
    yield* grant({ ...member, endDate: in2027 })
    yield* updateProject({ ...project, timeZone: "UTC" })
    expect(yield* updateProject({ ...keyed, timeZone: "europe/berlin" })).toEqual(first)
    expect(yield* findProject("p1")).toMatchObject({ timeZone: "UTC" })
    expect(yield* history(project)).toHaveLength(3)
    const other = updateProject({ ...keyed, timeZone: "Asia/Kathmandu" })
    expect(yield* Effect.flip(other)).toMatchObject({ _tag: "IdempotencyMismatch" })
  })

  test("is repeated if the project is changed meanwhile", function* () {
    let changes = 3
    const { history, updateProject } = yield* membershipsWith((store) => ({
      updateProject: (given) =>
        changes-- > 0 ? Effect.fail(new ProjectConflict()) : store.updateProject(given),
    }))
    const fiber = yield* Effect.forkChild(updateProject(asked))
    yield* TestClock.adjust("1 minute")
    expect(yield* Fiber.join(fiber)).toMatchObject({ timeZone: "Europe/Berlin" })
    expect(yield* history(project)).toMatchObject([
      { action: "project_changed", subject: "p1", changes: [{ from: "UTC", to: asked.timeZone }] },
    ])
  })

  test("refuses offsets and unknown names, and needs a setting", function* () {
    const { findProject, grant, updateProject } = yield* opened
    for (const timeZone of ["+01:00", "UTC+1", "Europe/Nowhere", "", "\0"]) {
      expect(yield* Effect.flip(updateProject({ ...project, timeZone }))).toMatchObject({
        _tag: "InvalidInput",
        field: "timeZone",
        problem: expect.stringContaining("not an offset"),
      })
    }
    const none = updateProject({ ...project, reason: "No setting" })
    expect(yield* Effect.flip(none)).toMatchObject({ field: "timeZone" })
    // Other calls take a returned project.
    const found = yield* findProject("p1")
    yield* grant({ ...found, ...member, endDate: in2027 })
  })
})

describe("an import", () => {
  const users = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ userId: String(index), endDate: in2027 }))

  test("sets the end dates of all users, with one event that tells how many", function* () {
    const { import: add, list, told } = yield* opened
    const dates = [new Date(in2028), "2027-01-01T00:00:00.000Z", new Date(-1)]
    const listed = dates.map((endDate, index) => ({ userId: String(index), endDate }))
    yield* add({ ...project, memberships: listed })
    const endDates = (yield* list(project)).map(({ endDate, userId }) => [userId, endDate])
    expect(endDates).toEqual(Object.entries([in2028, in2027, -1]))
    expect(told()).toEqual([
      {
        type: "memberships.imported",
        timestamp: "2026-01-01T00:00:00.000Z",
        data: { project_id: "p1", total: 3, request_id: null, sequence: 3 },
      },
    ])
  })

  test("sets last days, in the time zone of the project or another", function* () {
    const { countEnds, import: add, list } = yield* opened
    const day = { through: "2027-01-31" }
    const listed = [
      { userId: "1", ...day },
      { userId: "2", ...day, timeZone: "Asia/Tokyo" },
    ]
    yield* add({ ...project, memberships: listed })
    const ends = ["2027-02-01T00:00:00.000Z", "2027-01-31T15:00:00.000Z"].map(Date.parse)
    expect((yield* list(project)).map(({ endDate, through }) => [endDate, through])).toEqual([
      [ends[0], "2027-01-31"],
      [ends[1], undefined],
    ])
    const days = { from: "2027-01-31", to: "2027-02-01" }
    for (const [timeZone, ended] of [
      [undefined, [0, 2]],
      ["Asia/Tokyo", [2, 0]],
    ] as const) {
      const counts = yield* countEnds({ ...project, ...days, extension: { ...day, timeZone } })
      expect(counts.days.map((one) => one.ends)).toEqual(ended)
    }
  })

  test("through days takes turns with other work", function* () {
    const { import: add } = yield* opened
    let turns = 0
    const others = Effect.forever(
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => turns++),
      ),
    )
    const fiber = yield* Effect.forkChild(others)
    const day = { endDate: undefined, through: "2027-01-31" }
    yield* add({ ...project, memberships: users(2000).map((one) => ({ ...one, ...day })) })
    yield* Fiber.interrupt(fiber)
    expect(turns).toBeGreaterThan(5)
  })

  test.each([
    ["memberships", users(10_001)],
    ["memberships", JSON.parse("{}")],
    ["memberships", undefined],
    ["memberships[1].userId", [...users(1), { userId: "a b", endDate: in2027 }]],
    ["memberships[1].userId", [...users(1), JSON.parse(`{"userId":7,"endDate":0}`)]],
    ["memberships[1].userId", [...users(1), JSON.parse("null")]],
    ["memberships[1].endDate", [...users(1), { userId: "7", endDate: "soon" }]],
    ["memberships[1].endDate", [...users(1), { userId: "7", endDate: NaN }]],
    ["memberships[2].userId", [...users(2), ...users(1)]],
  ])("changes nothing if its %s is invalid", function* ([field, listed]) {
    const { bodies, history, import: add } = yield* opened
    const failure = yield* Effect.flip(add({ ...project, memberships: listed }))
    expect(failure).toMatchObject({ _tag: "InvalidInput", field })
    expect([yield* history(project), bodies]).toEqual([[], []])
  })
})

describe("isActive", () => {
  test("tells of the membership that the user has at this time", function* () {
    const { end, extendAll, grant, isActive } = yield* opened
    const active = isActive(member)
    expect(yield* isActive({ ...member, projectId: "p2" })).toBe(false)
    expect(yield* active).toBe(false)
    yield* grant({ ...member, endDate: in2027 })
    expect(yield* active).toBe(true)
    yield* TestClock.setTime(in2027 - 1)
    expect(yield* active).toBe(true)
    yield* TestClock.setTime(in2027)
    expect(yield* active).toBe(false)
    yield* extendAll({ ...project, endDate: in2028 })
    expect(yield* active).toBe(true)
    yield* end(member)
    expect(yield* active).toBe(false)
  })

  test.each([
    { userId: "" },
    { userId: "a b" },
    { userId: ".." },
    { userId: "1".repeat(500) },
    { userId: "\uD800" },
    { projectId: "" },
    { projectId: ".." },
    { projectId: "p\n" },
  ])("is false for text that is no id, as for an id that nobody has: %j", function* (given) {
    const { isActive } = yield* opened
    expect(yield* isActive({ ...member, ...given })).toBe(false)
  })

  test.each([
    ["projectId", { userId: "1" }],
    ["userId", { projectId: "p1" }],
    ["userId", { projectId: "p1", userId: 1001 }],
    ["projectId", { projectId: null, userId: "a b" }],
    ["user_id", { projectId: "p1", user_id: "1001" }],
  ])("fails for a mistake of the host's: %s in %j", function* ([field, given]) {
    const { isActive } = yield* opened
    const untyped: Member = JSON.parse(JSON.stringify(given))
    const error = yield* Effect.flip(isActive(untyped))
    expect(error).toMatchObject({ _tag: "InvalidInput", field })
  })
})

describe("a list", () => {
  test.each([
    ["after", { after: "a b" }],
    ["limit", { limit: 0 }],
    ["limit", { limit: 10_001 }],
    ["limit", { limit: 1.5 }],
    ["userIds", { userIds: ["1001", "a b"] }],
    ["userIds", { userIds: Array.from({ length: 1001 }, (_, index) => String(index)) }],
  ] as const)("is rejected if its %s is invalid: %o", function* ([field, page]) {
    const { list } = yield* opened
    const failure = yield* Effect.flip(list({ ...project, ...page }))
    expect(failure).toMatchObject({ _tag: "InvalidInput", field })
  })

  test("by ends has members whom the store lists as active, whatever the time is in the process", function* () {
    // The store's clock is behind.
    const { grant, listEnding } = yield* membershipsWith((store) => ({
      listEnding: (...asked) =>
        Effect.tap(store.listEnding(...asked), () => TestClock.setTime(in2028)),
    }))
    yield* grant({ ...member, endDate: in2027 })
    const page = yield* listEnding({ ...project, before: in2028 })
    expect(page.memberships).toMatchObject([{ ...member, endDate: in2027, state: "active" }])
  })
})

describe("a call with an idempotency key", () => {
  const metadata = { plan: "gold" }
  const noon = in2026 + 43_200_000

  test("is answered again after its date has passed, and not made if it was not", function* () {
    const { bodies, extend, extendAll, grant } = yield* opened
    yield* grant({ ...member, endDate: in2027 })
    const one = { ...member, endDate: noon, idempotencyKey: "one" }
    const all = { ...project, endDate: noon, idempotencyKey: "all" }
    const first = [yield* extend(one), yield* extendAll(all)]
    yield* TestClock.adjust("13 hours")
    expect([yield* extend(one), yield* extendAll(all)]).toEqual(first)
    const late: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      extend({ ...one, idempotencyKey: "new" }),
      extendAll({ ...all, idempotencyKey: "new" }),
      extend({ ...member, endDate: noon }),
    ]
    for (const call of late) {
      expect(yield* Effect.flip(call)).toMatchObject({ _tag: "EndDateNotInFuture" })
    }
    expect(bodies).toHaveLength(3)
  })

  test("answers what it has answered, after all of that has changed", function* () {
    const { createProject, end, extendAll, grant, update } = yield* opened
    const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      createProject("p2", undefined, { idempotencyKey: "project" }),
      grant({ ...member, endDate: in2027, idempotencyKey: "grant" }),
      update({ ...member, metadata, idempotencyKey: "metadata" }),
    ]
    const first = yield* Effect.all(calls)
    expect(first).toMatchObject([
      { id: "p2", memberships: 0, lastBulkEndDate: undefined },
      { metadata: {}, state: "active" },
      { endDate: in2027, metadata, state: "active" },
    ])
    yield* grant({ ...member, projectId: "p2", endDate: in2028 })
    yield* extendAll({ projectId: "p2", endDate: in2028 })
    yield* grant({ ...member, endDate: in2028, metadata: { plan: "silver" } })
    expect(yield* Effect.all(calls)).toEqual(first)
    yield* end(member)
    expect(yield* Effect.all(calls)).toEqual(first)
  })

  test("answers that a membership was active, after its end date has passed", function* () {
    const { grant, update } = yield* opened
    const granted = grant({ ...member, endDate: noon, idempotencyKey: "grant" })
    const updated = update({ ...member, metadata, idempotencyKey: "metadata" })
    const first = [yield* granted, yield* updated]
    expect(first).toMatchObject([{ state: "active" }, { state: "active" }])
    yield* TestClock.adjust("13 hours")
    expect([yield* granted, yield* updated]).toEqual(first)
  })

  test.each([
    [
      "an extension by a duration",
      { endDate: in2027 + 86_400_000 },
      ({ extend }: Memberships["Service"]) =>
        extend({ ...member, by: "P1D", expectedEndDate: in2027, idempotencyKey: "days" }),
    ],
    [
      "a change of metadata",
      { metadata },
      ({ update }: Memberships["Service"]) =>
        update({ ...member, metadata, idempotencyKey: "plan" }),
    ],
  ] as const)("is made once if its repetition is faster: %s", function* ([, answer, make]) {
    // Others make changes before a membership is read.
    let meanwhile: Effect.Effect<unknown> = Effect.void
    const { bodies, grant, memberships, update } = yield* membershipsWith((store) => ({
      find: (...asked) =>
        Effect.suspend(() => {
          const first = meanwhile
          meanwhile = Effect.void
          return Effect.andThen(first, store.find(...asked))
        }),
    }))
    yield* grant({ ...member, endDate: in2027 })
    const call: Effect.Effect<unknown, unknown> = make(memberships)
    const other = update({ ...member, metadata: { plan: "basic" } })
    meanwhile = Effect.orDie(Effect.andThen(call, other))
    expect(yield* call).toMatchObject(answer)
    expect(yield* call).toMatchObject(answer)
    expect(bodies).toHaveLength(3)
  })
})
