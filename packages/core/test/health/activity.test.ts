import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { ApiKeyId } from "../../src/base/values.ts"
import { Activity, activityCounterLayer } from "../../src/health/activity.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { Observer } from "../../src/telemetry/observer.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"

const { event, makeWebhook, context, p1 } = Fixture

/** Settles an attempt in the processes' common store. */
const settled = (isDelivered: boolean) =>
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const webhook = makeWebhook(p1)
    yield* (yield* MembershipStore).createProject(p1, context)
    yield* (yield* WebhookStore).add(webhook, 100, context)
    yield* outbox.publishTo(event(p1), webhook.id)
    const attempt = {
      at: 0,
      durationMillis: 1,
      result: { _tag: "Failed", reason: "Timeout" },
    } as const
    const { claims } = yield* outbox.claim({
      limit: 1,
      failing: 1,
      perWebhook: { least: 1, most: 1 },
      perProject: 100,
      ahead: new Map(),
      leaseMillis: 1000,
    })
    for (const claim of claims) {
      const settlement = isDelivered
        ? ({ _tag: "Delivered", attempt } as const)
        : ({ _tag: "Failed", attempt, holdMillis: 0 } as const)
      yield* outbox.settle(claim, settlement)
    }
  })

const refused = (keyId?: string) =>
  Effect.map(Observer, (observer) =>
    observer.refused?.({ by: "key", keyId: keyId === undefined ? undefined : ApiKeyId(keyId) }),
  )

const report = Effect.flatMap(Activity, (activity) => activity.report)

/** The minutes with activity: when each began, and its counts. */
const eventful = Effect.map(report, ({ minutes }) =>
  minutes.flatMap(({ at, delivered, failed, refused: limited }) =>
    delivered + failed + limited > 0 ? [[at / 60_000, delivered, failed, limited]] : [],
  ),
)

const services = activityCounterLayer.pipe(
  Layer.provideMerge(Activity.layer),
  Layer.provideMerge(memory()),
)

/** Declares a test with counted store activity. */
const counting = (
  name: string,
  body: () => Effect.fn.Return<void, unknown, Layer.Success<typeof services>>,
): void => it.effect(name, () => Effect.provide(Effect.gen(body), services))

describe("the activity", () => {
  counting("is counted by the minute, for an hour", function* () {
    expect((yield* report).minutes).toHaveLength(60)
    yield* settled(true)
    yield* settled(true)
    yield* TestClock.adjust("59 seconds")
    for (const isDelivered of [false, false, false]) yield* settled(isDelivered)
    yield* TestClock.adjust("1 second")
    yield* refused()
    const minutes = [
      [0, 2, 3, 0],
      [1, 0, 0, 1],
    ]
    expect(yield* eventful).toEqual(minutes)
    yield* TestClock.adjust("58 minutes")
    expect(yield* eventful).toEqual(minutes)
    yield* TestClock.adjust("1 minute")
    expect(yield* eventful).toEqual([[1, 0, 0, 1]])
    yield* TestClock.adjust("1 minute")
    yield* settled(true)
    expect(yield* eventful).toEqual([[61, 1, 0, 0]])
    yield* TestClock.adjust("1 day")
    expect(yield* eventful).toEqual([])
  })

  counting("says who was refused, most often first", function* () {
    for (const key of ["a", undefined, "b", "b", "a", "b"]) yield* refused(key)
    yield* TestClock.adjust("1 minute")
    yield* refused("a")
    yield* refused("a")
    expect((yield* report).refusals).toEqual([
      { keyId: "a", refused: 4 },
      { keyId: "b", refused: 3 },
      { keyId: undefined, refused: 1 },
    ])
    yield* TestClock.adjust("59 minutes")
    expect((yield* report).refusals).toEqual([{ keyId: "a", refused: 2 }])
  })

  counting("tells no more than a hundred keys apart", function* () {
    for (let key = 0; key < 1000; key++) yield* refused(`key ${key}`)
    yield* refused("key 7")
    const { minutes, refusals } = yield* report
    expect(refusals).toHaveLength(101)
    expect(refusals.slice(0, 2)).toEqual([
      { keyId: undefined, refused: 900 },
      { keyId: "key 7", refused: 2 },
    ])
    expect(minutes.at(-1)?.refused).toBe(1001)
  })
})
