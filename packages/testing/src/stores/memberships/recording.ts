/** Changes are stored as a whole, and one after another. */

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
  settingChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import {
  apiKey,
  change,
  draft,
  in2027,
  in2028,
  in2029,
  occasion,
  once,
  p1,
  p2,
  sequenceOf,
  u1,
  u2,
  u3,
  makeWebhook,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests, undone } from "../declare.ts"
import { endDateOf, prepared } from "./model.ts"

const users = [u1, u2, u3]

/** Returns a user's end date, or `undefined` without a membership. */
const dateOf = (userId: UserId, projectId = p1) =>
  endDateOf(userId, projectId).pipe(
    Effect.catchTag("MembershipNotFound", () => Effect.succeed<EndDate | undefined>(undefined)),
  )

/** Adds a webhook to a project, and returns a way to read everything a change in it writes. */
const observe = Effect.fnUntraced(function* (projectId: ProjectId) {
  const store = yield* MembershipStore
  const outbox = yield* Outbox
  const webhook = newWebhook(projectId)
  yield* (yield* WebhookStore).add(webhook, 50, occasion)
  return Effect.all({
    dates: Effect.forEach(users, (userId) => dateOf(userId, projectId)),
    rows: store.history(projectId, { userId: undefined, limit: 1000 }),
    deliveries: outbox.deliveries({ projectId, webhookId: webhook.id }, { limit: 1000 }),
  })
})

/** A store with members and a webhook, and a way to read everything a change writes. */
const observed = Effect.gen(function* () {
  const store = yield* prepared
  return { store, everything: yield* observe(p1) }
})

/** All kinds of changes, with the same event. */
const changesOf = (
  store: MembershipStore["Service"],
  one = draft(p1),
): ReadonlyArray<Effect.Effect<unknown, unknown>> => {
  const common = { ...change(p1), event: one }
  return [
    store.grant({ ...common, userId: u1, endDate: in2028 }),
    store.grant({ ...common, userId: u3, endDate: in2028 }),
    store.import({ ...common, memberships: [{ userId: u3, endDate: in2027 }] }),
    store.extend({ ...common, userId: u1, endDate: in2029 }),
    store.extendAll({ ...common, bulk: { endDate: in2028, mode: "set" } }),
    store.end({ ...common, userId: u2 }),
  ]
}

/** Returns a user's end date after all changes. Each must start from its predecessor's date. */
const replayed = (newestFirst: ReadonlyArray<AuditRow>, user: UserId): EndDate | undefined => {
  let current: EndDate | undefined
  for (const { action, from, to, userId } of newestFirst.toReversed()) {
    if (userId === user) expect(from).toBe(current)
    if (userId === user || (action.startsWith("bulk_") && current !== undefined)) current = to
  }
  return current
}

/** Repeats a check until it holds: a database may still be at work when its caller is gone. */
const soon = Effect.fnUntraced(function* <E, R>(check: Effect.Effect<void, E, R>) {
  for (let left = 50; ; left--) {
    const exit = yield* Effect.exit(check)
    if (exit._tag === "Success" || left === 0) return yield* exit
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
  }
})

