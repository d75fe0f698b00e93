/** Token buckets in the memory of one process: bounded, and swept without a timer. */

import type { Bucket, Take } from "./RateLimitStore.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** A table of token buckets. */
export interface BucketTable {
  /** Takes a token from every bucket or from none, at `now` in whole microseconds. */
  readonly take: (buckets: ReadonlyArray<Bucket>, now: number) => Take
  /** The number of buckets kept. */
  readonly size: () => number
}

// How many slots are looked at in each take that adds a bucket, to forget those that are full. More
// than one a bucket added, or the table would grow faster than it is swept.
const sweepWidth = 4

// How many buckets compete for being evicted when the table is at its limit.
const evictionWidth = 8

const initialSlots = 1024

/**
 * Makes a table of at most `maxBuckets` buckets (100,000 by default).
 *
 * A bucket that is full is as good as none, so full ones are forgotten, a few slots a take. At the
 * limit the one that will be full soonest of a few goes first: a flood of fresh clients evicts its
 * own buckets, and hardly ever that of a client who has exhausted his.
 */
export const make = (maxBuckets = 100_000): BucketTable => {
  // Slots are dense: the last one moves into the place of one removed.
  const slots = new Map<string, number>()
  const keys: Array<string> = []
  let tats = new Float64Array(Math.min(initialSlots, maxBuckets))
  let hand = 0

  const tatAt = (slot: number): number => tats[slot] ?? 0

  const remove = (slot: number): void => {
    const last = keys.length - 1
    const key = keys[slot]
    const lastKey = keys[last]
    if (key === undefined || lastKey === undefined) return
    keys[slot] = lastKey
    tats[slot] = tatAt(last)
    slots.set(lastKey, slot)
    slots.delete(key)
    keys.pop()
  }

  /** The slot under the clock hand, which moves on. */
  const turn = (): number => {
    hand = hand + 1 < keys.length ? hand + 1 : 0
    return hand
  }

  const sweep = (now: number): void => {
    for (let look = 0; look < sweepWidth && keys.length > 0; look++) {
      const slot = turn()
      if (tatAt(slot) <= now) remove(slot)
    }
  }

  const evict = (): void => {
    let fullest = turn()
    for (let look = 1; look < evictionWidth; look++) {
      const slot = turn()
      if (tatAt(slot) < tatAt(fullest)) fullest = slot
    }
    remove(fullest)
  }

  const add = (key: string, tat: number): void => {
    if (keys.length >= maxBuckets) evict()
    const slot = keys.length
    if (slot === tats.length) {
      const larger = new Float64Array(Math.min(2 * slot, maxBuckets))
      larger.set(tats)
      tats = larger
    }
    keys.push(key)
    slots.set(key, slot)
    tats[slot] = tat
  }

  const find = (key: string): TokenBucket.Tat => {
    const slot = slots.get(key)
    return slot === undefined ? undefined : tatAt(slot)
  }

  const put = (key: string, tat: number): void => {
    const slot = slots.get(key)
    if (slot === undefined) add(key, tat)
    else tats[slot] = tat
  }

  return {
    size: () => keys.length,
    take: (buckets, now) => {
      sweep(now)
      const taken = buckets.map(({ key, policy }) => TokenBucket.take(find(key), now, policy))
      const admitted = taken.every((one) => one.admitted)
      const after = buckets.map(({ key, policy }, index) => {
        const before = find(key)
        const tat = admitted ? (taken[index]?.tat ?? now) : TokenBucket.current(before, now, policy)
        // What a refusal changes is only what a clock that was set back has made impossible.
        if (admitted || before !== undefined) put(key, tat)
        return tat
      })
      return { admitted, now, tats: after }
    },
  }
}
