import * as TokenBucket from "@tenure/core/TokenBucket"
import { bigints, integers, texts } from "../connection/parameters.ts"
import type { FoundRow } from "./Answer.ts"
import type { Bucket } from "./Bucket.ts"

/**
 * Takes tokens for several clients, for each the same number from each of its buckets. Returns a row
 * for each bucket of each client, in order. Times are in microseconds.
 *
 * `$1` has the keys of all buckets, each once. The other arrays have one element for each bucket of each
 * client: the number of the client, the position of the bucket in `$1`, the number of takes, and the
 * bucket's increment and span.
 *
 * A client gets what the clients before it can leave: `most` is what each could take without them, and
 * `ahead` what these could take of a bucket. That is exact unless one of them takes less, because
 * another of its buckets is short. Then `taken` is less than `most`, and the rest is undecided.
 *
 * As in `take`, of two statements that insert the same bucket one fails and runs again. Existing buckets
 * are updated by way of ON CONFLICT, which finds each by its key whatever the planner believes of the
 * size of the table. They are locked by then.
 */
export const takeMany = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT bucket, key FROM unnest($1::text[]) WITH ORDINALITY AS a (key, bucket)
    -- All statements lock buckets in the same order, which avoids deadlocks.
    ORDER BY key COLLATE "C"
  ),
  kept AS MATERIALIZED (
    SELECT a.bucket, a.key, b.tat
    FROM asked a
    LEFT JOIN LATERAL (
      SELECT tat FROM ${schema}.buckets WHERE key = a.key FOR UPDATE
    ) b ON true
  ),
  found AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
           array_agg(coalesce(tat, 0) ORDER BY bucket) AS tats
    FROM kept
  ),
  demand AS (
    SELECT d.*, f.now, greatest(f.tats[d.bucket], f.now) AS tat
    FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::bigint[], $6::bigint[])
      WITH ORDINALITY AS d (client, bucket, count, increment, span, n)
    CROSS JOIN found f
  ),
  bounded AS (
    SELECT *, greatest(0, least(count, min((span - (tat - now)) / increment) OVER (PARTITION BY client)))
                AS most
    FROM demand
  ),
  queued AS (
    SELECT *, coalesce(sum(most * increment) OVER (
                PARTITION BY bucket ORDER BY n
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
              ), 0)::bigint AS ahead
    FROM bounded
  ),
  decided AS MATERIALIZED (
    SELECT *, greatest(0, least(most, min((span - (tat - now) - ahead) / increment)
                                        OVER (PARTITION BY client))) AS taken
    FROM queued
  ),
  spent AS MATERIALIZED (
    SELECT array_agg(micros ORDER BY bucket) AS micros
    FROM (SELECT bucket, sum(taken * increment)::bigint AS micros FROM decided GROUP BY bucket) s
  ),
  changed AS MATERIALIZED (
    SELECT k.key, k.tat IS NOT NULL AS is_kept,
           greatest(coalesce(k.tat, 0), f.now) + s.micros[k.bucket] AS tat
    FROM kept k CROSS JOIN found f CROSS JOIN spent s
    WHERE s.micros[k.bucket] > 0
    ORDER BY k.key
  ),
  updated AS (
    INSERT INTO ${schema}.buckets (key, tat) SELECT key, tat FROM changed WHERE is_kept
    ON CONFLICT (key) DO UPDATE SET tat = excluded.tat
  ),
  inserted AS (
    INSERT INTO ${schema}.buckets (key, tat) SELECT key, tat FROM changed WHERE NOT is_kept
  )
  SELECT taken::integer, most::integer, now::float8,
         (least(tat, now + span)
          + sum(taken * increment) OVER (PARTITION BY bucket ORDER BY n) - taken * increment)::float8
           AS tat
  FROM decided
  ORDER BY n
`

/** The takes of a client. */
interface Demand {
  readonly buckets: ReadonlyArray<Bucket>
  readonly count: number
}

/** The parameters of `takeMany`. */
export const takeManyParams = (demands: ReadonlyArray<Demand>) => {
  const positions = new Map<string, number>()
  const rows = demands.flatMap(({ buckets, count }, index) =>
    buckets.map(({ key, policy }) => {
      const bucket = positions.get(key) ?? positions.size + 1
      positions.set(key, bucket)
      return { client: index + 1, bucket, count, policy }
    }),
  )
  return [
    texts([...positions.keys()]),
    integers(rows.map(({ client }) => client)),
    integers(rows.map(({ bucket }) => bucket)),
    integers(rows.map(({ count }) => count)),
    bigints(rows.map(({ policy }) => BigInt(policy.increment))),
    bigints(rows.map(({ policy }) => BigInt(TokenBucket.span(policy)))),
  ]
}

/** A row of `takeMany`. */
export interface TakeManyRow extends FoundRow {
  /** What could have been taken without the clients before. */
  readonly most: number
}
