/** Changes are stored as a whole, and one after another, with an audit row and an event. */

import { expect } from "@effect/vitest"
import { isEndsLater, isReplayedResponse } from "@tenure/core/internal"
import {
  ApiKeyId,
  ApiKeyStore,
  type AuditRow,
  type BulkMode,
  EndDate,
  type Event,
  MembershipStore,
  Outbox,
  ProjectId,
  type ReplayedResponse,
  StoredSecret,
  type UserId,
  WebhookStore,
  completeEvent,
  noMetadata,
  settingChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import * as Fixture from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests, undone } from "../declare.ts"
import { claimedTypes, deliveriesOf } from "../outbox/steps.ts"
import { addWebhook, expectFailure, outcomeOf, times, together, eventOfGrant } from "../steps.ts"
import { datingChanges, everything, gold, observe } from "./every-change.ts"
import { nowhere, prepared } from "./every-change.ts"

const { apiKey, change, draft, makeWebhook, idempotency, sequenceOf } = Fixture
const { in2027, in2028, in2029, context, p1, p2, u1, u2, u3 } = Fixture

const users = [u1, u2, u3]

/** Returns a user's end date after all changes. Each must start from its predecessor's date. */
const replayed = (newestFirst: ReadonlyArray<AuditRow>, user: UserId): number | undefined => {
  let current: number | undefined
  for (const { action, by = 0, from, to, userId } of newestFirst.toReversed()) {
    if (userId === user) {
      expect(from).toBe(current)
      current = to
    } else if (current !== undefined) {
      if (action === "bulk_extended") current = to
      else if (action === "bulk_lengthened") current = Math.max(current, to ?? NaN)
      else if (action === "bulk_extended_by") current += by
    }
  }
  return current
}

/** Expects that a project's members have the dates that its audit trail leads to. */
const expectAudited = Effect.fnUntraced(function* (projectId = p1) {
  const store = yield* MembershipStore
  const rows = yield* store.history(projectId, everything)
  const members = yield* store.list(projectId, { after: undefined, limit: 10 })
  const dates = new Map(members.map(({ endDate, userId }) => [userId, endDate]))
  expect(users.map((user) => dates.get(user))).toEqual(users.map((user) => replayed(rows, user)))
  expect((yield* store.findProject(projectId)).memberships).toBe(members.length)
})

/** Repeats a check until it holds: a database may still be at work when its caller is gone. */
const soon = Effect.fnUntraced(function* <E, R>(check: Effect.Effect<void, E, R>) {
  for (let left = 50; ; left--) {
    const exit = yield* Effect.exit(check)
    if (exit._tag === "Success" || left === 0) return yield* exit
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
  }
})

export const atomicityTests = (on: StoreTests): void => {
  const { test, transactional } = on.testsAfter(prepared)

  on.describe("a change", () => {
    test("writes all or nothing if its event cannot be stored", function* (store) {
      const event = draft(p1)
      yield* (yield* Outbox).publish(completeEvent(event, 1))
      const written = yield* observe()
      // Most stores refuse a second event with the same id.
      const exits = yield* together(
        datingChanges.map(([, make]) => Effect.exit(make(store, { ...change(p1), event }))),
      )
      const count = exits.filter(({ _tag }) => _tag === "Success").length
      const { deliveries, rows } = yield* written
      expect([rows.length, deliveries.length]).toEqual([count, count])
      yield* expectAudited()
    })

    test("writes all or nothing if its caller is interrupted", function* (store) {
      // The database may still be at work when the next test begins, which has no such project.
      const own = ProjectId("interrupted")
      yield* store.createProject(own, context)
      yield* store.grant({ ...change(own), userId: u1, endDate: in2027 })
      const written = yield* observe(own)
      for (let pauses = 0; pauses < 10; pauses++) {
        const extension = { ...change(own), userId: u1, endDate: EndDate(in2028 + pauses) }
        const fiber = yield* Effect.forkChild(store.extend(extension), { startImmediately: true })
        for (let pause = 0; pause < pauses; pause++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        yield* soon(
          Effect.gen(function* () {
            yield* expectAudited(own)
            const { deliveries, rows } = yield* written
            expect(deliveries).toHaveLength(rows.length)
          }),
        )
      }
    })

    transactional("is undone with a transaction of the host that fails", function* (store) {
      const written = yield* observe()
      const before = yield* written
      for (const [, make] of datingChanges) {
        yield* undone(make(store, change(p1)))
        expect(yield* written).toEqual(before)
      }
    })

    transactional("is stored with a transaction of the host that succeeds", function* (store) {
      const { run } = yield* HostTransaction
      const written = yield* observe()
      yield* run(store.extend({ ...change(p1), userId: u1, endDate: in2028 }))
      const { deliveries, rows } = yield* written
      expect([rows.length, deliveries.length]).toEqual([1, 1])
    })

    test("starts in the audit trail where the one before ends, if many run at the same time", function* (store) {
      yield* times(60, (index) => {
        const endDate = [in2027, in2028, in2029][index % 3] ?? in2027
        const one = { ...change(p1), userId: u3, endDate }
        const made: Effect.Effect<unknown, { readonly _tag: string }> =
          index % 4 === 0
            ? store.grant(one)
            : index % 7 === 3
              ? store.import({ ...one, memberships: [one] })
              : index % 10 === 5
                ? store.extendAll({ ...one, bulk: { endDate, mode: "set" } })
                : store.extend(one)
        // Extensions fail until there is a membership.
        return outcomeOf(made)
      })
      yield* expectAudited()
    })
  })
}

/** Returns a change context, recognisable by its time. */
const auditingContext = (at: number) => ({
  at,
  origin: { requestId: `request ${at}`, keyId: ApiKeyId(`key ${at}`) },
})

/** Returns the trail's contents, oldest first. */
const trailOf = (projectId: typeof p1 | undefined) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.history(projectId, everything), (rows) =>
      rows.toReversed().map(({ action, at, changes, keyName, origin, subject, ...row }) => {
        expect(origin).toEqual(auditingContext(at).origin)
        expect([row.projectId, keyName]).toEqual([projectId, undefined])
        expect([row.userId, row.from, row.to]).toEqual([undefined, undefined, undefined])
        return changes.length === 0 ? [at, action, subject] : [at, action, subject, changes]
      }),
    ),
  )

