/** Listens for requests to the API, the console and health checks, and on a port of their own, for metrics. */

import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { tenureConsole } from "@tenure/console"
import type { Promises } from "@tenure/core"
import { pathOf } from "@tenure/core/adapter"
import { type LimitMode, RateLimiter, promisesFromEffect } from "@tenure/core/effect"
import { type ServerOptions, serve, toNodeHandler } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import { logInfo } from "./log.ts"
import { metricsListener } from "./monitoring.ts"
import { type Settings, variables } from "./settings.ts"
import { type StartError, startErrorFromListening } from "./start-error.ts"

/** A listener that answers health checks. */
interface HealthListener {
  readonly listener: RequestListener
  /** Answers `/readyz` with 503 from now on. */
  readonly drain: Effect.Effect<void>
}

/** The state that `/readyz` shows. */
interface Readiness {
  readonly isReady: boolean
  /** Where rate limits are kept. Without their store, the server is still ready, but says so. */
  readonly limits: LimitMode
}

/** Answers health checks, and passes all other requests on. */
const makeHealthListener = Effect.fnUntraced(function* (
  readiness: Effect.Effect<Readiness>,
  api: RequestListener,
) {
  // Anyone may ask, so the database is asked once a second at most.
  const readinessNow = yield* Effect.cachedWithTTL(readiness, "1 second")
  let isDraining = false

  const answerReadiness = async (response: ServerResponse) => {
    const ready = isDraining ? undefined : await Effect.runPromise(readinessNow)
    response.statusCode = ready?.isReady === true ? 200 : 503
    const limits = ready?.limits ?? "store"
    response.end(limits === "store" ? undefined : `rate limits: ${limits}\n`)
  }

  const listener: RequestListener = (request, response) => {
    const isProbe = request.method === "GET" || request.method === "HEAD"
    const path = isProbe ? pathOf(request.url ?? "") : undefined
    if (path === "/healthz") response.end()
    else if (path === "/readyz") void answerReadiness(response)
    else api(request, response)
  }

  return {
    listener,
    drain: Effect.sync(() => {
      isDraining = true
    }),
  } satisfies HealthListener
})

/** Tells whether a person opens the server's address in a browser. */
const isVisit = ({ headers, method, url }: IncomingMessage): boolean =>
  method === "GET" && url === "/" && headers.accept?.includes("text/html") === true

/** Answers requests for the console and the API, and redirects browsers to the console. */
const makeListener = (tenure: Promises): RequestListener => {
  const console = toNodeHandler(tenureConsole(tenure, { authorize: "api-key" }))
  const api = toNodeHandler(tenure)
  // Relative, so that it is also right behind a proxy that removes a prefix.
  const location = `${tenure.basePath}/console/`.slice(1)
  return (request, response) => {
    if (isVisit(request)) response.writeHead(302, { location }).end()
    else console(request, response, () => api(request, response))
  }
}

/** Serves until the scope closes, and then waits for requests in flight. */
const serving = (
  tenure: Promises,
  options: ServerOptions,
  onFault: (fault: unknown) => StartError,
) =>
  Effect.acquireRelease(
    Effect.tryPromise({ try: () => serve(tenure, options), catch: onFault }),
    ({ close }) => Effect.promise(close),
  )

/** Serves the metrics, if they have a port. */
export const serveMetrics = Effect.fnUntraced(function* (settings: Settings) {
  const { metricsHost: host, metricsPort: port } = settings
  if (port === undefined) return
  const tenure = yield* promisesFromEffect
  const { url } = yield* serving(
    tenure,
    { host, port, listener: metricsListener(tenure), shutdownTimeout: 0 },
    startErrorFromListening(variables.metricsPort, port, variables.metricsHost, host),
  )
  logInfo(`Metrics are at ${url}/metrics`)
})

/** Serves the API, the console and health checks until the scope closes. */
export const serveApi = Effect.fnUntraced(function* ({
  host,
  keepAliveTimeout,
  port,
  shutdownTimeout,
}: Settings) {
  const tenure = yield* promisesFromEffect
  const limiter = yield* RateLimiter
  const health = yield* makeHealthListener(
    Effect.all({ isReady: Effect.promise(() => tenure.isReady()), limits: limiter.mode(true) }),
    makeListener(tenure),
  )
  const { drain, url } = yield* serving(
    tenure,
    {
      host,
      port,
      listener: health.listener,
      keepAliveTimeout,
      // The rest is for closing Tenure and its stores.
      shutdownTimeout: shutdownTimeout / 2,
    },
    startErrorFromListening(variables.port, port, variables.host, host),
  )
  return {
    url: `${url}${tenure.basePath}`,
    drain: Effect.andThen(health.drain, Effect.sync(drain)),
  }
})
