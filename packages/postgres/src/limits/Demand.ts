/** The takes of one client that share a statement, and what it has decided on them. */

import type { Take } from "@tenure/core/RateLimitStore"
import { Micros } from "@tenure/core/Units"
import type { Bucket } from "./Bucket.ts"

/** The takes of a client. */
export interface Demand {
  readonly buckets: ReadonlyArray<Bucket>
  /** The number of takes. */
  readonly count: number
}

/** What a statement has decided. Times are in microseconds. */
export interface Answer {
  /** The number of takes that are admitted. */
  readonly taken: number
  /**
   * Whether the others are refused. If not, they are undecided: clients before in the statement may
   * have left tokens that they had asked for.
   */
  readonly isFinal: boolean
  /** The time by the clock of the database. */
  readonly now: number
  /** When each bucket was full again before these takes. */
  readonly tats: ReadonlyArray<number>
}

/** The outcomes of the takes, in order, as many as are decided. */
export const outcomesOf = (
  { buckets, count }: Demand,
  { isFinal, now: given, taken, tats }: Answer,
): ReadonlyArray<Take> => {
  const now = Micros(given)
  return Array.from({ length: isFinal ? count : taken }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const [address = now, key = now, burst = now] = buckets.map(({ policy }, bucket) =>
      Micros((tats[bucket] ?? now) + spent * policy.increment),
    )
    return { admitted: index < taken, now, address, key, burst }
  })
}

/** What a statement for several clients has found for one of them. */
interface Found {
  readonly taken: number
  /** What it could have taken without those before. */
  readonly most: number
  readonly now: number
  /** When each bucket was full again before the statement. */
  readonly tats: ReadonlyArray<number>
}

/** The answers to clients in one statement, each after the takes of those before it. */
export const answersOf = (
  demands: ReadonlyArray<Demand>,
  found: ReadonlyArray<Found>,
): ReadonlyArray<Answer> => {
  const spent = new Map<string, number>()
  return found.map(({ most, now, taken, tats }, index) => {
    const after = (demands[index]?.buckets ?? []).map(({ key, policy }, bucket) => {
      const ahead = spent.get(key) ?? 0
      spent.set(key, ahead + taken * policy.increment)
      return (tats[bucket] ?? now) + ahead
    })
    return { taken, isFinal: taken === most, now, tats: after }
  })
}
