/** Counts by metrics what Tenure tells of its work. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Instruments from "./Instruments.ts"
import * as Observer from "./Observer.ts"

// A client can send any word as a method.
const methods = ["_OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

const seconds = (millis: number): number => millis / 1000

/** Returns what counts requests, which every request does: it looks for its series by numbers. */
const countingRequests = (context: Context.Context<never>): Observer.Observer["answered"] => {
  const requests = Instruments.histogram("http.server.request.duration", context)
  const byRoute = new Map<string | undefined, Map<number, Instruments.Update>>()

  return ({ durationMillis, method, route, status }) => {
    const ofRoute = byRoute.get(route) ?? new Map<number, Instruments.Update>()
    if (ofRoute.size === 0) byRoute.set(route, ofRoute)
    const index = Math.max(0, methods.indexOf(method))
    const key = status * methods.length + index
    let update = ofRoute.get(key)
    if (update === undefined) {
      update = requests(methods[index], route, String(status))
      ofRoute.set(key, update)
    }
    update(seconds(durationMillis))
  }
}

/** Makes an observer that counts, in the registry of a context. */
const make = (context: Context.Context<never>): Observer.Observer => {
  const refusals = Instruments.counter("tenure.rate_limit.refusals", context)
  const attempts = Instruments.histogram("tenure.webhook.attempt.duration", context)
  const calls = Instruments.histogram("tenure.store.operation.duration", context)
  return {
    answered: countingRequests(context),
    refused: ({ by }) => refusals(by)(1),
    attempted: ({ answer, durationMillis, outcome }) => {
      const error = outcome === "Delivered" ? undefined : String(answer)
      attempts(outcome.toLowerCase(), error)(seconds(durationMillis))
    },
    called: (store, method) => {
      const answered = calls(store, method, undefined)
      return (fault, durationMillis) => {
        const update = fault === undefined ? answered : calls(store, method, fault)
        update(seconds(durationMillis))
      }
    },
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
