/** Webhooks that are disabled. */

import { expect } from "@effect/vitest"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { event, p1, p2, occasion } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  claims,
  delivered,
  firstOf,
  gone,
  leaseMillis,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  statesOf,
  twoClaims,
} from "./steps.ts"

/** A webhook that is disabled while another of its deliveries is claimed. */
const disabled = Effect.gen(function* () {
  const { outbox, webhook } = yield* preparedWebhook
  yield* publishMany(2)
  const { one, other } = yield* twoClaims
  yield* settle(one, gone())
  return { outbox, webhook, other }
})

/** Declares the tests. */
export const disabledTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a disabled webhook", () => {
    test("accepts no events by publishTo", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* disabled
        const error = yield* Effect.flip(outbox.publishTo(event(p1), webhook.id))
        expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
      }))

    test.each([
      ["delivered", delivered],
      ["failed", retry(1000)],
      ["failed", released],
    ] as const)("ends an earlier claim as %s", ([state, settlement]) =>
      Effect.gen(function* () {
        const { other, webhook } = yield* disabled
        expect(yield* settle(other, settlement)).toBe("Settled")
        yield* advance(10 * leaseMillis)
        expect(yield* claims()).toEqual([])
        expect(yield* statesOf(webhook)).toEqual([state, "failed"])
      }),
    )

    test("ends an earlier claim as failed when its lease ends", () =>
      Effect.gen(function* () {
        const { webhook } = yield* disabled
        yield* advance(leaseMillis)
        expect(yield* claims()).toEqual([])
        expect(yield* statesOf(webhook)).toEqual(["failed", "failed"])
      }))

    test("receives events and replays again after it is enabled", () =>
      Effect.gen(function* () {
        const { outbox, webhook } = yield* preparedWebhook
        yield* publishMany(2)
        yield* settle(yield* firstOf(yield* claims(1)), gone())
        const target = { projectId: p1, webhookId: webhook.id }
        const since = { _tag: "FailedSince", at: 0 } as const
        const error = yield* Effect.flip(outbox.replay(target, since))
        expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
        const store = yield* WebhookStore
        expect((yield* Effect.flip(store.enable(p2, webhook.id, occasion)))._tag).toBe(
          "WebhookNotFound",
        )
        yield* store.enable(p1, webhook.id, occasion)
        expect((yield* store.list(p1))[0]?.disabledAt).toBeUndefined()
        expect(yield* outbox.replay(target, since)).toBe(2)
        yield* outbox.publish(event(p1))
        const all = yield* claims()
        expect(all).toHaveLength(3)
        for (const one of all) expect(yield* settle(one, retry(60_000))).toBe("Settled")
        expect(yield* outbox.deliveries(target, { state: "waiting", limit: 10 })).toHaveLength(3)
      }))
  })
}
