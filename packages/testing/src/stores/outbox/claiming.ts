/** Dispatchers claim deliveries. */

import { expect } from "@effect/vitest"
import { concurrencyRange } from "@tenure/core/internal"
import { type Claim, Outbox, type StoredWebhook, WebhookStore } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, occasion, p1, p2, makeWebhook as newWebhook } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  claim,
  claims,
  delivered,
  firstOf,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  statesOf,
  theClaim,
} from "./steps.ts"

/** Ten claims at the same time. */
const concurrently = (limit: number, perWebhook?: number, perProject?: number) =>
  Effect.map(
    Effect.all(
      Array.from({ length: 10 }, () => claims(limit, perWebhook, perProject)),
      { concurrency: "unbounded" },
    ),
    (all) => all.flat(),
  )

/** How many deliveries a claim may return. */
const limitTests = ({ test }: StoreTests): void => {
  test("returns each delivery once to concurrent callers", function* () {
    yield* prepared(3)
    yield* publishMany(20)
    const all = [...(yield* concurrently(7)), ...(yield* claims())]
    const distinct = new Set(all.map((one) => `${one.event.id} ${one.webhook.webhookId}`))
    expect([all.length, distinct.size]).toEqual([60, 60])
    expect(new Set(all.map(({ lease }) => lease)).size).toBe(60)
  })

  test("respects the total limit and the limit for each webhook", function* () {
    yield* prepared(2)
    yield* publishMany(10)
    expect(yield* claims(3)).toHaveLength(3)
    const second = yield* claims(100, 4)
    // Three are claimed already: two for one webhook, one for the other.
    expect(second).toHaveLength(5)
    expect(yield* claims(100, 4)).toHaveLength(0)
    yield* settle(yield* firstOf(second), delivered)
    expect(yield* claims(100, 4)).toHaveLength(1)
  })

  test("says that there may be more at once if it reached its limit, and only then", function* () {
    yield* prepared(2)
    yield* publishMany(4)
    const first = yield* claim(5)
    expect([first.claims.length, first.nextDueMillis]).toEqual([5, 0])
    const rest = yield* claim(5)
    expect(rest.claims).toHaveLength(3)
    expect(rest.nextDueMillis).not.toBe(0)
    expect((yield* claim(5)).nextDueMillis).not.toBe(0)
  })

  test("respects the limit for each webhook across concurrent callers", function* () {
    yield* prepared(2)
    yield* publishMany(20)
    expect(yield* concurrently(100, 4)).toHaveLength(8)
  })
}

/** Prepares a second project with one webhook, and four deliveries for it. */
const otherProject = Effect.gen(function* () {
  const outbox = yield* Outbox
  yield* (yield* WebhookStore).add(newWebhook(p2), 100, occasion)
  yield* Effect.forEach(Array.from({ length: 4 }), () => outbox.publish(event(p2)))
})

const projectsOf = (all: ReadonlyArray<Claim>) =>
  all.map(({ webhook: { projectId } }) => projectId).toSorted()

/** A claim's report about skipped deliveries. */
const keptBackTests = ({ advance, test }: StoreTests): void => {
  test("says of which webhooks a limit keeps back deliveries, until nothing of them is ready", function* () {
    const { outbox, webhooks } = yield* prepared(2)
    const [one, other] = webhooks
    if (one === undefined || other === undefined) return yield* Effect.die("no webhooks")
    yield* publishMany(4)
    yield* outbox.publishTo(event(p1), one.id)
    const first = yield* claim(100, 4)
    expect([first.claims.length, first.keptBack]).toEqual([8, [one.id]])
    expect((yield* claim(100, 4)).keptBack).toEqual([one.id])
    yield* Effect.forEach(first.claims, (each) => settle(each, delivered))
    const last = yield* claim(100, 4)
    expect([last.claims.length, last.keptBack]).toEqual([1, []])
    expect((yield* claim(100, 4)).keptBack).toEqual([])
  })

  test("says the same of a webhook that fails, or whose project has reached its limit", function* () {
    const { webhook } = yield* preparedWebhook
    yield* publishMany(4)
    expect((yield* claim(100, 4, 2)).keptBack).toEqual([webhook.id])
    expect((yield* claim(100, 4, 2)).keptBack).toEqual([webhook.id])
    yield* settle(yield* firstOf(yield* claims(1, 4)), retry(0))
    expect((yield* claim(100, 4)).keptBack).toEqual([webhook.id])
    yield* advance(leaseMillis)
    expect((yield* claim(100, 4, 1000, 0)).keptBack).toEqual([webhook.id])
  })

  test("does not say so of a webhook that is held, whose time it returns", function* () {
    yield* preparedWebhook
    yield* publishMany(2)
    yield* settle(yield* firstOf(yield* claims(1)), retry(0, 60_000))
    expect((yield* claim()).keptBack).toEqual([])
  })
}

