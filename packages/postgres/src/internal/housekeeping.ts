/** What is done from time to time: forgetting what is no longer of use, some rows at a time. */

import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

/** Repeats a step until it has nothing left to do, and begins again after a while; for good. */
export const regularly = (
  every: Duration.Input,
  step: Effect.Effect<ReadonlyArray<unknown>, StoreUnavailable>,
): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.sleep(every).pipe(
    Effect.andThen(
      // With pauses, for others to have their turn.
      Effect.repeat(step, {
        while: (rows) => rows.length > 0,
        schedule: Schedule.spaced("50 millis"),
      }),
    ),
    Effect.catchCause((cause) => Effect.logWarning("Housekeeping has to wait", cause)),
    Effect.forever,
    Effect.forkScoped,
  )
