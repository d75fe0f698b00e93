/**
 * What this process knows of empty buckets. While a bucket is known to be empty, requests that draw
 * on it are refused without asking the store: takes elsewhere can only make it emptier.
 */

import * as TokenBucket from "../TokenBucket.ts"
import * as Instants from "./instants.ts"

/** A bucket that refuses until an instant, in microseconds on this process's clock. */
export interface Refusal {
  readonly policy: TokenBucket.Policy
  readonly until: number
  /** When the bucket is full again, on the store's clock. */
  readonly tat: number
}

/** Remembers those of the buckets with one policy that refuse. */
export interface Refusals {
  /** What is known of a bucket that refuses at `now`. */
  readonly find: (id: string, now: number) => Refusal | undefined
  /** Remembers a bucket at `now`, by its `tat` and the store's clock, if it refuses. */
  readonly learn: (id: string, tat: number, clock: number, now: number) => Refusal | undefined
}

/** The refusal that lasts longer; the first of two that end together. */
export const longer = (one: Refusal | undefined, other: Refusal | undefined): Refusal | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one

const maxRemembered = 100_000

// What is kept of a bucket: between the first two instants it refuses; the third is its tat.
const [from, to, full] = [0, 1, 2]

/** Makes a memory of 100,000 buckets; beyond that the one that is full soonest of a few goes. */
export const make = (policy: TokenBucket.Policy): Refusals => {
  const table = Instants.make(3, maxRemembered)
  return {
    find: (id, now) => {
      const row = table.find(id)
      if (row === undefined) return undefined
      const until = table.get(row, to)
      if (now >= until) return undefined
      if (now >= table.get(row, from)) return { policy, until, tat: table.get(row, full) }
      // The clock has been set back, and an instant by the old clock means nothing.
      table.set(row, to, 0)
      return undefined
    },
    learn: (id, tat, clock, now) => {
      const wait = TokenBucket.wait(tat, clock, policy)
      if (wait === 0) return undefined
      const until = now + wait
      const row = table.find(id) ?? table.add(id, now)
      table.set(row, from, now)
      table.set(row, to, until)
      table.set(row, full, tat)
      return { policy, until, tat }
    },
  }
}
