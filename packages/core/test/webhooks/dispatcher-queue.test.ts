/** When a dispatcher claims, and the claims that wait in it. */

import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  type Receiver,
  addWebhook,
  deliveriesOf,
  dispatching,
  noDisruptions,
  otherUrl,
  pass,
  projectId,
  publish,
  publishMany,
  scripted,
  settled,
  status,
  storesWith,
  untilStopped,
  url,
} from "./dispatching.ts"

/** A receiver that takes a time for each request, and the most requests that it had at the same time. */
const slow = (millis: number, answerOf: Receiver = () => status(200)) => {
  let open = 0
  const seen = { most: 0 }
  const receiver: Receiver = (...request) =>
    Effect.gen(function* () {
      seen.most = Math.max(seen.most, ++open)
      yield* Effect.ensuring(
        Effect.sleep(millis),
        Effect.sync(() => void open--),
      )
      return yield* answerOf(...request)
    })
  return { receiver, seen }
}

/** Lets time pass in steps, so that attempts follow each other. */
const passSteps = (millis: number, steps: number) =>
  Effect.forEach(Array.from({ length: steps }), () => pass(millis), { discard: true })

describe("a webhook that receives", () => {
  it.effect("has up to sixteen attempts in flight, and its next ones wait in the process", () => {
    const { receiver, seen } = slow(20)
    const disruptions = noDisruptions()
    let asked = 0
    disruptions.claim = Effect.sync(() => void asked++)
    return dispatching(
      { [url]: receiver },
      ({ sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          yield* publishMany(4)
          yield* settled
          expect(seen.most).toBe(4)
          yield* publishMany(596)
          yield* passSteps(20, 10)
          const [before, sentBefore] = [asked, sent.length]
          yield* passSteps(20, 20)
          expect(seen.most).toBe(16)
          expect(sent.length - sentBefore).toBe(320)
          // Sixteen attempts take as many claims as they take places in the queue.
          expect(asked - before).toBeLessThan(20)
          yield* passSteps(20, 20)
          expect(sent).toHaveLength(600)
          const states = (yield* deliveriesOf(webhook)).map(({ state }) => state)
          expect(new Set(states)).toEqual(new Set(["delivered"]))
        }),
      {},
      storesWith(disruptions),
    )
  })

  it.effect("and is deleted gets nothing more, although claims of it wait", () => {
    const { receiver } = slow(20)
    return dispatching({ [url]: receiver }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publishMany(300)
        yield* passSteps(20, 6)
        const before = sent.length
        yield* (yield* Webhooks).delete({ projectId, webhookId: webhook.id })
        yield* pass("5 days")
        expect(sent).toHaveLength(before)
        expect((yield* deliveriesOf(webhook)).map(({ state }) => state)).not.toContain("waiting")
      }),
    )
  })

  it.effect("and then answers 410 gets no attempt that had not started", () => {
    const { receiver } = slow(20, (n) => status(n < 100 ? 200 : 410))
    return dispatching({ [url]: receiver }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publishMany(300)
        yield* passSteps(20, 20)
        expect(sent.length).toBeLessThan(100 + 16)
        const states = (yield* deliveriesOf(webhook)).map(({ state }) => state)
        expect(new Set(states)).toEqual(new Set(["failed"]))
      }),
    )
  })

  it.effect("and then fails gets one attempt at a time, and those that waited count none", () => {
    let isWell = true
    const { receiver } = slow(20, () => status(isWell ? 200 : 500))
    return dispatching({ [url]: receiver }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publishMany(100)
        yield* passSteps(20, 6)
        isWell = false
        const before = sent.length
        yield* pass(20)
        expect(sent.length - before).toBeLessThanOrEqual(1)
        yield* pass(20)
        expect(sent.length - before).toBeLessThanOrEqual(2)
        isWell = true
        yield* passSteps(60_000, 10)
        yield* passSteps(20, 20)
        expect(sent.length).toBeGreaterThan(100)
        const deliveries = yield* deliveriesOf(webhook)
        expect(new Set(deliveries.map(({ state }) => state))).toEqual(new Set(["delivered"]))
        const attempts = deliveries.reduce((sum, one) => sum + one.attempts.length, 0)
        expect(attempts).toBe(sent.length)
      }),
    )
  })

  it.effect("and then hangs does not delay another, and loses nothing that waited", () => {
    let isHanging = false
    const { receiver } = slow(20)
    return dispatching(
      { [url]: (...request) => (isHanging ? Effect.never : receiver(...request)) },
      ({ aborted, sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          yield* publishMany(300)
          yield* passSteps(20, 6)
          isHanging = true
          yield* pass(20)
          yield* addWebhook(otherUrl)
          yield* publishMany(50)
          yield* settled
          expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(50)
          yield* pass("1 second")
          const before = sent.length
          isHanging = false
          yield* pass("14 seconds")
          expect(aborted).toHaveLength(16)
          yield* passSteps(1000, 60)
          expect(sent.length - before).toBeGreaterThan(200)
          const ids = sent.flatMap((request) =>
            request.url === url ? [request.headers["webhook-id"]] : [],
          )
          // Each once, and again those that hung.
          expect([new Set(ids).size, ids.length]).toEqual([350, 350 + 16])
          const states = (yield* deliveriesOf(webhook)).map(({ state }) => state)
          expect(new Set(states)).toEqual(new Set(["delivered"]))
        }),
    )
  })

  it.effect.each([-3_600_000, 3_600_000])(
    "gets what waits once, at the same pace, if the clock is set by %d ms",
    (step) =>
      Effect.gen(function* () {
        const testClock = yield* Clock.Clock
        let offset = 0
        const wall = () => testClock.currentTimeMillisUnsafe() + offset
        const clock: Clock.Clock = {
          ...testClock,
          currentTimeMillisUnsafe: wall,
          currentTimeMillis: Effect.sync(wall),
        }
        const { receiver, seen } = slow(20)
        const disruptions = noDisruptions()
        let settlements = 0
        disruptions.settle = Effect.sync(() => void settlements++)
        const passOn = (steps: number) =>
          Effect.provideService(passSteps(20, steps), Clock.Clock, testClock)
        const test = dispatching(
          { [url]: receiver },
          ({ sent }) =>
            Effect.gen(function* () {
              yield* addWebhook()
              yield* publishMany(300)
              yield* passOn(6)
              expect(sent.length).toBeLessThan(100)
              offset = step
              yield* passOn(20)
              expect([sent.length, seen.most]).toEqual([300, 16])
              // None was given back and claimed again.
              expect(settlements).toBe(300)
            }),
          {},
          storesWith(disruptions),
        )
        yield* Effect.provideService(test, Clock.Clock, clock)
      }),
  )

  it.effect("does not wait for a slow one in the same project", () => {
    const [quick, late] = [slow(20), slow(5000)]
    return dispatching({ [url]: quick.receiver, [otherUrl]: late.receiver }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook(otherUrl)
        yield* addWebhook(url)
        yield* publishMany(300)
        yield* passSteps(20, 40)
        expect(sent.filter((request) => request.url === url)).toHaveLength(300)
        expect(late.seen.most).toBe(4)
      }),
    )
  })
})

