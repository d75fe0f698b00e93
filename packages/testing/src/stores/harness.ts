/** What a suite needs to know of the store that it certifies. */

import { expect } from "@effect/vitest"
import type { StorePorts } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import fc from "fast-check"

/** A port that a store can implement. */
export type Port =
  | "MembershipStore"
  | "WebhookStore"
  | "ApiKeyStore"
  | "Outbox"
  | "FeedStore"
  | "RateLimitStore"
  | "TicketStore"
  | "ProjectDirectory"

/**
 * A store to certify.
 *
 * @typeParam Host - what the layer provides besides the stores, such as a client of the database
 */
export interface StoreHarness<Host = never> {
  /** Builds all stores, empty. Stores that remember nothing in the process can be built once, and emptied. */
  readonly layer: Layer.Layer<StorePorts | Host, unknown>
  /** Moves the stores' clock forward, or back by a negative number: a clock can be set. */
  readonly advance: (millis: number) => Effect.Effect<void>
  /**
   * How far the instants of a take may be off, in milliseconds, because several clocks take part in it.
   * Default: 0.
   */
  readonly clockErrorMillis?: number | undefined
  /** Whether projects are in several databases, each with idempotency keys of its own. Default: `false`. */
  readonly hasSeveralDatabases?: boolean | undefined
  /** With how many inputs each property is tried. Fewer for stores that consist of others. Default: 50. */
  readonly runs?: number | undefined
  /** The ports to certify. By default all but `ProjectDirectory`, which only the first of several stores needs. */
  readonly ports?: ReadonlyArray<Port> | undefined
  /**
   * Runs work in a transaction of the host, which is undone if the work fails. With it, the suites
   * also certify that the stores take part in such transactions.
   */
  readonly transaction?:
    | (<A, E>(
        work: Effect.Effect<A, E, StorePorts>,
      ) => Effect.Effect<A, unknown, StorePorts | Host>)
    | undefined
  /** Whether only one transaction of the host can be open at a time. Default: `false`. */
  readonly hasOneTransaction?: boolean | undefined
}

/** Transactions of the host in which stores take part. */

/** Transactions of the host, on the same database as the stores. */
export class HostTransaction extends Context.Service<
  HostTransaction,
  {
    /** Runs work in a transaction, which is undone if the work fails. */
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

/** Runs work in a transaction of the host that fails after it. */
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

/** Tests and properties that each run against stores of their own. */

/** Receives the tests that suites declare. */
export interface Registry {
  readonly describe: (name: string, declare: () => void) => void
  readonly it: (name: string, test: Effect.Effect<unknown, unknown>) => void
}

/** A layer of stores. */
type StoreTestsLayer = StoreHarness["layer"]

/** Declares tests. They run on the clock of the stores. */
const testOn = (layer: StoreTestsLayer, { it }: Registry) => {
  const test = <A, E>(name: string, run: () => Effect.Effect<A, E, StorePorts>): void =>
    it(name, Effect.provide(Effect.suspend(run), layer))

  /** Declares a test for each case. `%s` in the name stands for the first element of the case. */
  const each =
    <Case extends readonly [string, ...ReadonlyArray<unknown>]>(cases: ReadonlyArray<Case>) =>
    <A, E>(name: string, run: (one: Case) => Effect.Effect<A, E, StorePorts>): void => {
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

/** Declares tests of the host's transactions, if the harness has some. */
const transactionalOn =
  <Host>({ layer, transaction }: StoreHarness<Host>, { it }: Registry) =>
  <A, E>(name: string, run: () => Effect.Effect<A, E, StorePorts | HostTransaction>): void => {
    if (transaction === undefined) return
    it(name, Effect.provide(Effect.suspend(run), hostTransactionLayer(layer, transaction)))
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
