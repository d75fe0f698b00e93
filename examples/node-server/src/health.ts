/** Health checks: whether the process is alive, and whether it wants requests. */

import type { RequestListener, ServerResponse } from "node:http"
import { pathOf } from "@tenure/core/adapter"
import * as Effect from "effect/Effect"

/** Health checks before the API. */
interface Health {
  readonly listener: RequestListener
  /** From now on, `/readyz` is answered 503. */
  readonly drain: Effect.Effect<void>
}

/** Answers health checks, and passes all other requests on. */
export const make = Effect.fnUntraced(function* (
  isReady: Effect.Effect<boolean>,
  api: RequestListener,
) {
  // Anyone may ask, so that all requests of a second share one answer of the database.
  const isReadyNow = yield* Effect.cachedWithTTL(isReady, "1 second")
  let isDraining = false

  const answerReadiness = async (response: ServerResponse) => {
    const isWilling = !isDraining && (await Effect.runPromise(isReadyNow))
    response.statusCode = isWilling ? 200 : 503
    response.end()
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
