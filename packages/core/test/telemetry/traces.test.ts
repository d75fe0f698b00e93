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
import { MembershipStore } from "../../src/memberships/store.ts"
import { type StoreLayers, type Tenure, createTenure, tenureLayer } from "../../src/tenure.ts"
import {
  TransportError,
  type TransportRequest,
  WebhookTransport,
} from "../../src/webhooks/transport.ts"

const exporter = new InMemorySpanExporter()

let tenure: Tenure
let token: string
let sent: Array<TransportRequest>
let answer: Effect.Effect<number, TransportError>

const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
const [, clientTrace, clientSpan] = client.split("-")

const start = async (tracer: Tracer, stores: StoreLayers = memory()) => {
  exporter.reset()
  sent = []
  answer = Effect.succeed(204)
  const transport = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: (request) => {
      sent.push(request)
      return Effect.map(answer, (status) => ({ status, retryAfter: undefined, body: "" }))
    },
  })
  tenure = await createTenure({ stores, transport, webhooks: { dispatch: false }, tracer })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "770077", endDate: 1_800_000_000_000 })
  await tenure.webhooks.create({
    projectId: "p1",
    url: "https://example.com:8443/secret-path?key=1",
  })
  ;({ token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" }))
}

const tracerOf = (ratio: number): Tracer =>
  new NodeTracerProvider({
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  }).getTracer("tenure")

const send = (method: string, path: string, headers: object = {}, body: unknown = {}) =>
  tenure.handle({
    method,
    path,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: { _tag: "Bytes", bytes: new TextEncoder().encode(JSON.stringify(body)) },
    remoteAddress: undefined,
  })

const extend = (headers?: object) =>
  send("PATCH", "/v2/projects/p1/memberships/770077/extend", headers, {
    extend: "2099-01-01T00:00:00.000Z",
  })

/** The spans that have ended, as they are read in the tests. */
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

const named = (name: string) => {
  const found = spans().filter((span) => span.name === name)
  expect(found).toHaveLength(1)
  return found[0]
}

describe("a tracer of OpenTelemetry", () => {
  beforeEach(() => start(tracerOf(1)))
  afterEach(() => tenure.close())

  it("gets a span of a request, its calls of stores, and the attempt to deliver its event", async () => {
    await extend({ traceparent: client })
    await tenure.flush()
    const request = named("PATCH /v2/projects/:project_id/memberships/:user_id/extend")
    expect(request).toMatchObject({
      kind: SpanKind.SERVER,
      trace: clientTrace,
      parent: clientSpan,
      status: { code: SpanStatusCode.UNSET },
      attributes: {
        "http.request.method": "PATCH",
        "url.scheme": "http",
        "http.route": "/v2/projects/:project_id/memberships/:user_id/extend",
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
    await tenure.flush()
    const seen = JSON.stringify(spans())
    for (const secret of ["770077", token, "something-else", "secret-path", "key=1"]) {
      expect(seen).not.toContain(secret)
    }
  })

  it("begins a trace for a request without one, and names no route and method that it does not know", async () => {
    await send("BREW", "/v2/coffee")
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
    await tenure.flush()
    await tenure.status()
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
    await tenure.flush()
    expect(named("POST")).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes })
  })

  it("has a request whose store does not answer as failed", async () => {
    await tenure.close()
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
    expect(named("PATCH /v2/projects/:project_id/memberships/:user_id/extend")).toMatchObject({
      ...error,
      attributes: { "error.type": "503" },
    })
  })

  it("decides which traces to record, and receivers learn of it", async () => {
    await tenure.close()
    await start(tracerOf(0))
    await extend()
    await tenure.flush()
    expect(spans()).toEqual([])
    expect(sent[0]?.headers["traceparent"]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  })

  it.each([{}, { traceparent: client }])(
    "has the span of a request in that of the host's server: %j",
    async (headers) => {
      const provider = new NodeTracerProvider()
      provider.register()
      const host = provider.getTracer("host")
      const incoming = propagation.extract(ROOT_CONTEXT, headers)
      await context.with(trace.setSpan(incoming, host.startSpan("GET", {}, incoming)), async () => {
        await extend(headers)
        expect(named("PATCH /v2/projects/:project_id/memberships/:user_id/extend")).toMatchObject({
          parent: trace.getActiveSpan()?.spanContext().spanId,
        })
      })
      await tenure.flush()
      for (const api of [trace, context, propagation]) api.disable()
    },
  )

  it("must be one", async () => {
    const options = { stores: memory(), tracer: trace }
    // @ts-expect-error: the entry point of the API is no tracer.
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
          body: { _tag: "Bytes", bytes: new Uint8Array(0) },
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
