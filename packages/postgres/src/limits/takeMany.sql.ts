import * as TokenBucket from "@tenure/core/TokenBucket"
import { floats, integers, texts } from "../connection/parameters.ts"
import type { Demand } from "./Demand.ts"

/**
 * Takes tokens for several clients, for each the same number from each of its buckets. Returns a row
 * for each client, in order. Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * `$1` has the keys of all buckets, each once. The other arrays have one element for each client: the
 * positions of its buckets in `$1`, the number of takes, and the increments and spans of the buckets.
 * A client without a key has an address only.
 *
 * A client gets what those before it can leave: `most` is what each could take without them, and
 * `…_ahead` what these could take of a bucket. That is exact unless one of them takes less, because
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
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now,
           array_agg(coalesce(tat, 0)::float8 ORDER BY bucket) AS tats
    FROM kept
  ),
  -- As in \`take\`: full at the earliest, empty at the latest. NULL is ignored by both functions.
  demand AS (
    SELECT d.*, f.now,
           least(greatest(f.tats[d.address], f.now), f.now + d.address_span) AS address_tat,
           least(greatest(f.tats[d.key], f.now), f.now + d.key_span) AS key_tat,
           least(greatest(f.tats[d.burst], f.now), f.now + d.burst_span) AS burst_tat
    FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::integer[], $6::float8[],
                $7::float8[], $8::float8[], $9::float8[], $10::float8[], $11::float8[])
      WITH ORDINALITY
      AS d (address, key, burst, count, address_increment, address_span,
            key_increment, key_span, burst_increment, burst_span, n)
    CROSS JOIN found f
  ),
  -- What is missing is NULL, which least() ignores.
  bounded AS (
    SELECT *, greatest(0, least(count, floor((address_span - (address_tat - now)) / address_increment),
                                floor((key_span - (key_tat - now)) / key_increment),
                                floor((burst_span - (burst_tat - now)) / burst_increment))) AS most
    FROM demand
  ),
  queued AS (
    SELECT *, coalesce(sum(most * address_increment) OVER of_address, 0) AS address_ahead,
           coalesce(sum(most * key_increment) OVER of_key, 0) AS key_ahead,
           coalesce(sum(most * burst_increment) OVER of_key, 0) AS burst_ahead
    FROM bounded
    WINDOW
      of_address AS (PARTITION BY address ORDER BY n
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
      of_key AS (PARTITION BY key ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ),
  decided AS MATERIALIZED (
    SELECT *, greatest(0, least(
      most,
      floor((address_span - (address_tat - now) - address_ahead) / address_increment),
      floor((key_span - (key_tat - now) - key_ahead) / key_increment),
      floor((burst_span - (burst_tat - now) - burst_ahead) / burst_increment)
    )) AS taken
    FROM queued
  ),
  spent AS MATERIALIZED (
    SELECT array_agg(micros ORDER BY bucket) AS micros, array_agg(empty ORDER BY bucket) AS empty
    FROM (
      SELECT s.bucket, sum(s.micros) AS micros, max(d.now + s.span) AS empty
      FROM decided d
      CROSS JOIN LATERAL (VALUES (address, taken * address_increment, address_span),
                                 (key, taken * key_increment, key_span),
                                 (burst, taken * burst_increment, burst_span)) AS s (bucket, micros, span)
      WHERE s.bucket IS NOT NULL
      GROUP BY s.bucket
    ) s
  ),
  changed AS MATERIALIZED (
    SELECT k.key, k.tat IS NOT NULL AS is_kept,
           (least(greatest(coalesce(k.tat, 0), f.now), s.empty[k.bucket])
            + s.micros[k.bucket])::bigint AS tat
    FROM kept k CROSS JOIN found f CROSS JOIN spent s
    -- What is later than empty was stored before the clock was set back.
    WHERE s.micros[k.bucket] > 0 OR k.tat > s.empty[k.bucket]
    ORDER BY k.key
  ),
  updated AS (
    INSERT INTO ${schema}.buckets (key, tat) SELECT key, tat FROM changed WHERE is_kept
    ON CONFLICT (key) DO UPDATE SET tat = excluded.tat
  ),
  inserted AS (
    INSERT INTO ${schema}.buckets (key, tat) SELECT key, tat FROM changed WHERE NOT is_kept
  )
  SELECT taken, most, now, address_tat AS address, key_tat AS key, burst_tat AS burst
  FROM decided
  ORDER BY n
`

/** The parameters of `takeMany`. */
export const takeManyParams = (demands: ReadonlyArray<Demand>) => {
  const positions = new Map<string, number>()
  const positionOf = (key: string): number => {
    const position = positions.get(key) ?? positions.size + 1
    positions.set(key, position)
    return position
  }
  const rows = demands.map(({ buckets, count }) => {
    const [address, key, burst] = buckets.map((bucket) => ({
      at: positionOf(bucket.key),
      increment: bucket.policy.increment,
      span: TokenBucket.span(bucket.policy),
    }))
    return { address, key, burst, count }
  })
  return [
    texts([...positions.keys()]),
    integers(rows.map(({ address }) => address?.at)),
    integers(rows.map(({ key }) => key?.at)),
    integers(rows.map(({ burst }) => burst?.at)),
    integers(rows.map(({ count }) => count)),
    floats(rows.map(({ address }) => address?.increment)),
    floats(rows.map(({ address }) => address?.span)),
    floats(rows.map(({ key }) => key?.increment)),
    floats(rows.map(({ key }) => key?.span)),
    floats(rows.map(({ burst }) => burst?.increment)),
    floats(rows.map(({ burst }) => burst?.span)),
  ]
}

/** A row of `takeMany`: the buckets of a client before the statement. */
export interface TakeManyRow {
  readonly taken: number
  /** What could have been taken without the clients before. */
  readonly most: number
  readonly now: number
  readonly address: number
  readonly key: number
  readonly burst: number
}
