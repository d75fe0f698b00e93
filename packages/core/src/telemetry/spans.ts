/** Tenure's spans, by OpenTelemetry's names where it has conventions. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { type Traceparent, nextTraceparent, spanContextOf } from "../base/headers.ts"
import { knownHttpMethod, serverErrorOf, storeFaultOf } from "./observer.ts"
import type { Tracing } from "./tracing.ts"

/** What a span says of its end. */
interface End {
  /** Why it has failed, in a word; `undefined` if it has not. */
  readonly error: string | undefined
  readonly status?: number | undefined
}

const attribute = (span: Tracer.Span, key: string, value: string | number | undefined): void => {
  if (value !== undefined) span.attribute(key, value)
}

/**
 * Runs an effect in a span. The span is not told of the exit, whose error may name a user, but of what the
 * function makes of it.
 */
const within = <A, E, R>(
  name: string,
  options: Tracer.SpanOptionsNoTrace,
  run: (span: Tracer.Span) => Effect.Effect<A, E, R>,
  endOf: (exit: Exit.Exit<A, E>) => End,
) =>
  Effect.useSpan(name, options, (span) =>
    run(span).pipe(
      Effect.provideService(Tracer.ParentSpan, span),
      Effect.onExit((exit) =>
        Effect.map(Clock.currentTimeNanos, (now) => {
          const { error, status } = endOf(exit)
          attribute(span, "http.response.status_code", status)
          attribute(span, "error.type", error)
          span.end(now, error === undefined ? Exit.void : Exit.fail(error))
        }),
      ),
    ),
  )

const spanOf = (traceparent: Traceparent | undefined): Tracer.AnySpan | undefined =>
  traceparent === undefined ? undefined : Tracer.externalSpan(spanContextOf(traceparent))

/** Continues a trace, or begins one. */
const continuing = (traceparent: Traceparent | undefined) => {
  const parent = spanOf(traceparent)
  return parent === undefined ? { root: true } : { parent }
}

const parentSpan = Effect.serviceOption(Tracer.ParentSpan)

const defectStatus = 500

const serve: Tracing["serve"] = ({ method, route, scheme, traceparent }, answer) =>
  Effect.flatMap(parentSpan, (host) => {
    const known = knownHttpMethod(method)
    const verb = known === "_OTHER" ? "HTTP" : known
    return within(
      route === undefined ? verb : `${verb} ${route}`,
      {
        // The host's own span of the request has the client's as its parent.
        ...(Option.isSome(host)
          ? { kind: "internal" }
          : { kind: "server", ...continuing(traceparent) }),
        attributes: {
          "http.request.method": known,
          ...(known !== method && { "http.request.method_original": method.slice(0, 32) }),
          "url.scheme": scheme,
          ...(route !== undefined && { "http.route": route }),
        },
      },
      (span) => answer(nextTraceparent(span) ?? traceparent),
      (exit) => {
        const status = Exit.isSuccess(exit) ? exit.value.status : defectStatus
        return { status, error: serverErrorOf(status) }
      },
    )
  })

const call: Tracing["call"] = (called, store, method) =>
  Effect.flatMap(parentSpan, (parent) =>
    Option.isNone(parent)
      ? called
      : within(
          `${store}.${method}`,
          { attributes: { "tenure.store.name": store, "tenure.store.operation": method } },
          () => called,
          (exit) => ({ error: storeFaultOf(exit) }),
        ),
  )

const clientError = 400

/** What is known of a receiver without the path of its URL, which may have a secret in it. */
const serverOf = (url: string) => {
  const { hostname, port, protocol } = new URL(url)
  return {
    "url.scheme": protocol.slice(0, -1),
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  }
}

const attempt: Tracing["attempt"] = ({ attemptNumber, traceparent, url }, send) =>
  within(
    "POST",
    {
      kind: "client",
      ...continuing(traceparent),
      attributes: {
        "http.request.method": "POST",
        ...(attemptNumber > 1 && { "http.request.resend_count": attemptNumber - 1 }),
        ...serverOf(url),
      },
    },
    (span) => send(nextTraceparent(span) ?? traceparent),
    (exit) => {
      if (Exit.isSuccess(exit)) {
        const { status } = exit.value
        return { status, error: status < clientError ? undefined : String(status) }
      }
      const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      return { error: failure?.reason ?? "Interrupted" }
    },
  )

/** Runs effects in spans of the tracer that is in their context. */
export const tracing: Tracing = { serve, call, attempt }