export const auditingTests = ({ describe, test, transactional }: StoreTests): void => {
  describe("the audit trail", () => {
    test("has who changed webhooks, and only of changes", function* () {
      const store = yield* WebhookStore
      const memberships = yield* MembershipStore
      yield* memberships.createProject(p1, auditingContext(1))
      yield* memberships.createProject(p2, auditingContext(2))
      const { id, ...rest } = makeWebhook(p1)
      const rotation = { secret: makeWebhook(p1).secret, previousUntil: 0 }
      yield* store.add({ id, ...rest }, 1, auditingContext(3))
      yield* expectFailure("WebhookLimitReached", store.add(makeWebhook(p1), 1, auditingContext(4)))
      yield* store.rotateSecret(p1, id, rotation, auditingContext(5))
      yield* Effect.flip(store.rotateSecret(p2, id, rotation, auditingContext(6)))
      yield* store.addSigningKey(p1, id, StoredSecret("whsk_1"), auditingContext(7))
      yield* store.addSigningKey(p1, id, StoredSecret("whsk_2"), auditingContext(8))
      const ref = { projectId: p1, webhookId: id }
      const expected = { ...rest, disabled: undefined }
      const disabled = { at: 0, by: "failures" } as const
      const disabling = { expected, settings: { ...expected, disabled }, changes: [] }
      yield* store.update(ref, disabling, auditingContext(82))
      yield* store.enable(p1, id, auditingContext(9))
      yield* store.enable(p1, id, auditingContext(90))
      const settings = { ...expected, description: 'a "shop"', eventTypes: undefined }
      const changes = settingChanges(expected, settings)
      const update = { expected, settings, changes }
      yield* store.update(ref, update, auditingContext(91))
      yield* Effect.flip(store.update(ref, update, auditingContext(92)))
      const unchanged = { ...update, expected: settings, changes: [] }
      yield* store.update(ref, unchanged, auditingContext(93))
      yield* store.remove(p1, id, auditingContext(10))
      yield* Effect.flip(store.remove(p1, id, auditingContext(11)))
      expect(yield* trailOf(p1)).toEqual([
        [3, "webhook_created", id],
        [5, "secret_rotated", id],
        [7, "signing_key_added", id],
        [9, "webhook_changed", id, [{ field: "disabledBy", from: "failures", to: null }]],
        [91, "webhook_changed", id, [{ field: "description", from: null, to: 'a "shop"' }]],
        [10, "webhook_deleted", id],
      ])
      expect(yield* trailOf(p2)).toEqual([])
    })

    test("has who was shown what", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, auditingContext(1))
      yield* store.createProject(p2, auditingContext(2))
      const secret = { action: "secret_shown", subject: "a webhook" } as const
      const data = { action: "data_shown", subject: "an event" } as const
      yield* store.recordShown(p1, secret, auditingContext(3))
      yield* store.recordShown(p1, data, auditingContext(4))
      yield* store.recordShown(p1, data, auditingContext(5))
      const missing = store.recordShown(nowhere, secret, auditingContext(6))
      yield* expectFailure("ProjectNotFound", missing)
      expect(yield* trailOf(p1)).toEqual([
        [3, "secret_shown", "a webhook"],
        [4, "data_shown", "an event"],
        [5, "data_shown", "an event"],
      ])
      expect(yield* trailOf(p2)).toEqual([])
    })

    test("has who changed keys and projects, and only of changes", function* () {
      const store = yield* ApiKeyStore
      const memberships = yield* MembershipStore
      yield* memberships.createProject(p1, auditingContext(1))
      yield* memberships.createProject(p1, auditingContext(2))
      yield* memberships.createProject(p2, auditingContext(3))
      const { id: keyId, ...rest } = apiKey("a token", p1)
      const key = { id: keyId, ...rest }
      yield* store.add(key, auditingContext(4))
      yield* store.add(apiKey("a token", p1), auditingContext(5))
      yield* store.add(apiKey("a token", p2), auditingContext(6))
      yield* store.add({ ...apiKey("a token"), projects: "all" }, auditingContext(7))
      yield* store.add({ ...apiKey("a token"), projects: "all" }, auditingContext(8))
      yield* Effect.flip(store.add({ ...key, role: "admin" }, auditingContext(9)))
      yield* store.revoke({ keyId, within: "all", ...auditingContext(10) })
      yield* store.revoke({ keyId, within: "all", ...auditingContext(11) })
      yield* Effect.flip(store.add(key, auditingContext(12)))
      expect(yield* trailOf(undefined)).toEqual([
        [1, "project_created", p1],
        [3, "project_created", p2],
        [4, "key_issued", keyId],
        [6, "key_opened", keyId],
        [7, "key_opened", keyId],
        [10, "key_revoked", keyId],
      ])
    })

    test("has the names of keys, also of those that were revoked since", function* () {
      const store = yield* ApiKeyStore
      const memberships = yield* MembershipStore
      yield* memberships.createProject(p1, auditingContext(1))
      const [named, nameless] = [
        { ...apiKey("a token", p1), name: "nightly import" },
        apiKey("another", p1),
      ]
      yield* store.add(named, auditingContext(2))
      yield* store.add(nameless, auditingContext(3))
      for (const keyId of [named.id, nameless.id, ApiKeyId("a host's own")]) {
        const origin = { requestId: undefined, keyId }
        yield* memberships.grant({ ...change(p1), origin, userId: u1, endDate: in2027 })
      }
      const origin = { requestId: undefined, keyId: named.id }
      yield* store.revoke({ keyId: named.id, within: "all", origin, at: 4 })
      const names = (projectId: typeof p1 | undefined) =>
        Effect.map(memberships.history(projectId, { ...everything, limit: 3 }), (rows) =>
          rows.map(({ keyName }) => keyName),
        )
      const expected = [undefined, undefined, "nightly import"]
      expect(yield* names(p1)).toEqual(expected)
      const ofUser = yield* memberships.history(p1, { ...everything, userId: u1 })
      expect(ofUser.map(({ keyName }) => keyName)).toEqual(expected)
      expect((yield* names(undefined))[0]).toBe("nightly import")
    })

    transactional("is undone with a transaction of the host that fails", function* () {
      const memberships = yield* MembershipStore
      const webhooks = yield* WebhookStore
      const keys = yield* ApiKeyStore
      yield* memberships.createProject(p1, auditingContext(1))
      yield* undone(webhooks.add(makeWebhook(p1), 50, auditingContext(2)))
      yield* undone(keys.add(apiKey("a token", p1), auditingContext(3)))
      yield* undone(memberships.createProject(p2, auditingContext(4)))
      expect(yield* trailOf(p1)).toEqual([])
      expect(yield* trailOf(undefined)).toEqual([[1, "project_created", p1]])
    })
  })
}