/** The maximum number of claimed deliveries for a project or a failing webhook. */
const shareTests = ({ advance, test }: StoreTests): void => {
  test("respects the limit for each project, whatever the number of its webhooks", function* () {
    yield* prepared(8)
    yield* publishMany(1)
    yield* otherProject
    const first = yield* claims(100, 1, 5)
    expect(projectsOf(first)).toEqual([p1, p1, p1, p1, p1, p2])
    expect(yield* claims(100, 1, 5)).toHaveLength(0)
    expect(yield* claims(100, 1, 6)).toHaveLength(1)
    yield* advance(leaseMillis)
    expect(projectsOf(yield* claims(100, 1, 5))).toEqual([p1, p1, p1, p1, p1, p2])
  })

  test("returns more deliveries of a project once others are settled", function* () {
    yield* prepared(8)
    yield* publishMany(1)
    const first = yield* claims(100, 1, 5)
    yield* settle(yield* firstOf(first), delivered)
    expect(yield* claims(100, 1, 5)).toHaveLength(1)
  })

  test("respects the limit for each project across concurrent callers", function* () {
    yield* prepared(10)
    yield* publishMany(3)
    expect(yield* concurrently(100, 1, 6)).toHaveLength(6)
  })

  test("returns fewer deliveries of each webhook as its project comes closer to its limit", function* () {
    yield* prepared(5)
    yield* publishMany(4)
    // A webhook may have four while at most a quarter of the limit is used, then three, then two.
    expect(yield* claims(100, 4, 16)).toHaveLength(10)
    expect(yield* claims(100, 4, 16)).toEqual([])
    const other = newWebhook(p1)
    yield* (yield* WebhookStore).add(other, 100, occasion)
    yield* publishMany(4)
    const next = yield* claims(100, 4, 16)
    expect(next.map((one) => one.webhook.webhookId)).toEqual([other.id, other.id])
  })

  test("returns one delivery at a time for a webhook that fails, until one succeeds", function* () {
    yield* prepared(1)
    yield* publishMany(10)
    const first = yield* claims(100, 4)
    expect(first).toHaveLength(4)
    yield* Effect.forEach(first, (one) => settle(one, retry(60_000)))
    const second = yield* claims(100, 4)
    expect(second).toHaveLength(1)
    expect(yield* claims(100, 4)).toEqual([])
    yield* settle(yield* firstOf(second), delivered)
    expect(yield* claims(100, 4)).toHaveLength(4)
  })
}

/** The order of deliveries. */
const orderTests = ({ advance, test }: StoreTests): void => {
  test("alternates between webhooks, so that a backlog delays no other webhook", function* () {
    const { outbox, webhooks } = yield* prepared(2)
    const [slow, other] = webhooks
    if (slow === undefined || other === undefined) return yield* Effect.die("no webhooks")
    yield* Effect.forEach(Array.from({ length: 50 }), () => outbox.publishTo(event(p1), slow.id))
    yield* outbox.publishTo(event(p1), other.id)
    const turns = (yield* claims(2)).map(({ webhook }) => webhook.webhookId)
    expect(new Set(turns)).toEqual(new Set([slow.id, other.id]))
  })

  test("alternates between projects, so that many webhooks of one delay no other project", function* () {
    yield* prepared(5)
    yield* publishMany(4)
    yield* otherProject
    expect(projectsOf(yield* claims(4))).toEqual([p1, p1, p2, p2])
  })

  test("alternates between the webhooks of a project, one by one", function* () {
    yield* prepared(6)
    yield* publishMany(4)
    const all = [...(yield* claims(2)), ...(yield* claims(2)), ...(yield* claims(2))]
    expect(new Set(all.map((one) => one.webhook.webhookId)).size).toBe(6)
  })

  test("returns the events of a webhook in the order of publication", function* () {
    yield* prepared(1)
    const published = yield* publishMany(5)
    const ids = (yield* claims()).map((one) => one.event.id)
    expect(ids).toEqual(published.map(({ id }) => id))
  })

  test("returns the delivery of a webhook that was due first, before those published earlier", function* () {
    yield* prepared(1)
    const [early] = yield* publishMany(1)
    const retried = yield* theClaim
    yield* publishMany(1)
    const success = yield* theClaim
    yield* settle(retried, retry(10_000))
    yield* settle(success, delivered)
    const [late] = yield* publishMany(1)
    yield* advance(10_000)
    const ids = (yield* claims()).map((one) => one.event.id)
    expect(ids).toEqual([late?.id, early?.id])
  })
}

