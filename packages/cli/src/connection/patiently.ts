/** Goes on after a server, a database or a network was away for a while. */

import * as Effect from "effect/Effect"
import type { Failure } from "../Failure.ts"

// Together about six minutes; a suspended key may be told to wait longer.
const mostAttempts = 15
const longestWait = 30

/** How long to wait after a number of failed attempts, in seconds. */
const waitAfter = ({ retryAfter }: Failure, failures: number): number =>
  retryAfter ?? Math.min(longestWait, 2 ** (failures - 1))

/** Repeats a call that fails because something is away. It must be one that can be repeated. */
export const patiently = <A, R>(
  call: Effect.Effect<A, Failure, R>,
  failures = 0,
): Effect.Effect<A, Failure, R> =>
  Effect.catchIf(
    call,
    ({ kind }) => kind === "unavailable" && failures + 1 < mostAttempts,
    (failure) =>
      Effect.andThen(
        Effect.sleep(`${waitAfter(failure, failures + 1)} seconds`),
        patiently(call, failures + 1),
      ),
  )
