/** The server as a process, as Prometheus and OpenTelemetry's collectors see it. */

import { once } from "node:events"
import { type Server, type ServerResponse, createServer } from "node:http"
import { buffer } from "node:stream/consumers"
import { instruments, prometheusName } from "@tenure/core/internal"
import { freePort, send } from "@tenure/testing/conformance"
import { afterEach, describe, expect, it } from "vitest"
import { endAll, start, startServer } from "./programs.ts"

afterEach(endAll)

/** Starts a server that serves its metrics, and returns their URL as well. */
const startMonitored = async (environment: Readonly<Record<string, string>> = {}) => {
  const server = await startServer({ METRICS_PORT: "0", ...environment })
  const [, metricsUrl = ""] = await server.line(/"Metrics are at (\S+)\/metrics"/)
  return { ...server, metricsUrl }
}

const listing = { method: "GET", path: "/v2/projects/demo/memberships" }

describe("metrics", () => {
  it("are served on a port of their own, and nowhere else", async () => {
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
    expect(await send(url, { method: "GET", path: "/metrics" })).toMatchObject({ status: 404 })
    const head = await send(metricsUrl, { method: "HEAD", path: "/metrics" })
    expect(head).toMatchObject({ status: 200, text: "" })
    expect(await send(metricsUrl, listing)).toMatchObject({ status: 404 })
    expect(await send(metricsUrl, { method: "POST", path: "/metrics" })).toMatchObject({
      status: 404,
    })
  })

  it("are not served by default", async () => {
    const { lines } = await startServer()
    expect(lines.join("\n")).not.toContain("Metrics")
  })

  it("have a port of their own", async () => {
    const { code, stderr } = await start("node-server", { PORT: "4001", METRICS_PORT: "4001" })
      .ended
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "METRICS_PORT must be another one than PORT, 4001\n",
    })
  })

  it("have a port that must be free", async () => {
    const port = String(await freePort())
    await startMonitored({ METRICS_PORT: port })
    const { code, stderr } = await start("node-server", { PORT: "0", METRICS_PORT: port }).ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^METRICS_PORT: .*EADDRINUSE/)
  })
})

interface Export {
  readonly path: string | undefined
  readonly type: string | undefined
  readonly body: Buffer
}

/** Starts a collector of OpenTelemetry that keeps what it gets, and answers as it is told. */
const startCollector = async (
  answer: (response: ServerResponse) => void = (response) => response.writeHead(200).end(),
) => {
  const got: Array<Export> = []
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      got.push({ path: request.url, type: request.headers["content-type"], body })
      for (const check of waiting) check()
      answer(response)
    })
  })
  const port = await freePort()
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  collectors.push(server)
  /** Waits for an export that passes a test. */
  const exported = (test: (one: Export) => boolean): Promise<Export> =>
    new Promise((resolve) => {
      const check = (): void => {
        const found = got.find(test)
        if (found === undefined) return
        waiting.delete(check)
        resolve(found)
      }
      waiting.add(check)
      check()
    })
  return { url: `http://127.0.0.1:${port}`, got, exported }
}

const collectors: Array<Server> = []

afterEach(() => {
  for (const collector of collectors.splice(0)) {
    collector.closeAllConnections()
    collector.close()
  }
})

const quickly = { OTEL_METRIC_EXPORT_INTERVAL: "50" }

