/** A failing rate limit store in the log, the status and the metrics. */

import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Metrics } from "../../src/health/metrics.ts"
import { Status } from "../../src/health/status.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { RateLimiter, type RateLimiterOptions } from "../../src/limits/rate-limiter.ts"
import { hostLoggerLayer } from "../../src/telemetry/host-logger.ts"
import { tenureLayer } from "../../src/tenure.ts"
import { recordingLogger } from "../support/logger.ts"
import { test } from "../support/test.ts"

/** Returns a program with a rate limit store a test can make fail. Its ping always answers. */
const programWith = Effect.fnUntraced(function* (rateLimits: RateLimiterOptions = {}) {
  const store = { isDown: false }
  const { entries, logger } = recordingLogger()
  const refused = new StoreUnavailable({ cause: new Error("connect ECONNREFUSED") })
  const limits = Layer.effect(
    RateLimitStore,
    Effect.map(RateLimitStore, (right) => ({
      ...right,
      take: (...args) =>
        Effect.suspend(() => (store.isDown ? Effect.fail(refused) : right.take(...args))),
    })),
  )
  const services = yield* Layer.build(
    tenureLayer({ expiry: false, metrics: true, rateLimits }).pipe(
      Layer.provide(Layer.provideMerge(limits, memory())),
      Layer.provideMerge(hostLoggerLayer(logger)),
    ),
  )
  const read = Effect.gen(function* () {
    const { rateLimiting } = yield* Status.use(({ report }) => report)
    const text = yield* Metrics.use((metrics) => metrics.text)
    return [rateLimiting, /^tenure_rate_limit_without_store (\d)/m.exec(text)?.[1]]
  })
  const take = RateLimiter.use((limiter) =>
    limiter.take({ address: "192.0.2.1", keyId: undefined }),
  )
  return {
    store,
    log: entries,
    take: Effect.provideContext(take, services),
    /** How requests are limited, by the status; whether by the metrics something else than the store limits them. */
    view: Effect.provideContext(read, services),
  }
})

const message = "The store of rate limits does not answer"

const begun = {
  level: "warn",
  message: `${message}: this process limits requests by itself`,
  fields: { problem: "connect ECONNREFUSED" },
}

const over = { level: "info", message: `${message}: this is over`, fields: {} }

describe("an outage of the store of rate limits", () => {
  test("is logged with its reason when it begins, and when it is over, once each", function* () {
    const { log, store, take } = yield* programWith()
    yield* take
    store.isDown = true
    for (let count = 0; count < 100; count++) {
      yield* take
      yield* TestClock.adjust("300 millis")
    }
    expect(log).toEqual([begun])
    store.isDown = false
    yield* TestClock.adjust("1 second")
    yield* take
    yield* take
    expect(log).toEqual([begun, over])
  })

  test("of which some takes succeed is one, and another one is logged 10 seconds later", function* () {
    const { log, store, take } = yield* programWith()
    for (let count = 0; count < 100; count++) {
      store.isDown = count % 2 === 0
      yield* take
      yield* TestClock.adjust("100 millis")
    }
    expect(log).toEqual([begun])
    // Each request fails, and ends before the next one.
    for (let count = 0; count < 20; count++) {
      yield* TestClock.adjust("2 seconds")
      yield* take
      store.isDown = true
      yield* take
      store.isDown = false
    }
    const begins = log.filter(({ level }) => level === "warn").length
    expect(begins).toBeGreaterThanOrEqual(4)
    expect(begins).toBeLessThanOrEqual(6)
  })

  test.each(["local", "open", "closed"])(
    "is in the status and the metrics with what happens: %s",
    function* (onStoreFailure) {
      const { log, store, take, view } = yield* programWith({ onStoreFailure })
      yield* take
      expect(yield* view).toEqual(["store", "0"])
      store.isDown = true
      yield* take
      expect(yield* view).toEqual([onStoreFailure, "1"])
      expect(new Set(log.map((entry) => entry.message)).size).toBe(1)
      store.isDown = false
      yield* TestClock.adjust("9 seconds")
      expect(yield* view).toEqual([onStoreFailure, "1"])
      yield* TestClock.adjust("1 second")
      expect(yield* view).toEqual(["store", "0"])
    },
  )
})
