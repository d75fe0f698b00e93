/** Extensions that expect an end date. */

import { expect } from "@effect/vitest"
import { EndDate } from "@tenure/core/EndDate"
import type { EndDateConflict, UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  change,
  date,
  in2027,
  in2028,
  in2029,
  occasion,
  p1,
  u1,
  u2,
  u3,
  webhook as newWebhook,
} from "../../support/fixtures.ts"
import { HostTransaction } from "../HostTransaction.ts"
import type { StoreTests } from "../storeTests.ts"
import { endDateOf, prepared } from "./steps.ts"

/** Extends a membership to 2028 if it has the date. Returns how that ends. */
const extendIf = (userId: UserId, expectedEndDate: EndDate, endDate = in2028) =>
  MembershipStore.use((store) =>
    Effect.match(store.extend({ ...change(p1), userId, endDate, expectedEndDate }), {
      onSuccess: () => "done",
      onFailure: (error) =>
        error._tag === "EndDateConflict" ? { current: error.currentEndDate } : error._tag,
    }),
  )

const dateTests = ({ test }: StoreTests): void => {
  test("sets the end date of a membership that has the expected one", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      for (const text of ["0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]) {
        const endDate = date(text)
        yield* store.grant({ ...change(p1), userId: u1, endDate })
        expect(yield* extendIf(u1, endDate)).toBe("done")
        expect(yield* endDateOf(u1)).toBe(in2028)
      }
      const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
      expect(row).toMatchObject({ action: "extended", to: in2028 })
    }))

  test("fails with the current end date if it is not the expected one, by a millisecond or more", () =>
    Effect.gen(function* () {
      yield* prepared
      for (const expected of [in2029, EndDate(in2027 - 1), EndDate(in2027 + 1)]) {
        expect(yield* extendIf(u1, expected)).toEqual({ current: in2027 })
        expect(yield* endDateOf(u1)).toBe(in2027)
      }
      expect(yield* extendIf(u3, in2027)).toBe("MembershipNotFound")
    }))

  test("fails with the ids of the membership", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const extension = { ...change(p1), userId: u1, endDate: in2028, expectedEndDate: in2028 }
      const error = yield* Effect.flip(store.extend(extension))
      const expected: Partial<EndDateConflict> = {
        _tag: "EndDateConflict",
        projectId: p1,
        userId: u1,
      }
      expect(error).toMatchObject(expected)
    }))

  test("expects the date of the last bulk extension, not the one that it overrode", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })
      expect(yield* extendIf(u1, in2027)).toEqual({ current: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
      yield* store.extendAll({ ...change(p1), endDate: in2027, mode: "set" })
      expect(yield* extendIf(u1, in2029)).toEqual({ current: in2027 })
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* extendIf(u1, in2027)).toBe("done")
      expect(yield* endDateOf(u1)).toBe(in2028)
    }))

  test("leaves a membership to later bulk extensions if it fails", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      expect(yield* extendIf(u1, in2029)).toEqual({ current: in2027 })
      yield* store.extendAll({ ...change(p1), endDate: in2029, mode: "set" })
      expect(yield* endDateOf(u1)).toBe(in2029)
    }))
}

const recordTests = ({ test, transactional }: StoreTests): void => {
  test("neither audits nor publishes what it does not change", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      const webhook = newWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      const before = yield* store.history(p1, { userId: undefined, limit: 100 })
      yield* extendIf(u1, in2029)
      expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
      const of = { projectId: p1, webhookId: webhook.id }
      expect(yield* (yield* Outbox).deliveries(of, { limit: 10 })).toEqual([])
    }))

  transactional("can go on with a transaction of the host in which it failed", () =>
    Effect.gen(function* () {
      yield* prepared
      const { run } = yield* HostTransaction
      yield* run(Effect.andThen(extendIf(u1, in2029), extendIf(u2, in2029)))
      expect(yield* endDateOf(u1)).toBe(in2027)
      expect(yield* endDateOf(u2)).toBe(in2028)
    }),
  )
}

const concurrencyTests = ({ property, test }: StoreTests): void => {
  property(
    "succeeds once, if many expect the same date at the same time",
    fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 12 }),
    Effect.fnUntraced(function* (offsets: ReadonlyArray<number>) {
      yield* prepared
      const wanted = offsets.map((offset) => EndDate(in2027 + offset))
      const results = yield* Effect.forEach(wanted, (to) => extendIf(u1, in2027, to), {
        concurrency: "unbounded",
      })
      const current = yield* endDateOf(u1)
      expect(wanted).toContain(current)
      // Those that come too late learn the date that the first one has set.
      expect(results).toEqual(wanted.map((to) => (to === current ? "done" : { current })))
    }),
  )

  test("fails alone among others that arrive at the same time", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
      const results = yield* Effect.all(
        [
          extendIf(u1, in2029),
          store.extend({ ...change(p1), userId: u2, endDate: in2027 }),
          extendIf(u3, in2027),
        ],
        { concurrency: "unbounded" },
      )
      expect(results).toMatchObject([{ current: in2027 }, { projectId: p1 }, "done"])
      expect(yield* Effect.forEach([u1, u2, u3], (user) => endDateOf(user))).toEqual([
        in2027,
        in2027,
        in2028,
      ])
    }))
}

/** Declares the tests. */
export const expectingTests = (on: StoreTests): void => {
  on.describe("an extension that expects an end date", () => {
    dateTests(on)
    recordTests(on)
    concurrencyTests(on)
  })
}