export const eventTests = ({ testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(prepared)
  describe("events", () => {
    test("are delivered to every webhook of the project, and to no other", function* (store) {
      for (const projectId of [p1, p1, p2]) yield* addWebhook(projectId)
      yield* store.grant({ ...change(p1, "granted"), userId: u3, endDate: in2027 })
      yield* store.extend({ ...change(p1, "extended"), userId: u3, endDate: in2028 })
      yield* store.extendAll({ ...change(p1, "bulk"), bulk: { endDate: in2029, mode: "set" } })
      yield* store.end({ ...change(p1, "ended"), userId: u3 })
      const twice = ["granted", "extended", "bulk", "ended"].flatMap((type) => [type, type])
      expect((yield* claimedTypes).toSorted()).toEqual(twice.toSorted())
    })

    test("are delivered also if a change leaves all dates as they are", function* (store) {
      for (const projectId of [p1, p2]) yield* addWebhook(projectId)
      yield* store.grant({ ...change(p1, "granted"), userId: u1, endDate: in2027 })
      yield* store.extend({ ...change(p1, "extended"), userId: u1, endDate: in2027 })
      yield* store.extendAll({ ...change(p2, "bulk"), bulk: { endDate: in2027, mode: "set" } })
      expect((yield* claimedTypes).toSorted()).toEqual(["bulk", "extended", "granted"])
      const rows = yield* store.history(p1, { userId: u1, limit: 2 })
      expect(rows).toMatchObject([
        { action: "extended", from: in2027, to: in2027 },
        { action: "granted", from: in2027, to: in2027 },
      ])
      const [row] = yield* store.history(p2, everything)
      expect(row).toMatchObject({ action: "bulk_extended", to: in2027 })
    })

    test("are not stored if a change fails or leaves a later end, and neither is an audit row", function* (store) {
      const written = yield* observe()
      const before = yield* written
      const stranger = { ...change(p1), userId: u3, endDate: in2028 }
      const member = { ...change(p1), userId: u2, endDate: in2028 }
      const unchanged = { endDate: in2029, metadata: noMetadata }
      const expected = { from: { ...unchanged, metadata: gold }, to: undefined }
      const refused: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        store.extend(stranger),
        store.end(stranger),
        store.extend({ ...member, expectedEndDate: in2027 }),
        store.extend({ ...member, mode: "neverShorten" }),
        store.setMetadata({ ...member, expected: gold, metadata: noMetadata }),
        store.move({ ...member, ...unchanged, to: u3, expected, granted: draft(p1) }),
      ]
      expect(yield* Effect.forEach(refused, outcomeOf)).toEqual([
        "MembershipNotFound",
        "MembershipNotFound",
        "EndDateConflict",
        "done",
        "MetadataConflict",
        "MoveConflict",
      ])
      expect(yield* written).toEqual(before)
    })
  })
}

