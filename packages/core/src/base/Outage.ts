/** An outage of the store: it is reported when it begins, and not again until it has ended. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Faults } from "./Faults.ts"

/** Records the results of a repeated operation. */
export interface Outage {
  readonly succeeded: () => void
  readonly failed: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

/**
 * Makes a reporter of outages.
 *
 * @param message - what fails, for example `Deliveries cannot be claimed`
 */
export const make = (faults: Faults, message: string): Outage => {
  let isReported = false
  return {
    succeeded: () => {
      isReported = false
    },
    failed: (cause) => {
      if (isReported) return Effect.void
      isReported = true
      return Effect.andThen(
        Effect.logWarning(message, cause),
        faults.failure(message, Cause.squash(cause)),
      )
    },
  }
}
