/** What the statements share that change memberships. */

/**
 * A common table expression, named `asked`, of the parameters that every change has: a project, a
 * user unless it is of all, the end date after it if there is one, and `at` to `body`.
 */
export const asked = `
  asked AS (
    SELECT $1::text AS project_id, $2::text AS user_id, $3::timestamptz AS to_date,
           $4::timestamptz AS at, $5::text AS request_id, $6::text AS key_id,
           $7::uuid AS event_id, $8::text AS event_type, $9::text AS body, 1 AS n
  )`

/**
 * A common table expression, named `project`, that locks the project, so that its members can be
 * counted and no bulk extension comes in between.
 */
export const lockedProject = (schema: string): string => `
  project AS MATERIALIZED (
    SELECT id, bulk_seq, bulk_end_date FROM ${schema}.projects WHERE id = $1
    FOR NO KEY UPDATE
  )`

/** The end date that holds for a membership `m` of a project `p`. */
export const current = "CASE WHEN m.seq >= p.bulk_seq THEN m.end_date ELSE p.bulk_end_date END"
