/** What monitoring reads: metrics on a port of their own, and OTLP that is sent to a collector. */

import { randomUUID } from "node:crypto"
import type { RequestListener } from "node:http"
import { type Promises, prometheusContentType } from "@tenure/core"
import { pathOf } from "@tenure/core/adapter"
import * as ConfigProvider from "effect/ConfigProvider"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Collector from "./collector.ts"
import * as Log from "./log.ts"
import * as Sampling from "./sampling.ts"
import type { Settings } from "./settings.ts"

/** Answers `GET /metrics`. */
export const listener =
  ({ metrics }: Pick<Promises, "metrics">): RequestListener =>
  (request, response) => {
    const { method = "", url = "" } = request
    const isKnown = ["GET", "HEAD"].includes(method) && pathOf(url) === "/metrics"
    if (!isKnown) return void response.writeHead(404).end()
    metrics().then(
      // Node leaves out the text of a response to HEAD.
      (text) => response.writeHead(200, { "content-type": prometheusContentType }).end(text),
      () => response.writeHead(503).end(),
    )
  }

/** What the variables of OpenTelemetry say if they are not set. */
const defaults = {
  OTEL_SERVICE_NAME: "tenure",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_TRACES_EXPORTER: "otlp",
}

// How long the last export may hold up the end of the server, whatever the collector does.
const mostFlushMillis = 3000

/** The variables as the exporters see them, whose timeouts are those of the last export. */
const environmentOf = ({ otlpTimeout, shutdownTimeout }: Settings) => {
  const flush = String(Math.floor(Math.min(otlpTimeout, mostFlushMillis, shutdownTimeout / 4)))
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

/** Tells this process from others. */
const resource = {
  attributes: hasInstance ? {} : { "service.instance.id": randomUUID() },
}

const clientOf = (what: string, { otlpTimeout }: Settings) =>
  // Otherwise metrics and traces would have one client, that of whichever is first.
  Layer.fresh(FetchHttpClient.layer).pipe(
    Layer.provide(
      Layer.succeed(FetchHttpClient.Fetch, Collector.make(what, otlpTimeout, Log.warn)),
    ),
  )

/** Whether metrics are sent to a collector. */
export const sendsMetrics = ({ otlpEndpoint, otlpMetricsEndpoint }: Settings): boolean =>
  (otlpMetricsEndpoint ?? otlpEndpoint) !== undefined

/** Sends metrics and traces to the collectors of the settings, if they name one. */
export const layer = (settings: Settings): Layer.Layer<never> => {
  const { otlpEndpoint, otlpProtocol, otlpTracesEndpoint, sampler, samplerRatio } = settings
  const metrics = sendsMetrics(settings)
    ? OtlpMetrics.layerFromConfig({ resource }).pipe(Layer.provide(clientOf("metrics", settings)))
    : Layer.empty
  const traces =
    (otlpTracesEndpoint ?? otlpEndpoint) === undefined
      ? Layer.empty
      : Sampling.layer(sampler, samplerRatio).pipe(
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
