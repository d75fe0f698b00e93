/** Extend-only changes to one membership. */

import { expect } from "@effect/vitest"
import { isEndsLater, isReplayedResponse } from "@tenure/core/internal"
import {
  type EndDate,
  type Extension,
  MembershipStore,
  Outbox,
  type ReplayedResponse,
  type UserId,
  WebhookStore,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import {
  change,
  in2027,
  in2028,
  in2029,
  occasion,
  once,
  p1,
  u1,
  u2,
  u3,
  makeWebhook as newWebhook,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { endDateOf, prepared } from "./model.ts"

/** Extends a membership unless it ends later. Returns the result. */
const lengthen = (
  userId: UserId,
  endDate: EndDate,
  more: Pick<Extension, "expectedEndDate" | "once"> = {},
) =>
  MembershipStore.use((store) =>
    Effect.match(store.extend({ ...change(p1), userId, endDate, mode: "neverShorten", ...more }), {
      onSuccess: (result): string | ReplayedResponse | { readonly later: EndDate } => {
        if (isReplayedResponse(result)) return result
        return isEndsLater(result) ? { later: result.endDate } : "done"
      },
      onFailure: ({ _tag }) => _tag,
    }),
  )

/** Declares the tests. */
export const lengtheningTests = (on: StoreTests): void => {
  const { test } = on

  on.describe("an extension that never shortens", () => {
    test("sets a membership that ends earlier, or at the same time", function* () {
      const store = yield* prepared
      for (const endDate of [in2027, in2028]) {
        expect(yield* lengthen(u1, endDate)).toBe("done")
        expect(yield* endDateOf(u1)).toBe(endDate)
        const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
        expect(row).toMatchObject({ action: "extended", from: in2027, to: endDate })
      }
      expect(yield* lengthen(u3, in2028)).toBe("MembershipNotFound")
    })

    test("leaves a membership that ends later, and returns when", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      expect(yield* lengthen(u1, in2028)).toEqual({ later: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
    })

    test("expects an end date first", function* () {
      yield* prepared
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toBe("EndDateConflict")
      expect(yield* lengthen(u1, in2029, { expectedEndDate: in2027 })).toBe("done")
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2028 })).toBe("EndDateConflict")
      expect(yield* lengthen(u1, in2028, { expectedEndDate: in2029 })).toEqual({ later: in2029 })
      expect(yield* endDateOf(u1)).toBe(in2029)
    })

    test("neither audits nor publishes what it does not change", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      const webhook = newWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      const before = yield* store.history(p1, { userId: undefined, limit: 100 })
      yield* lengthen(u1, in2028)
      expect(yield* store.history(p1, { userId: undefined, limit: 100 })).toEqual(before)
      const of = { projectId: p1, webhookId: webhook.id }
      expect(yield* (yield* Outbox).deliveries(of, { limit: 10 })).toEqual([])
    })

    test("keeps its idempotency key with the date that it left", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2029 })
      const key = once()
      expect(yield* lengthen(u1, in2028, { once: key })).toEqual({ later: in2029 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      expect(yield* lengthen(u1, in2028, { once: key })).toEqual(replayedResponse(String(in2029)))
      expect(yield* endDateOf(u1)).toBe(in2027)
      const other = once()
      expect(yield* lengthen(u1, in2028, { once: other })).toBe("done")
      expect(yield* lengthen(u1, in2028, { once: other })).toEqual(replayedResponse())
    })

    test("ends with the latest date, if many arrive at the same time", function* () {
      yield* prepared
      const results = yield* Effect.forEach(
        [in2028, in2029, in2027, in2028],
        (endDate) => lengthen(u1, endDate),
        { concurrency: "unbounded" },
      )
      expect(yield* endDateOf(u1)).toBe(in2029)
      expect(results[1]).toBe("done")
    })

    test("is decided alone among others that arrive at the same time", function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2029 })
      const results = yield* Effect.all(
        [
          lengthen(u1, in2028),
          lengthen(u3, in2028),
          store.extend({ ...change(p1), userId: u2, endDate: in2028 }),
        ],
        { concurrency: "unbounded" },
      )
      expect(results).toMatchObject(["done", { later: in2029 }, { projectId: p1 }])
      expect(yield* Effect.forEach([u1, u2, u3], (user) => endDateOf(user))).toEqual([
        in2028,
        in2028,
        in2029,
      ])
    })
  })
}
