/**
 * Takes up to `$1` tokens from each of some buckets, the same number from all. Gives for each bucket,
 * in order, when it was full again before; how many were taken; and the clock in microseconds.
 *
 * There is no ON CONFLICT on purpose: where two create a bucket at the same time, one of them fails
 * as a whole and tries again. It would otherwise have decided on a state that is not the bucket's.
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
      -- Everybody locks in the same order.
      ORDER BY key
      FOR UPDATE
    ),
    -- A tat is never before now, which were more than full, nor later than empty.
    state AS MATERIALIZED (
      SELECT a.n, a.key, a.increment, a.span, k.key IS NOT NULL AS is_kept, c.now,
             least(greatest(coalesce(k.tat, 0), c.now), c.now + a.span) AS tat
      FROM asked a CROSS JOIN clock c LEFT JOIN kept k ON k.key = a.key
    ),
    decision AS MATERIALIZED (
      SELECT least($1::bigint, min((span - (tat - now)) / increment)) AS taken FROM state
    ),
    updated AS (
      UPDATE ${schema}.buckets b SET tat = s.tat + d.taken * s.increment
      FROM state s, decision d
      WHERE b.key = s.key AND d.taken > 0
    ),
    inserted AS (
      INSERT INTO ${schema}.buckets (key, tat)
      SELECT s.key, s.tat + d.taken * s.increment FROM state s, decision d
      WHERE NOT s.is_kept AND d.taken > 0
    )
    SELECT s.tat, s.now, d.taken FROM state s, decision d ORDER BY s.n
  `
}

/** Forgets buckets that are full, some at a time. */
export const sweep = (schema: string): string => `
  DELETE FROM ${schema}.buckets WHERE key IN (
    SELECT key FROM ${schema}.buckets
    WHERE tat < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1 AS swept
`
