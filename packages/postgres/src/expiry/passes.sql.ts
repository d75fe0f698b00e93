/**
 * Statements for the alarms of projects, which are for the dates that bulk extensions have set. When one has
 * come, a pass goes through the members, and gives each an alarm of its own.
 */

import { integer } from "../connection/parameters.ts"
import { effectiveDate } from "../memberships/fragments.sql.ts"
import { alarmOf } from "./fragments.sql.ts"

/**
 * Postpones the alarms of up to `$1` projects that have come, if all of their bulk extensions are later.
 * Begins passes for the others. Returns one row for each.
 *
 * Whoever locks a project has the current row, but not the current floors. So it only turns to projects
 * without further bulk extensions since the statement began.
 */
export const beginPasses = (schema: string): string => `
  WITH seen AS MATERIALIZED (
    SELECT p.number, p.bulk_seq, ${alarmOf(
      schema,
      `least(p.bulk_end_date, (
        SELECT min(f.end_date) FROM ${schema}.floors f WHERE f.project_number = p.number
      ))`,
    )} AS first
    FROM ${schema}.projects p
    WHERE p.alarm_at <= statement_timestamp() ORDER BY p.alarm_at LIMIT $1
  ),
  due AS MATERIALIZED (
    SELECT s.number, CASE WHEN s.first > statement_timestamp() THEN s.first END AS later
    FROM seen s
    JOIN ${schema}.projects p ON p.number = s.number AND p.bulk_seq = s.bulk_seq
    WHERE p.alarm_at <= statement_timestamp()
    FOR NO KEY UPDATE OF p SKIP LOCKED
  ),
  turned AS (
    UPDATE ${schema}.projects p SET alarm_at = d.later FROM due d WHERE p.number = d.number
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project)
    SELECT number, number FROM due WHERE later IS NULL
  )
  SELECT number FROM due
`

/**
 * Gives alarms to the next `$1` members of the oldest pass that nobody else goes on with. Returns one row if
 * there was one.
 */
export const goOn = (schema: string): string => `
  WITH pass AS MATERIALIZED (
    SELECT * FROM ${schema}.expiry_passes
    WHERE begun_in IS NULL OR begun_in < pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY id LIMIT 1
    FOR UPDATE SKIP LOCKED
  ),
  page AS MATERIALIZED (
    SELECT m.project_number, m.user_id, row_number() OVER (ORDER BY m.project_number, m.user_id) AS n
    FROM ${schema}.memberships m
    WHERE (m.project_number, m.user_id) >
            ((SELECT after_project FROM pass), (SELECT after_user FROM pass))
      AND m.project_number <= (SELECT last_project FROM pass)
    ORDER BY m.project_number, m.user_id LIMIT $1
  ),
  dated AS MATERIALIZED (
    SELECT m.project_number, m.user_id, ${alarmOf(schema, effectiveDate(schema))} AS alarm_at
    FROM page
    JOIN ${schema}.memberships m ON m.project_number = page.project_number AND m.user_id = page.user_id
    JOIN ${schema}.projects p ON p.number = m.project_number
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY p.id, m.user_id
    FOR NO KEY UPDATE OF m
  ),
  armed AS (
    UPDATE ${schema}.memberships m SET alarm_at = d.alarm_at
    FROM dated d
    WHERE m.project_number = d.project_number AND m.user_id = d.user_id
      AND (m.alarm_at <= d.alarm_at) IS NOT TRUE
  ),
  moved AS (
    UPDATE ${schema}.expiry_passes w SET after_project = page.project_number, after_user = page.user_id
    FROM pass, page WHERE w.id = pass.id AND page.n = $1
  ),
  ended AS (
    DELETE FROM ${schema}.expiry_passes
    WHERE id = (SELECT id FROM pass) AND NOT EXISTS (SELECT FROM page WHERE n = $1)
  )
  SELECT id FROM pass
`

/** The parameters of both statements. */
export const passParams = (most: number) => [integer(most)]
