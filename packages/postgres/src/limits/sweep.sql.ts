/** Deletes up to 1000 full buckets; a missing bucket is full. Returns one row for each. */
export const sweep = (schema: string): string => `
  DELETE FROM ${schema}.buckets WHERE key IN (
    SELECT key FROM ${schema}.buckets
    WHERE tat < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1 AS swept
`
