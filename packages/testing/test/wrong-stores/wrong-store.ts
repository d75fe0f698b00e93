/** Stores in memory that break one promise each. */

import type { StorePorts } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { TestClock } from "effect/testing"
import type { Port } from "../../src/stores/harness.ts"

/** A store that breaks a promise. */
export interface WrongStore {
  readonly port: Port
  /** The port's test that must fail. */
  readonly test: string
  /** What it does wrong. */
  readonly wrong: string
  readonly layer: Layer.Layer<StorePorts, unknown>
}

/** Stores in memory, on the test clock. */
export const rightStores = Layer.merge(memory(), TestClock.layer())

/** Returns the operations that break a promise. They may call the right ones, and other stores. */
type Break<Shape> = (right: Shape, context: Context.Context<StorePorts>) => Partial<Shape>

/** Wraps a store in each way that the table has for a test, so that this test must fail. */
export const wrongStores = <Identifier, Shape>(
  port: Port,
  store: Context.Key<Identifier, Shape>,
  table: Readonly<Record<string, Break<Shape> | Readonly<Record<string, Break<Shape>>>>>,
): ReadonlyArray<WrongStore> =>
  Object.entries(table).flatMap(([test, one]) =>
    Object.entries(typeof one === "function" ? { "breaks it": one } : one).map(([wrong, by]) => ({
      port,
      test,
      wrong,
      layer: Layer.effectContext(
        Effect.map(Effect.context<StorePorts>(), (context) => {
          const right = Option.getOrThrow(Context.getOption(context, store))
          return Context.add(context, store, { ...right, ...by(right, context) })
        }),
      ).pipe(Layer.provideMerge(rightStores)),
    })),
  )
