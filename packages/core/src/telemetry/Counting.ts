/** Counts by metrics what Tenure tells of its work. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Instruments from "./Instruments.ts"
import * as Observer from "./Observer.ts"

// A client can send any word as a method.
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

const methodOf = (method: string): string => (methods.has(method) ? method : "_OTHER")

const seconds = (millis: number): number => millis / 1000

/** Makes an observer that counts, in the registry of a context. */
const make = (context: Context.Context<never>): Observer.Observer => {
  const requests = Instruments.histogram("http.server.request.duration", context)
  const refusals = Instruments.counter("tenure.rate_limit.refusals", context)
  const attempts = Instruments.histogram("tenure.webhook.attempt.duration", context)
  const calls = Instruments.histogram("tenure.store.operation.duration", context)
  return {
    answered: ({ durationMillis, method, route, status }) =>
      requests(seconds(durationMillis), methodOf(method), route, String(status)),
    refused: ({ by }) => refusals(1, by),
    attempted: ({ answer, durationMillis, outcome }) =>
      attempts(
        seconds(durationMillis),
        outcome.toLowerCase(),
        outcome === "Delivered" ? undefined : String(answer),
      ),
    called: ({ durationMillis, fault, method, store }) =>
      calls(seconds(durationMillis), store, method, fault),
  }
}

/** Counts in the registry of the context. */
export const layer: Layer.Layer<never> = Layer.unwrap(
  Effect.gen(function* () {
    const registry = yield* Metric.MetricRegistry
    const attributes = yield* Metric.CurrentMetricAttributes
    return Observer.add(
      make(
        Context.make(Metric.MetricRegistry, registry).pipe(
          Context.add(Metric.CurrentMetricAttributes, attributes),
        ),
      ),
    )
  }),
)