type Store = MembershipStore["Service"]

/** A change to some users, and its end date; none if it ends memberships. */
interface Step {
  readonly users: ReadonlyArray<UserId>
  readonly endDate: EndDate | undefined
  readonly isFloor?: boolean
  readonly make: (store: Store) => Effect.Effect<Event | ReplayedResponse | undefined, unknown>
}

const grant = (userId: UserId, endDate: EndDate): Step => ({
  users: [userId],
  endDate,
  make: (store) => Effect.map(store.grant({ ...change(p1), userId, endDate }), eventOfGrant),
})

const extend = (userId: UserId, endDate: EndDate, mode: BulkMode): Step => ({
  users: [userId],
  endDate,
  make: (store) =>
    Effect.map(store.extend({ ...change(p1), userId, endDate, mode }), (result) =>
      isEndsLater(result) ? undefined : result,
    ),
})

const endBy = (operation: "end" | "erase", userId: UserId): Step => ({
  users: [userId],
  endDate: undefined,
  make: (store) => store[operation]({ ...change(p1), userId }),
})

const importAll = (of: ReadonlyArray<UserId>, endDate: EndDate): Step => ({
  users: of,
  endDate,
  make: (store) => {
    const memberships = of.map((userId) => ({ userId, endDate }))
    return store.import({ ...change(p1), memberships })
  },
})

const extendAll = (endDate: EndDate, mode: BulkMode): Step => ({
  users,
  endDate,
  isFloor: mode === "neverShorten",
  make: (store) =>
    Effect.map(store.extendAll({ ...change(p1), bulk: { endDate, mode } }), (extended) =>
      isReplayedResponse(extended) ? extended : extended.event,
    ),
})

/** A completed step and its sequence number. */
interface Made extends Step {
  readonly event: Event
  readonly sequence: number
}

/** Makes a change. Returns nothing if it fails, or has changed nothing. */
const made = (store: Store, step: Step): Effect.Effect<ReadonlyArray<Made>> =>
  Effect.match(step.make(store), {
    onFailure: () => [],
    onSuccess: (event) =>
      event === undefined || isReplayedResponse(event)
        ? []
        : [{ ...step, event, sequence: sequenceOf(event) }],
  })

/** A receiver's knowledge about a membership: it drops stale events. */
const followed = (events: ReadonlyArray<Made>, userId: UserId): EndDate | undefined => {
  let known: EndDate | undefined
  for (const event of events.toSorted((one, other) => one.sequence - other.sequence)) {
    const isBulk = event.users === users
    if (!event.users.includes(userId) || (isBulk && known === undefined)) continue
    const isLeft = event.isFloor === true && known !== undefined && known > Number(event.endDate)
    if (!isLeft) known = event.endDate
  }
  return known
}

