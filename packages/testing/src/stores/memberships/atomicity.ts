/** Changes are stored as a whole, and one after another. */

import { expect } from "@effect/vitest"
import { EndDate } from "@tenure/core/EndDate"
import * as Event from "@tenure/core/Event"
import type { AuditRow, UserId } from "@tenure/core/Membership"
import type { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import {
  change,
  draft,
  in2027,
  in2028,
  in2029,
  p1,
  u1,
  u2,
  u3,
  webhook as newWebhook,
  occasion,
} from "../../support/fixtures.ts"
import { HostTransaction, undone } from "../HostTransaction.ts"
import type { StoreTests } from "../storeTests.ts"
import { endDateOf, prepared } from "./steps.ts"

const users = [u1, u2, u3]

/** Returns the end date of a user, or `undefined` if there is no membership. */
const dateOf = (userId: UserId) =>
  endDateOf(userId).pipe(
    Effect.catchTag("MembershipNotFound", () => Effect.succeed<EndDate | undefined>(undefined)),
  )

/** A store with members and a webhook, and a way to read all that a change writes. */
const observed = Effect.gen(function* () {
  const store = yield* prepared
  const outbox = yield* Outbox
  const webhook = newWebhook(p1)
  yield* (yield* WebhookStore).add(webhook, 50, occasion)
  const everything = Effect.all({
    dates: Effect.forEach(users, dateOf),
    rows: store.history(p1, { userId: undefined, limit: 1000 }),
    deliveries: outbox.deliveries({ projectId: p1, webhookId: webhook.id }, { limit: 1000 }),
  })
  return { store, everything }
})

/** Each kind of change, with the same event. */
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
    store.extendAll({ ...common, endDate: in2028, mode: "set" }),
    store.end({ ...common, userId: u2 }),
  ]
}

/** Returns the end date of a user after all changes, each of which starts where the one before ends. */
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

const failureTests = ({ test }: StoreTests): void => {
  test("writes all or nothing if its event cannot be stored", () =>
    Effect.gen(function* () {
      const { everything, store } = yield* observed
      const published = draft(p1)
      yield* (yield* Outbox).publish(Event.complete(published, 1))
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
    }))

  test("writes all or nothing if its caller is interrupted", () =>
    Effect.gen(function* () {
      const { everything, store } = yield* observed
      const before = yield* everything
      for (let pauses = 0; pauses < 10; pauses++) {
        const extension = { ...change(p1), userId: u1, endDate: EndDate(in2028 + pauses) }
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
    }))
}

const transactionTests = ({ transactional }: StoreTests): void => {
  transactional("is undone with a transaction of the host that fails", () =>
    Effect.gen(function* () {
      const { everything, store } = yield* observed
      const before = yield* everything
      for (const one of changesOf(store)) {
        yield* undone(one)
        expect(yield* everything).toEqual(before)
      }
    }),
  )

  transactional("is stored with a transaction of the host that succeeds", () =>
    Effect.gen(function* () {
      const { everything, store } = yield* observed
      const { run } = yield* HostTransaction
      const before = yield* everything
      yield* run(store.extend({ ...change(p1), userId: u1, endDate: in2028 }))
      const { deliveries, rows } = yield* everything
      expect(rows).toHaveLength(before.rows.length + 1)
      expect(deliveries).toHaveLength(1)
    }),
  )
}

const concurrencyTests = ({ test }: StoreTests): void => {
  test("starts in the audit trail where the one before ends, if many run at the same time", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const dates = [in2027, in2028, in2029]
      const changes = Array.from({ length: 60 }, (_, index): Effect.Effect<unknown, unknown> => {
        const endDate = dates[index % 3] ?? in2027
        const one = { ...change(p1), userId: u3, endDate }
        if (index % 4 === 0) return store.grant(one)
        if (index % 7 === 3) return store.import({ ...one, memberships: [one] })
        if (index % 10 === 5) return store.extendAll({ ...one, mode: "set" })
        return store.extend(one)
      })
      // Extensions fail until there is a membership.
      yield* Effect.forEach(changes, (one) => Effect.ignore(one), { concurrency: "unbounded" })
      const rows = yield* store.history(p1, { userId: undefined, limit: 100 })
      const ends = yield* Effect.forEach(users, dateOf)
      expect(ends).toEqual(users.map((user) => replayed(rows, user)))
    }))
}

/** Declares the tests. */
export const atomicityTests = (on: StoreTests): void => {
  on.describe("a change", () => {
    failureTests(on)
    transactionTests(on)
    concurrencyTests(on)
  })
}
