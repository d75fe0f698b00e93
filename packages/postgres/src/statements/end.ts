import { auditing, publishing } from "./publish.ts"

/** Removes a membership. Gives a row if there was one. */
export const end = (schema: string): string => `
  WITH asked AS (
    SELECT $1::text AS project_id, $2::text AS user_id, NULL::timestamptz AS to_date,
           $3::timestamptz AS at, $4::text AS request_id, $5::text AS key_id,
           $6::uuid AS event_id, $7::text AS event_type, $8::text AS body, 1 AS n
  ),
  project AS MATERIALIZED (
    SELECT id, bulk_seq, bulk_end_date FROM ${schema}.projects WHERE id = $1
    FOR NO KEY UPDATE
  ),
  ended AS (
    DELETE FROM ${schema}.memberships m USING project p
    WHERE m.project_id = p.id AND m.user_id = $2
    RETURNING CASE WHEN m.seq >= p.bulk_seq THEN m.end_date ELSE p.bulk_end_date END AS from_date
  ),
  counted AS (
    UPDATE ${schema}.projects SET members = members - 1
    WHERE id = $1 AND EXISTS (SELECT FROM ended)
  ),
  changed AS (SELECT a.*, e.from_date FROM asked a, ended e),
  ${auditing(schema, "changed", "ended")},${publishing(schema, "changed")}
  SELECT (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
