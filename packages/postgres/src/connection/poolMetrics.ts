/** Metrics of the connections that statements run on. */

import * as Instruments from "@tenure/core/Instruments"
import * as Effect from "effect/Effect"
import type { Lane, Use } from "./Lane.ts"

/**
 * Shows how lanes are used until the scope is closed.
 *
 * @param most - how many connections they may have together
 * @param pool - what tells them from those to other databases; `undefined` if there are none
 */
export const watch = Effect.fnUntraced(function* (
  lanes: ReadonlyArray<Lane>,
  most: number,
  pool: string | undefined,
) {
  const sum = (name: keyof Use) => () => lanes.reduce((total, lane) => total + lane.use()[name], 0)
  yield* Instruments.watch("db.client.connection.count", sum("idle"), "idle", pool)
  yield* Instruments.watch("db.client.connection.count", sum("used"), "used", pool)
  yield* Instruments.watch("db.client.connection.pending_requests", sum("waiting"), pool)
  yield* Instruments.watch("db.client.connection.max", () => most, pool)
})
