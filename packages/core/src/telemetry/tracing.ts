/** Traces: requests, and the events they cause. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { Traceparent } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"

/** A request's traced fields. No attribute identifies a person. */
interface Served {
  /** As on the wire: any text. */
  readonly method: string
  /** Its path's pattern, with the base path; `undefined` if no route matches. */
  readonly route: string | undefined
  /** The scheme of the client's URL, as far as proxies tell. */
  readonly scheme: string
  /** The client's trace. */
  readonly traceparent: Traceparent | undefined
}

/** An attempt to deliver an event. */
interface Attempted {
  readonly url: string
  /** From 1. */
  readonly attemptNumber: number
  /** The event's trace. */
  readonly traceparent: Traceparent | undefined
}

/** Runs effects in spans. */
export interface Tracing {
  /** Answers a request. The function receives the trace to continue. */
  readonly serve: <Response extends { readonly status: number }>(
    served: Served,
    answer: (traceparent: Traceparent | undefined) => Effect.Effect<Response>,
  ) => Effect.Effect<Response>
  /** Calls a store, in a span only inside another: background work is not traced. */
  readonly call: <A, E, R>(
    call: Effect.Effect<A, E, R>,
    store: string,
    method: string,
  ) => Effect.Effect<A, E, R>
  /** Attempts a delivery. The function receives the trace for the receiver to continue. */
  readonly attempt: <
    Answer extends { readonly status: number },
    Failure extends { readonly reason: string },
    R,
  >(
    attempted: Attempted,
    send: (traceparent: Traceparent | undefined) => Effect.Effect<Answer, Failure, R>,
  ) => Effect.Effect<Answer, Failure, R>
}

/** How spans are made. By default, there are none. */
export const Tracing = Context.Reference<Tracing | undefined>("@tenure/core/Tracing", {
  defaultValue: () => undefined,
})

/** Creates spans with the context's tracer, unless it is Effect's default, whose spans nobody reads. */
export const tracingLayer: Layer.Layer<never> = Layer.effect(
  Tracing,
  Effect.flatMap(Tracer.Tracer, (tracer) =>
    tracer === Tracer.nativeTracer
      ? Effect.succeed(undefined)
      : // Programs without traces do not load what makes them.
        Effect.map(
          Effect.promise(() => import("./spans.ts")),
          ({ tracing }) => tracing,
        ),
  ),
)

/** An immutable OpenTelemetry context with a span's parent. */
export interface SpanContexts {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): SpanContexts
  deleteValue(key: symbol): SpanContexts
}

/** A span's identity. */
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

/** A tracer's used part. `trace.getTracer("tenure")` from `@opentelemetry/api` is one. */
export interface HostTracer {
  startSpan(
    name: string,
    options?: { kind?: number; root?: boolean; startTime?: SpanTime },
    context?: SpanContexts,
  ): HostSpan
}

/** The option for the tracer. */
export const hostTracerOption: Setting.Setting<HostTracer, HostTracer> = Setting.guarded(
  "a tracer of OpenTelemetry",
  (given) => Predicate.hasProperty(given, "startSpan") && Predicate.isFunction(given.startSpan),
)

/** Creates spans with the host's tracer. */
export const hostTracerLayer = (tracer: HostTracer): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.map(
      // Programs without a tracer do not load it.
      Effect.promise(() => import("./open-telemetry.ts")),
      (openTelemetry) => openTelemetry.openTelemetryLayer(tracer),
    ),
  )
