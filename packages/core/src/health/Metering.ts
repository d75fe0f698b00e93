/** How metrics come about: occurrences are counted, and states are read. */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"
import { RateLimiter } from "../limits/RateLimiter.ts"
import * as Counting from "../telemetry/Counting.ts"
import * as Instruments from "../telemetry/Instruments.ts"
import * as Prometheus from "../telemetry/Prometheus.ts"
import type { Outbox } from "../webhooks/Outbox.ts"
import * as Databases from "./Databases.ts"
import { Metrics } from "./Metrics.ts"
import type { Readiness } from "./Readiness.ts"

/** Shows how a database is doing as gauges. */
const show = (
  { backlog, name, stores }: Databases.Report,
  context: Context.Context<never>,
): void => {
  const { gauge } = Instruments
  const dueFor = backlog && (backlog.dueForMillis ?? 0) / 1000
  gauge("tenure.webhook.deliveries.waiting", context, name)(backlog?.waiting)
  gauge("tenure.webhook.deliveries.oldest_due", context, name)(dueFor)
  gauge("tenure.webhook.disabled", context, name)(backlog?.disabledWebhooks)
  for (const [store, isUp] of Object.entries(stores)) {
    gauge("tenure.store.up", context, store, name)(Number(isUp))
  }
}

// How often the stores are asked for those who export metrics by themselves.
const readPause = "10 seconds"

const make = Effect.gen(function* () {
  const { suspended } = yield* RateLimiter
  const reports = yield* Databases.make
  const registry = yield* Metric.MetricRegistry
  const context = yield* Effect.context()
  const suspendedKeys = Instruments.gauge("tenure.rate_limit.suspended_keys", context)
  const read = Effect.map(Effect.all([reports, suspended]), ([databases, keys]) => {
    for (const report of databases) show(report, context)
    suspendedKeys(keys.length)
  })
  yield* Effect.forkScoped(Effect.repeat(read, Schedule.spaced(readPause)))
  return Metrics.of({
    text: Effect.andThen(read, Prometheus.text).pipe(
      Effect.provideService(Metric.MetricRegistry, registry),
    ),
  })
})

/** Counts in the registry of the context. */
export const counting = Counting.layer

/** Shows the metrics of the registry of the context. */
export const shown: Layer.Layer<Metrics, never, Readiness | Outbox | RateLimiter> = Layer.effect(
  Metrics,
  make,
)
