/** What a request is answered, before it becomes a response. */

import type * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Decision } from "../limits/RateLimiter.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Reply } from "./Envelope.ts"
import type { AccessRecord } from "./Handler.ts"
import type { Outcome } from "./Outcome.ts"
import type { Match } from "./Route.ts"

/** What a request is answered. */
export interface Answer extends Pick<AccessRecord, "address" | "keyId"> {
  readonly report: Decision["report"]
  readonly outcome: Outcome<Reply>
  /** What is at the path of the request, if that was looked for. */
  readonly found?: Match | undefined
}

/**
 * Decides on the answer to a request.
 *
 * @param start - when the request came, in milliseconds of the monotonic clock
 */
export type Decide = (
  request: ApiRequest,
  requestId: string,
  start: number,
  clock: Clock.Clock,
) => Effect.Effect<Answer>

/** What is reported of the limits of a client when nothing is known of them. */
export const unknownLimits: Decision["report"] = {
  bucket: "address",
  limit: 0,
  remaining: 0,
  reset: 0,
  refill: 0,
}

/** The answer to a client once Tenure is closing. */
export const closed = (address: string): Answer => ({
  address,
  keyId: undefined,
  report: unknownLimits,
  outcome: Result.fail({ _tag: "StoreUnavailable", cause: undefined }),
})
