/** Deletes up to 1000 idempotency keys older than `$1` days. Returns one row for each. */
export const forgetAnswers = (schema: string): string => `
  DELETE FROM ${schema}.answers WHERE (owner, key, moved_with) IN (
    SELECT owner, key, moved_with FROM ${schema}.answers
    -- A time that does not change during the statement, so that the index finds the old ones.
    WHERE at < statement_timestamp() - $1::double precision * interval '1 day'
    ORDER BY at
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1
`
