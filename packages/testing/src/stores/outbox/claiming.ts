/** Dispatchers claim deliveries, also at the rate that a webhook has. */

import { expect } from "@effect/vitest"
import { concurrencyRange } from "@tenure/core/internal"
import { type Claim, type StoredWebhook, webhookRatePolicy } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { event, context, p1, p2 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, hour, idsOf, times } from "../steps.ts"
import {
  claim,
  claimedIds,
  claims,
  delivered,
  eventIdsOf,
  leaseMillis,
  prepared,
  preparedWebhook,
  preparedWith,
  publishMany,
  released,
  retry,
  selected,
  settle,
  settleAll,
  statesOf,
  stopwatch,
  theClaim,
  updateWebhook,
  webhookIdsOf,
} from "./steps.ts"

/** Ten claims at the same time. */
const concurrently = (limits: Parameters<typeof claims>[0]) =>
  Effect.map(
    times(10, () => claims(limits)),
    (all) => all.flat(),
  )

/** How many deliveries a claim may return. */
const limitTests = ({ test }: StoreTests): void => {
  test("returns each delivery once to concurrent callers", function* () {
    yield* prepared(3)
    yield* publishMany(20)
    const all = [...(yield* concurrently({ limit: 7 })), ...(yield* claims())]
    const distinct = new Set(all.map((one) => `${one.event.id} ${one.webhook.webhookId}`))
    expect([all.length, distinct.size]).toEqual([60, 60])
    expect(new Set(all.map(({ lease }) => lease)).size).toBe(60)
  })

  test("respects the total limit and the limit for each webhook", function* () {
    yield* prepared(2)
    yield* publishMany(10)
    expect(yield* claims({ limit: 3 })).toHaveLength(3)
    const second = yield* claims({ perWebhook: 4 })
    // Three are claimed already: two for one webhook, one for the other.
    expect(second).toHaveLength(5)
    expect(yield* claims({ perWebhook: 4 })).toHaveLength(0)
    yield* settle(firstOf(second), delivered)
    expect(yield* claims({ perWebhook: 4 })).toHaveLength(1)
  })

  test("says that there may be more at once if it reached its limit, and only then", function* () {
    yield* prepared(2)
    yield* publishMany(4)
    const first = yield* claim({ limit: 5 })
    expect([first.claims.length, first.nextDueMillis]).toEqual([5, 0])
    const rest = yield* claim({ limit: 5 })
    expect(rest.claims).toHaveLength(3)
    expect(rest.nextDueMillis).not.toBe(0)
    expect((yield* claim({ limit: 5 })).nextDueMillis).not.toBe(0)
  })

  test("respects the limits for each webhook and each project across concurrent callers", function* () {
    yield* prepared(10)
    yield* publishMany(20)
    expect(yield* concurrently({ perWebhook: 1, perProject: 6 })).toHaveLength(6)
    expect(yield* concurrently({ perWebhook: 4 })).toHaveLength(34)
  })
}

/** Prepares a second project with one webhook, and four deliveries for it. */
const otherProject = Effect.gen(function* () {
  yield* addWebhook(p2)
  yield* publishMany(4, p2)
})

const projectsOf = (all: ReadonlyArray<Claim>) =>
  all.map(({ webhook: { projectId } }) => projectId).toSorted()