/** Declares the tests. */
export const atomicityTests = (on: StoreTests): void => {
  const { test, transactional } = on

  on.describe("a change", () => {
    test("writes all or nothing if its event cannot be stored", function* () {
      const { everything, store } = yield* observed
      const published = draft(p1)
      yield* (yield* Outbox).publish(completeEvent(published, 1))
      const before = yield* everything
      // Most stores refuse a second event with the same id.
      const exits = yield* Effect.forEach(changesOf(store, published), Effect.exit, {
        concurrency: "unbounded",
      })
      const written = exits.filter(({ _tag }) => _tag === "Success").length
      const after = yield* everything
      expect(after.rows).toHaveLength(before.rows.length + written)
      expect(after.deliveries).toHaveLength(before.deliveries.length + written)
      expect(after.dates).toEqual(users.map((user) => replayed(after.rows, user)))
    })

    test("writes all or nothing if its caller is interrupted", function* () {
      // The database may still be at work when the next test begins, which has no such project.
      const own = ProjectId("interrupted")
      const store = yield* MembershipStore
      yield* store.createProject(own, occasion)
      yield* store.grant({ ...change(own), userId: u1, endDate: in2027 })
      const everything = yield* observe(own)
      const before = yield* everything
      for (let pauses = 0; pauses < 10; pauses++) {
        const extension = { ...change(own), userId: u1, endDate: EndDate(in2028 + pauses) }
        const fiber = yield* Effect.forkChild(store.extend(extension), { startImmediately: true })
        for (let pause = 0; pause < pauses; pause++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        yield* soon(
          Effect.gen(function* () {
            const { dates, deliveries, rows } = yield* everything
            expect(dates).toEqual(users.map((user) => replayed(rows, user)))
            expect(deliveries).toHaveLength(rows.length - before.rows.length)
          }),
        )
      }
    })

    transactional("is undone with a transaction of the host that fails", function* () {
      const { everything, store } = yield* observed
      const before = yield* everything
      for (const one of changesOf(store)) {
        yield* undone(one)
        expect(yield* everything).toEqual(before)
      }
    })

    transactional("is stored with a transaction of the host that succeeds", function* () {
      const { everything, store } = yield* observed
      const { run } = yield* HostTransaction
      const before = yield* everything
      yield* run(store.extend({ ...change(p1), userId: u1, endDate: in2028 }))
      const { deliveries, rows } = yield* everything
      expect(rows).toHaveLength(before.rows.length + 1)
      expect(deliveries).toHaveLength(1)
    })

    test("starts in the audit trail where the one before ends, if many run at the same time", function* () {
      const store = yield* prepared
      const dates = [in2027, in2028, in2029]
      const changes = Array.from({ length: 60 }, (_, index): Effect.Effect<unknown, unknown> => {
        const endDate = dates[index % 3] ?? in2027
        const one = { ...change(p1), userId: u3, endDate }
        if (index % 4 === 0) return store.grant(one)
        if (index % 7 === 3) return store.import({ ...one, memberships: [one] })
        if (index % 10 === 5) return store.extendAll({ ...one, bulk: { endDate, mode: "set" } })
        return store.extend(one)
      })
      // Extensions fail until there is a membership.
      yield* Effect.forEach(changes, (one) => Effect.ignore(one), { concurrency: "unbounded" })
      const rows = yield* store.history(p1, { userId: undefined, limit: 100 })
      const ends = yield* Effect.forEach(users, (userId) => dateOf(userId))
      expect(ends).toEqual(users.map((user) => replayed(rows, user)))
    })
  })
}

/** The audit trail outside memberships. */

const page = { userId: undefined, limit: 100 }

/** Returns a change context, recognisable by its time. */
const auditingOccasion = (at: number) => ({
  at,
  origin: { requestId: `request ${at}`, keyId: ApiKeyId(`key ${at}`) },
})

/** Returns the trail's contents, oldest first. */
const trailOf = (projectId: typeof p1 | undefined) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.history(projectId, page), (rows) =>
      rows.toReversed().map(({ action, at, changes, keyName, origin, subject, ...row }) => {
        expect(origin).toEqual(auditingOccasion(at).origin)
        expect([row.projectId, keyName]).toEqual([projectId, undefined])
        expect([row.userId, row.from, row.to]).toEqual([undefined, undefined, undefined])
        return changes.length === 0 ? [at, action, subject] : [at, action, subject, changes]
      }),
    ),
  )

