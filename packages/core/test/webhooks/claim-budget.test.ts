/** The claim budget: for a process, a project and a webhook, at any time. */

import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Micros } from "../../src/base/time.ts"
import { type TheoreticalArrivalTime, takeToken } from "../../src/limits/buckets.ts"
import {
  clampConcurrency,
  claimBudget,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  initialConcurrency,
  isPrefetchLow,
  makeClaimTrigger,
  maxPrefetchMillis,
  smoothedMillis,
  wantedPrefetch,
  webhookRatePolicy,
} from "../../src/webhooks/claim-budget.ts"
import { maxAttemptsOfWebhook } from "../../src/webhooks/outbox.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

describe("the concurrency of a webhook", () => {
  /** Returns the concurrency after successful and failed attempts. */
  const after = (attempts: ReadonlyArray<boolean>): number =>
    attempts.reduce(
      (concurrency, succeeded) =>
        succeeded ? concurrencyAfterSuccess(concurrency) : concurrencyAfterFailure(concurrency),
      initialConcurrency,
    )

  const successes = (count: number): ReadonlyArray<boolean> =>
    Array.from({ length: count }, () => true)

  it("grows by one with each success, from 4 up to 16", () => {
    const counts = [0, 1, 2, 11, 12, 13, 1000]
    expect(counts.map((count) => after(successes(count)))).toEqual([4, 5, 6, 15, 16, 16, 16])
  })

  it("is halved by each failure, down to 4", () => {
    const failures = [[false], [false, false], [false, false, false]]
    expect(failures.map((some) => after([...successes(12), ...some]))).toEqual([8, 4, 4])
    expect(after([...successes(5), false])).toBe(4)
  })

  it("stays within its bounds, follows each attempt, and is restored by twelve successes", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (history) => {
        const before = after(history)
        expect(before).toBeGreaterThanOrEqual(4)
        expect(before).toBeLessThanOrEqual(16)
        expect(after([...history, false])).toBeLessThanOrEqual(before)
        expect(after([...history, true])).toBeGreaterThanOrEqual(before)
        expect(after([...history, ...successes(12)])).toBe(16)
      }),
    )
  })

  it.each([
    [4, 16, [4, 10, 16]],
    [4, 8, [4, 8, 8]],
    [2, 2, [2, 2, 2]],
    [12, 100, [12, 12, 16]],
  ])("can be bounded by %d and %d", (least, most, bounded) => {
    expect([4, 10, 16].map((one) => clampConcurrency(one, { least, most }))).toEqual(bounded)
  })

  it("allows one delivery at least below the limit of its project, and fewer the more are claimed", () => {
    const limits = fc.integer({ min: 1, max: 1000 })
    const concurrencies = fc.integer({ min: 1, max: 16 })
    fc.assert(
      fc.property(concurrencies, limits, fc.nat({ max: 2000 }), (concurrency, limit, claimed) => {
        const most = maxAttemptsOfWebhook(concurrency, limit, claimed)
        expect(most > 0).toBe(claimed < limit)
        expect(most).toBeLessThanOrEqual(concurrency)
        expect(maxAttemptsOfWebhook(concurrency, limit, claimed + 1)).toBeLessThanOrEqual(most)
      }),
    )
  })
})

describe("the rate of a webhook", () => {
  it("allows a burst of a quarter of a second, and no more than the rate from then on", () => {
    const rates = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10_000 }))
    const pauses = fc.array(fc.nat({ max: 2_000_000 }), { maxLength: 100 })
    fc.assert(
      fc.property(rates, pauses, (rate, all) => {
        const policy = webhookRatePolicy(rate)
        let tat: TheoreticalArrivalTime
        let now = 0
        let taken = 0
        for (const pause of [0, ...all]) {
          now += pause
          for (;;) {
            const take = takeToken(tat, Micros(now), policy)
            tat = take.tat
            if (!take.admitted) break
            taken++
          }
          if (now === 0) expect(taken).toBe(Math.max(1, Math.floor(rate / 4)))
          expect(taken).toBeLessThanOrEqual(Math.max(1, rate / 4) + (rate * now) / 1_000_000)
        }
      }),
    )
  })

  it("is reached by who takes each token when it comes back, within a hundredth", () => {
    for (const rate of [1, 3, 7, 8, 40, 999, 10_000]) {
      const { increment } = webhookRatePolicy(rate)
      expect(increment * rate).toBeGreaterThanOrEqual(1_000_000)
      expect(increment * rate).toBeLessThan(1_010_000)
    }
  })
})

