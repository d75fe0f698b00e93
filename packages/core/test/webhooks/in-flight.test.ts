import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { ProjectId } from "../../src/base/values.ts"
import { EventId } from "../../src/events/event.ts"
import { makeInFlightAttempts } from "../../src/webhooks/dispatcher.ts"
import type { Claim } from "../../src/webhooks/outbox.ts"
import { WebhookId } from "../../src/webhooks/webhook.ts"

const one = WebhookId("00000000-0000-4000-8000-000000000001")
const other = WebhookId("00000000-0000-4000-8000-000000000002")

const turns = Effect.forEach([1, 2, 3], () => Effect.yieldNow)

/** Makes attempts that last until answered, and records each claim's fate by lease. */
const attempts = Effect.gen(function* () {
  const fork = Effect.runForkWith(yield* Effect.context())
  const answers = new Map<string, Deferred.Deferred<boolean>>()
  const settling = new Map<string, Deferred.Deferred<void>>()
  const claims: Array<Claim> = []
  const started: Array<string> = []
  const interrupted: Array<string> = []
  const released: Array<string> = []
  const ended: Array<readonly [WebhookId, boolean]> = []
  const time = { now: 1000 }
  const inFlight = makeInFlightAttempts({
    deliver: ({ lease }, onAnswer) => {
      const answer = Deferred.makeUnsafe<boolean>()
      answers.set(lease, answer)
      started.push(lease)
      return fork(
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            const succeeded = yield* Effect.onInterrupt(restore(Deferred.await(answer)), () =>
              Effect.sync(() => void interrupted.push(lease)),
            )
            onAnswer(succeeded)
            const settled = settling.get(lease)
            if (settled !== undefined) yield* Deferred.await(settled)
            return succeeded
          }),
        ),
      )
    },
    release: ({ lease }) => fork(Effect.sync(() => void released.push(lease))),
    onEnd: (...end) => void ended.push(end),
    now: () => time.now,
    maxQueued: 64,
  })
  let count = 0
  /** Adds claims. Returns their leases. */
  const add = (webhookId: WebhookId, size = 1, failures = 0) =>
    Array.from({ length: size }, () => {
      const lease = String(++count)
      const claim: Claim = {
        event: { id: EventId(`00000000-0000-7000-8000-${lease.padStart(12, "0")}`), body: "{}" },
        webhook: {
          projectId: ProjectId("p1"),
          webhookId,
          url: "https://receiver.example",
          secrets: [],
          signingKey: undefined,
          headers: undefined,
          failures,
          failingSince: undefined,
          concurrency: 4,
        },
        attemptNumber: 1,
        lease,
      }
      claims.push(claim)
      inFlight.add(claim)
      return lease
    })
  const answer = (lease = "", succeeded = true) =>
    Effect.suspend(() => {
      const waiting = answers.get(lease)
      return waiting === undefined
        ? Effect.die(`${lease} is not in flight`)
        : Effect.andThen(Deferred.succeed(waiting, succeeded), turns)
    })
  /** Keeps a claim's settlement from ending until the returned effect runs. */
  const hold = (lease = "") => {
    const settled = Deferred.makeUnsafe<void>()
    settling.set(lease, settled)
    return Effect.andThen(Deferred.succeed(settled, undefined), turns)
  }
  return { add, answer, claims, ended, hold, inFlight, interrupted, released, started, time }
})

type Attempts = Effect.Success<typeof attempts>

const test = (name: string, body: (all: Attempts) => Effect.fn.Return<void>): void =>
  it.effect(name, () => Effect.flatMap(attempts, (all) => Effect.gen(() => body(all))))

describe("claims", () => {
  test("are counted until they are settled", function* ({ add, answer, inFlight }) {
    const [first] = add(one, 1, 2)
    add(one, 1, 1)
    add(other)
    expect(inFlight.count()).toEqual({ all: 3, failing: 2, queued: 0 })
    yield* answer(first)
    expect(inFlight.count()).toEqual({ all: 2, failing: 1, queued: 0 })
    expect([inFlight.has(one), inFlight.has(other)]).toEqual([true, true])
  })

  test("whose webhook fails only once they have begun make the counts wrong", function* (all) {
    const { answer, claims, inFlight } = all
    const [lease] = all.add(one)
    inFlight.checkCounts()
    const [claim] = claims
    if (claim !== undefined) Object.assign(claim.webhook, { failures: 1 })
    yield* answer(lease)
    expect(inFlight.count()).toEqual({ all: 0, failing: -1, queued: 0 })
    expect(() => inFlight.checkCounts()).toThrow("a claim in flight was counted wrong")
  })

  test("end smoothly until one fails, and again once the webhook receives", function* (all) {
    for (const [succeeds, failures] of [
      [true, 0],
      [false, 0],
      [true, 1],
      [true, 0],
    ] as const) {
      const [lease] = all.add(one, 1, failures)
      yield* all.answer(lease, succeeds)
    }
    expect(all.ended).toEqual([
      [one, true],
      [one, false],
      [one, false],
      [one, true],
    ])
    expect(all.inFlight.has(one)).toBe(false)
  })

  test("are given back if their webhook was cancelled since the claim began", function* (all) {
    const { add, inFlight, released, started } = all
    inFlight.beginClaim()
    inFlight.cancel(one)
    const given = add(one)
    const kept = add(other)
    yield* turns
    expect([released, started]).toEqual([given, kept])
    inFlight.beginClaim()
    add(one)
    expect(inFlight.count().all).toBe(2)
  })
})

