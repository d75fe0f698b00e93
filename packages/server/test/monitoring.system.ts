/** Metrics for Prometheus, and metrics and traces for an OpenTelemetry collector. */

import { once } from "node:events"
import { type ServerResponse, createServer } from "node:http"
import { buffer } from "node:stream/consumers"
import { instruments, prometheusName } from "@tenure/core/internal"
import { freePort, send } from "@tenure/testing/conformance"
import { afterEach, describe, expect, it, onTestFinished } from "vitest"
import { type Server, endAll, start, startServer } from "./programs.ts"
import type { Environment } from "./world.ts"

afterEach(endAll)

/** Starts a server with metrics, and returns their URL as well. */
const startMonitored = async (environment: Environment = {}) => {
  const server = await startServer({ METRICS_PORT: "0", ...environment })
  const [, metricsUrl = ""] = await server.line(/"Metrics are at (\S+)\/metrics"/)
  return { ...server, metricsUrl }
}

const listing = { method: "GET", path: "/v2/projects/demo/memberships" }

describe("metrics", () => {
  it("are served on a port of their own, which must be free, and nowhere else", async () => {
    const { metricsUrl, url } = await startMonitored()
    await send(url, listing)
    const { headers, status, text } = await send(metricsUrl, { method: "GET", path: "/metrics" })
    expect({ status, type: headers["content-type"] }).toEqual({
      status: 200,
      type: "text/plain; version=0.0.4; charset=utf-8",
    })
    expect(text).toContain(
      '_count{http_request_method="GET",url_scheme="http",http_route="/v2/projects/:project_id/memberships",http_response_status_code="401"} 1\n',
    )
    const seen = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
    expect(Object.keys(instruments).map(prometheusName)).toEqual(expect.arrayContaining(seen))
    for (const name of ["nodejs_eventloop_delay_p99_seconds", "process_memory_usage_bytes"]) {
      expect(seen).toContain(name)
    }
    const head = await send(metricsUrl, { method: "HEAD", path: "/metrics" })
    expect(head).toMatchObject({ status: 200, text: "" })
    for (const [at, request] of [
      [url, { method: "GET", path: "/metrics" }],
      [metricsUrl, listing],
      [metricsUrl, { method: "POST", path: "/metrics" }],
    ] as const) {
      expect(await send(at, request)).toMatchObject({ status: 404 })
    }
    const METRICS_PORT = new URL(metricsUrl).port
    expect(await start("node-server", { PORT: "0", METRICS_PORT }).ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^METRICS_PORT: .*EADDRINUSE/),
    })
  })

  it("are not served by default", async () => {
    const { lines } = await startServer()
    expect(lines.join("\n")).not.toContain("Metrics")
  })
})

interface Export {
  readonly path: string | undefined
  readonly type: string | undefined
  readonly body: Buffer
}

/** Starts a collector that keeps all exports, and answers with a given status. */
const startCollector = async (
  answer: (response: ServerResponse) => void = (response) => response.writeHead(200).end(),
) => {
  const got: Array<Export> = []
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      got.push({ path: request.url, type: request.headers["content-type"], body })
      answer(response)
    })
  })
  const port = await freePort()
  await once(server.listen(port, "127.0.0.1"), "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  /** Waits for an export with a text. */
  const exported = async (text: string): Promise<Export | undefined> => {
    const find = () => got.find(({ body }) => body.includes(text))
    await expect.poll(find).toBeDefined()
    return find()
  }
  return { url: `http://127.0.0.1:${port}`, got, exported }
}

/** Starts a server that exports quickly, and stops at once. */
const startExporting = (environment: Environment) =>
  startServer({
    OTEL_METRIC_EXPORT_INTERVAL: "50",
    OTEL_BSP_SCHEDULE_DELAY: "50",
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
    DRAIN_DELAY: "0",
    ...environment,
  })

/** Stops a server, and returns its output. */
const stop = async (server: Server): Promise<string> => {
  server.kill("SIGTERM")
  const { code, stdout } = await server.ended
  expect(code).toBe(0)
  return stdout
}

const duration = "http.server.request.duration"

