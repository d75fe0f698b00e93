import type { Grant } from "@tenure/core/MembershipStore"
import { instants, texts, uuids } from "../connection/parameters.ts"
import { publishing } from "../outbox/fragments.sql.ts"
import { auditing, effectiveDate } from "./fragments.sql.ts"

/**
 * Sets the end dates of memberships. Each array has one element for each membership. Returns the
 * positions, from 1, of the memberships that exist, and the number of deliveries.
 *
 * A membership keeps its own seq if that is greater than the project's. Otherwise a statement that
 * read the project before a bulk extension could undo a later extension of the same membership.
 */
export const extend = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                         $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[])
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, body, n)
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY project_id COLLATE "C", user_id COLLATE "C"
  ),
  changed AS (
    UPDATE ${schema}.memberships m
    SET end_date = a.to_date,
        seq = greatest(m.seq, p.bulk_seq),
        previous_end_date = ${effectiveDate}
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WHERE m.project_id = a.project_id AND m.user_id = a.user_id
    RETURNING a.*, m.seq, m.previous_end_date AS from_date
  ),${auditing(schema, "changed", "extended")},${publishing(schema, "changed")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** The parameters of `extend`. */
export const extendParams = (extensions: ReadonlyArray<Grant>) => [
  texts(extensions.map(({ projectId }) => projectId)),
  texts(extensions.map(({ userId }) => userId)),
  instants(extensions.map(({ endDate }) => endDate)),
  instants(extensions.map(({ at }) => at)),
  texts(extensions.map(({ origin }) => origin.requestId)),
  texts(extensions.map(({ origin }) => origin.keyId)),
  uuids(extensions.map(({ event }) => event.id)),
  texts(extensions.map(({ event }) => event.type)),
  texts(extensions.map(({ event }) => event.body)),
]
