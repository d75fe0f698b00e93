import * as TokenBucket from "@tenure/core/TokenBucket"
import { bigint, text } from "../connection/parameters.ts"
import type { Demand } from "./Demand.ts"

/**
 * Takes up to `$1` tokens for one client, the same number from each bucket. Returns one row for each
 * bucket, in order. Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * The statement has no ON CONFLICT, so that one of two statements that insert the same bucket fails
 * as a whole and runs again. Otherwise its decision would rest on a bucket that it did not see.
 *
 * @param count - the number of buckets; each has three parameters: key, increment and span
 */
export const take = (schema: string, count: number): string => {
  const rows = Array.from({ length: count }, (_, index) => {
    const first = 2 + 3 * index
    return `(${index}, $${first}::text, $${first + 1}::bigint, $${first + 2}::bigint)`
  })
  const keys = Array.from({ length: count }, (_, index) => `$${2 + 3 * index}`)
  return `
    WITH clock AS MATERIALIZED (
      SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
    ),
    asked (n, key, increment, span) AS MATERIALIZED (VALUES ${rows.join(", ")}),
    kept AS MATERIALIZED (
      SELECT key, tat FROM ${schema}.buckets WHERE key IN (${keys.join(", ")})
      -- All statements lock buckets in the same order, which avoids deadlocks.
      ORDER BY key
      FOR UPDATE
    ),
    -- Before now would be more than full, and after now plus the span less than empty: what is later was
    -- stored before the clock was set back.
    state AS MATERIALIZED (
      SELECT a.n, a.key, a.increment, a.span, k.key IS NOT NULL AS is_kept, c.now,
             least(greatest(coalesce(k.tat, 0), c.now), c.now + a.span) AS tat,
             k.tat > c.now + a.span AS is_late
      FROM asked a CROSS JOIN clock c LEFT JOIN kept k ON k.key = a.key
    ),
    decision AS MATERIALIZED (
      SELECT least($1::bigint, min((span - (tat - now)) / increment)) AS taken FROM state
    ),
    updated AS (
      UPDATE ${schema}.buckets b SET tat = s.tat + d.taken * s.increment
      FROM state s, decision d
      -- Otherwise nobody would take from a late bucket until the clock has reached it.
      WHERE b.key = s.key AND (d.taken > 0 OR s.is_late)
    ),
    inserted AS (
      INSERT INTO ${schema}.buckets (key, tat)
      SELECT s.key, s.tat + d.taken * s.increment FROM state s, decision d
      WHERE NOT s.is_kept AND d.taken > 0
    )
    SELECT s.tat::float8, s.now::float8, d.taken::integer FROM state s, decision d ORDER BY s.n
  `
}

/** The parameters of `take`. */
export const takeParams = ({ buckets, count }: Demand) => [
  bigint(count),
  ...buckets.flatMap(({ key, policy }) => [
    text(key),
    bigint(policy.increment),
    bigint(TokenBucket.span(policy)),
  ]),
]

/** A row of `take`. */
export interface TakeRow {
  /** When the bucket was full again before. */
  readonly tat: number
  /** The time by the clock of the database. */
  readonly now: number
  /** The number of tokens taken, the same for each bucket. */
  readonly taken: number
}
