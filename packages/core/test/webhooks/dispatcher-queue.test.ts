/** A dispatcher's claims, its queue, and its division among webhooks and projects. */

import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { hostOrigin } from "../../src/base/change-context.ts"
import { ProjectId } from "../../src/base/values.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  type Receiver,
  addWebhook,
  addWebhookTo,
  arrange,
  dispatching,
  otherUrl,
  pass,
  projectId,
  publish,
  publishMany,
  publishTo,
  settled,
  statesOf,
  status,
  test,
  url,
} from "./dispatching.ts"

/** Makes a receiver that answers after `millis`, and records its most concurrent requests. */
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

/** Lets time pass in steps, because attempts follow each other. */
const passSteps = (millis: number, steps: number) =>
  Effect.forEach(Array.from({ length: steps }), () => pass(millis), { discard: true })

describe("a webhook that receives", () => {
  test("has up to sixteen attempts in flight, and others wait", function* ({ calls, sent }) {
    const steady = slow(20)
    const webhook = yield* addWebhook(steady.receiver)
    yield* publishMany(4)
    yield* settled
    expect(steady.seen.most).toBe(4)
    yield* publishMany(596)
    yield* passSteps(20, 10)
    const [before, sentBefore] = [calls.claim, sent.length]
    yield* passSteps(20, 20)
    expect(steady.seen.most).toBe(16)
    expect(sent.length - sentBefore).toBe(320)
    // Sixteen attempts take as many claims as they take places in the queue.
    expect(calls.claim - before).toBeLessThan(20)
    yield* passSteps(20, 20)
    expect(sent).toHaveLength(600)
    expect(yield* statesOf(webhook)).toEqual(["delivered"])
  })

  test("and then hangs delays no other, and loses nothing", function* ({ aborted, sent }) {
    let isHanging = false
    const hanging = slow(20)
    const webhook = yield* addWebhook((...request) =>
      isHanging ? Effect.never : hanging.receiver(...request),
    )
    yield* publishMany(300)
    yield* passSteps(20, 6)
    isHanging = true
    yield* pass(20)
    yield* addWebhookTo(otherUrl)
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
    // Each once, and the hung ones again.
    expect([new Set(ids).size, ids.length]).toEqual([350, 350 + 16])
    expect(yield* statesOf(webhook)).toEqual(["delivered"])
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
        const passOn = (steps: number) =>
          Effect.provideService(passSteps(20, steps), Clock.Clock, testClock)
        const run = dispatching(function* ({ calls, sent }) {
          yield* addWebhook(receiver)
          yield* publishMany(300)
          yield* passOn(6)
          expect(sent.length).toBeLessThan(100)
          offset = step
          yield* passOn(20)
          // None was given back and claimed again.
          expect([sent.length, seen.most, calls.settle]).toEqual([300, 16, 300])
        })
        yield* Effect.provideService(run, Clock.Clock, clock)
      }),
  )
})

describe("a dispatcher", () => {
  test("does not claim until an event is published", function* ({ calls, sent }) {
    yield* addWebhook()
    yield* pass("1 minute")
    const before = calls.claim
    yield* pass("1 hour")
    expect(calls.claim).toBe(before)
    yield* publish
    yield* settled
    expect(sent).toHaveLength(1)
  })

  test("that left nothing ready claims again only after a failure", function* ({ calls }) {
    yield* addWebhook((n) => status(n === 1 ? 200 : 500))
    const claimsForOne = Effect.gen(function* () {
      yield* settled
      const before = calls.claim
      yield* publish
      yield* settled
      return calls.claim - before
    })
    expect(yield* claimsForOne).toBe(1)
    // The next attempt's time is known only afterwards.
    expect(yield* claimsForOne).toBe(2)
  })

  test("whose claims take a second sends all the same", function* ({ disruptions, sent }) {
    disruptions.claimed = Effect.sleep("1 second")
    yield* addWebhook()
    yield* publishMany(2)
    yield* settled
    yield* passSteps(1000, 2)
    expect(sent).toHaveLength(2)
  })

  test("attempts a live event before all replayed ones", function* ({ claimed, sent }) {
    yield* publishMany(5000)
    const { id } = yield* addWebhook(() => Effect.delay(status(200), "1 second"))
    const events = { projectId, webhookId: id, since: new Date(0) }
    expect(yield* (yield* Webhooks).replayMany(events)).toBe(5000)
    yield* pass("20 seconds")
    for (let n = 0; n < 5; n++) {
      const before = claimed.length
      const live = yield* publish
      yield* pass("20 seconds")
      expect(claimed[before]).toBe(live)
      const attempted = sent.map(({ headers }) => headers["webhook-id"])
      expect(attempted.indexOf(live)).toBeGreaterThan(0)
      expect(attempted.indexOf(live)).toBeLessThanOrEqual(before)
    }
    expect(claimed.length).toBeLessThan(5000)
  })

  it.effect(
    "that stops aborts its attempts, and gives back all its claims without counting",
    () => {
      const { services, stores, world } = arrange()
      const step = Effect.gen(function* () {
        yield* addWebhook(slow(20).receiver)
        yield* publishMany(300)
        yield* passSteps(20, 6)
      })
      return Effect.gen(function* () {
        yield* Effect.provide(step, services)
        expect(world.aborted).toHaveLength(16)
        const delivered = world.sent.length - 16
        const { claims } = yield* (yield* Outbox).claim({
          limit: 1000,
          failing: 1000,
          perWebhook: { least: 1000, most: 1000 },
          perProject: 1000,
          ahead: new Map(),
          leaseMillis: 1000,
        })
        expect(claims.map(({ attemptNumber }) => attemptNumber)).toEqual(
          Array.from({ length: 300 - delivered }, () => 1),
        )
      }).pipe(Effect.provide(stores))
    },
  )
})

describe("fairness", () => {
  test("receivers that hang do not delay another receiver of their project", function* ({ sent }) {
    for (let n = 0; n < 49; n++) {
      yield* addWebhookTo(`https://hanging.example/${n}`, () => Effect.never)
    }
    yield* publishMany(8)
    yield* settled
    yield* addWebhookTo(otherUrl)
    yield* publishMany(20)
    yield* settled
    expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(20)
  })

  test(
    "at most maxInFlight attempts are in flight, of which failing webhooks have half",
    function* ({ sent }) {
      const { createProject } = yield* MembershipStore
      const projects = ["a", "b", "c", "d", "e"].map((name) => ProjectId(name))
      for (const project of projects) {
        yield* createProject(project, { origin: hostOrigin, at: 0 })
        yield* addWebhookTo(url, () => Effect.never, project)
      }
      yield* Effect.forEach(projects, publishTo)
      yield* settled
      expect(sent).toHaveLength(4)
      // Every webhook has failed once, and each has a retry due.
      yield* pass("40 seconds")
      yield* addWebhookTo(otherUrl)
      const before = sent.length
      yield* publishMany(3)
      yield* settled
      expect(sent.slice(before).map((request) => request.url)).toEqual(
        Array.from({ length: 3 }, () => otherUrl),
      )
    },
    { maxInFlight: 4, retrySchedule: Array.from({ length: 10 }, () => "1 second" as const) },
  )
})
