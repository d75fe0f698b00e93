/** Reports outages of the store of rate limits. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Faults } from "../base/Faults.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Millis } from "../base/Units.ts"

// Every request meets an outage: one report stands for all within this time.
const pauseMillis = 1000

/**
 * Makes a function that reports that the store does not answer, or is defective, which is treated alike.
 * It reports once a second at most, by the time that it is given.
 */
export const reporter = (
  faults: Faults,
): ((cause: Cause.Cause<StoreUnavailable>, tick: Millis) => Effect.Effect<void>) => {
  let quietUntil = -Infinity

  const failure = (reason: unknown) =>
    faults.failure("The store of rate limits does not answer", reason)

  const defect = (reason: unknown) =>
    Effect.andThen(
      faults.defect("The store of rate limits has a defect", Cause.die(reason)),
      failure(reason),
    )

  const sparingly = (tick: Millis, report: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (tick < quietUntil) return Effect.void
      quietUntil = tick + pauseMillis
      return report
    })

  return (cause, tick) => {
    const bug = Cause.findDefect(cause)
    if (Result.isSuccess(bug)) return sparingly(tick, defect(bug.success))
    const error = Cause.findError(cause)
    return Result.isSuccess(error)
      ? sparingly(tick, failure(error.success.cause))
      : Effect.failCause(error.failure)
  }
}
