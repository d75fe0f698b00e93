/** What a statement has decided on the takes of one client. */

import type { Take } from "@tenure/core/RateLimitStore"
import { Micros } from "@tenure/core/Units"
import type { Bucket } from "./Bucket.ts"

/** A bucket after the takes of others in the statement. Times are in microseconds. */
export interface FoundRow {
  /** When the bucket is full. */
  readonly tat: number
  /** The time by the clock of the database. */
  readonly now: number
  /** The number of takes that were admitted, the same for each bucket of the client. */
  readonly taken: number
}

/** The answer to the takes of one client. */
export interface Answer {
  /** One row for each bucket, in order. */
  readonly rows: ReadonlyArray<FoundRow>
  /**
   * Whether the takes that were not admitted are refused. Otherwise they are undecided: others in the
   * statement may have left tokens that they had asked for.
   */
  readonly isFinal: boolean
}

/**
 * The outcomes of the takes, in order, as many as are decided. As many are admitted as tokens were
 * taken.
 *
 * @param count - the number of takes
 */
export const outcomesOf = (
  buckets: ReadonlyArray<Bucket>,
  { isFinal, rows }: Answer,
  count: number,
): ReadonlyArray<Take> => {
  const taken = rows[0]?.taken ?? 0
  const now = Micros(rows[0]?.now ?? 0)
  return Array.from({ length: isFinal ? count : taken }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const [address = now, key = now, burst = now] = buckets.map(({ policy }, bucket) =>
      Micros((rows[bucket]?.tat ?? now) + spent * policy.increment),
    )
    return { admitted: index < taken, now, address, key, burst }
  })
}