/** A claim's report about skipped deliveries. */
const keptBackTests = ({ advance, test }: StoreTests): void => {
  test("says of which webhooks a limit keeps back deliveries, until nothing of them is ready", function* () {
    const { outbox, webhooks } = yield* prepared(2)
    const { id } = firstOf(webhooks)
    yield* publishMany(4)
    yield* outbox.publishTo(event(p1), id)
    const first = yield* claim({ perWebhook: 4 })
    expect([first.claims.length, first.keptBack]).toEqual([8, [id]])
    expect((yield* claim({ perWebhook: 4 })).keptBack).toEqual([id])
    yield* settleAll(first.claims, delivered)
    const last = yield* claim({ perWebhook: 4 })
    expect([last.claims.length, last.keptBack]).toEqual([1, []])
    expect((yield* claim({ perWebhook: 4 })).keptBack).toEqual([])
  })

  test("says the same of a webhook that fails, or whose project has reached its limit", function* () {
    const { webhook } = yield* preparedWebhook
    yield* publishMany(4)
    for (const _ of ["first", "second"]) {
      const { keptBack } = yield* claim({ perWebhook: 4, perProject: 2 })
      expect(keptBack).toEqual([webhook.id])
    }
    yield* settle(firstOf(yield* claims({ limit: 1, perWebhook: 4 })), retry(0))
    expect((yield* claim({ perWebhook: 4 })).keptBack).toEqual([webhook.id])
    yield* advance(leaseMillis)
    expect((yield* claim({ perWebhook: 4, failing: 0 })).keptBack).toEqual([webhook.id])
  })

  test("does not say so of a webhook that is held, whose time it returns", function* () {
    yield* preparedWebhook
    yield* publishMany(2)
    yield* settle(firstOf(yield* claims({ limit: 1 })), retry(0, 60_000))
    expect((yield* claim()).keptBack).toEqual([])
  })
}

/** How many claimed deliveries a project or a failing webhook may have. */
const shareTests = ({ advance, test }: StoreTests): void => {
  test("respects the limit for each project, whatever the number of its webhooks", function* () {
    yield* prepared(8)
    yield* publishMany(1)
    yield* otherProject
    const five = { perWebhook: 1, perProject: 5 }
    const first = yield* claims(five)
    expect(projectsOf(first)).toEqual([p1, p1, p1, p1, p1, p2])
    expect(yield* claims(five)).toEqual([])
    expect(yield* claims({ perWebhook: 1, perProject: 6 })).toHaveLength(1)
    yield* advance(leaseMillis)
    const again = yield* claims(five)
    expect(projectsOf(again)).toEqual([p1, p1, p1, p1, p1, p2])
    yield* settleAll(again.filter(({ webhook }) => webhook.projectId === p1).slice(1, 2), delivered)
    expect(projectsOf(yield* claims(five))).toEqual([p1])
  })

  test("returns fewer deliveries of each webhook as its project comes closer to its limit", function* () {
    yield* prepared(5)
    yield* publishMany(4)
    const limits = { perWebhook: 4, perProject: 16 }
    // A webhook may have four while at most a quarter of the limit is used, then three, then two.
    expect(yield* claims(limits)).toHaveLength(10)
    expect(yield* claims(limits)).toEqual([])
    const other = yield* addWebhook()
    yield* publishMany(4)
    expect(webhookIdsOf(yield* claims(limits))).toEqual([other.id, other.id])
  })

  test("returns one delivery at a time for a webhook that fails, until one succeeds", function* () {
    yield* prepared(1)
    yield* publishMany(10)
    const first = yield* claims({ perWebhook: 4 })
    expect(first).toHaveLength(4)
    yield* settleAll(first, retry(60_000))
    const second = yield* claims({ perWebhook: 4 })
    expect(second).toHaveLength(1)
    expect(yield* claims({ perWebhook: 4 })).toEqual([])
    yield* settleAll(second, delivered)
    expect(yield* claims({ perWebhook: 4 })).toHaveLength(4)
  })
}

const orderTests = ({ advance, test }: StoreTests): void => {
  test("alternates between webhooks, so that a backlog delays no other webhook", function* () {
    const { outbox, webhooks } = yield* prepared(2)
    const [slow, other] = [at(webhooks, 0).id, at(webhooks, 1).id]
    yield* Effect.forEach(Array.from({ length: 50 }), () => outbox.publishTo(event(p1), slow))
    yield* outbox.publishTo(event(p1), other)
    expect(new Set(webhookIdsOf(yield* claims({ limit: 2 })))).toEqual(new Set([slow, other]))
  })

  test("alternates between projects, so that many webhooks of one delay no other project", function* () {
    yield* prepared(5)
    yield* publishMany(4)
    yield* otherProject
    expect(projectsOf(yield* claims({ limit: 4 }))).toEqual([p1, p1, p2, p2])
  })

  test("alternates between the webhooks of a project, one by one", function* () {
    yield* prepared(6)
    yield* publishMany(4)
    const all = yield* Effect.replicateEffect(claims({ limit: 2 }), 3)
    expect(new Set(webhookIdsOf(all.flat())).size).toBe(6)
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
    expect(yield* claimedIds).toEqual([late?.id, early?.id])
  })
}

