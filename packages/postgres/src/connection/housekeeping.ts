/** Housekeeping: deletes and plans a few rows at a time in the background. */

import type { StoreUnavailable } from "@tenure/core/store"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

/**
 * Runs a step in the background until the scope closes: after the interval, repeatedly until it returns no
 * rows, then again after the next interval. Logs failures and continues.
 */
export const runPeriodically = (
  interval: Duration.Input,
  step: Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>,
): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.sleep(interval).pipe(
    Effect.andThen(
      // The pauses leave the database to other statements.
      Effect.repeat(step, {
        while: (rows) => rows.length > 0,
        schedule: Schedule.spaced("50 millis"),
      }),
    ),
    Effect.catchCause((cause) =>
      Effect.logWarning("Housekeeping failed and will be retried", cause),
    ),
    Effect.forever,
    Effect.forkScoped,
  )
