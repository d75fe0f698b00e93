/** What monitoring reads: metrics on a port of their own, and OTLP that is sent to a collector. */

import type { RequestListener } from "node:http"
import { pathOf } from "@tenure/core/ApiRequest"
import { contentType } from "@tenure/core/Prometheus"
import type { Promises } from "@tenure/core/Tenure"
import * as ConfigProvider from "effect/ConfigProvider"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import type { Settings } from "./settings.ts"

/** Answers `GET /metrics`. */
export const listener =
  ({ metrics }: Pick<Promises, "metrics">): RequestListener =>
  (request, response) => {
    const isKnown = request.method === "GET" && pathOf(request.url ?? "") === "/metrics"
    if (!isKnown) return void response.writeHead(404).end()
    metrics().then(
      (text) => response.writeHead(200, { "content-type": contentType }).end(text),
      () => response.writeHead(503).end(),
    )
  }

// As the exporters of OpenTelemetry have it. What cannot be sent in time is dropped.
const exportTimeoutMillis = 10_000

const inTime: typeof fetch = (input, init) => {
  const timeout = AbortSignal.timeout(exportTimeoutMillis)
  const { signal } = init ?? {}
  return fetch(input, { ...init, signal: signal ? AbortSignal.any([signal, timeout]) : timeout })
}

/** What the variables of OpenTelemetry say if they are not set. */
const defaults = {
  OTEL_SERVICE_NAME: "tenure",
  OTEL_METRICS_EXPORTER: "otlp",
}

/** Sends metrics to the collector of the settings, if they name one. */
export const layer = ({ otlpEndpoint, otlpProtocol }: Settings): Layer.Layer<never> =>
  otlpEndpoint === undefined
    ? Layer.empty
    : OtlpMetrics.layerFromConfig().pipe(
        Layer.provide(
          otlpProtocol === "http/json"
            ? OtlpSerialization.layerJson
            : OtlpSerialization.layerProtobuf,
        ),
        Layer.provide(FetchHttpClient.layer),
        Layer.provide(Layer.succeed(FetchHttpClient.Fetch, inTime)),
        Layer.provide(
          ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...defaults, ...process.env } })),
        ),
      )
