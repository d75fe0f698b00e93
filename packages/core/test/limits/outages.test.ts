/** What the log, the status and the metrics say of a store of rate limits that fails. */

import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Metrics } from "../../src/health/metrics.ts"
import type { Readiness } from "../../src/health/status.ts"
import { Status } from "../../src/health/status.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { RateLimiter, type RateLimiterOptions } from "../../src/limits/rate-limiter.ts"
import { type Fields, hostLoggerLayer } from "../../src/telemetry/host-logger.ts"
import { tenureLayer } from "../../src/tenure.ts"

/** A program with a store of rate limits that fails when it is told to. Its ping always answers. */
const withStore = (
  rateLimits: RateLimiterOptions,
  test: (program: {
    readonly take: Effect.Effect<unknown>
    readonly setDown: (isDown: boolean) => Effect.Effect<void>
    readonly log: ReadonlyArray<readonly [string, string, Fields]>
    /** How requests are limited, by the status; whether by the metrics something else than the store limits them. */
    readonly view: Effect.Effect<readonly [string, string | undefined]>
  }) => Effect.Effect<void, never, RateLimiter | Readiness>,
) =>
  Effect.suspend(() => {
    let isDown = false
    const log: Array<readonly [string, string, Fields]> = []
    const write = (level: string) => (fields: Fields, message: string) =>
      void log.push([level, message, fields])
    const logger = { info: write("info"), warn: write("warn"), error: write("error") }
    const refused = new StoreUnavailable({ cause: new Error("connect ECONNREFUSED") })
    const limits = Layer.effect(
      RateLimitStore,
      Effect.map(RateLimitStore, (right) => ({
        ...right,
        take: (...args) =>
          Effect.suspend(() => (isDown ? Effect.fail(refused) : right.take(...args))),
      })),
    )
    const program = Effect.gen(function* () {
      const limiter = yield* RateLimiter
      const status = yield* Status
      const metrics = yield* Metrics
      yield* test({
        take: limiter.take({ address: "192.0.2.1", keyId: undefined }),
        setDown: (given) => Effect.sync(() => void (isDown = given)),
        log,
        view: Effect.gen(function* () {
          const { rateLimiting } = yield* status.report
          const text = yield* Effect.orDie(metrics.text)
          return [rateLimiting, /^tenure_rate_limit_without_store (\d)/m.exec(text)?.[1]]
        }),
      })
    })
    return program.pipe(
      Effect.provide(tenureLayer({ expiry: false, metrics: true, rateLimits })),
      Effect.provide(Layer.provideMerge(limits, memory())),
      Effect.provide(hostLoggerLayer(logger)),
      Effect.scoped,
    )
  })

const message = "The store of rate limits does not answer"

const begun = ["warn", `${message}: this process limits requests by itself`, expect.anything()]

const over = ["info", `${message}: this is over`, {}]

describe("an outage of the store of rate limits", () => {
  it.effect("is logged with its reason when it begins, and when it is over, once each", () =>
    withStore({}, ({ log, setDown, take }) =>
      Effect.gen(function* () {
        yield* take
        yield* setDown(true)
        for (let count = 0; count < 100; count++) {
          yield* take
          yield* TestClock.adjust("300 millis")
        }
        expect(log).toEqual([begun])
        expect(log[0]?.[2]).toEqual({ problem: "connect ECONNREFUSED" })
        yield* setDown(false)
        yield* TestClock.adjust("1 second")
        yield* take
        yield* take
        expect(log).toEqual([begun, over])
      }),
    ),
  )

  it.effect("of which some takes succeed is one, and another one is logged 10 seconds later", () =>
    withStore({}, ({ log, setDown, take }) =>
      Effect.gen(function* () {
        for (let count = 0; count < 100; count++) {
          yield* setDown(count % 2 === 0)
          yield* take
          yield* TestClock.adjust("100 millis")
        }
        expect(log).toEqual([begun])
        // Each of these fails, and is over before the next one.
        for (let count = 0; count < 20; count++) {
          yield* TestClock.adjust("2 seconds")
          yield* take
          yield* setDown(true)
          yield* take
          yield* setDown(false)
        }
        const begins = log.filter(([level]) => level === "warn").length
        expect(begins).toBeGreaterThanOrEqual(4)
        expect(begins).toBeLessThanOrEqual(6)
      }),
    ),
  )

  it.effect.each(["local", "open", "closed"] as const)(
    "is in the status and the metrics with what happens: %s",
    (onStoreFailure) =>
      withStore({ onStoreFailure }, ({ log, setDown, take, view }) =>
        Effect.gen(function* () {
          yield* take
          expect(yield* view).toEqual(["store", "0"])
          yield* setDown(true)
          yield* take
          expect(yield* view).toEqual([onStoreFailure, "1"])
          expect(new Set(log.map(([, text]) => text)).size).toBe(1)
          yield* setDown(false)
          yield* TestClock.adjust("9 seconds")
          expect(yield* view).toEqual([onStoreFailure, "1"])
          yield* TestClock.adjust("1 second")
          expect(yield* view).toEqual(["store", "0"])
        }),
      ),
  )
})
