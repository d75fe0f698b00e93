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

/** Declares tests that each get stores of their own. */
export const testOn =
  ({ layer }: StoreHarness) =>
  <A, E>(name: string, test: () => Effect.Effect<A, E, Stores>): void =>
    it.effect(name, () => Effect.provide(Effect.suspend(test), layer))

/** Declares properties of which each run gets stores of its own. */
export const propertyOn =
  ({ layer }: StoreHarness) =>
  <Input, E>(
    name: string,
    inputs: fc.Arbitrary<Input>,
    property: (input: Input) => Effect.Effect<void, E, Stores>,
  ): void =>
    it.effect(name, () =>
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