/** How long a claim holds. */
const leaseTests = ({ advance, test }: StoreTests): void => {
  test("returns a delivery again after its lease, and only the new claim can settle it", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    yield* outbox.publish(event(p1))
    const passed = stopwatch()
    const first = yield* theClaim
    const left = 200
    yield* advance(leaseMillis - left)
    const early = yield* claims()
    // On a slow machine, the rest of the lease may have passed meanwhile.
    if (early.length > 0) expect(passed()).toBeGreaterThan(left)
    else yield* advance(left)
    expect(yield* settle(first, delivered)).toBe("Lapsed")
    const second = early[0] ?? (yield* theClaim)
    expect(second).toMatchObject({ event: first.event, attemptNumber: 2 })
    expect(yield* settle(first, delivered)).toBe("Lapsed")
    expect(yield* settle(second, delivered)).toBe("Settled")
    expect(yield* statesOf(webhook)).toEqual(["delivered"])
  })

  test("returns the time until the next delivery is due", function* () {
    const { outbox } = yield* prepared(1)
    const nextDue = Effect.map(claim(), ({ nextDueMillis }) => nextDueMillis)
    expect(yield* nextDue).toBeUndefined()
    yield* outbox.publish(event(p1))
    /** Expects that a delivery is due so long after some steps, which themselves take a while. */
    const expectDue = Effect.fnUntraced(function* <A, E, R>(
      asked: number,
      steps: Effect.Effect<A, E, R>,
    ) {
      const passed = stopwatch()
      const result = yield* steps
      const due = yield* nextDue
      expect(due).toBeLessThanOrEqual(asked)
      expect(due).toBeGreaterThanOrEqual(asked - passed())
      return result
    })
    const one = yield* expectDue(leaseMillis, theClaim)
    yield* expectDue(hour, settle(one, retry(hour)))
  })
}

export const claimingTests = (on: StoreTests): void => {
  on.describe("claim", () => {
    limitTests(on)
    keptBackTests(on)
    shareTests(on)
    orderTests(on)
    leaseTests(on)
  })
}

const byConcurrency = { perWebhook: concurrencyRange }

/** A webhook's maximum number of claimed deliveries, by its successes and failures. */
const byOutcomeTests = ({ test }: StoreTests): void => {
  const grow = Effect.gen(function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    for (let count = 0; count < 12; count++) {
      yield* settleAll(yield* claims({ ...byConcurrency, limit: 1 }), delivered)
    }
  })

  test("returns more deliveries of a webhook with each success, up to the most", function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    let inHand = yield* claims(byConcurrency)
    const sizes = [inHand.length]
    for (let count = 0; count < 14; count++) {
      yield* settle(firstOf(inHand), delivered)
      inHand = [...inHand.slice(1), ...(yield* claims(byConcurrency))]
      sizes.push(inHand.length)
    }
    expect(sizes).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16])
  })

  test("returns half as many deliveries of a webhook after a failure", function* () {
    yield* grow
    const all = yield* claims(byConcurrency)
    expect(all).toHaveLength(16)
    yield* settleAll(all.slice(0, 2), [retry(60_000), delivered])
    yield* settleAll(all.slice(2), released)
    expect(yield* claims(byConcurrency)).toHaveLength(9)
  })

  test("returns no fewer deliveries of a webhook than the least, and none beyond other bounds", function* () {
    yield* preparedWebhook
    yield* publishMany(50)
    const all = yield* claims(byConcurrency)
    yield* settle(firstOf(all), retry(60_000))
    yield* settleAll(all.slice(1), delivered)
    const next = yield* claims(byConcurrency)
    expect(next).toHaveLength(7)
    yield* settleAll(next, released)
    expect(yield* claims({ perWebhook: { least: 2, most: 5 } })).toHaveLength(5)
    expect(yield* claims({ perWebhook: { least: 2, most: 5 } })).toEqual([])
  })

  test("returns fewer deliveries of a webhook with many successes, too, in a project near its limit", function* () {
    yield* grow
    // Sixteen for the first two, and then in proportion to the rest.
    expect(yield* claims({ ...byConcurrency, perProject: 32 })).toHaveLength(11)
    expect(yield* claims({ ...byConcurrency, perProject: 32 })).toEqual([])
  })
}