describe("if a claim has left nothing that is ready", () => {
  it.effect("the dispatcher does not claim again after a success, and does after a failure", () => {
    const disruptions = noDisruptions()
    let asked = 0
    disruptions.claim = Effect.sync(() => void asked++)
    return dispatching(
      { [url]: (n) => status(n === 1 ? 200 : 500) },
      () =>
        Effect.gen(function* () {
          yield* addWebhook()
          const claimsForOne = Effect.gen(function* () {
            yield* settled
            const before = asked
            yield* publish
            yield* settled
            return asked - before
          })
          expect(yield* claimsForOne).toBe(1)
          // The time of the next attempt is known only afterwards.
          expect(yield* claimsForOne).toBe(2)
        }),
      {},
      storesWith(disruptions),
    )
  })
})

describe("if claims take a second", () => {
  it.effect("their deliveries are sent all the same", () => {
    const disruptions = noDisruptions()
    disruptions.claimed = Effect.sleep("1 second")
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publishMany(2)
          yield* settled
          yield* passSteps(1000, 2)
          expect(sent).toHaveLength(2)
        }),
      {},
      storesWith(disruptions),
    )
  })
})

describe("when a dispatcher stops", () => {
  it.effect("the claims that wait are given back, and count no attempt", () =>
    Effect.gen(function* () {
      const { receiver } = slow(20)
      const { layer, sent } = scripted({ [url]: receiver })
      yield* Effect.gen(function* () {
        const step = Effect.gen(function* () {
          yield* addWebhook()
          yield* publishMany(300)
          yield* passSteps(20, 6)
        })
        yield* untilStopped(layer, step)
        const stoppedAt = sent.length
        const outbox = yield* Outbox
        const perWebhook = { least: 1000, most: 1000 }
        const { claims } = yield* outbox.claim({
          limit: 1000,
          failing: 1000,
          perWebhook,
          perProject: 1000,
          ahead: new Map(),
          leaseMillis: 1000,
        })
        expect(claims.length).toBeGreaterThanOrEqual(300 - stoppedAt)
        expect(new Set(claims.map(({ attemptNumber }) => attemptNumber))).toEqual(new Set([1]))
        expect(sent).toHaveLength(stoppedAt)
      }).pipe(Effect.provide(memory()))
    }),
  )
})
