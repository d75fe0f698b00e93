/** How many deliveries of a webhook are claimed at a time, and how many ahead. */

import { expect } from "@effect/vitest"
import { range } from "@tenure/core/Concurrency"
import type { StoredWebhook } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { p1, webhook as newWebhook, occasion } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import {
  claim,
  claims,
  delivered,
  firstOf,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
} from "./steps.ts"

/** How many deliveries of a webhook may be claimed at a time, by its successes and failures. */
const byOutcomeTests = ({ test }: StoreTests): void => {
  const grow = Effect.gen(function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    for (let count = 0; count < 12; count++) {
      yield* settle(yield* firstOf(yield* claims(1, range)), delivered)
    }
  })

  test("returns more deliveries of a webhook with each success, up to the most", () =>
    Effect.gen(function* () {
      yield* preparedWebhook
      yield* publishMany(50)
      let inHand = yield* claims(100, range)
      const sizes = [inHand.length]
      for (let count = 0; count < 14; count++) {
        const [first, ...rest] = inHand
        if (first !== undefined) yield* settle(first, delivered)
        inHand = [...rest, ...(yield* claims(100, range))]
        sizes.push(inHand.length)
      }
      expect(sizes).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16])
    }))

  test("returns half as many deliveries of a webhook after a failure", () =>
    Effect.gen(function* () {
      yield* grow
      const [one, other, ...rest] = yield* claims(100, range)
      expect(rest).toHaveLength(14)
      if (one === undefined || other === undefined) return yield* Effect.die("too few claims")
      yield* settle(one, retry(60_000))
      yield* settle(other, delivered)
      yield* Effect.forEach(rest, (each) => settle(each, released))
      expect(yield* claims(100, range)).toHaveLength(9)
    }))

  test("returns no fewer deliveries of a webhook than the least, and none beyond other bounds", () =>
    Effect.gen(function* () {
      yield* preparedWebhook
      yield* publishMany(50)
      const [one, ...rest] = yield* claims(100, range)
      if (one === undefined) return yield* Effect.die("no claims")
      yield* settle(one, retry(60_000))
      yield* Effect.forEach(rest, (each) => settle(each, delivered))
      const next = yield* claims(100, range)
      expect(next).toHaveLength(7)
      yield* Effect.forEach(next, (each) => settle(each, released))
      expect(yield* claims(100, { least: 2, most: 5 })).toHaveLength(5)
      expect(yield* claims(100, { least: 2, most: 5 })).toEqual([])
    }))

  test("returns fewer deliveries of a webhook with many successes, too, in a project near its limit", () =>
    Effect.gen(function* () {
      yield* grow
      // Sixteen of the first two, and then in proportion to what is left.
      expect(yield* claims(100, range, 32)).toHaveLength(11)
      expect(yield* claims(100, range, 32)).toEqual([])
    }))
}

/** What may be claimed to wait in the process. */
const aheadTests = ({ test }: StoreTests): void => {
  const ahead = ({ id }: StoredWebhook, count: number, perProject = 1000, limit = 100) =>
    claim(limit, range, perProject, limit, new Map([[id, count]]))

  test("returns as many deliveries beyond the concurrency of a webhook as are asked for", () =>
    Effect.gen(function* () {
      const { webhook } = yield* preparedWebhook
      const published = yield* publishMany(30)
      const first = yield* ahead(webhook, 10)
      const second = yield* ahead(webhook, 5)
      expect([first.claims.length, second.claims.length]).toEqual([14, 5])
      expect(first.claims.map((one) => one.webhook.concurrency)).toContain(4)
      const ids = [...first.claims, ...second.claims].map((one) => one.event.id)
      expect(ids).toEqual(published.slice(0, 19).map(({ id }) => id))
      expect(second.keptBack).toEqual([webhook.id])
      const last = yield* ahead(webhook, 20)
      expect([last.claims.length, last.keptBack]).toEqual([11, []])
      expect(yield* claims(100, range)).toEqual([])
    }))

  test("returns them of no other webhook, and within the total limit", () =>
    Effect.gen(function* () {
      const { webhooks } = yield* prepared(2)
      const webhook = yield* firstOf(webhooks)
      yield* publishMany(10)
      const first = yield* ahead(webhook, 20, 1000, 9)
      expect([first.claims.length, first.nextDueMillis]).toEqual([9, 0])
      const second = yield* ahead(webhook, 4)
      const mine = [...first.claims, ...second.claims].filter(
        (one) => one.webhook.webhookId === webhook.id,
      )
      expect([second.claims.length, mine.length]).toEqual([4, 9])
    }))

  test("returns none beyond the concurrency of a webhook that fails", () =>
    Effect.gen(function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(30)
      const first = yield* ahead(webhook, 10)
      yield* settle(yield* firstOf(first.claims), retry(60_000))
      expect((yield* ahead(webhook, 10)).claims).toEqual([])
    }))

  test("counts none of them towards the limit of the project, of which half must be left", () =>
    Effect.gen(function* () {
      const { webhooks } = yield* prepared(1)
      const webhook = yield* firstOf(webhooks)
      yield* publishMany(30)
      expect((yield* ahead(webhook, 10, 16)).claims).toHaveLength(14)
      const other = newWebhook(p1)
      yield* (yield* WebhookStore).add(other, 100, occasion)
      yield* publishMany(4)
      const next = (yield* claims(100, range, 16)).map((one) => one.webhook.webhookId)
      expect(next).toEqual([other.id, other.id, other.id])
      expect((yield* ahead(webhook, 10, 8)).claims).toEqual([])
    }))
}

/** Declares the tests. */
export const concurrencyTests = (on: StoreTests): void => {
  on.describe("the concurrency of a webhook", () => {
    byOutcomeTests(on)
    aheadTests(on)
  })
}