/** Prefetching. */
const aheadTests = ({ test }: StoreTests): void => {
  const ahead = ({ id }: StoredWebhook, count: number, perProject = 1000, limit = 100) =>
    claim({ ...byConcurrency, limit, perProject, ahead: new Map([[id, count]]) })

  test("returns as many deliveries beyond the concurrency of a webhook as are asked for", function* () {
    const { webhook } = yield* preparedWebhook
    const published = yield* publishMany(30)
    const first = yield* ahead(webhook, 10)
    const second = yield* ahead(webhook, 5)
    expect([first.claims.length, second.claims.length]).toEqual([14, 5])
    expect(first.claims.map((one) => one.webhook.concurrency)).toContain(4)
    // As they were published.
    const both = eventIdsOf([...first.claims, ...second.claims])
    expect(both).toEqual(idsOf(published.slice(0, 19)))
    expect(second.keptBack).toEqual([webhook.id])
    const last = yield* ahead(webhook, 20)
    expect([last.claims.length, last.keptBack]).toEqual([11, []])
    expect(yield* claims(byConcurrency)).toEqual([])
  })

  test("returns them of no other webhook, and within the total limit", function* () {
    const { webhooks } = yield* prepared(2)
    const webhook = firstOf(webhooks)
    yield* publishMany(10)
    const first = yield* ahead(webhook, 20, 1000, 9)
    expect([first.claims.length, first.nextDueMillis]).toEqual([9, 0])
    const second = yield* ahead(webhook, 4)
    const both = webhookIdsOf([...first.claims, ...second.claims])
    const own = both.filter((id) => id === webhook.id)
    expect([second.claims.length, own.length]).toEqual([4, 9])
  })

  test("returns none beyond the concurrency of a webhook that fails", function* () {
    const { webhook } = yield* preparedWebhook
    yield* publishMany(30)
    const first = yield* ahead(webhook, 10)
    yield* settle(firstOf(first.claims), retry(60_000))
    expect((yield* ahead(webhook, 10)).claims).toEqual([])
  })

  test("counts none of them towards the limit of the project, of which half must be left", function* () {
    const { webhook } = yield* preparedWebhook
    yield* publishMany(30)
    expect((yield* ahead(webhook, 10, 16)).claims).toHaveLength(14)
    const other = yield* addWebhook()
    yield* publishMany(4)
    const next = webhookIdsOf(yield* claims({ ...byConcurrency, perProject: 16 }))
    expect(next).toEqual([other.id, other.id, other.id])
    expect((yield* ahead(webhook, 10, 8)).claims).toEqual([])
  })
}

export const concurrencyTests = (on: StoreTests): void => {
  on.describe("the concurrency of a webhook", () => {
    byOutcomeTests(on)
    aheadTests(on)
  })
}

/** Prepares an outbox and a project with one webhook that has a rate: one attempt a second, unless given. */
const preparedRate = (more: Partial<StoredWebhook> = {}) => preparedWith({ rate: 1, ...more })