/** How long a claim holds. */
const leaseTests = ({ advance, test }: StoreTests): void => {
  test("returns a delivery again after its lease, and only the new claim can settle it", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    yield* outbox.publish(event(p1))
    const first = yield* theClaim
    yield* advance(leaseMillis - 1000)
    expect(yield* claims()).toEqual([])
    yield* advance(1000)
    expect(yield* settle(first, delivered)).toBe("Lapsed")
    const second = yield* theClaim
    expect(second.event).toEqual(first.event)
    expect(second.attemptNumber).toBe(2)
    expect(yield* settle(first, delivered)).toBe("Lapsed")
    expect(yield* settle(second, delivered)).toBe("Settled")
    expect(yield* statesOf(webhook)).toEqual(["delivered"])
  })

  test("returns the time until the next delivery is due", function* () {
    const { outbox } = yield* prepared(1)
    expect((yield* claim()).nextDueMillis).toBeUndefined()
    yield* outbox.publish(event(p1))
    const one = yield* theClaim
    expect((yield* claim()).nextDueMillis).toBeGreaterThan(leaseMillis - 5000)
    expect((yield* claim()).nextDueMillis).toBeLessThanOrEqual(leaseMillis)
    yield* settle(one, retry(10_000))
    expect((yield* claim()).nextDueMillis).toBeGreaterThan(5000)
    expect((yield* claim()).nextDueMillis).toBeLessThanOrEqual(10_000)
  })
}

/** Declares the tests. */
export const claimingTests = (on: StoreTests): void => {
  on.describe("claim", () => {
    limitTests(on)
    keptBackTests(on)
    shareTests(on)
    orderTests(on)
    leaseTests(on)
  })
}

/** A webhook's maximum number of claimed deliveries, by its successes and failures. */
const byOutcomeTests = ({ test }: StoreTests): void => {
  const grow = Effect.gen(function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    for (let count = 0; count < 12; count++) {
      yield* settle(yield* firstOf(yield* claims(1, concurrencyRange)), delivered)
    }
  })

  test("returns more deliveries of a webhook with each success, up to the most", function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    let inHand = yield* claims(100, concurrencyRange)
    const sizes = [inHand.length]
    for (let count = 0; count < 14; count++) {
      const [first, ...rest] = inHand
      if (first !== undefined) yield* settle(first, delivered)
      inHand = [...rest, ...(yield* claims(100, concurrencyRange))]
      sizes.push(inHand.length)
    }
    expect(sizes).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16])
  })

  test("returns half as many deliveries of a webhook after a failure", function* () {
    yield* grow
    const [one, other, ...rest] = yield* claims(100, concurrencyRange)
    expect(rest).toHaveLength(14)
    if (one === undefined || other === undefined) return yield* Effect.die("too few claims")
    yield* settle(one, retry(60_000))
    yield* settle(other, delivered)
    yield* Effect.forEach(rest, (each) => settle(each, released))
    expect(yield* claims(100, concurrencyRange)).toHaveLength(9)
  })

  test("returns no fewer deliveries of a webhook than the least, and none beyond other bounds", function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    const [one, ...rest] = yield* claims(100, concurrencyRange)
    if (one === undefined) return yield* Effect.die("no claims")
    yield* settle(one, retry(60_000))
    yield* Effect.forEach(rest, (each) => settle(each, delivered))
    const next = yield* claims(100, concurrencyRange)
    expect(next).toHaveLength(7)
    yield* Effect.forEach(next, (each) => settle(each, released))
    expect(yield* claims(100, { least: 2, most: 5 })).toHaveLength(5)
    expect(yield* claims(100, { least: 2, most: 5 })).toEqual([])
  })

  test("returns fewer deliveries of a webhook with many successes, too, in a project near its limit", function* () {
    yield* grow
    // Sixteen for the first two, and then in proportion to the rest.
    expect(yield* claims(100, concurrencyRange, 32)).toHaveLength(11)
    expect(yield* claims(100, concurrencyRange, 32)).toEqual([])
  })
}

/** Prefetching. */
const aheadTests = ({ test }: StoreTests): void => {
  const ahead = ({ id }: StoredWebhook, count: number, perProject = 1000, limit = 100) =>
    claim(limit, concurrencyRange, perProject, limit, new Map([[id, count]]))

  test("returns as many deliveries beyond the concurrency of a webhook as are asked for", function* () {
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
    expect(yield* claims(100, concurrencyRange)).toEqual([])
  })

  test("returns them of no other webhook, and within the total limit", function* () {
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
  })

  test("returns none beyond the concurrency of a webhook that fails", function* () {
    const { webhook } = yield* preparedWebhook
    yield* publishMany(30)
    const first = yield* ahead(webhook, 10)
    yield* settle(yield* firstOf(first.claims), retry(60_000))
    expect((yield* ahead(webhook, 10)).claims).toEqual([])
  })

  test("counts none of them towards the limit of the project, of which half must be left", function* () {
    const { webhooks } = yield* prepared(1)
    const webhook = yield* firstOf(webhooks)
    yield* publishMany(30)
    expect((yield* ahead(webhook, 10, 16)).claims).toHaveLength(14)
    const other = newWebhook(p1)
    yield* (yield* WebhookStore).add(other, 100, occasion)
    yield* publishMany(4)
    const next = (yield* claims(100, concurrencyRange, 16)).map((one) => one.webhook.webhookId)
    expect(next).toEqual([other.id, other.id, other.id])
    expect((yield* ahead(webhook, 10, 8)).claims).toEqual([])
  })
}

/** Declares the tests. */
export const concurrencyTests = (on: StoreTests): void => {
  on.describe("the concurrency of a webhook", () => {
    byOutcomeTests(on)
    aheadTests(on)
  })
}
