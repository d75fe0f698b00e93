import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { ApiKeyId, ProjectId } from "../../src/base/values.ts"
import { Activity, activityCounterLayer } from "../../src/health/activity.ts"
import { Observer } from "../../src/telemetry/observer.ts"

const projectId = ProjectId("p1")

const attempted = (outcome: "Delivered" | "Retry" | "Failed" | "Disabled") =>
  Effect.map(Observer, (observer) =>
    observer.attempted?.({ projectId, outcome, answer: 500, durationMillis: 1 }),
  )

const refused = (keyId?: string) =>
  Effect.map(Observer, (observer) =>
    observer.refused?.({ by: "key", keyId: keyId === undefined ? undefined : ApiKeyId(keyId) }),
  )

const report = Effect.flatMap(Activity, (activity) => activity.report)

/** The minutes in which something happened: when each began, and its counts. */
const eventful = Effect.map(report, ({ minutes }) =>
  minutes.flatMap(({ at, delivered, failed, refused: limited }) =>
    delivered + failed + limited > 0 ? [[at / 60_000, delivered, failed, limited]] : [],
  ),
)

const counted = Effect.provide(activityCounterLayer.pipe(Layer.provideMerge(Activity.layer)))

describe("the activity", () => {
  it.effect("is counted by the minute, for an hour", () =>
    Effect.gen(function* () {
      expect((yield* report).minutes).toHaveLength(60)
      yield* attempted("Delivered")
      yield* attempted("Delivered")
      yield* TestClock.adjust("59 seconds")
      for (const outcome of ["Retry", "Failed", "Disabled"] as const) yield* attempted(outcome)
      yield* TestClock.adjust("1 second")
      yield* refused()
      expect(yield* eventful).toEqual([
        [0, 2, 3, 0],
        [1, 0, 0, 1],
      ])
      yield* TestClock.adjust("58 minutes")
      expect(yield* eventful).toHaveLength(2)
      yield* TestClock.adjust("1 minute")
      expect(yield* eventful).toEqual([[1, 0, 0, 1]])
      yield* TestClock.adjust("1 minute")
      yield* attempted("Delivered")
      expect(yield* eventful).toEqual([[61, 1, 0, 0]])
      yield* TestClock.adjust("1 day")
      expect(yield* eventful).toEqual([])
    }).pipe(counted),
  )

  it.effect("says who was refused, most often first", () =>
    Effect.gen(function* () {
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
    }).pipe(counted),
  )

  it.effect("tells no more than a hundred keys apart", () =>
    Effect.gen(function* () {
      for (let key = 0; key < 1000; key++) yield* refused(`key ${key}`)
      yield* refused("key 7")
      const { minutes, refusals } = yield* report
      expect(refusals).toHaveLength(101)
      expect(refusals.slice(0, 2)).toEqual([
        { keyId: undefined, refused: 900 },
        { keyId: "key 7", refused: 2 },
      ])
      expect(minutes.at(-1)?.refused).toBe(1001)
    }).pipe(counted),
  )
})
