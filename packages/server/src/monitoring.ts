/** Metrics on a port of their own, metrics and traces for a collector, and the metrics of the process. */

import { randomUUID } from "node:crypto"
import type { RequestListener } from "node:http"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { type Promises, prometheusContentType } from "@tenure/core"
import { pathOf } from "@tenure/core/adapter"
import { observeCounter, observeGauge } from "@tenure/core/internal"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Schedule from "effect/Schedule"
import { makeCollectorFetch } from "./collector.ts"
import { logWarning } from "./log.ts"
import { samplingLayer } from "./sampling.ts"
import type { Settings } from "./settings.ts"

/** Answers `GET /metrics`. */
export const metricsListener =
  ({ metrics }: Pick<Promises, "metrics">): RequestListener =>
  (request, response) => {
    const { method = "", url = "" } = request
    const isKnown = ["GET", "HEAD"].includes(method) && pathOf(url) === "/metrics"
    if (!isKnown) return void response.writeHead(404).end()
    metrics().then(
      // For HEAD, Node omits the text.
      (text) => response.writeHead(200, { "content-type": prometheusContentType }).end(text),
      () => response.writeHead(503).end(),
    )
  }

/** The defaults for OpenTelemetry's variables. */
const defaults = {
  OTEL_SERVICE_NAME: "tenure",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_TRACES_EXPORTER: "otlp",
}

// How long the last export may delay the server's end.
const maxFlushMillis = 3000

/** The environment for the exporters. They apply their timeouts to the last export only. */
const environmentOf = ({ otlpTimeout, shutdownTimeout }: Settings) => {
  const flush = String(Math.floor(Math.min(otlpTimeout, maxFlushMillis, shutdownTimeout / 4)))
  return ConfigProvider.layer(
    ConfigProvider.fromEnv({
      env: {
        ...defaults,
        ...process.env,
        OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: flush,
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: flush,
      },
    }),
  )
}

const hasInstance = /(^|,)\s*service\.instance\.id=/.test(
  process.env["OTEL_RESOURCE_ATTRIBUTES"] ?? "",
)

/** Distinguishes this process from others. */
const resource = {
  attributes: hasInstance ? {} : { "service.instance.id": randomUUID() },
}

const clientOf = (what: string, { otlpTimeout }: Settings) =>
  // Fresh, because metrics and traces would otherwise share the client of the first one.
  Layer.fresh(FetchHttpClient.layer).pipe(
    Layer.provide(
      Layer.succeed(FetchHttpClient.Fetch, makeCollectorFetch(what, otlpTimeout, logWarning)),
    ),
  )

/** Whether metrics are sent to a collector. */
export const sendsMetrics = ({ otlpEndpoint, otlpMetricsEndpoint }: Settings): boolean =>
  (otlpMetricsEndpoint ?? otlpEndpoint) !== undefined

/** Sends metrics and traces to the collectors in the settings, if there are any. */
export const monitoringLayer = (settings: Settings): Layer.Layer<never> => {
  const { otlpEndpoint, otlpProtocol, otlpTracesEndpoint, sampler, samplerRatio } = settings
  const metrics = sendsMetrics(settings)
    ? OtlpMetrics.layerFromConfig({ resource }).pipe(Layer.provide(clientOf("metrics", settings)))
    : Layer.empty
  const traces =
    (otlpTracesEndpoint ?? otlpEndpoint) === undefined
      ? Layer.empty
      : samplingLayer(sampler, samplerRatio).pipe(
          Layer.provide(
            OtlpTracer.layerFromConfig({ resource }).pipe(
              Layer.provide(clientOf("traces", settings)),
            ),
          ),
        )
  return Layer.merge(metrics, traces).pipe(
    Layer.provide(
      otlpProtocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf,
    ),
    Layer.provide(environmentOf(settings)),
  )
}

// The metrics show the event loop's delay in the last whole period.
const period = "10 seconds"

// Milliseconds between two measurements.
const resolution = 10

const seconds = (nanos: number): number => Math.max(0, nanos / 1e9)

const eventLoop = Effect.gen(function* () {
  const delays = monitorEventLoopDelay({ resolution })
  yield* Effect.acquireRelease(
    Effect.sync(() => delays.enable()),
    () => Effect.sync(() => delays.disable()),
  )
  let latest = { mean: 0, p99: 0, max: 0 }
  yield* Effect.sync(() => {
    if (delays.count > 0) {
      const { max, mean } = delays
      // Node includes the time between two measurements.
      const late = (nanos: number): number => seconds(nanos - resolution * 1e6)
      latest = { mean: late(mean), p99: late(delays.percentile(99)), max: late(max) }
    }
    delays.reset()
  }).pipe(Effect.repeat(Schedule.spaced(period)), Effect.forkScoped)
  yield* observeGauge("nodejs.eventloop.delay.mean", () => latest.mean)
  yield* observeGauge("nodejs.eventloop.delay.p99", () => latest.p99)
  yield* observeGauge("nodejs.eventloop.delay.max", () => latest.max)
})

const micros = 1e6

const resources = Effect.gen(function* () {
  yield* observeGauge("process.memory.usage", () => process.memoryUsage.rss())
  for (const mode of ["user", "system"] as const) {
    const read = () => process.cpuUsage()[mode] / micros
    yield* observeCounter("process.cpu.time", read, mode)
  }
})

/** Observes the event loop, the processor and memory. */
export const runtimeMetricsLayer: Layer.Layer<never> = Layer.effectDiscard(
  Effect.andThen(eventLoop, resources),
)