describe("a collector of OpenTelemetry", () => {
  it("gets the metrics", async () => {
    const collector = await startCollector()
    const server = await startServer({
      ...quickly,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    })
    await send(server.url, listing)
    const { body, path } = await collector.exported((one) =>
      one.body.includes("http.server.request.duration"),
    )
    expect(path).toBe("/v1/metrics")
    const [resource] = JSON.parse(body.toString()).resourceMetrics
    expect(resource.resource.attributes).toEqual(
      expect.arrayContaining([
        { key: "service.name", value: { stringValue: "tenure" } },
        {
          key: "service.instance.id",
          value: { stringValue: expect.stringMatching(/^[0-9a-f-]{36}$/) },
        },
      ]),
    )
    const [{ metrics }] = resource.scopeMetrics
    const requests = metrics.find(
      ({ name }: { readonly name: string }) => name === "http.server.request.duration",
    )
    expect(requests).toMatchObject({ unit: "s", histogram: { dataPoints: [{ count: 1 }] } })
  })

  it("gets them in the binary format by default, and those of the last moment", async () => {
    const collector = await startCollector()
    const server = await startServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      DRAIN_DELAY: "0",
    })
    await send(server.url, listing)
    server.kill("SIGTERM")
    expect((await server.ended).code).toBe(0)
    const { type } = await collector.exported(({ body }) =>
      body.includes("http.server.request.duration"),
    )
    expect(type).toBe("application/x-protobuf")
  })

  it("need not be there", async () => {
    const server = await startServer({
      ...quickly,
      OTEL_EXPORTER_OTLP_TIMEOUT: "100",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
      DRAIN_DELAY: "0",
    })
    expect(await send(server.url, listing)).toMatchObject({ status: 401 })
    server.kill("SIGTERM")
    expect((await server.ended).code).toBe(0)
  })

  it("gets the traces of requests, and those of callers that are recorded", async () => {
    const collector = await startCollector()
    const server = await startServer({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/traces`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_RESOURCE_ATTRIBUTES: "service.instance.id=a1",
      OTEL_TRACES_SAMPLER: "parentbased_always_off",
    })
    const sendIn = (traceparent: string) =>
      send(server.url, { ...listing, headers: { traceparent } })
    await send(server.url, listing)
    await sendIn("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
    await sendIn("00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    const { body, path } = await collector.exported((one) => one.body.includes("GET /v2"))
    expect(path).toBe("/traces")
    const [{ resource, scopeSpans }] = JSON.parse(body.toString()).resourceSpans
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
    const collector = await startCollector()
    await startServer({
      ...quickly,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/metrics`,
    })
    expect((await collector.exported(() => true)).path).toBe("/metrics")
  })

  it("gets no traces if these are off", async () => {
    const collector = await startCollector()
    const server = await startServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_EXPORTER: "none",
      DRAIN_DELAY: "0",
    })
    await send(server.url, listing)
    server.kill("SIGTERM")
    expect((await server.ended).code).toBe(0)
    expect(new Set(collector.got.map(({ path }) => path))).toEqual(new Set(["/v1/metrics"]))
  })

  it("is in the log when it fails, once", async () => {
    const collector = await startCollector((response) => response.writeHead(400).end())
    const server = await startServer({
      ...quickly,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      DRAIN_DELAY: "0",
    })
    await server.line(/The collector does not take metrics.*status 400/)
    await send(server.url, listing)
    server.kill("SIGTERM")
    const { stdout } = await server.ended
    expect(stdout.match(/does not take metrics/g)).toHaveLength(1)
  })

  it("may hang: requests are answered, and the server stops", async () => {
    const collector = await startCollector(() => {})
    const server = await startServer({
      ...quickly,
      OTEL_BSP_SCHEDULE_DELAY: "50",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: "100",
      DRAIN_DELAY: "0",
    })
    for (let n = 0; n < 20; n++) {
      expect(await send(server.url, listing)).toMatchObject({ status: 401 })
    }
    const logged = ["metrics", "traces"].map((what) => `The collector does not take ${what}`)
    for (const line of logged) await server.line(RegExp(`${line}.*timeout`))
    await send(server.url, listing)
    server.kill("SIGTERM")
    const { code, stdout } = await server.ended
    expect(code).toBe(0)
    for (const line of logged) expect(stdout.split(line)).toHaveLength(2)
  })

  it("has a valid interval", async () => {
    const { code, stderr } = await start("node-server", {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
      OTEL_METRIC_EXPORT_INTERVAL: "abc",
    }).ended
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^OTEL_METRIC_EXPORT_INTERVAL: Expected [^\n]*\n$/),
    })
  })

  it("has a valid URL", async () => {
    const { code, stderr } = await start("node-server", {
      OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318",
    }).ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^OTEL_EXPORTER_OTLP_ENDPOINT must be the URL of a collector/)
  })
})
