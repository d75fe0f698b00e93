/** Adapts an OpenTelemetry tracer to Effect. */

import type * as Context from "effect/Context"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { HostSpan, HostTracer, SpanContexts, SpanTime } from "./tracing.ts"

// The numbers in `SpanKind`, `TraceFlags` and `SpanStatusCode`, and the key used by `trace.setSpan`.
const kinds = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const
const sampledFlag = 1
const errorCode = 2
const spanKey = Symbol.for("OpenTelemetry Context Key SPAN")

const nanosInSecond = 1_000_000_000n

const timeOf = (nanos: bigint): SpanTime => [
  Number(nanos / nanosInSecond),
  Number(nanos % nanosInSecond),
]

/** A context with values. */
const contextOf = (values: ReadonlyMap<symbol, unknown>): SpanContexts => ({
  getValue: (key) => values.get(key),
  setValue: (key, value) => contextOf(new Map([...values, [key, value]])),
  deleteValue: (key) => contextOf(new Map([...values].filter(([other]) => other !== key))),
})

type Options = Parameters<Tracer.Tracer["span"]>[0]

/** A span backed by one from the host. */
class Span implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly attributes = new Map<string, unknown>()
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
  readonly host: HostSpan
  status: Tracer.SpanStatus

  constructor({ annotations, kind, links, name, parent, startTime }: Options, host: HostSpan) {
    const { spanId, traceFlags, traceId } = host.spanContext()
    this.name = name
    this.parent = parent
    this.annotations = annotations
    this.links = links
    this.kind = kind
    this.traceId = traceId
    this.spanId = spanId
    this.sampled = (traceFlags & sampledFlag) === sampledFlag
    this.host = host
    this.status = { _tag: "Started", startTime }
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    const { startTime } = this.status
    this.status = { _tag: "Ended", startTime, endTime, exit }
    if (Exit.isFailure(exit)) this.host.setStatus({ code: errorCode })
    this.host.end(timeOf(endTime))
  }

  attribute(key: string, value: unknown): void {
    this.attributes.set(key, value)
    this.host.setAttribute(key, typeof value === "number" ? value : String(value))
  }

  // Tenure has neither.
  event(): void {}
  addLinks(): void {}
}

/** Returns a span's counterpart in an OpenTelemetry context. */
const hostOf = (span: Tracer.AnySpan): Pick<HostSpan, "spanContext"> => {
  if (span instanceof Span) return span.host
  const { sampled, spanId, traceId } = span
  const spanContext = { traceId, spanId, traceFlags: sampled ? sampledFlag : 0, isRemote: true }
  return { spanContext: () => spanContext }
}

// The key under which `@opentelemetry/api` shares a host's registrations between its copies.
const registry = Symbol.for("opentelemetry.js.api.1")

/** Returns the trace of the host's active span, such as its HTTP server's. */
const activeTrace = (): unknown => {
  const api: unknown = Reflect.get(globalThis, registry)
  if (!Predicate.hasProperty(api, "context") || !isContextManager(api.context)) return undefined
  const span = api.context.active().getValue(spanKey)
  return isSpan(span) ? span.spanContext().traceId : undefined
}

const hasMethod = (value: unknown, name: string): boolean =>
  Predicate.hasProperty(value, name) && Predicate.isFunction(value[name])

const isContextManager = (value: unknown): value is { readonly active: () => SpanContexts } =>
  hasMethod(value, "active")

const isSpan = (value: unknown): value is Pick<HostSpan, "spanContext"> =>
  hasMethod(value, "spanContext")

/**
 * Returns the context a span begins in: one with its parent, or `undefined` for the host's active one.
 */
const contextIn = ({ kind, parent }: Options): SpanContexts | undefined => {
  if (Option.isNone(parent)) return undefined
  // Otherwise, the host's and Tenure's spans would be siblings under the client's.
  const isHostIn = kind === "server" && activeTrace() === parent.value.traceId
  return isHostIn ? undefined : contextOf(new Map([[spanKey, hostOf(parent.value)]]))
}

/** Creates spans with an OpenTelemetry tracer. */
export const openTelemetryLayer = (tracer: HostTracer): Layer.Layer<never> =>
  Layer.succeed(
    Tracer.Tracer,
    Tracer.make({
      span: (options) => {
        const { kind, name, root, startTime } = options
        const described = {
          kind: kinds[kind],
          startTime: timeOf(startTime),
          // A request may belong to the host's work, but a delivery never does.
          root: root && kind !== "server",
        }
        return new Span(options, tracer.startSpan(name, described, contextIn(options)))
      },
    }),
  )
