/** The host's own tracer, of OpenTelemetry. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Setting from "../base/Setting.ts"

/** The immutable context of OpenTelemetry, which has the parent of a span. */
export interface SpanContexts {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): SpanContexts
  deleteValue(key: symbol): SpanContexts
}

/** Which span of which trace a span is. */
interface SpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

/** A time: seconds since the epoch, and nanoseconds. */
export type SpanTime = [seconds: number, nanos: number]

/** A span. */
export interface HostSpan {
  spanContext(): SpanContext
  setAttribute(key: string, value: string | number): unknown
  setStatus(status: { code: number }): unknown
  end(time?: SpanTime): void
}

/** A tracer, as far as Tenure needs it. `trace.getTracer("tenure")` of `@opentelemetry/api` is one. */
export interface HostTracer {
  startSpan(
    name: string,
    options?: { kind?: number; root?: boolean; startTime?: SpanTime },
    context?: SpanContexts,
  ): HostSpan
}

/** The definition of the option. */
export const setting: Setting.Setting<HostTracer, HostTracer> = Setting.checked(
  "a tracer of OpenTelemetry",
  (given) => Predicate.hasProperty(given, "startSpan") && Predicate.isFunction(given.startSpan),
)

/** Makes spans by the tracer of the host. */
export const layer = (tracer: HostTracer): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.map(
      // Programs without a tracer do not load it.
      Effect.promise(() => import("./OpenTelemetry.ts")),
      (openTelemetry) => openTelemetry.layer(tracer),
    ),
  )