/** Declares the tests. */
export const auditingTests = ({ describe, test, transactional }: StoreTests): void => {
  describe("the audit trail", () => {
    test("has who changed webhooks, and only of changes", function* () {
      const store = yield* WebhookStore
      const memberships = yield* MembershipStore
      yield* memberships.createProject(p1, auditingOccasion(1))
      yield* memberships.createProject(p2, auditingOccasion(2))
      const { id, ...rest } = makeWebhook(p1)
      const rotation = { secret: makeWebhook(p1).secret, previousUntil: 0 }
      yield* store.add({ id, ...rest }, 1, auditingOccasion(3))
      yield* Effect.flip(store.add(makeWebhook(p1), 1, auditingOccasion(4)))
      yield* store.rotateSecret(p1, id, rotation, auditingOccasion(5))
      yield* Effect.flip(store.rotateSecret(p2, id, rotation, auditingOccasion(6)))
      yield* store.addSigningKey(p1, id, StoredSecret("whsk_1"), auditingOccasion(7))
      yield* store.addSigningKey(p1, id, StoredSecret("whsk_2"), auditingOccasion(8))
      const ref = { projectId: p1, webhookId: id }
      const expected = { ...rest, disabled: undefined }
      const disabled = { at: 0, by: "failures" } as const
      const disabling = { expected, settings: { ...expected, disabled }, changes: [] }
      yield* store.update(ref, disabling, auditingOccasion(82))
      yield* store.enable(p1, id, auditingOccasion(9))
      yield* store.enable(p1, id, auditingOccasion(90))
      const settings = { ...expected, description: 'a "shop"', eventTypes: undefined }
      const changes = settingChanges(expected, settings)
      const update = { expected, settings, changes }
      yield* store.update(ref, update, auditingOccasion(91))
      yield* Effect.flip(store.update(ref, update, auditingOccasion(92)))
      const unchanged = { ...update, expected: settings, changes: [] }
      yield* store.update(ref, unchanged, auditingOccasion(93))
      yield* store.remove(p1, id, auditingOccasion(10))
      yield* Effect.flip(store.remove(p1, id, auditingOccasion(11)))
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
      yield* store.createProject(p1, auditingOccasion(1))
      yield* store.createProject(p2, auditingOccasion(2))
      const secret = { action: "secret_shown", subject: "a webhook" } as const
      const data = { action: "data_shown", subject: "an event" } as const
      yield* store.recordShown(p1, secret, auditingOccasion(3))
      yield* store.recordShown(p1, data, auditingOccasion(4))
      yield* store.recordShown(p1, data, auditingOccasion(5))
      const missing = yield* Effect.flip(
        store.recordShown(ProjectId("nowhere"), secret, auditingOccasion(6)),
      )
      expect(missing._tag).toBe("ProjectNotFound")
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
      yield* memberships.createProject(p1, auditingOccasion(1))
      yield* memberships.createProject(p1, auditingOccasion(2))
      yield* memberships.createProject(p2, auditingOccasion(3))
      const { id: keyId, ...rest } = apiKey("a token", p1)
      const key = { id: keyId, ...rest }
      yield* store.add(key, auditingOccasion(4))
      yield* store.add(apiKey("a token", p1), auditingOccasion(5))
      yield* store.add(apiKey("a token", p2), auditingOccasion(6))
      yield* store.add({ ...apiKey("a token"), projects: "all" }, auditingOccasion(7))
      yield* store.add({ ...apiKey("a token"), projects: "all" }, auditingOccasion(8))
      yield* Effect.flip(store.add({ ...key, role: "admin" }, auditingOccasion(9)))
      yield* store.revoke({ keyId, within: "all", ...auditingOccasion(10) })
      yield* store.revoke({ keyId, within: "all", ...auditingOccasion(11) })
      yield* Effect.flip(store.add(key, auditingOccasion(12)))
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
      yield* memberships.createProject(p1, auditingOccasion(1))
      const [named, nameless] = [
        { ...apiKey("a token", p1), name: "nightly import" },
        apiKey("another", p1),
      ]
      yield* store.add(named, auditingOccasion(2))
      yield* store.add(nameless, auditingOccasion(3))
      for (const keyId of [named.id, nameless.id, ApiKeyId("a host's own")]) {
        const origin = { requestId: undefined, keyId }
        yield* memberships.grant({ ...change(p1), origin, userId: u1, endDate: in2027 })
      }
      const origin = { requestId: undefined, keyId: named.id }
      yield* store.revoke({ keyId: named.id, within: "all", origin, at: 4 })
      const names = (projectId: typeof p1 | undefined) =>
        Effect.map(memberships.history(projectId, { ...page, limit: 3 }), (rows) =>
          rows.map(({ keyName }) => keyName),
        )
      const expected = [undefined, undefined, "nightly import"]
      expect(yield* names(p1)).toEqual(expected)
      const ofUser = yield* memberships.history(p1, { ...page, userId: u1 })
      expect(ofUser.map(({ keyName }) => keyName)).toEqual(expected)
      expect((yield* names(undefined))[0]).toBe("nightly import")
    })

    transactional("is undone with a transaction of the host that fails", function* () {
      const memberships = yield* MembershipStore
      const webhooks = yield* WebhookStore
      const keys = yield* ApiKeyStore
      yield* memberships.createProject(p1, auditingOccasion(1))
      yield* undone(webhooks.add(makeWebhook(p1), 50, auditingOccasion(2)))
      yield* undone(keys.add(apiKey("a token", p1), auditingOccasion(3)))
      yield* undone(memberships.createProject(p2, auditingOccasion(4)))
      expect(yield* trailOf(p1)).toEqual([])
      expect(yield* trailOf(undefined)).toEqual([[1, "project_created", p1]])
    })
  })
}

