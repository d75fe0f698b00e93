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
  WITH locked AS MATERIALIZED (
    SELECT p.number, p.bulk_seq FROM ${schema}.projects p
    -- A project that is parked while it moves gets a pass when that is over.
    WHERE p.alarm_at <= statement_timestamp() AND p.id > chr(31) ORDER BY p.alarm_at LIMIT $1
    FOR NO KEY UPDATE SKIP LOCKED
  ),
  seen AS (
    SELECT p.number, ${alarmOf(
      schema,
      `least(p.bulk_end_date, (
        SELECT min(f.end_date) FROM ${schema}.floors f WHERE f.project_number = p.number
      ))`,
    )} AS first
    FROM locked l
    JOIN ${schema}.projects p ON p.number = l.number AND p.bulk_seq = l.bulk_seq
  ),
  due AS MATERIALIZED (
    SELECT number, CASE WHEN first > statement_timestamp() THEN first END AS later FROM seen
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
 * Sets alarms for the next `$1` members of the oldest pass, and stops at the first one that is locked.
 * Returns one row if there was a pass, which tells whether it has come further.
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
  free AS MATERIALIZED (
    SELECT page.n, m.project_number, m.user_id, ${alarmOf(schema, effectiveDate(schema))} AS alarm_at
    FROM page
    JOIN ${schema}.memberships m ON m.project_number = page.project_number AND m.user_id = page.user_id
    LEFT JOIN ${schema}.projects p ON p.number = m.project_number
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  passed AS MATERIALIZED (
    SELECT * FROM page
    WHERE n < ALL (SELECT n FROM page WHERE n NOT IN (SELECT n FROM free))
  ),
  armed AS (
    UPDATE ${schema}.memberships m SET alarm_at = f.alarm_at
    FROM free f
    WHERE m.project_number = f.project_number AND m.user_id = f.user_id
      AND (m.alarm_at <= f.alarm_at) IS NOT TRUE
  ),
  turn AS MATERIALIZED (
    SELECT pass.id, members < $1 AND members = (SELECT count(*) FROM passed) AS is_last
    FROM pass, (SELECT count(*) AS members FROM page) all_members
  ),
  -- With a new id it waits for its next turn, so a locked member holds up no other pass.
  moved AS (
    UPDATE ${schema}.expiry_passes w
    SET id = DEFAULT, after_project = coalesce(last.project_number, w.after_project),
        after_user = coalesce(last.user_id, w.after_user)
    FROM turn LEFT JOIN (SELECT * FROM passed ORDER BY n DESC LIMIT 1) last ON true
    WHERE w.id = turn.id AND NOT turn.is_last
  ),
  ended AS (
    DELETE FROM ${schema}.expiry_passes WHERE id = (SELECT id FROM turn WHERE is_last)
  )
  SELECT EXISTS (SELECT FROM passed) OR NOT EXISTS (SELECT FROM page) AS has_moved FROM pass
`

/** The row of `goOn`. */
export interface PassRow {
  readonly has_moved: boolean
}

/** The parameters of both statements. */
export const passParams = (most: number) => [integer(most)]
