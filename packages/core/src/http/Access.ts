/** Whether a client that follows a project, or waits for its events, may still do so. */

import * as Effect from "effect/Effect"
import type { Faults } from "../base/Faults.ts"
import * as Step from "../base/Step.ts"
import { mostAge } from "../events/Listeners.ts"
import type { ApiError } from "./ApiError.ts"
import type { Renewal } from "./Authentication.ts"
import { opens } from "./Operation.ts"
import { errorIn } from "./Outcome.ts"

/** The access of a client to a project. It is kept for as long as the client follows the project. */
export interface Access {
  readonly projectId: string
  readonly renew: Renewal
  /** The request by which it was given. */
  readonly requestId: string
}

/** No slot is free. One will be at the latest when the longest poll has ended. */
export const noSlot: ApiError = { _tag: "RateLimited", retryAfter: 20 }

/**
 * Fails if the client may not use the project any more, or if it is another one with the same id.
 *
 * @param age - how old the store's answer may be, in milliseconds, if that is less than `keyCacheLife`
 */
export const check = ({ projectId, renew }: Access, age?: number): Effect.Effect<void, ApiError> =>
  Step.make((clock) =>
    Effect.flatMapEager(Step.begin(renew(age), clock), (principal) =>
      opens(principal, projectId) ? Effect.void : Effect.fail({ _tag: "ProjectNotFound" }),
    ),
  )

/** Fails unless the client may follow the project, by what is known now. */
export const admit = (access: Access): Effect.Effect<void, ApiError> => check(access, mostAge)

/** Tells whether the client may still follow the project: `undefined` if a store does not answer. */
export const isGiven = (access: Access, faults: Faults): Effect.Effect<boolean | undefined> =>
  Step.make((clock) =>
    Effect.matchCauseEffectEager(Step.begin(admit(access), clock), {
      onSuccess: () => Effect.succeed(true),
      onFailure: (cause) => {
        const error = errorIn(cause)
        if (error?._tag === "StoreUnavailable") return Effect.undefined
        if (error !== undefined) return Effect.succeed(false)
        const reported = faults.defect("A listener could not be checked", cause, access.requestId)
        return Effect.as(reported, false)
      },
    }),
  )
