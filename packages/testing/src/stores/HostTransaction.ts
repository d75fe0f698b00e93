/** Transactions of the host in which stores take part. */

import { expect } from "@effect/vitest"
import type { Stores } from "@tenure/core/Tenure"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { StoreHarness } from "./StoreHarness.ts"

/** Transactions of the host, on the same database as the stores. */
export class HostTransaction extends Context.Service<
  HostTransaction,
  {
    /** Runs work in a transaction, which is undone if the work fails. */
    readonly run: <A, E>(work: Effect.Effect<A, E, Stores>) => Effect.Effect<A, unknown, Stores>
  }
>()("@tenure/testing/HostTransaction") {}

/** Returns the stores together with the host's transactions. */
export const layer = <Host>(
  stores: StoreHarness<Host>["layer"],
  transaction: NonNullable<StoreHarness<Host>["transaction"]>,
): Layer.Layer<Stores | HostTransaction, unknown> =>
  Layer.effectContext(
    Effect.map(Layer.build(stores), (host) =>
      Context.add(host, HostTransaction, {
        run: (work) =>
          Effect.updateContext(transaction(work), (own: Context.Context<Stores>) =>
            Context.merge(host, own),
          ),
      }),
    ),
  )

/** Runs work in a transaction of the host that fails after it. */
export const undone = Effect.fnUntraced(function* <A, E>(work: Effect.Effect<A, E, Stores>) {
  const { run } = yield* HostTransaction
  let isDone = false
  const failing = Effect.suspend(() => {
    isDone = true
    return Effect.fail("the host's own failure")
  })
  yield* Effect.flip(run(Effect.andThen(work, failing)))
  expect(isDone).toBe(true)
})
