/** Functions of the host that are called on an occasion. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** A function of the host; a promise that it gives is not waited for. */
export type Callback<A> = ((value: A) => void) | undefined

/** Calls a host's function, if there is one. What it throws, now or later, is logged under its name. */
export const call = <A>(name: string, callback: Callback<A>, value: A): Effect.Effect<void> =>
  callback === undefined
    ? Effect.void
    : Effect.sync((): unknown => callback(value)).pipe(
        Effect.flatMap((result) =>
          Predicate.isPromiseLike(result)
            ? Effect.asVoid(
                Effect.forkDetach(
                  logged(
                    name,
                    Effect.promise(() => result),
                  ),
                ),
              )
            : Effect.void,
        ),
        (calling) => logged(name, calling),
      )

const logged = (name: string, effect: Effect.Effect<unknown>): Effect.Effect<void> =>
  effect.pipe(
    Effect.asVoid,
    Effect.catchCause((cause) => Effect.logError(`${name} threw`, cause)),
  )
