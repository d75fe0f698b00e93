/** Counts Tenure's work in metrics. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { type Update, counter, histogram } from "./instruments.ts"
import {
  type HttpMethod,
  type Observer,
  addObserver,
  knownHttpMethod,
  serverErrorOf,
} from "./observer.ts"

const seconds = (millis: number): number => millis / 1000

/** Returns a key's value, and adds it if it is missing. */
const getOrAdd = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

/** Counts requests. Because every request does this, it finds their series without building a text. */
const countingRequests = (context: Context.Context<never>): Observer["answered"] => {
  const requests = histogram("http.server.request.duration", context)
  type Methods = Map<HttpMethod, Map<number, Update>>
  const series = new Map<string, Map<string | undefined, Methods>>()

  return ({ durationMillis, method, route, scheme, status }) => {
    const ofScheme = getOrAdd(series, scheme, () => new Map())
    const ofRoute = getOrAdd(ofScheme, route, () => new Map())
    const known = knownHttpMethod(method)
    const ofMethod = getOrAdd(ofRoute, known, () => new Map())
    const update = getOrAdd(ofMethod, status, () =>
      requests(known, scheme, route, String(status), serverErrorOf(status)),
    )
    update(seconds(durationMillis))
  }
}

/** Creates an observer to count in a context's registry. */
const make = (context: Context.Context<never>): Observer => {
  const refusals = counter("tenure.rate_limit.refusals", context)
  const attempts = histogram("tenure.webhook.attempt.duration", context)
  const calls = histogram("tenure.store.operation.duration", context)
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

/** Counts in the context's registry. */
export const countingLayer: Layer.Layer<never> = Layer.unwrap(
  Effect.gen(function* () {
    const registry = yield* Metric.MetricRegistry
    const attributes = yield* Metric.CurrentMetricAttributes
    return addObserver(
      make(
        Context.make(Metric.MetricRegistry, registry).pipe(
          Context.add(Metric.CurrentMetricAttributes, attributes),
        ),
      ),
    )
  }),
)