describe("a queue", () => {
  test("goes on when an attempt is answered, without waiting for its settlement", function* (all) {
    const { add, answer, hold, inFlight, started } = all
    const leases = add(one, 6)
    const [first, second] = leases
    expect([started, inFlight.count().queued]).toEqual([leases.slice(0, 4), 2])
    const settle = hold(first)
    yield* answer(first)
    expect(started).toEqual(leases.slice(0, 5))
    expect(inFlight.count()).toEqual({ all: 6, failing: 0, queued: 1 })
    yield* settle
    yield* answer(second)
    expect(started).toEqual(leases)
    expect(inFlight.count()).toEqual({ all: 4, failing: 0, queued: 0 })
  })

  test("is given back when an attempt fails, once the failure is settled", function* (all) {
    const { add, answer, hold, inFlight, released, started } = all
    const leases = add(one, 6)
    const [first] = leases
    const settle = hold(first)
    yield* answer(first, false)
    expect([started.length, released, inFlight.count().queued]).toEqual([4, [], 0])
    yield* settle
    expect([started.length, released]).toEqual([4, leases.slice(4)])
    expect(inFlight.count().all).toBe(3)
  })

  test("is given back when its webhook is cancelled, and those of others are not", function* (all) {
    const { add, inFlight, interrupted, released, started } = all
    const leases = add(one, 6)
    const others = add(other, 5)
    inFlight.cancel(one)
    yield* turns
    expect([interrupted, released]).toEqual([leases.slice(0, 4), leases.slice(4)])
    expect(started).toEqual([...leases.slice(0, 4), ...others.slice(0, 4)])
    expect(inFlight.count()).toEqual({ all: 5, failing: 0, queued: 1 })
  })

  test("is given back if it has waited for longer than a quarter of a second", function* (all) {
    const { add, answer, inFlight, released, started, time } = all
    const leases = add(one, 7)
    const [first, second] = leases
    time.now += 250
    yield* answer(first)
    expect([started.length, released]).toEqual([5, []])
    time.now += 1
    yield* answer(second)
    expect([started.length, released]).toEqual([5, leases.slice(5)])
    expect(inFlight.wantedAhead(64)).toEqual(new Map())
  })

  test("of a webhook that hangs is given back by the next claim", function* (all) {
    const { add, inFlight, released, time } = all
    const leases = add(one, 6)
    time.now += 250
    inFlight.beginClaim()
    expect(released).toEqual([])
    time.now += 1
    inFlight.beginClaim()
    yield* turns
    expect(released).toEqual(leases.slice(4))
  })

  test("should be as long as its webhook is fast, once an attempt has succeeded", function* (all) {
    const { add, answer, inFlight, time } = all
    const [first] = add(one, 6)
    const [slow] = add(other)
    expect(inFlight.wantedAhead(64)).toEqual(new Map())
    time.now += 20
    yield* answer(first)
    expect(inFlight.wantedAhead(64)).toEqual(new Map([[one, 19]]))
    expect(inFlight.wantedAhead(16)).toEqual(new Map([[one, 16]]))
    expect(inFlight.isLow(one)).toBe(true)
    add(one, 10)
    expect(inFlight.isLow(one)).toBe(false)
    yield* answer(slow, false)
    expect(inFlight.wantedAhead(64).has(other)).toBe(false)
  })

  test("is empty after interruptAll, and all attempts have ended", function* (all) {
    const { add, inFlight, interrupted, released } = all
    const leases = add(one, 6)
    const others = add(other, 3)
    yield* inFlight.interruptAll
    expect(interrupted.toSorted()).toEqual([...leases.slice(0, 4), ...others].toSorted())
    expect([released, inFlight.count().all]).toEqual([leases.slice(4), 0])
  })
})