describe("the queue of a webhook", () => {
  const wantedAhead = (concurrency: number, attemptMillis: number | undefined, most = 64) =>
    wantedPrefetch({ concurrency, attemptMillis }, most)

  it("is as long as the attempts of a tenth of a second, and as all queues may be together", () => {
    expect([
      wantedAhead(16, 25),
      wantedAhead(16, 0.2),
      wantedAhead(16, 50),
      wantedAhead(4, 100),
    ]).toEqual([64, 64, 32, 4])
  })

  it("is empty if the webhook is slow, or nothing is known of it", () => {
    expect([wantedAhead(16, 1601), wantedAhead(4, 15_000), wantedAhead(16, undefined)]).toEqual([
      0, 0, 0,
    ])
  })

  it("never gets longer because attempts take longer, and drains in time", () => {
    const durations = fc.double({ min: 0, max: 20_000, noNaN: true })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 16 }),
        durations,
        durations,
        (concurrency, millis, more) => {
          const length = wantedAhead(concurrency, millis, 1_000_000)
          expect(wantedAhead(concurrency, millis + more, 1_000_000)).toBeLessThanOrEqual(length)
          expect((length * millis) / concurrency).toBeLessThanOrEqual(maxPrefetchMillis)
        },
      ),
    )
  })

  it("is low when it is half empty", () => {
    const isLow = (length: number) =>
      isPrefetchLow(length, { concurrency: 16, attemptMillis: 25 }, 64)
    expect([0, 32, 33, 64].map(isLow)).toEqual([true, true, false, false])
  })

  it("is measured by the first attempt, and then follows the latest", () => {
    expect(smoothedMillis(undefined, 20)).toBe(20)
    expect(smoothedMillis(20, 100)).toBe(40)
  })
})

describe("the room for more attempts", () => {
  /** Returns the claim budget without attempts for failing webhooks. */
  const roomFor = (all: number, most: number, queued = 0) =>
    claimBudget({ all, failing: 0, queued }, most)

  it("is at most what is free, and at least one if anything is free", () => {
    const sizes = fc.nat({ max: 3000 })
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 2000 }), (size, most) => {
        const room = roomFor(size, most)
        if (size >= most) expect(room).toBeUndefined()
        else {
          expect(room?.limit).toBeGreaterThanOrEqual(1)
          expect(room?.limit).toBeLessThanOrEqual(most - size)
          expect(room?.perWebhook.least).toBeGreaterThanOrEqual(1)
          expect(room?.perWebhook.least).toBeLessThanOrEqual(4)
          expect(room?.perWebhook.most).toBe(2 * size <= most ? 16 : room?.perWebhook.least)
          expect(room?.perProject).toBeGreaterThanOrEqual(1)
          expect(room?.perProject).toBeLessThanOrEqual(most - size)
        }
      }),
    )
  })

  it("is smaller for each webhook the less is free: the last eighth is for webhooks without attempts", () => {
    const perWebhook = (size: number) => Object.values(roomFor(size, 1024)?.perWebhook ?? {})
    expect([0, 512, 513, 768, 1023].map(perWebhook)).toEqual([
      [4, 16],
      [4, 16],
      [4, 4],
      [2, 2],
      [1, 1],
    ])
  })

  it("allows to claim ahead a quarter of it, less what waits already, while half is free", () => {
    const ahead = (all: number, queued: number) => roomFor(all, 1024, queued)?.ahead
    expect([ahead(0, 0), ahead(512, 250), ahead(400, 256), ahead(400, 260)]).toEqual([256, 6, 0, 0])
    expect([ahead(513, 0), roomFor(0, 3)?.ahead]).toEqual([0, 0])
  })

  it("is for failing webhooks until they have half of it, and for the others as long as it lasts", () => {
    const failing = (count: number, most = 1024) =>
      claimBudget({ all: count, failing: count, queued: 0 }, most)
    const counts = [0, 1, 511, 512, 600]
    expect(counts.map((count) => failing(count)?.failing)).toEqual([512, 511, 1, 0, 0])
    expect(failing(512)).toMatchObject({ limit: 128 })
    expect(failing(0, 1)).toMatchObject({ limit: 1, failing: 1 })
  })

  it("lasts for another project, in whatever order thirty projects take all that they get", () => {
    const orders = fc.infiniteStream(fc.nat({ max: 29 }))
    fc.assert(
      fc.property(fc.integer({ min: 512, max: 4096 }), orders, (most, order) => {
        const claimed = new Map<number, number>()
        let size = 0
        for (const project of order.take(300)) {
          const room = roomFor(size, most)
          const own = claimed.get(project) ?? 0
          const taken = Math.max(0, Math.min(room?.limit ?? 0, (room?.perProject ?? 0) - own))
          claimed.set(project, own + taken)
          size += taken
        }
        expect(roomFor(size, most)).toBeDefined()
      }),
    )
  })
})

describe("what a claim has kept back", () => {
  const one = WebhookId("00000000-0000-4000-8000-000000000001")
  const other = WebhookId("00000000-0000-4000-8000-000000000002")
  const inHand = () => true

  it("is claimed again once something of its webhook is settled", () => {
    const trigger = makeClaimTrigger()
    trigger.beginClaim()
    expect(trigger.endClaim([one], inHand)).toBeUndefined()
    expect([trigger.settled(one), trigger.settled(other)]).toEqual([true, false])
    trigger.beginClaim()
    expect(trigger.endClaim([], inHand)).toBeUndefined()
    expect(trigger.settled(one)).toBe(false)
  })

  it("is claimed again at once if the claim may not have seen that something was settled", () => {
    const trigger = makeClaimTrigger()
    trigger.beginClaim()
    trigger.endClaim([one], inHand)
    trigger.beginClaim()
    expect(trigger.settled(one)).toBe(false)
    expect(trigger.endClaim([one], () => false)).toBe(0)
    trigger.beginClaim()
    trigger.settled(other)
    expect(trigger.endClaim([one], inHand)).toBeUndefined()
  })

  it("is claimed after a pause if that is because of claims elsewhere", () => {
    const trigger = makeClaimTrigger()
    trigger.beginClaim()
    expect(trigger.endClaim([one, other], (id) => id === one)).toBe(200)
  })
})
