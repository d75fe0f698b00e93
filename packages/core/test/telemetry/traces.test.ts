import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  context,
  propagation,
  trace,
} from "@opentelemetry/api"
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-node"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as EffectTracer from "effect/Tracer"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Handler } from "../../src/http/handler.ts"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type StoreLayers, createTenure, tenureLayer } from "../../src/tenure.ts"
import { TransportError } from "../../src/webhooks/transport.ts"
import { startApi } from "../support/api.ts"
import { recordingTransport } from "../support/transport.ts"

const exporter = new InMemorySpanExporter()

let api: Awaited<ReturnType<typeof startApi>>
let answer: Effect.Effect<number, TransportError>
const { sent, transport } = recordingTransport(() => answer)

const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
const [, clientTrace, clientSpan] = client.split("-")

const start = async (tracer: Tracer, stores: StoreLayers = memory()) => {
  exporter.reset()
  sent.length = 0
  answer = Effect.succeed(204)
  api = await startApi({ stores, transport, webhooks: { dispatch: false }, tracer })
  const { memberships, webhooks } = api.tenure
  await memberships.grant({ projectId: "p1", userId: "770077", endDate: 1_800_000_000_000 })
  await webhooks.create({ projectId: "p1", url: "https://example.com:8443/secret-path?key=1" })
}

const tracerOf = (ratio: number): Tracer =>
  new NodeTracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  }).getTracer("tenure")

const extend = (headers?: ApiRequest["headers"]) =>
  api.send(
    "PATCH",
    "/v2/projects/p1/memberships/770077/extend",
    { extend: "2099-01-01T00:00:00.000Z" },
    headers,
  )

/** Returns the ended spans in a form for the tests. */
const spans = () =>
  exporter.getFinishedSpans().map((span) => ({
    name: span.name,
    kind: span.kind,
    attributes: span.attributes,
    status: span.status,
    id: span.spanContext().spanId,
    trace: span.spanContext().traceId,
    parent: span.parentSpanContext?.spanId,
  }))

const route = "/v2/projects/:project_id/memberships/:user_id/extend"

const named = (name: string) => {
  const found = spans().filter((span) => span.name === name)
  expect(found).toHaveLength(1)
  return found[0]
}

