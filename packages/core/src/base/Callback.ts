/** Calls of functions that a host passed as options. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Step from "./Step.ts"

/** A function of the host, or `undefined`. If it returns a promise, nothing waits for that. */
export type Callback<A> = ((value: A) => void) | undefined

const logged = (name: string, cause: Cause.Cause<never>): Effect.Effect<void> =>
  Effect.logError(`${name} threw`, cause)

/** Logs the rejection of a promise, from now on: an unhandled rejection can end the process. */
const logRejection = (name: string, promise: PromiseLike<unknown>): Effect.Effect<void> =>
  Effect.asVoid(
    Effect.forkDetach(
      Effect.catchCause(
        Effect.promise(() => promise),
        (cause) => logged(name, cause),
      ),
      { startImmediately: true },
    ),
  )

/**
 * Calls a function of the host, if there is one. Errors that it throws, and rejections of a promise that
 * it returns, are logged.
 *
 * @param name - name of the option, for the log
 */
export const call = <A>(name: string, callback: Callback<A>, value: A): Effect.Effect<void> =>
  callback === undefined
    ? Effect.void
    : Step.make(() => {
        try {
          const result: unknown = callback(value)
          return Predicate.isPromiseLike(result) ? logRejection(name, result) : Effect.void
        } catch (error) {
          return logged(name, Cause.die(error))
        }
      })
