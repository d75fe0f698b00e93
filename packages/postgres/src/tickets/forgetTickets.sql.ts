import { isAlive } from "./addTicket.sql.ts"

/** Deletes up to 1000 tickets that do not live any more. Returns one row for each. */
export const forgetTickets = (schema: string): string => `
  DELETE FROM ${schema}.tickets WHERE digest IN (
    SELECT t.digest FROM ${schema}.tickets t
    WHERE NOT ${isAlive}
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1 AS forgotten
`
