/** Metrics as text, in the format that Prometheus reads. */

import type * as Effect from "effect/Effect"
import { format } from "effect/observability/PrometheusMetrics"
import { instruments } from "./Instruments.ts"

const suffixes: ReadonlyMap<string, string> = new Map([
  ["s", "_seconds"],
  ["By", "_bytes"],
  ["1", "_ratio"],
])

const known = new Map<string, { readonly type: string; readonly unit: string }>(
  Object.entries(instruments),
)

/**
 * Returns the name that a metric of Tenure has in Prometheus, by the rules of OpenTelemetry: with its
 * unit, and a counter with `_total`. Other metrics keep their names.
 *
 * @example
 * ```ts
 * import { nameOf } from "tenure/Prometheus"
 *
 * nameOf("http.server.request.duration") // "http_server_request_duration_seconds"
 * ```
 */
export const nameOf = (name: string): string => {
  const instrument = known.get(name)
  if (instrument === undefined) return name
  const unit = suffixes.get(instrument.unit) ?? ""
  return name.replaceAll(".", "_") + unit + (instrument.type === "counter" ? "_total" : "")
}

/** The content type of the text. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

/** Writes all metrics of the registry. */
export const text: Effect.Effect<string> = format({ metricNameMapper: nameOf })
