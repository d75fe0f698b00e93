/** Traces, from a request to its delivery by another process. */

import { SpanKind } from "@opentelemetry/api"
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node"
import { type Tenure, createTenure } from "@tenure/core"
import { knownEventTypes } from "@tenure/core/store"
import { nodeTransport, serve } from "@tenure/node-http"
import { type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { afterEach, beforeAll, beforeEach, expect, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { dropped } from "./harness.ts"

const schema = "tenure_traces"

let receiver: Receiver
const opened: Array<Tenure> = []

beforeAll(() => Effect.runPromise(dropped(schema)))
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(async () => {
  receiver.close()
  await Promise.all(opened.splice(0).map(({ close }) => close()))
})

/** Starts a process. Returns the spans that its tracer has got, too. */
const start = async (dispatch: boolean) => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tenure = await createTenure({
    stores: postgres({ url: inject("databaseUrl"), schema, maxConnections: 3 }),
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"], dispatch },
    expiry: {},
    tracer: provider.getTracer("tenure"),
    metrics: true,
  })
  opened.push(tenure)
  const spans = () =>
    exporter.getFinishedSpans().map((span) => ({
      name: span.name,
      kind: span.kind,
      id: span.spanContext().spanId,
      trace: span.spanContext().traceId,
      parent: span.parentSpanContext?.spanId,
    }))
  return { tenure, spans }
}

it("a trace goes from a request through its stores to the receiver", async () => {
  const trace = "0af7651916cd43dd8448eb211c80319c"
  const client = "b7ad6b7169203331"
  const [{ spans, tenure }, dispatcher] = await Promise.all([start(false), start(true)])
  const { apiKeys, memberships, webhooks } = tenure
  await memberships.createProject("p1")
  await memberships.grant({ projectId: "p1", userId: "1001", endDate: "2098-01-01T00:00:00.000Z" })
  await webhooks.create({ projectId: "p1", url: receiver.url })
  const { token } = await apiKeys.issue({ projects: ["p1"] })
  const server = await serve(tenure)
  const { status } = await fetch(`${server.url}/v2/projects/p1/memberships/1001/extend`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      traceparent: `00-${trace}-${client}-01`,
    },
    body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
  })
  expect(status).toBe(200)
  await server.close()

  const request = spans().at(-1)
  const inRequest = { kind: SpanKind.INTERNAL, trace, parent: request?.id }
  expect(spans()).toMatchObject([
    { ...inRequest, name: "apiKeys.find" },
    { ...inRequest, name: "rateLimits.take" },
    { ...inRequest, name: "memberships.extend" },
    {
      name: "PATCH /v2/projects/:project_id/memberships/:user_id/extend",
      kind: SpanKind.SERVER,
      trace,
      parent: client,
    },
  ])

  const attempt = { name: "POST", kind: SpanKind.CLIENT, trace, parent: request?.id }
  await expect.poll(dispatcher.spans).toMatchObject([attempt])
  const [received] = receiver.received
  expect(JSON.parse(received?.body ?? "")).toMatchObject({
    traceparent: `00-${trace}-${request?.id}-01`,
  })
  expect(received?.headers["traceparent"]).toBe(`00-${trace}-${dispatcher.spans()[0]?.id}-01`)
})

it("there are no traces of the start, and none of what goes on in the background", async () => {
  const { spans, tenure } = await start(true)
  const projectId = "p2"
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: receiver.url })
  await tenure.memberships.grant({ projectId, userId: "1001", endDate: Date.now() + 100 })
  // By the time that its end is announced, deliveries and ends were looked for several times. A reminder may come
  // before.
  const isAnnounced = () =>
    receiver.received.some(({ body }) => body.includes(knownEventTypes.expired))
  await expect.poll(isAnnounced).toBe(true)
  await tenure.metrics()
  await tenure.isReady()
  await tenure.close()
  expect(spans()).toMatchObject(
    receiver.received.map(() => ({ name: "POST", kind: SpanKind.CLIENT, parent: undefined })),
  )
})