const userIds = fc.constantFrom(...users)
const someDates = fc.constantFrom(in2027, in2028, in2029)
const modes = fc.constantFrom("set" as const, "neverShorten" as const)

const steps = fc.oneof(
  fc.tuple(userIds, someDates).map((args) => grant(...args)),
  { weight: 3, arbitrary: fc.tuple(userIds, someDates, modes).map((args) => extend(...args)) },
  fc.tuple(fc.subarray(users.slice(0, 2)), someDates).map((args) => importAll(...args)),
  fc.tuple(someDates, modes).map((args) => extendAll(...args)),
  fc
    .tuple(fc.constantFrom("end" as const, "erase" as const), userIds)
    .map((args) => endBy(...args)),
)

/** Concurrent extensions for the same members, possibly in one batch. */
const sequenceConcurrencyTests = ({ test }: StoreTests): void => {
  test.each([
    ["without idempotency keys", false],
    ["with idempotency keys", true],
  ] as const)(
    "make a chain if members are extended often at the same time, %s",
    function* ([, isKeyed]) {
      const store = yield* prepared
      const webhook = yield* addWebhook()
      const extensions = Array.from({ length: 60 }, (_, index) => ({
        ...change(p1),
        userId: index % 3 === 2 ? u2 : u1,
        // Not always later, and some dates twice.
        endDate: EndDate(in2029 + 1000 * ((index * 7) % 31)),
        idempotency: isKeyed ? idempotency() : undefined,
      }))
      const extendEach = together(extensions.map((extension) => store.extend(extension)))
      const sequences = (yield* extendEach).map((result) =>
        "body" in result ? sequenceOf(result) : NaN,
      )
      const rows = yield* store.history(p1, { userId: undefined, limit: 60 })
      const events = new Set((yield* deliveriesOf(webhook)).map(({ eventId }) => eventId))
      expect(events.size).toBe(60)
      for (const [userId, first] of [
        [u1, in2027],
        [u2, in2029],
      ] as const) {
        const changes = extensions
          .map((one, index) => ({ ...one, sequence: sequences[index] ?? NaN }))
          .filter((one) => one.userId === userId)
          .toSorted((one, other) => one.sequence - other.sequence)
        expect(new Set(changes.map(({ sequence }) => sequence)).size).toBe(changes.length)
        const dates = changes.map(({ endDate }) => endDate)
        // The audit trail has the newest first.
        const trail = rows.filter((row) => row.userId === userId).toReversed()
        expect(trail.map(({ to }) => to)).toEqual(dates)
        expect(trail.map(({ from }) => from)).toEqual([first, ...dates.slice(0, -1)])
        expect((yield* store.find(p1, userId)).endDate).toBe(dates.at(-1))
      }
      if (!isKeyed) return
      expect((yield* extendEach).every(isReplayedResponse)).toBe(true)
      expect(yield* store.history(p1, { userId: undefined, limit: 60 })).toEqual(rows)
    },
  )
}

export const sequenceTests = (on: StoreTests): void => {
  const { describe, property } = on
  sequenceConcurrencyTests(on)
  describe("the sequence of a change", () => {
    property(
      "is greater than that of each earlier one, is in the stored event, and tells the end dates after concurrent changes",
      fc.record({
        before: fc.array(steps, { maxLength: 20 }),
        concurrent: fc.array(steps, { maxLength: 30 }),
      }),
      Effect.fnUntraced(function* ({ before, concurrent }) {
        const store = yield* MembershipStore
        const outbox = yield* Outbox
        yield* store.createProject(p1, context)
        const events: Array<Made> = []
        const latest = new Map<UserId, number>()
        for (const one of (yield* Effect.forEach(before, (step) => made(store, step))).flat()) {
          expect((yield* outbox.find(p1, one.event.id)).body).toBe(one.event.body)
          expect(Number.isSafeInteger(one.sequence)).toBe(true)
          for (const userId of one.users) {
            expect(one.sequence).toBeGreaterThan(latest.get(userId) ?? 0)
            latest.set(userId, one.sequence)
          }
          events.push(one)
        }
        const others = yield* together(concurrent.map((step) => made(store, step)))
        const members = yield* store.list(p1, { after: undefined, limit: 10 })
        for (const userId of users) {
          const current = members.find((member) => member.userId === userId)?.endDate
          expect(followed([...events, ...others.flat()], userId)).toBe(current)
        }
      }),
    )
  })
}