/** A change and its events are one atomic step. */

/** Claims all deliveries, and returns their event types. */
const claimedTypes = Effect.gen(function* () {
  const outbox = yield* Outbox
  const { claims } = yield* outbox.claim({
    limit: 100,
    failing: 100,
    perWebhook: { least: 100, most: 100 },
    perProject: 100,
    ahead: new Map(),
    leaseMillis: 60_000,
  })
  return claims.map(({ event }) => String(JSON.parse(event.body).type))
})

/** Declares the tests. */
export const eventTests = ({ describe, test }: StoreTests): void => {
  describe("events", () => {
    test("are delivered to every webhook of the project, and to no other", function* () {
      const store = yield* prepared
      const webhooks = yield* WebhookStore
      for (const projectId of [p1, p1, p2])
        yield* webhooks.add(makeWebhook(projectId), 50, occasion)
      yield* store.grant({ ...change(p1, "granted"), userId: u3, endDate: in2027 })
      yield* store.extend({ ...change(p1, "extended"), userId: u3, endDate: in2028 })
      yield* store.extendAll({ ...change(p1, "bulk"), bulk: { endDate: in2029, mode: "set" } })
      yield* store.end({ ...change(p1, "ended"), userId: u3 })
      const twice = ["granted", "extended", "bulk", "ended"].flatMap((type) => [type, type])
      expect((yield* claimedTypes).toSorted()).toEqual(twice.toSorted())
    })

    test("are delivered also if a change leaves all dates as they are", function* () {
      const store = yield* prepared
      const webhooks = yield* WebhookStore
      for (const projectId of [p1, p2]) yield* webhooks.add(makeWebhook(projectId), 50, occasion)
      yield* store.grant({ ...change(p1, "granted"), userId: u1, endDate: in2027 })
      yield* store.extend({ ...change(p1, "extended"), userId: u1, endDate: in2027 })
      yield* store.extendAll({ ...change(p2, "bulk"), bulk: { endDate: in2027, mode: "set" } })
      expect((yield* claimedTypes).toSorted()).toEqual(["bulk", "extended", "granted"])
      const [row] = yield* store.history(p2, { userId: undefined, limit: 1 })
      expect(row).toMatchObject({ action: "bulk_extended", to: in2027 })
    })

    test("are not stored if the change fails, and neither is an audit row", function* () {
      const store = yield* prepared
      yield* (yield* WebhookStore).add(makeWebhook(p1), 50, occasion)
      const before = yield* store.history(p1, { userId: undefined, limit: 100 })
      yield* Effect.flip(store.extend({ ...change(p1), userId: u3, endDate: in2028 }))
      yield* Effect.flip(store.end({ ...change(p1), userId: u3 }))
      expect(yield* claimedTypes).toEqual([])
      expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
    })
  })
}

/** Sequence numbers, by which receivers tell the latest change. */

type Store = MembershipStore["Service"]

const sequenceUsers = [u1, u2, u3]

/** A change to some users, and its end date; none if it ends memberships. */
interface Step {
  readonly users: ReadonlyArray<UserId>
  readonly endDate: EndDate | undefined
  readonly isFloor: boolean
  readonly make: (store: Store) => Effect.Effect<Event | ReplayedResponse | undefined, unknown>
}

const sequenceOfUser = (
  userId: UserId,
  endDate: EndDate | undefined,
  make: Step["make"],
): Step => ({
  users: [userId],
  endDate,
  isFloor: false,
  make,
})

const grant = (userId: UserId, endDate: EndDate): Step =>
  sequenceOfUser(userId, endDate, (store) => store.grant({ ...change(p1), userId, endDate }))

const extend = (userId: UserId, endDate: EndDate, mode: BulkMode = "set"): Step =>
  sequenceOfUser(userId, endDate, (store) =>
    Effect.map(store.extend({ ...change(p1), userId, endDate, mode }), (result) =>
      isEndsLater(result) ? undefined : result,
    ),
  )

