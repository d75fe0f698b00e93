import type { Ticket } from "@tenure/core/Ticket"
import type { TicketBounds } from "@tenure/core/TicketStore"
import { days, integer, text, texts } from "../connection/parameters.ts"

/**
 * An expression for whether a ticket `t` lives. One that lives longer than tickets do was added while the clock
 * was ahead; a second more allows for a clock that is corrected by a little.
 */
export const isAlive = `(
      t.expires_at > clock_timestamp()
      AND t.expires_at <= clock_timestamp() + t.life + interval '1 second'
    )`

/**
 * Creates the function `add_ticket`, which adds a ticket unless as many of its key live as may. Returns one row if
 * it was added.
 *
 * It is a function so that tickets are counted after the lock: others may have been added in the meantime.
 */
export const createAddTicket = (schema: string): string => `
  CREATE FUNCTION ${schema}.add_ticket(
    new_digest text, of_key text, of_digest text, of_projects text[], life interval, most integer
  ) RETURNS SETOF integer LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema}.tickets ' || of_key, 0));
    IF most <= (
      SELECT count(*) FROM (
        SELECT FROM ${schema}.tickets t WHERE t.key_id = of_key AND ${isAlive} LIMIT most
      ) living
    ) THEN RETURN; END IF;
    INSERT INTO ${schema}.tickets (digest, key_id, key_digest, projects, life, expires_at)
    VALUES (new_digest, of_key, of_digest, of_projects, life, clock_timestamp() + life);
    RETURN NEXT 1;
  END $$
`

/** Adds a ticket, by calling the function of the migrations. */
export const addTicket = (schema: string): string => `
  SELECT * FROM ${schema}.add_ticket(
    $1::text, $2::text, $3::text, $4::text[], $5::double precision * interval '1 day', $6::integer
  )
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
