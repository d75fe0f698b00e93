/** Guards for the servers of a Redis, so that one that fails holds up only requests for its buckets. */

import * as Guard from "./Guard.ts"
import { slotOf } from "./Slot.ts"

/** Tells in which part of a Redis a bucket is. */
type PartOf = (bucket: string) => number

/** One server has all buckets. */
export const ofServer: PartOf = () => 0

// A server of a cluster has slots in long ranges: what is true of one is true of most in its part.
const slotsInPart = 256

/** The servers of a cluster have some parts each. */
export const ofCluster: PartOf = (bucket) => Math.floor(slotOf(bucket) / slotsInPart)

/** Guards by part. */
export interface Guards {
  /** Returns the guard for a bucket. */
  readonly of: (bucket: string) => Guard.Guard
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Makes the guards.
 *
 * @param probe - a question about a bucket that its server can always answer
 * @param timeoutMillis - the longest that a caller waits
 */
export const make = (
  partOf: PartOf,
  probe: (bucket: string) => Promise<unknown>,
  timeoutMillis: number,
): Guards => {
  const guards = new Map<number, Guard.Guard>()
  let isClosed = false

  const add = (bucket: string): Guard.Guard => {
    const guard = Guard.make(() => probe(bucket), timeoutMillis)
    guards.set(partOf(bucket), guard)
    if (isClosed) guard.close()
    return guard
  }

  return {
    of: (bucket) => guards.get(partOf(bucket)) ?? add(bucket),
    close: () => {
      isClosed = true
      for (const { close } of guards.values()) close()
    },
  }
}
