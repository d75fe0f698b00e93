/** Tests and properties that each run against stores of their own. */

import type { Stores } from "@tenure/core/Tenure"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import * as HostTransaction from "./HostTransaction.ts"
import type { StoreHarness } from "./StoreHarness.ts"

/** Receives the tests that suites declare. */
export interface Registry {
  readonly describe: (name: string, declare: () => void) => void
  readonly it: (name: string, test: Effect.Effect<unknown, unknown>) => void
}

/** A layer of stores. */
type Layer = StoreHarness["layer"]

/** Declares tests. They run on the clock of the stores. */
const testOn = (layer: Layer, { it }: Registry) => {
  const test = <A, E>(name: string, run: () => Effect.Effect<A, E, Stores>): void =>
    it(name, Effect.provide(Effect.suspend(run), layer))

  /** Declares a test for each case. `%s` in the name stands for the first element of the case. */
  const each =
    <Case extends readonly [string, ...ReadonlyArray<unknown>]>(cases: ReadonlyArray<Case>) =>
    <A, E>(name: string, run: (one: Case) => Effect.Effect<A, E, Stores>): void => {
      for (const one of cases) test(name.replace("%s", one[0]), () => run(one))
    }

  return Object.assign(test, { each })
}

const usualRuns = 50

/** Declares properties. Each of their runs has stores of its own. */
const propertyOn =
  ({ layer, runs = usualRuns }: Pick<StoreHarness, "layer" | "runs">, { it }: Registry) =>
  <Input, E>(
    name: string,
    inputs: fc.Arbitrary<Input>,
    property: (input: Input) => Effect.Effect<void, E, Stores>,
  ): void =>
    it(
      name,
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
        yield* Effect.promise(async () => fc.assert(holds, { numRuns: runs }))
      }),
    )

/** Declares tests of the host's transactions, if the harness has some. */
const transactionalOn =
  <Host>({ layer, transaction }: StoreHarness<Host>, { it }: Registry) =>
  <A, E>(
    name: string,
    run: () => Effect.Effect<A, E, Stores | HostTransaction.HostTransaction>,
  ): void => {
    if (transaction === undefined) return
    it(name, Effect.provide(Effect.suspend(run), HostTransaction.layer(layer, transaction)))
  }

/** Declares tests of transactions of the host that are open at the same time, if there can be several. */
const concurrentOn = <Host>(harness: StoreHarness<Host>, registry: Registry) =>
  transactionalOn(
    harness.hasOneTransaction === true ? { ...harness, transaction: undefined } : harness,
    registry,
  )

/** Returns what tests of a store are declared with. */
export const testsOn = <Host>(harness: StoreHarness<Host>, registry: Registry) => ({
  describe: registry.describe,
  test: testOn(harness.layer, registry),
  property: propertyOn(harness, registry),
  transactional: transactionalOn(harness, registry),
  concurrent: concurrentOn(harness, registry),
  advance: harness.advance,
  hasSeveralDatabases: harness.hasSeveralDatabases ?? false,
  clockErrorMillis: harness.clockErrorMillis ?? 0,
})

/** What tests of a store are declared with. */
export type StoreTests = ReturnType<typeof testsOn>
