import { describe, expect, it } from "@effect/vitest"
import { mostInProject } from "@tenure/core/Outbox"
import { WebhookId } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import fc from "fast-check"
import * as InFlight from "../../src/webhooks/InFlight.ts"

const one = WebhookId("00000000-0000-4000-8000-000000000001")
const other = WebhookId("00000000-0000-4000-8000-000000000002")

/** Attempts that last until they are interrupted, and a record of the interrupted ones. */
const attempts = Effect.gen(function* () {
  const fork = Effect.runForkWith(yield* Effect.context())
  const interrupted: Array<WebhookId> = []
  const ended: Array<readonly [WebhookId, boolean]> = []
  const inFlight = InFlight.make((...end) => void ended.push(end))
  const hang = (webhookId: WebhookId) => (): Fiber.Fiber<boolean> =>
    fork(Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(webhookId))))
  const start = (webhookId: WebhookId, failures = 0) =>
    inFlight.start({ webhookId, failures }, hang(webhookId))
  return { inFlight, interrupted, start, ended, fork }
})

const turns = Effect.forEach([1, 2, 3], () => Effect.yieldNow)

describe("attempts in flight", () => {
  it.effect("are counted until they end, and each end is reported", () =>
    Effect.gen(function* () {
      const { ended, fork, inFlight, start } = yield* attempts
      inFlight.start({ webhookId: one, failures: 2 }, () => fork(Effect.as(Effect.yieldNow, true)))
      start(one, 1)
      start(other)
      expect(inFlight.count()).toEqual({ all: 3, failing: 2 })
      yield* turns
      expect([inFlight.count(), ended]).toEqual([{ all: 2, failing: 1 }, [[one, false]]])
      expect([inFlight.has(one), inFlight.has(other)]).toEqual([true, true])
    }),
  )

  it.effect("end smoothly until one fails, and again once the webhook receives", () =>
    Effect.gen(function* () {
      const { ended, fork, inFlight } = yield* attempts
      const attempt = (succeeds: boolean, failures = 0) => {
        inFlight.start({ webhookId: one, failures }, () => fork(Effect.succeed(succeeds)))
        return turns
      }
      yield* attempt(true)
      yield* attempt(false)
      yield* attempt(true, 1)
      yield* attempt(true)
      expect(ended.map(([, isSmooth]) => isSmooth)).toEqual([true, false, false, true])
      expect(inFlight.has(one)).toBe(false)
    }),
  )

  it.effect("are interrupted when their webhook is cancelled, and no others", () =>
    Effect.gen(function* () {
      const { inFlight, interrupted, start } = yield* attempts
      for (const webhookId of [one, one, other]) start(webhookId)
      inFlight.cancel(one)
      yield* turns
      expect(interrupted).toEqual([one, one])
      expect(inFlight.count().all).toBe(1)
    }),
  )

  it.effect("do not start if their webhook was cancelled since the claim began", () =>
    Effect.gen(function* () {
      const { inFlight, start } = yield* attempts
      inFlight.beginClaim()
      inFlight.cancel(one)
      start(one)
      start(other)
      expect(inFlight.count().all).toBe(1)
      inFlight.beginClaim()
      start(one)
      expect(inFlight.count().all).toBe(2)
    }),
  )

  it.effect("have all ended after interruptAll", () =>
    Effect.gen(function* () {
      const { inFlight, interrupted, start } = yield* attempts
      for (const webhookId of [one, other, one]) start(webhookId)
      yield* inFlight.interruptAll
      expect(interrupted.toSorted()).toEqual([one, one, other])
      expect(inFlight.count().all).toBe(0)
    }),
  )
})

describe("the room for more attempts", () => {
  const sizes = fc.nat({ max: 3000 })
  const bounds = fc.integer({ min: 1, max: 2000 })

  /** The room where none of the attempts is for a failing webhook. */
  const roomFor = (size: number, most: number) => InFlight.room({ all: size, failing: 0 }, most)

  it("is at most what is free, and at least one if anything is free", () => {
    fc.assert(
      fc.property(sizes, bounds, (size, most) => {
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

  it("is for failing webhooks until they have half of it, and for the others as long as it lasts", () => {
    const failing = (count: number) => InFlight.room({ all: count, failing: count }, 1024)?.failing
    expect([0, 1, 511, 512, 600].map(failing)).toEqual([512, 511, 1, 0, 0])
    expect(InFlight.room({ all: 512, failing: 512 }, 1024)).toMatchObject({ limit: 128 })
    expect(InFlight.room({ all: 0, failing: 0 }, 1)).toMatchObject({ limit: 1, failing: 1 })
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

describe("the most deliveries of a webhook within the limit of its project", () => {
  const limits = fc.integer({ min: 1, max: 1000 })
  const concurrencies = fc.integer({ min: 1, max: 16 })

  it("is at least one below the limit, none at the limit, and never grows with what is claimed", () => {
    fc.assert(
      fc.property(concurrencies, limits, fc.nat({ max: 2000 }), (concurrency, limit, claimed) => {
        const most = mostInProject(concurrency, limit, claimed)
        expect(most > 0).toBe(claimed < limit)
        expect(most).toBeLessThanOrEqual(concurrency)
        expect(mostInProject(concurrency, limit, claimed + 1)).toBeLessThanOrEqual(most)
      }),
    )
  })
})