describe("a tracer of OpenTelemetry", () => {
  beforeEach(() => start(tracerOf(1)))
  afterEach(() => api.tenure.close())

  it("gets a span of a request, its calls of stores, and the attempt to deliver its event", async () => {
    await extend({ traceparent: client })
    await api.tenure.flush()
    const request = named(`PATCH ${route}`)
    expect(request).toMatchObject({
      kind: SpanKind.SERVER,
      trace: clientTrace,
      parent: clientSpan,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        "http.request.method": "PATCH",
        "url.scheme": "http",
        "http.route": route,
        "http.response.status_code": 200,
      },
    })
    expect(named("memberships.extend")).toMatchObject({
      kind: SpanKind.INTERNAL,
      trace: clientTrace,
      parent: request?.id,
      attributes: { "tenure.store.name": "memberships", "tenure.store.operation": "extend" },
    })
    const attempt = named("POST")
    expect(attempt).toMatchObject({
      kind: SpanKind.CLIENT,
      trace: clientTrace,
      parent: request?.id,
      attributes: {
        "server.address": "example.com",
        "server.port": 8443,
        "http.response.status_code": 204,
      },
    })
    const [{ body = "", headers } = { headers: {} }] = sent
    expect(JSON.parse(body)).toMatchObject({ traceparent: `00-${clientTrace}-${request?.id}-01` })
    expect(headers).toMatchObject({ traceparent: `00-${clientTrace}-${attempt?.id}-01` })
  })

  it("learns of no user, no key and no path of a receiver", async () => {
    await extend()
    await extend({ authorization: "Bearer something-else" })
    await api.tenure.flush()
    const seen = JSON.stringify(spans())
    for (const secret of ["770077", api.token, "something-else", "secret-path", "key=1"]) {
      expect(seen).not.toContain(secret)
    }
  })

  it("begins a trace for a request without one, and names no route and method that it does not know", async () => {
    await api.send("BREW", "/v2/coffee")
    expect(spans().filter(({ kind }) => kind === SpanKind.SERVER)).toMatchObject([
      {
        name: "HTTP",
        parent: undefined,
        status: { code: SpanStatusCode.UNSET },
        attributes: {
          "http.request.method": "_OTHER",
          "http.request.method_original": "BREW",
          "http.response.status_code": 404,
        },
      },
    ])
  })

  it("does not hear of stores that nobody has asked", async () => {
    await api.tenure.flush()
    await api.tenure.status()
    expect(spans()).toEqual([])
  })

  it.each([
    ["a status", Effect.succeed(503), { "error.type": "503", "http.response.status_code": 503 }],
    [
      "no answer",
      Effect.fail(new TransportError({ reason: "ECONNREFUSED" })),
      { "error.type": "ECONNREFUSED" },
    ],
  ])("gets failed attempts: %s", async (_name, answered, attributes) => {
    answer = answered
    await extend()
    await api.tenure.flush()
    expect(named("POST")).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes })
  })

  it("has a request whose store does not answer as failed", async () => {
    await api.tenure.close()
    const failing = Effect.fail(new StoreUnavailable({ cause: "down" }))
    const stores = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (store) => ({ ...store, extend: () => failing })),
    )
    await start(tracerOf(1), [memory(), stores])
    expect((await extend()).status).toBe(503)
    const error = { status: { code: SpanStatusCode.ERROR } }
    expect(named("memberships.extend")).toMatchObject({
      ...error,
      attributes: { "error.type": "StoreUnavailable" },
    })
    expect(named(`PATCH ${route}`)).toMatchObject({
      ...error,
      attributes: { "error.type": "503" },
    })
  })

  it("decides which traces to record, and receivers learn of it", async () => {
    await api.tenure.close()
    await start(tracerOf(0))
    await extend()
    await api.tenure.flush()
    expect(spans()).toEqual([])
    expect(sent[0]?.headers["traceparent"]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  })

  it.each<ApiRequest["headers"]>([{}, { traceparent: client }])(
    "has the span of a request in that of the host's server: %j",
    async (headers) => {
      const provider = new NodeTracerProvider()
      provider.register()
      const host = provider.getTracer("host")
      const incoming = propagation.extract(ROOT_CONTEXT, headers)
      await context.with(trace.setSpan(incoming, host.startSpan("GET", {}, incoming)), async () => {
        await extend(headers)
        expect(named(`PATCH ${route}`)).toMatchObject({
          parent: trace.getActiveSpan()?.spanContext().spanId,
        })
      })
      await api.tenure.flush()
      for (const one of [trace, context, propagation]) one.disable()
    },
  )

  it("must be one", async () => {
    const options = { stores: memory(), tracer: trace }
    // @ts-expect-error: the API's entry point is no tracer.
    await expect(createTenure(options)).rejects.toMatchObject({ field: "tracer" })
  })
})

describe("a tracer of Effect", () => {
  it("is that of the context", async () => {
    const ended: Array<string> = []
    class Span extends EffectTracer.NativeSpan {
      override end(time: bigint, exit: Exit.Exit<unknown, unknown>): void {
        super.end(time, exit)
        ended.push(this.name)
      }
    }
    const tracer = EffectTracer.make({ span: (options) => new Span(options) })
    await Effect.runPromise(
      Effect.flatMap(Handler, ({ handle }) =>
        handle({
          method: "GET",
          path: "/v2/projects",
          headers: { authorization: "Bearer none" },
          body: emptyBody,
          remoteAddress: undefined,
        }),
      ).pipe(
        Effect.provide(tenureLayer().pipe(Layer.provide(memory()))),
        Effect.provideService(EffectTracer.Tracer, tracer),
      ),
    )
    expect(ended).toEqual(["apiKeys.find", "rateLimits.take", "GET /v2/projects"])
  })
})
