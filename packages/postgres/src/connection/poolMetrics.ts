/** Metrics of the connections that statements run on. */

import * as Instruments from "@tenure/core/Instruments"
import * as Effect from "effect/Effect"
import type { Lane, Use } from "./Lane.ts"

/**
 * Shows how lanes are used until the scope is closed.
 *
 * @param most - how many connections they may have together
 */
export const watch = Effect.fnUntraced(function* (lanes: ReadonlyArray<Lane>, most: number) {
  const sum = (name: keyof Use) => () => lanes.reduce((total, lane) => total + lane.use()[name], 0)
  yield* Instruments.watch("db.client.connection.count", sum("idle"), "idle")
  yield* Instruments.watch("db.client.connection.count", sum("used"), "used")
  yield* Instruments.watch("db.client.connection.pending_requests", sum("waiting"))
  yield* Instruments.watch("db.client.connection.max", () => most)
})
