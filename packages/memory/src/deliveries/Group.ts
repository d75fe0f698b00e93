/** The lanes of one project, which take turns. */

import * as Turns from "../collections/Turns.ts"
import * as Lane from "./Lane.ts"

/** The lanes of a project. */
export interface Group {
  readonly lanes: Set<Lane.Lane>
  readonly turns: Turns.Turns<Lane.Lane>
  /** The number of leases of all lanes, without those that were claimed ahead. */
  leased: number
}

/** Makes an empty group. */
export const make = (): Group => ({ lanes: new Set(), turns: Turns.make(), leased: 0 })

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
export const nextExpiry = ({ lanes }: Group): number => {
  let first = Infinity
  for (const lane of lanes) first = Math.min(first, Lane.nextExpiry(lane))
  return first
}
