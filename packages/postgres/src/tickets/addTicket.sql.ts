import type { Ticket } from "@tenure/core/Ticket"
import type { TicketBounds } from "@tenure/core/TicketStore"
import { days, integer, text, texts } from "../connection/parameters.ts"

/** Adds a ticket, unless $6 tickets of its key live. Returns one row if it was added. */
export const addTicket = (schema: string): string => `
  INSERT INTO ${schema}.tickets (digest, key_id, key_digest, projects, expires_at)
  SELECT $1::text, $2::text, $3::text, $4::text[],
         clock_timestamp() + $5::double precision * interval '1 day'
  WHERE $6::integer > (
    SELECT count(*) FROM (
      SELECT FROM ${schema}.tickets t
      WHERE t.key_id = $2::text AND t.expires_at > statement_timestamp()
      LIMIT $6::integer
    ) living
  )
  RETURNING 1 AS added
`

/** The parameters of `addTicket`. */
export const addTicketParams = (
  { digest, keyDigest, keyId, projects }: Ticket,
  { lifeMillis, most }: TicketBounds,
) => [
  text(digest),
  text(keyId),
  text(keyDigest),
  projects === "all" ? text(undefined) : texts([...projects]),
  days(lifeMillis),
  integer(most),
]
