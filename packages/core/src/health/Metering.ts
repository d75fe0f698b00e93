/** How metrics come about: occurrences are counted, and states are read. */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Schedule from "effect/Schedule"
import * as Counting from "../telemetry/Counting.ts"
import * as Instruments from "../telemetry/Instruments.ts"
import * as Prometheus from "../telemetry/Prometheus.ts"
import { Metrics } from "./Metrics.ts"
import { type Report, Status } from "./Status.ts"

/** Makes a function that shows a report as gauges. */
const showing = (context: Context.Context<never>): ((report: Report) => void) => {
  const waiting = Instruments.gauge("tenure.webhook.deliveries.waiting", context)
  const oldestDue = Instruments.gauge("tenure.webhook.deliveries.oldest_due", context)
  const disabled = Instruments.gauge("tenure.webhook.disabled", context)
  const suspended = Instruments.gauge("tenure.rate_limit.suspended_keys", context)
  return ({ backlog, stores, suspendedKeys }) => {
    waiting(backlog?.waiting)
    oldestDue(backlog && (backlog.dueForMillis ?? 0) / 1000)
    disabled(backlog?.disabledWebhooks)
    suspended(suspendedKeys.length)
    for (const [name, isUp] of Object.entries(stores)) {
      Instruments.gauge("tenure.store.up", context, name)(Number(isUp))
    }
  }
}

// How often the stores are asked for those who export metrics by themselves.
const readPause = "10 seconds"

const make = Effect.gen(function* () {
  const { report } = yield* Status
  const registry = yield* Metric.MetricRegistry
  const show = showing(yield* Effect.context())
  const read = Effect.map(report, show)
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
export const shown: Layer.Layer<Metrics, never, Status> = Layer.effect(Metrics, make)
