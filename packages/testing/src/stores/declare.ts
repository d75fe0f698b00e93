/** Functions to declare a store's tests. Apart from `harness.ts`, whose types need no fast-check. */

import { expect } from "@effect/vitest"
import type { StorePorts } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import fc from "fast-check"
import type { Registry, StoreHarness } from "./harness.ts"

/** The host's transactions, on the same database as the stores. */
export class HostTransaction extends Context.Service<
  HostTransaction,
  {
    /** Runs work in a transaction, and rolls it back if the work fails. */
    readonly run: <A, E>(
      work: Effect.Effect<A, E, StorePorts>,
    ) => Effect.Effect<A, unknown, StorePorts>
  }
>()("@tenure/testing/HostTransaction") {}

/** Returns the stores together with the host's transactions. */
const hostTransactionLayer = <Host>(
  stores: StoreHarness<Host>["layer"],
  transaction: NonNullable<StoreHarness<Host>["transaction"]>,
): Layer.Layer<StorePorts | HostTransaction, unknown> =>
  Layer.effectContext(
    Effect.map(Layer.build(stores), (host) =>
      Context.add(host, HostTransaction, {
        run: (work) =>
          Effect.updateContext(transaction(work), (own: Context.Context<StorePorts>) =>
            Context.merge(host, own),
          ),
      }),
    ),
  )

/** Runs work in a transaction and rolls it back. */
export const undone = Effect.fnUntraced(function* <A, E>(work: Effect.Effect<A, E, StorePorts>) {
  const { run } = yield* HostTransaction
  let isDone = false
  const failing = Effect.suspend(() => {
    isDone = true
    return Effect.fail("the host's own failure")
  })
  yield* Effect.flip(run(Effect.andThen(work, failing)))
  expect(isDone).toBe(true)
})

/** A test's steps, which yield effects. */
export type Steps<Services, Arguments extends ReadonlyArray<unknown> = []> = (
  ...given: Arguments
) => Generator<Effect.Effect<unknown, unknown, Services>, unknown, never>

/** Declares a test after a preparation, whose result its steps get. It runs on the stores' clock. */
const testOn = <Prepared>(
  { layer }: Pick<StoreHarness, "layer">,
  { it }: Registry,
  prepare: Effect.Effect<Prepared, unknown, StorePorts>,
) => {
  const test = (name: string, steps: Steps<StorePorts, [prepared: Prepared]>): void =>
    it(name, Effect.provide(after(prepare, steps), layer))

  /** Declares a test per case. `%s` in the name stands for the case's first element. */
  const each =
    <Case extends readonly [string, ...ReadonlyArray<unknown>]>(cases: ReadonlyArray<Case>) =>
    (name: string, steps: Steps<StorePorts, [one: Case, prepared: Prepared]>): void => {
      for (const one of cases) test(name.replace("%s", one[0]), (prepared) => steps(one, prepared))
    }

  return Object.assign(test, { each })
}

const after = <Prepared, Services>(
  prepare: Effect.Effect<Prepared, unknown, Services>,
  steps: Steps<Services, [prepared: Prepared]>,
) => Effect.flatMap(prepare, (prepared) => Effect.gen(() => steps(prepared)))

const usualRuns = 50

/** Declares properties. Each run gets new stores. */
const propertyOn =
  ({ layer, runs = usualRuns }: Pick<StoreHarness, "layer" | "runs">, { it }: Registry) =>
  <Input, E>(
    name: string,
    inputs: fc.Arbitrary<Input>,
    property: (input: Input) => Effect.Effect<void, E, StorePorts>,
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

/** Declares tests with the host's transactions, if the harness has any. */
const transactionalOn =
  <Host, Prepared>(
    { layer, transaction }: StoreHarness<Host>,
    { it }: Registry,
    prepare: Effect.Effect<Prepared, unknown, StorePorts>,
  ) =>
  (name: string, steps: Steps<StorePorts | HostTransaction, [prepared: Prepared]>): void => {
    if (transaction === undefined) return
    it(name, Effect.provide(after(prepare, steps), hostTransactionLayer(layer, transaction)))
  }

/** Returns functions to declare a store's tests. */
export const testsOn = <Host>(harness: StoreHarness<Host>, registry: Registry) => {
  /** Returns functions to declare tests whose steps get what a preparation has returned. */
  const testsAfter = <Prepared>(prepare: Effect.Effect<Prepared, unknown, StorePorts>) => ({
    test: testOn(harness, registry, prepare),
    transactional: transactionalOn(harness, registry, prepare),
    /** Declares tests with concurrent transactions from the host, if it can have several. */
    concurrent: transactionalOn(
      harness.hasOneTransaction === true ? { ...harness, transaction: undefined } : harness,
      registry,
      prepare,
    ),
  })
  return {
    ...testsAfter(Effect.void),
    testsAfter,
    describe: registry.describe,
    property: propertyOn(harness, registry),
    advance: harness.advance,
    hasSeveralDatabases: harness.hasSeveralDatabases ?? false,
    settlesAtOnce: harness.settlesAtOnce ?? false,
    announcesEnds: harness.announcesEnds ?? true,
    clockErrorMillis: harness.clockErrorMillis ?? 0,
  }
}

/** Functions to declare a store's tests. */
export type StoreTests = ReturnType<typeof testsOn>
