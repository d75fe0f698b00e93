/** The sequences of changes, by which receivers of events tell which is the latest. */

import { expect } from "@effect/vitest"
import type { Mode } from "@tenure/core/Bulk"
import { EndDate } from "@tenure/core/EndDate"
import type * as Event from "@tenure/core/Event"
import { isEndsLater, type UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { isReplayed, type Replayed } from "@tenure/core/Once"
import { Outbox } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  change,
  in2027,
  in2028,
  in2029,
  occasion,
  once,
  p1,
  sequenceOf,
  u1,
  u2,
  u3,
  webhook,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { prepared } from "./steps.ts"

type Store = MembershipStore["Service"]

const users = [u1, u2, u3]

/** A change of some users, and the end date that it sets; none if it ends memberships. */
interface Step {
  readonly users: ReadonlyArray<UserId>
  readonly endDate: EndDate | undefined
  readonly isFloor: boolean
  readonly make: (store: Store) => Effect.Effect<Event.Event | Replayed | undefined, unknown>
}

const ofUser = (userId: UserId, endDate: EndDate | undefined, make: Step["make"]): Step => ({
  users: [userId],
  endDate,
  isFloor: false,
  make,
})

const grant = (userId: UserId, endDate: EndDate): Step =>
  ofUser(userId, endDate, (store) => store.grant({ ...change(p1), userId, endDate }))

const extend = (userId: UserId, endDate: EndDate, mode: Mode = "set"): Step =>
  ofUser(userId, endDate, (store) =>
    Effect.map(store.extend({ ...change(p1), userId, endDate, mode }), (result) =>
      isEndsLater(result) ? undefined : result,
    ),
  )

const end = (userId: UserId): Step =>
  ofUser(userId, undefined, (store) => store.end({ ...change(p1), userId }))

const erase = (userId: UserId): Step =>
  ofUser(userId, undefined, (store) => store.erase({ ...change(p1), userId }))

const importAll = (of: ReadonlyArray<UserId>, endDate: EndDate): Step => ({
  users: of,
  endDate,
  isFloor: false,
  make: (store) => {
    const memberships = of.map((userId) => ({ userId, endDate }))
    return store.import({ ...change(p1), memberships })
  },
})

const extendAll = (endDate: EndDate, mode: Mode): Step => ({
  users,
  endDate,
  isFloor: mode === "neverShorten",
  make: (store) =>
    Effect.map(store.extendAll({ ...change(p1), endDate, mode }), (extended) =>
      isReplayed(extended) ? extended : extended.event,
    ),
})

/** A step that was made, with its sequence. */
interface Made extends Step {
  readonly sequence: number
}

/** Makes a change. Returns nothing if it fails, or has changed nothing. */
const made = (store: Store, step: Step): Effect.Effect<ReadonlyArray<Made>> =>
  Effect.match(step.make(store), {
    onFailure: () => [],
    onSuccess: (event) =>
      event === undefined || isReplayed(event) ? [] : [{ ...step, sequence: sequenceOf(event) }],
  })

/** What a receiver knows of a membership after events, of which it drops those that are stale. */
const followed = (events: ReadonlyArray<Made>, userId: UserId): EndDate | undefined => {
  let known: EndDate | undefined
  for (const event of events.toSorted((one, other) => one.sequence - other.sequence)) {
    const isBulk = event.users === users
    if (!event.users.includes(userId) || (isBulk && known === undefined)) continue
    const isLeft = event.isFloor && known !== undefined && known > Number(event.endDate)
    if (!isLeft) known = event.endDate
  }
  return known
}

const userIds = fc.constantFrom(...users)
const dates = fc.constantFrom(in2027, in2028, in2029)

const steps = fc.oneof(
  fc.tuple(userIds, dates).map((args) => grant(...args)),
  fc.tuple(userIds, dates).map((args) => extend(...args)),
  fc.tuple(userIds, dates).map((args) => extend(...args)),
  fc.tuple(userIds, dates).map((args) => extend(...args, "neverShorten")),
  fc.tuple(fc.subarray(users.slice(0, 2)), dates).map((args) => importAll(...args)),
  fc
    .tuple(dates, fc.constantFrom("set" as const, "neverShorten" as const))
    .map((args) => extendAll(...args)),
  userIds.map(end),
)

const sequenceOfMade = (result: Effect.Success<ReturnType<Store["extend"]>> | undefined): number =>
  result === undefined || isReplayed(result) || isEndsLater(result) ? NaN : sequenceOf(result)

/** Extensions of the same members at the same time, which may share a step of the store. */
const concurrencyTests = ({ test }: StoreTests): void => {
  test.each([
    ["without idempotency keys", false],
    ["with idempotency keys", true],
  ] as const)("make a chain if members are extended often at the same time, %s", ([, isKeyed]) =>
    Effect.gen(function* () {
      const store = yield* prepared
      const outbox = yield* Outbox
      const receiver = webhook(p1)
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
      expect(repeated.every(isReplayed)).toBe(true)
      expect(yield* store.history(p1, { userId: undefined, limit: 60 })).toEqual(rows)
    }),
  )
}

/** Declares the tests. */
export const sequenceTests = (on: StoreTests): void => {
  const { describe, property, test } = on
  concurrencyTests(on)
  describe("the sequence of a change", () => {
    test("is greater than that of each earlier one of the member", () =>
      Effect.gen(function* () {
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
      }))

    test("is that of the event that is stored", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const outbox = yield* Outbox
        for (const step of [
          grant(u3, in2027),
          extend(u1, in2028),
          importAll(users, in2028),
          extendAll(in2028, "set"),
          extendAll(in2029, "neverShorten"),
          end(u3),
          erase(u2),
        ]) {
          const event = yield* step.make(store)
          if (event === undefined || isReplayed(event)) return expect.fail("nothing was changed")
          expect(yield* outbox.find(p1, event.id)).toMatchObject({ body: event.body })
          expect(sequenceOf(event)).toBeGreaterThan(0)
        }
      }))

    test("is that of the first of several with an idempotency key", () =>
      Effect.gen(function* () {
        const store = yield* prepared
        const extension = { ...change(p1), once: once(), userId: u1, endDate: in2028 }
        const event = yield* store.extend(extension)
        expect(isReplayed(yield* store.extend(extension))).toBe(true)
        if (isReplayed(event) || isEndsLater(event)) return expect.fail("nothing was changed")
        expect((yield* (yield* Outbox).find(p1, event.id)).body).toBe(event.body)
      }))

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
        for (const userId of users) {
          const current = members.find((member) => member.userId === userId)?.endDate
          expect(followed(events.flat(), userId)).toBe(current)
        }
      }),
    )
  })
}