describe("a collector of OpenTelemetry", () => {
  it("gets the metrics", async () => {
    const collector = await startCollector()
    const server = await startExporting({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_TIMEOUT: "10000",
    })
    await send(server.url, listing)
    const { body, path } = (await collector.exported(duration)) ?? {}
    expect(path).toBe("/v1/metrics")
    const [{ resource, scopeMetrics }] = JSON.parse(String(body)).resourceMetrics
    const stringValue = expect.stringMatching(/^[0-9a-f-]{36}$/)
    expect(resource.attributes).toEqual(
      expect.arrayContaining([
        { key: "service.name", value: { stringValue: "tenure" } },
        { key: "service.instance.id", value: { stringValue } },
      ]),
    )
    expect(scopeMetrics[0].metrics).toContainEqual(
      expect.objectContaining({
        name: duration,
        unit: "s",
        histogram: expect.objectContaining({
          dataPoints: [expect.objectContaining({ count: 1 })],
        }),
      }),
    )
  })

  it("gets them in the binary format by default, and those of the last moment", async () => {
    const collector = await startCollector()
    const server = await startServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      DRAIN_DELAY: "0",
    })
    await send(server.url, listing)
    await stop(server)
    expect((await collector.exported(duration))?.type).toBe("application/x-protobuf")
  })

  it("need not be there", async () => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${await freePort()}`
    const server = await startExporting({ OTEL_EXPORTER_OTLP_ENDPOINT })
    expect(await send(server.url, listing)).toMatchObject({ status: 401 })
    await stop(server)
  })

  it("gets the traces of requests, and those of callers that are recorded", async () => {
    const collector = await startCollector()
    const server = await startExporting({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/traces`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_TIMEOUT: "10000",
      OTEL_RESOURCE_ATTRIBUTES: "service.instance.id=a1",
      OTEL_TRACES_SAMPLER: "parentbased_always_off",
    })
    const sendIn = (traceparent: string) =>
      send(server.url, { ...listing, headers: { traceparent } })
    await send(server.url, listing)
    await sendIn("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
    await sendIn("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    const { body, path } = (await collector.exported("GET /v2")) ?? {}
    expect(path).toBe("/traces")
    const [{ resource, scopeSpans }] = JSON.parse(String(body)).resourceSpans
    expect(resource.attributes).toContainEqual({
      key: "service.instance.id",
      value: { stringValue: "a1" },
    })
    const requests = scopeSpans[0].spans.filter(({ kind }: { readonly kind: number }) => kind === 2)
    expect(requests).toMatchObject([
      {
        name: "GET /v2/projects/:project_id/memberships",
        traceId: "1af7651916cd43dd8448eb211c80319c",
        parentSpanId: "b7ad6b7169203331",
      },
    ])
  })

  it("gets metrics alone, at a URL of their own", async () => {
    const { exported, url } = await startCollector()
    await startExporting({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${url}/metrics` })
    expect((await exported(""))?.path).toBe("/metrics")
  })

  it("gets no traces if these are off", async () => {
    const { got, url } = await startCollector()
    const server = await startServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_TRACES_EXPORTER: "none",
      DRAIN_DELAY: "0",
    })
    await send(server.url, listing)
    await stop(server)
    expect(new Set(got.map(({ path }) => path))).toEqual(new Set(["/v1/metrics"]))
  })

  it("is in the log when it fails, once", async () => {
    const { url } = await startCollector((response) => response.writeHead(400).end())
    const server = await startExporting({
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_TIMEOUT: "10000",
    })
    await server.line(/The collector does not take metrics.*status 400/)
    await send(server.url, listing)
    expect((await stop(server)).match(/does not take metrics/g)).toHaveLength(1)
  })

  it("may hang: requests are answered, and the server stops", async () => {
    const { url } = await startCollector(() => {})
    const server = await startExporting({ OTEL_EXPORTER_OTLP_ENDPOINT: url })
    for (let n = 0; n < 20; n++) {
      expect(await send(server.url, listing)).toMatchObject({ status: 401 })
    }
    const logged = ["metrics", "traces"].map((what) => `The collector does not take ${what}`)
    for (const line of logged) await server.line(RegExp(`${line}.*timeout`))
    await send(server.url, listing)
    const printed = await stop(server)
    for (const line of logged) expect(printed.split(line)).toHaveLength(2)
  })

  it.each([
    [
      "interval",
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_METRIC_EXPORT_INTERVAL: "abc" },
      /^OTEL_METRIC_EXPORT_INTERVAL: Expected [^\n]*\n$/,
    ],
    [
      "URL",
      { OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" },
      /^OTEL_EXPORTER_OTLP_ENDPOINT must be the URL of a collector/,
    ],
  ])("has a valid %s", async (_, environment, message) => {
    const { code, stderr } = await start("node-server", environment).ended
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(message) })
  })
})
