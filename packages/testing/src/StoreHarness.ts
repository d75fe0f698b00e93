/** What a suite needs of the stores it judges. */

import { it } from "@effect/vitest"
import type { Stores } from "@tenure/core/Tenure"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import fc from "fast-check"

/** Stores to be judged. */
export interface StoreHarness {
  /** Makes all stores, empty and sharing nothing with those made before. */
  readonly layer: Layer.Layer<Stores, unknown>
  /** Lets time pass on the stores' clock. */
  readonly advance: (millis: number) => Effect.Effect<void>
}

/** Declares tests that each get stores of their own, on the clock that the stores bring. */
export const testOn = ({ layer }: StoreHarness) => {
  const test = <A, E>(name: string, run: () => Effect.Effect<A, E, Stores>): void =>
    it.live(name, () => Effect.provide(Effect.suspend(run), layer))

  /** Declares a test for each case, whose name says the first element where it has `%s`. */
  const each =
    <Case extends readonly [string, ...ReadonlyArray<unknown>]>(cases: ReadonlyArray<Case>) =>
    <A, E>(name: string, run: (one: Case) => Effect.Effect<A, E, Stores>): void =>
      it.live.each([...cases])(name, (one) =>
        Effect.provide(
          Effect.suspend(() => run(one)),
          layer,
        ),
      )

  return Object.assign(test, { each })
}

/** Declares properties of which each run gets stores of its own. */
export const propertyOn =
  ({ layer }: StoreHarness) =>
  <Input, E>(
    name: string,
    inputs: fc.Arbitrary<Input>,
    property: (input: Input) => Effect.Effect<void, E, Stores>,
  ): void =>
    it.live(name, () =>
      Effect.gen(function* () {
        const run = Effect.runPromiseWith(yield* Effect.context())
        const holds = fc.asyncProperty(inputs, (input) =>
          run(
            Effect.provide(
              Effect.suspend(() => property(input)),
              layer,
            ),
          ),
        )
        yield* Effect.promise(async () => fc.assert(holds, { numRuns: 50 }))
      }),
    )