export const rateTests = (on: StoreTests): void => {
  const { advance, test } = on

  on.describe("a webhook with a rate", () => {
    test("is claimed as often, and returns when the next delivery may be claimed", function* () {
      yield* preparedRate()
      yield* publishMany(3)
      for (const left of [2, 1, 0]) {
        const taken = yield* claim()
        expect([taken.claims.length, taken.keptBack]).toEqual([1, []])
        if (left === 0) return
        const waiting = yield* claim()
        expect([waiting.claims, waiting.keptBack]).toEqual([[], []])
        for (const { nextDueMillis = Infinity } of [taken, waiting]) {
          expect(nextDueMillis).toBeGreaterThan(0)
          expect(nextDueMillis).toBeLessThanOrEqual(1000)
        }
        yield* advance(waiting.nextDueMillis ?? 0)
      }
    })

    test("begins with the deliveries of a quarter of a second, and has no more after a pause", function* () {
      yield* preparedRate({ rate: 40 })
      yield* publishMany(25)
      const { capacity } = webhookRatePolicy(40)
      const first = yield* claim()
      expect([first.claims.length, first.nextDueMillis]).toEqual([capacity, 25])
      yield* advance(60_000)
      expect(yield* claims()).toHaveLength(capacity)
    })

    test("counts retries, replays and released deliveries, and prefetches none", function* () {
      const { outbox, ref, webhook } = yield* preparedRate()
      const { id } = firstOf(yield* publishMany(1))
      const again = Effect.gen(function* () {
        const early = yield* claim({ ahead: new Map([[webhook.id, 10]]) })
        expect(early.claims).toEqual([])
        yield* advance(early.nextDueMillis ?? 0)
        return yield* theClaim
      })
      yield* settle(yield* theClaim, retry(0))
      yield* settle(yield* again, released)
      yield* settle(yield* again, delivered)
      yield* outbox.replay(ref, id)
      yield* settle(yield* again, delivered)
      yield* outbox.replayMany(ref, selected(["delivered"]))
      expect((yield* again).event.id).toBe(id)
    })

    test("delays no other webhook of the project", function* () {
      const { webhook } = yield* preparedRate()
      const other = yield* addWebhook()
      yield* publishMany(5)
      const claimed = webhookIdsOf(yield* claims())
      const five = Array.from({ length: 5 }, () => other.id)
      expect(claimed.toSorted()).toEqual([webhook.id, ...five].toSorted())
    })

    test("follows a change of it from the next claim on", function* () {
      const { webhook } = yield* preparedRate({ rate: undefined })
      const set = (before: number | undefined, rate: number | undefined) =>
        updateWebhook(webhook, { rate: before }, { rate })
      yield* publishMany(30)
      expect(yield* claims({ limit: 3 })).toHaveLength(3)
      yield* set(undefined, 40)
      expect(yield* claims()).toHaveLength(10)
      yield* set(40, 1)
      expect(yield* claims()).toHaveLength(0)
      // The bucket is empty, whatever its size was.
      yield* advance(1000)
      expect(yield* claims()).toHaveLength(1)
      yield* set(1, undefined)
      expect(yield* claims()).toHaveLength(16)
      yield* expectFailure("WebhookConflict", set(1, 2))
    })

    test("makes nobody wait for a webhook that is held, disabled or without deliveries", function* () {
      const { store, webhook } = yield* preparedRate()
      yield* publishMany(1)
      expect((yield* claim()).nextDueMillis).toBeGreaterThan(1000)
      yield* publishMany(1)
      yield* updateWebhook(webhook, {}, { disabled: { at: 5, by: "request" } })
      const waiting = yield* claim()
      expect(waiting.claims).toEqual([])
      expect(waiting.nextDueMillis).toBeGreaterThan(1000)
      yield* store.enable(p1, webhook.id, context)
      yield* advance(1000)
      expect(yield* claims()).toHaveLength(1)
    })

    test("holds for an ordered webhook, which waits for a token once an event has ended", function* () {
      const { outbox } = yield* preparedRate({ ordered: true })
      for (const each of [1, 2]) yield* outbox.publish(event(p1, `test.happened${each}`, "ada"))
      const one = yield* theClaim
      expect(yield* claims()).toEqual([])
      yield* outbox.nextChange
      yield* settle(one, delivered)
      expect(yield* outbox.nextChange).toEqual({ _tag: "Due" })
      const early = yield* claim()
      expect(early.claims).toEqual([])
      yield* advance(early.nextDueMillis ?? 0)
      expect(yield* claims()).toHaveLength(1)
    })
  })
}
