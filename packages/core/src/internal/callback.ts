/** Functions of the host that are called on an occasion. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** A function of the host; a promise that it gives is not waited for. */
export type Callback<A> = ((value: A) => void) | undefined

const logged = (name: string, effect: Effect.Effect<unknown>): Effect.Effect<void> =>
  Effect.asVoid(Effect.catchCause(effect, (cause) => Effect.logError(`${name} threw`, cause)))

/** Waits for a promise aside: from now on, or its rejection would be one that nobody handles. */
const waitAside = (name: string, promise: PromiseLike<unknown>): Effect.Effect<unknown> =>
  Effect.forkDetach(
    logged(
      name,
      Effect.promise(() => promise),
    ),
    { startImmediately: true },
  )

/** Calls a host's function, if there is one. What it throws, now or later, is logged under its name. */
export const call = <A>(name: string, callback: Callback<A>, value: A): Effect.Effect<void> =>
  callback === undefined
    ? Effect.void
    : logged(
        name,
        Effect.suspend(() => {
          const result: unknown = callback(value)
          return Predicate.isPromiseLike(result) ? waitAside(name, result) : Effect.void
        }),
      )