const end = (userId: UserId): Step =>
  sequenceOfUser(userId, undefined, (store) => store.end({ ...change(p1), userId }))

const erase = (userId: UserId): Step =>
  sequenceOfUser(userId, undefined, (store) => store.erase({ ...change(p1), userId }))

const importAll = (of: ReadonlyArray<UserId>, endDate: EndDate): Step => ({
  users: of,
  endDate,
  isFloor: false,
  make: (store) => {
    const memberships = of.map((userId) => ({ userId, endDate }))
    return store.import({ ...change(p1), memberships })
  },
})

const extendAll = (endDate: EndDate, mode: BulkMode): Step => ({
  users: sequenceUsers,
  endDate,
  isFloor: mode === "neverShorten",
  make: (store) =>
    Effect.map(store.extendAll({ ...change(p1), bulk: { endDate, mode } }), (extended) =>
      isReplayedResponse(extended) ? extended : extended.event,
    ),
})

/** A completed step and its sequence number. */
interface Made extends Step {
  readonly sequence: number
}

/** Makes a change. Returns nothing if it fails, or has changed nothing. */
const made = (store: Store, step: Step): Effect.Effect<ReadonlyArray<Made>> =>
  Effect.match(step.make(store), {
    onFailure: () => [],
    onSuccess: (event) =>
      event === undefined || isReplayedResponse(event)
        ? []
        : [{ ...step, sequence: sequenceOf(event) }],
  })

/** A receiver's knowledge about a membership: it drops stale events. */
const followed = (events: ReadonlyArray<Made>, userId: UserId): EndDate | undefined => {
  let known: EndDate | undefined
  for (const event of events.toSorted((one, other) => one.sequence - other.sequence)) {
    const isBulk = event.users === sequenceUsers
    if (!event.users.includes(userId) || (isBulk && known === undefined)) continue
    const isLeft = event.isFloor && known !== undefined && known > Number(event.endDate)
    if (!isLeft) known = event.endDate
  }
  return known
}

const userIds = fc.constantFrom(...sequenceUsers)
const sequenceDates = fc.constantFrom(in2027, in2028, in2029)

const steps = fc.oneof(
  fc.tuple(userIds, sequenceDates).map((args) => grant(...args)),
  fc.tuple(userIds, sequenceDates).map((args) => extend(...args)),
  fc.tuple(userIds, sequenceDates).map((args) => extend(...args)),
  fc.tuple(userIds, sequenceDates).map((args) => extend(...args, "neverShorten")),
  fc.tuple(fc.subarray(sequenceUsers.slice(0, 2)), sequenceDates).map((args) => importAll(...args)),
  fc
    .tuple(sequenceDates, fc.constantFrom("set" as const, "neverShorten" as const))
    .map((args) => extendAll(...args)),
  userIds.map(end),
)

const sequenceOfMade = (result: Effect.Success<ReturnType<Store["extend"]>> | undefined): number =>
  result === undefined || isReplayedResponse(result) || isEndsLater(result)
    ? NaN
    : sequenceOf(result)

/** Concurrent extensions for the same members, possibly in one batch. */
const sequenceConcurrencyTests = ({ test }: StoreTests): void => {
  test.each([
    ["without idempotency keys", false],
    ["with idempotency keys", true],
  ] as const)(
    "make a chain if members are extended often at the same time, %s",
    function* ([, isKeyed]) {
      const store = yield* prepared
      const outbox = yield* Outbox
      const receiver = makeWebhook(p1)
      yield* (yield* WebhookStore).add(receiver, 50, occasion)
      const extensions = Array.from({ length: 60 }, (_, index) => ({
        ...change(p1),
        userId: index % 3 === 2 ? u2 : u1,
        // Not always later, and some dates twice.
        endDate: EndDate(in2029 + 1000 * ((index * 7) % 31)),
        once: isKeyed ? once() : undefined,
      }))
      const results = yield* Effect.all(
        extensions.map((extension) => store.extend(extension)),
        { concurrency: "unbounded" },
      )
      const rows = yield* store.history(p1, { userId: undefined, limit: 60 })
      const found = yield* outbox.deliveries(
        { projectId: p1, webhookId: receiver.id },
        { limit: 99 },
      )
      expect(new Set(found.map(({ eventId }) => eventId)).size).toBe(60)
      for (const [userId, first] of [
        [u1, in2027],
        [u2, in2029],
      ] as const) {
        const changes = extensions
          .map(({ endDate, userId: of }, index) => ({ endDate, of, result: results[index] }))
          .filter(({ of }) => of === userId)
          .map(({ endDate, result }) => ({ endDate, sequence: sequenceOfMade(result) }))
          .toSorted((one, other) => one.sequence - other.sequence)
        expect(new Set(changes.map(({ sequence }) => sequence)).size).toBe(changes.length)
        // The audit trail has the newest first.
        const trail = rows.filter((row) => row.userId === userId).toReversed()
        expect(trail.map(({ to }) => to)).toEqual(changes.map(({ endDate }) => endDate))
        expect(trail.map(({ from }) => from)).toEqual([
          first,
          ...trail.slice(0, -1).map(({ to }) => to),
        ])
        expect((yield* store.find(p1, userId)).endDate).toBe(changes.at(-1)?.endDate)
      }
      if (!isKeyed) return
      const repeated = yield* Effect.all(
        extensions.map((extension) => store.extend(extension)),
        { concurrency: "unbounded" },
      )
      expect(repeated.every(isReplayedResponse)).toBe(true)
      expect(yield* store.history(p1, { userId: undefined, limit: 60 })).toEqual(rows)
    },
  )
}

