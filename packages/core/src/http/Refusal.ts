/** The errors of requests that the limits do not admit. */

import type { ApiKeyId } from "../base/ApiKeyId.ts"
import type { Decision } from "../limits/RateLimiter.ts"
import type { Observer } from "../telemetry/Observer.ts"
import type { ApiError } from "./ApiError.ts"

/** Returns the error of a request that the limiter does not admit. */
export type RefusalOf = (decision: Decision, keyId: ApiKeyId | undefined) => ApiError | undefined

/** Has an observer told of the refusals. */
export const make =
  (observer: Observer): RefusalOf =>
  (decision, keyId) => {
    switch (decision._tag) {
      case "Admitted":
        return undefined
      case "Refused":
        observer.refused?.({ by: decision.by, keyId })
        return { _tag: "RateLimited", retryAfter: decision.retryAfter }
      case "Unavailable":
        return { _tag: "StoreUnavailable", cause: undefined }
    }
  }
