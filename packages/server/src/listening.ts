/** Health checks: whether the process is alive, and whether it wants requests. */

import type { RequestListener, ServerResponse } from "node:http"
import { pathOf } from "@tenure/core/adapter"
import type { LimitMode } from "@tenure/core/effect"
import * as Effect from "effect/Effect"

/** Health checks before the API. */
interface Health {
  readonly listener: RequestListener
  /** From now on, `/readyz` is answered 503. */
  readonly drain: Effect.Effect<void>
}

/** What a server is ready for. */
interface Readiness {
  readonly isReady: boolean
  /** How requests are limited. A server is ready without the store of rate limits, but says so. */
  readonly limits: LimitMode
}

/** Answers health checks, and passes all other requests on. */
export const make = Effect.fnUntraced(function* (
  readiness: Effect.Effect<Readiness>,
  api: RequestListener,
) {
  // Anyone may ask, so that all requests of a second share one answer of the database.
  const readinessNow = yield* Effect.cachedWithTTL(readiness, "1 second")
  let isDraining = false

  const answerReadiness = async (response: ServerResponse) => {
    const ready = isDraining ? undefined : await Effect.runPromise(readinessNow)
    response.statusCode = ready?.isReady === true ? 200 : 503
    const isLimitedAsEver = ready === undefined || ready.limits === "store"
    response.end(isLimitedAsEver ? undefined : `rate limits: ${ready.limits}\n`)
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
  } satisfies Health
})