/** Declares the tests. */
export const sequenceTests = (on: StoreTests): void => {
  const { describe, property, test } = on
  sequenceConcurrencyTests(on)
  describe("the sequence of a change", () => {
    test("is greater than that of each earlier one of the member", function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      const sequences = []
      for (const step of [
        grant(u1, in2027),
        extend(u1, in2028),
        extend(u1, in2028),
        extendAll(in2027, "set"),
        extend(u1, in2028),
        extendAll(in2027, "neverShorten"),
        extendAll(in2029, "neverShorten"),
        grant(u1, in2028),
        importAll([u2, u1], in2029),
        extend(u1, in2028),
        importAll([u1, u2], in2029),
        extendAll(in2027, "set"),
        extend(u1, in2028),
        extend(u1, in2029),
        end(u1),
        grant(u1, in2029),
        extend(u1, in2028),
        extend(u1, in2029),
        erase(u1),
        importAll([u1], in2029),
        end(u1),
        extendAll(in2028, "set"),
        grant(u1, in2029),
      ]) {
        sequences.push(...(yield* made(store, step)).map(({ sequence }) => sequence))
      }
      expect(sequences).toHaveLength(23)
      expect(sequences.every(Number.isSafeInteger)).toBe(true)
      expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other))
    })

    test("is that of the event that is stored", function* () {
      const store = yield* prepared
      const outbox = yield* Outbox
      for (const step of [
        grant(u3, in2027),
        extend(u1, in2028),
        importAll(sequenceUsers, in2028),
        extendAll(in2028, "set"),
        extendAll(in2029, "neverShorten"),
        end(u3),
        erase(u2),
      ]) {
        const event = yield* step.make(store)
        if (event === undefined || isReplayedResponse(event))
          return expect.fail("nothing was changed")
        expect(yield* outbox.find(p1, event.id)).toMatchObject({ body: event.body })
        expect(sequenceOf(event)).toBeGreaterThan(0)
      }
    })

    test("is that of the first of several with an idempotency key", function* () {
      const store = yield* prepared
      const extension = { ...change(p1), once: once(), userId: u1, endDate: in2028 }
      const event = yield* store.extend(extension)
      expect(isReplayedResponse(yield* store.extend(extension))).toBe(true)
      if (isReplayedResponse(event) || isEndsLater(event)) return expect.fail("nothing was changed")
      expect((yield* (yield* Outbox).find(p1, event.id)).body).toBe(event.body)
    })

    property(
      "tells the end dates after concurrent changes",
      fc.array(steps, { maxLength: 30 }),
      Effect.fnUntraced(function* (all: ReadonlyArray<Step>) {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        const events = yield* Effect.forEach(all, (step) => made(store, step), {
          concurrency: "unbounded",
        })
        const members = yield* Effect.orDie(store.list(p1, { after: undefined, limit: 10 }))
        for (const userId of sequenceUsers) {
          const current = members.find((member) => member.userId === userId)?.endDate
          expect(followed(events.flat(), userId)).toBe(current)
        }
      }),
    )
  })
}
