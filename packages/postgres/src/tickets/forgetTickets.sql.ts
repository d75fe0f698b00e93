/** Deletes up to 1000 tickets that have expired. Returns one row for each. */
export const forgetTickets = (schema: string): string => `
  DELETE FROM ${schema}.tickets WHERE digest IN (
    SELECT t.digest FROM ${schema}.tickets t
    WHERE t.expires_at < statement_timestamp()
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1 AS forgotten
`
