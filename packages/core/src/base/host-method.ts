/** Makes the services' public methods: each reads the host's input and performs an act. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  type ChangeContext,
  type IdempotencyKeyInput,
  type OriginInput,
  attachIdempotencyKey,
  readChangeContext,
} from "./change-context.ts"
import type { InvalidInput } from "./errors.ts"
import type { Input } from "./operation-input.ts"
import { copyOwn } from "./values.ts"

/** A repeatable change. */
export interface Repeatable {
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible ASCII
   * characters.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** Makes a read-only method. */
export const readingMethod =
  <I extends object, O, E1, A, E2, R>(
    input: Input<I, O, E1>,
    act: (decoded: O) => Effect.Effect<A, E2, R>,
  ) =>
  (given: I): Effect.Effect<A, InvalidInput | E1 | E2, R> =>
    Effect.suspend(() =>
      Effect.flatMapEager(Effect.fromResult(input.fromHost(copyOwn(given))), act),
    )

/**
 * Makes a changing method. Without a generator, because hosts extend memberships in loops.
 *
 * @param name - with its input, tells the call from others with the same idempotency key
 */
export const changingMethod =
  <I extends object, O extends object, E1, A, E2, R>(
    name: string,
    input: Input<I, O, E1>,
    act: (decoded: O, context: ChangeContext) => Effect.Effect<A, E2, R>,
  ): ((
    given: I & Repeatable,
    origin?: OriginInput,
  ) => Effect.Effect<A, InvalidInput | E1 | E2, R>) =>
  (given, origin) =>
    Effect.suspend((): Effect.Effect<A, InvalidInput | E1 | E2, R> => {
      const own = copyOwn(given)
      const decoded = input.fromHost(own)
      if (Result.isFailure(decoded)) return Effect.fail(decoded.failure)
      const { success } = decoded
      return Effect.flatMapEager(readChangeContext(origin), (context) =>
        own.idempotencyKey === undefined
          ? act(success, context)
          : Effect.flatMap(
              attachIdempotencyKey(context, own.idempotencyKey, name, input.fingerprintOf(success)),
              (idempotency) => act(success, idempotency),
            ),
      )
    })
