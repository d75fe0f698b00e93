/** Stores in memory of which one is wrong in one way. */

import type { StorePorts } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { TestClock } from "effect/testing"

/** A store that is wrong. */
export interface Mutant {
  /** What is wrong, to be read after "a store that". */
  readonly name: string
  readonly layer: Layer.Layer<StorePorts, unknown>
}

/** Stores in memory, on a clock of the tests. */
export const stores = Layer.merge(memory(), TestClock.layer())

/** Returns the operations of a store that are wrong. It may call the right ones, and other stores. */
type Break<Shape> = (right: Shape, context: Context.Context<StorePorts>) => Partial<Shape>

/** Makes mutants of a store from what is wrong with each. */
export const mutantsOf = <Identifier, Shape>(
  store: Context.Key<Identifier, Shape>,
  broken: Readonly<Record<string, Break<Shape>>>,
): ReadonlyArray<Mutant> =>
  Object.entries(broken).map(([name, wrong]) => ({
    name,
    layer: Layer.effectContext(
      Effect.map(Effect.context<StorePorts>(), (context) => {
        const right = Option.getOrThrow(Context.getOption(context, store))
        return Context.add(context, store, { ...right, ...wrong(right, context) })
      }),
    ).pipe(Layer.provideMerge(stores)),
  }))
