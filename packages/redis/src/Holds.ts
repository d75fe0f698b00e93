/** Takes of this process that hold tokens of a key until the bucket of the address has decided. */

import type { ApiKeyId } from "@tenure/core/ApiKey"
import type { Take } from "@tenure/core/RateLimitStore"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Takes that hold tokens. */
export interface Holds {
  /** Says that a take holds tokens of a key while it runs. Unless it is admitted, it gives them back. */
  readonly during: <E>(keyId: ApiKeyId, take: Effect.Effect<Take, E>) => Effect.Effect<Take, E>
  /** Waits for those that hold tokens of a key now. Returns whether any has given them back. */
  readonly anyGivenBack: (keyId: ApiKeyId) => Effect.Effect<boolean>
}

/** Makes a record without takes. */
export const make = (): Holds => {
  const endsOf = new Map<ApiKeyId, Set<Deferred.Deferred<boolean>>>()

  const begin = (keyId: ApiKeyId): Deferred.Deferred<boolean> => {
    const isGivenBack = Deferred.makeUnsafe<boolean>()
    const ends = endsOf.get(keyId) ?? new Set()
    endsOf.set(keyId, ends.add(isGivenBack))
    return isGivenBack
  }

  const end = (keyId: ApiKeyId, isGivenBack: Deferred.Deferred<boolean>, value: boolean): void => {
    const ends = endsOf.get(keyId)
    ends?.delete(isGivenBack)
    if (ends?.size === 0) endsOf.delete(keyId)
    Deferred.doneUnsafe(isGivenBack, Effect.succeed(value))
  }

  return {
    during: (keyId, take) =>
      Effect.suspend(() => {
        const isGivenBack = begin(keyId)
        return Effect.onExit(take, (exit) =>
          Effect.sync(() =>
            end(keyId, isGivenBack, !(Exit.isSuccess(exit) && exit.value.admitted)),
          ),
        )
      }),

    anyGivenBack: (keyId) =>
      Effect.suspend(() =>
        Effect.map(
          Effect.forEach([...(endsOf.get(keyId) ?? [])], (isGivenBack) =>
            Deferred.await(isGivenBack),
          ),
          (areGivenBack) => areGivenBack.includes(true),
        ),
      ),
  }
}
