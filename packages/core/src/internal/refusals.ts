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

/** Remembers empty buckets under the id of whose they are. */
export interface Refusals {
  /** The bucket that is known to refuse longest, of those of an id that refuse at `now`. */
  readonly find: (id: string, now: number) => Refusal | undefined
  /** Remembers the n-th bucket of an id, by its `tat` and the store's clock, if it refuses at `now`. */
  readonly learn: (
    id: string,
    nth: number,
    tat: number,
    clock: number,
    now: number,
  ) => Refusal | undefined
}

/** The refusal that lasts longer; the first of two that end together. */
export const longer = (one: Refusal | undefined, other: Refusal | undefined): Refusal | undefined =>
  one === undefined || (other !== undefined && other.until > one.until) ? other : one

const maxRemembered = 100_000

// What is kept of each bucket: between the first two instants it refuses; the third is its tat.
const [from, to, full] = [0, 1, 2]
const width = 3

/**
 * Makes a memory of 100,000 ids; beyond that the one whose buckets are full soonest of a few goes.
 *
 * @param policies - of the buckets of each id, which are found at once
 */
export const make = (policies: ReadonlyArray<TokenBucket.Policy>): Refusals => {
  const table = Instants.make(width * policies.length, maxRemembered)

  const recall = (
    row: number,
    nth: number,
    policy: TokenBucket.Policy,
    now: number,
  ): Refusal | undefined => {
    const column = width * nth
    const until = table.get(row, column + to)
    if (now >= until) return undefined
    if (now >= table.get(row, column + from)) {
      return { policy, until, tat: table.get(row, column + full) }
    }
    // The clock has been set back, and an instant by the old clock means nothing.
    table.set(row, column + to, 0)
    return undefined
  }

  return {
    find: (id, now) => {
      const row = table.find(id)
      if (row === undefined) return undefined
      let longest: Refusal | undefined
      let nth = 0
      for (const policy of policies) longest = longer(longest, recall(row, nth++, policy, now))
      return longest
    },
    learn: (id, nth, tat, clock, now) => {
      const policy = policies[nth]
      const wait = policy === undefined ? 0 : TokenBucket.wait(tat, clock, policy)
      if (policy === undefined || wait === 0) return undefined
      const until = now + wait
      const row = table.find(id) ?? table.add(id, now)
      table.set(row, width * nth + from, now)
      table.set(row, width * nth + to, until)
      table.set(row, width * nth + full, tat)
      return { policy, until, tat }
    },
  }
}
