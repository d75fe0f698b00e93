/** Traces: what happens to a request, and to the events that follow from it. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import type { Traceparent } from "../base/Traceparent.ts"

/** A request, as far as traces show it: none of its attributes tells who is concerned. */
interface Served {
  /** As on the wire: any text. */
  readonly method: string
  /** The pattern of its path, with the base path; `undefined` if no route has the path. */
  readonly route: string | undefined
  /** The trace that the client has sent. */
  readonly traceparent: Traceparent | undefined
}

/** An attempt to deliver an event. */
interface Attempted {
  readonly url: string
  /** From 1. */
  readonly attemptNumber: number
  /** The trace of the event. */
  readonly traceparent: Traceparent | undefined
}

/** Runs effects in spans. */
export interface Tracing {
  /** Answers a request. The function receives the trace to continue. */
  readonly serve: <Response extends { readonly status: number }>(
    served: Served,
    answer: (traceparent: Traceparent | undefined) => Effect.Effect<Response>,
  ) => Effect.Effect<Response>
  /** Calls a store, in a span only if something else has one: nobody follows what happens by itself. */
  readonly call: <A, E, R>(
    call: Effect.Effect<A, E, R>,
    store: string,
    method: string,
  ) => Effect.Effect<A, E, R>
  /** Attempts a delivery. The function receives the trace that the receiver may continue. */
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

/** Makes spans by the tracer of the context, if that is not the one of Effect, which nobody reads. */
export const layer: Layer.Layer<never> = Layer.effect(
  Tracing,
  Effect.flatMap(Tracer.Tracer, (tracer) =>
    tracer === Tracer.nativeTracer
      ? Effect.succeed(undefined)
      : // Programs without traces do not load what makes them.
        Effect.map(
          Effect.promise(() => import("./Spans.ts")),
          ({ tracing }) => tracing,
        ),
  ),
)
