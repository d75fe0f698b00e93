/** Tests written as effect generators, each with its own scope and the test clock. */

import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

type Body = Effect.fn.Return<unknown, unknown, Scope.Scope>

const each =
  <const Row>(rows: ReadonlyArray<Row>) =>
  (name: string, body: (row: Row) => Body): void =>
    it.effect.each([...rows])(name, (row) => Effect.gen(() => body(row)))

/** Declares a test, or one for each row. */
export const test = Object.assign(
  (name: string, body: () => Body): void => it.effect(name, () => Effect.gen(body)),
  { each },
)
