/** Statements that plan when memberships are looked at: next checks, and the passes that set them. */

import { type Millis, expiredLead } from "@tenure/core/store"
import { graceOf } from "./project-settings.ts"
import { effectiveEndDateSql, nextCheckOf, quickCommit } from "./sql/clauses.ts"
import { type Integer, integerParam, integersParam, millisOf } from "./sql/values.ts"

/**
 * Watches end dates, for reminders of `$1` seconds, longest first. If one of them is new, a pass goes through
 * all memberships, once all transactions that may not know about it have ended. The same if watching began at
 * a time that is in the future: the clock was ahead, and some memberships were checked too early. Returns one
 * row, or none if another process was faster.
 */
export const startWatchingEnds = (schema: string): string => `
  WITH changed AS (
    INSERT INTO ${schema}.expiry_settings AS x (since, leads, longest)
    VALUES (statement_timestamp(), $1, ($1::integer[])[1] * interval '1 second')
    ON CONFLICT (is_only) DO UPDATE
    SET since = least(x.since, excluded.since), leads = excluded.leads,
        longest = greatest(x.longest, excluded.longest)
    WHERE x.leads <> excluded.leads OR x.since > excluded.since
    RETURNING since
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project, begun_in)
    SELECT 0, 9223372036854775807, pg_current_xact_id() FROM changed
    WHERE NOT EXISTS (SELECT FROM ${schema}.expiry_settings x WHERE $1 <@ x.leads AND x.since <= statement_timestamp())
  )
  SELECT ${millisOf("since")} AS since
  FROM (SELECT since FROM changed UNION ALL SELECT since FROM ${schema}.expiry_settings) w LIMIT 1
`

/** Returns when the watch began, if it has. */
export const findWatchStart = (schema: string): string =>
  `SELECT ${millisOf("since")} AS since FROM ${schema}.expiry_settings`

/** The parameters for `startWatchingEnds`. */
export const watchParams = (leads: ReadonlyArray<Millis>) => [
  integersParam(leads.map((lead) => lead / 1000)),
]

/** The row from `startWatchingEnds` and `findWatchStart`. */
export interface WatchStartRow {
  readonly since: Integer
}

/** A condition on a pass: the transactions that it waits for have ended. */
const canGoOn = "(begun_in IS NULL OR begun_in < pg_snapshot_xmin(pg_current_snapshot()))"

/**
 * Returns whether a pass can begin or go on, whether members' next checks are due, and in how many
 * milliseconds the first one is. Most sweeps need no other statement. This one locks nothing, so the others
 * check again.
 */
export const findChecksDue = (schema: string): string => `
  SELECT coalesce(project <= statement_timestamp(), false) OR EXISTS (
           SELECT FROM ${schema}.expiry_passes WHERE ${canGoOn}
         ) AS has_pass,
         coalesce(member <= statement_timestamp(), false) AS has_members,
         -- Before version 17, PostgreSQL does not subtract infinite times.
         ceil(1000 * extract(epoch FROM
           least(nullif(project, '-infinity'), member) - statement_timestamp()
         ))::double precision AS next_in
  FROM (
    SELECT (SELECT min(next_check_at) FROM ${schema}.projects) AS project,
           (SELECT min(next_check_at) FROM ${schema}.memberships) AS member
  ) first
`

/** The row from `findChecksDue`. */
export interface ChecksDueRow {
  readonly has_pass: boolean
  readonly has_members: boolean
  /** NULL if no check is planned. */
  readonly next_in: number | null
}

/** The time in milliseconds until the first check, unless something is due now. */
export const toNextDueMillis = ({
  has_members,
  has_pass,
  next_in,
}: ChecksDueRow): number | undefined =>
  has_pass || has_members ? undefined : (next_in ?? Infinity)

/**
 * Reads up to `$1` projects whose next checks are due, which are for the dates of bulk extensions. Postpones
 * those whose bulk extensions have later dates, and begins passes for the others. Returns one row for each.
 * After a pass, all members have their own next checks.
 *
 * A row that was locked is current, but not the bulk extensions beside it. So only projects count which had
 * none since the statement began, and none undone.
 */
export const beginExpiryPasses = (schema: string): string => `
  WITH ${quickCommit},
  locked AS MATERIALIZED (
    SELECT p.number, p.seq FROM ${schema}.projects p
    WHERE EXISTS (SELECT FROM quick) AND p.next_check_at <= statement_timestamp() ORDER BY p.next_check_at LIMIT $1
    FOR NO KEY UPDATE SKIP LOCKED
  ),
  seen AS (
    SELECT p.number, p.next_check_at, p.bulk_unseen_since, ${nextCheckOf(
      schema,
      `(SELECT min(b.minimum) FROM ${schema}.bulk_extensions b WHERE b.project_number = p.number AND b.state <> 'settled')`,
    )} AS first
    FROM locked l
    JOIN ${schema}.projects p ON p.number = l.number AND p.seq = l.seq
  ),
  due AS MATERIALIZED (
    SELECT number, bulk_unseen_since,
           CASE WHEN next_check_at > '-infinity' AND first > statement_timestamp() THEN first END AS later
    FROM seen
  ),
  turned AS (
    UPDATE ${schema}.projects p
    SET next_check_at = d.later, bulk_unseen_since = CASE WHEN d.later IS NOT NULL THEN d.bulk_unseen_since END
    FROM due d WHERE p.number = d.number
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project, changed_at)
    SELECT number, number, bulk_unseen_since FROM due WHERE later IS NULL
  )
  SELECT number FROM due
`

/**
 * Sets next checks for the next `$1` members in the oldest pass, and stops at the first one that is locked.
 * Returns one row if there was a pass, with whether it has moved on.
 *
 * A member without a next check and without a pause gets none if there is nothing to announce: its expiry was announced or came
 * before ends were watched, and its grace was over before the first bulk extension in the pass, so that extensions
 * since then have found it expired. A member whom the first one has made active again may have ended before the
 * next.
 */
export const continueExpiryPass = (schema: string): string => `
  WITH pass AS MATERIALIZED (
    SELECT * FROM ${schema}.expiry_passes
    WHERE ${canGoOn}
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
    SELECT page.n, m.project_number, m.user_id, ${effectiveEndDateSql(schema)} AS end_date,
           coalesce((SELECT changed_at FROM pass), p.bulk_changed_at) AS changed_at,
           ${graceOf("p")} AS grace
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
    UPDATE ${schema}.memberships m SET next_check_at = ${nextCheckOf(schema, "f.end_date")}
    FROM free f
    WHERE m.project_number = f.project_number AND m.user_id = f.user_id
      AND (m.next_check_at <= ${nextCheckOf(schema, "f.end_date")}) IS NOT TRUE
      AND NOT (
        m.next_check_at IS NULL AND m.paused_at IS NULL AND (f.end_date + f.grace <= f.changed_at) IS TRUE
        AND (m.announced_lead_seconds = ${expiredLead / 1000} OR f.end_date + f.grace <= (SELECT x.since FROM ${schema}.expiry_settings x)) IS TRUE
      )
  ),
  turn AS MATERIALIZED (
    SELECT pass.id, members < $1 AND members = (SELECT count(*) FROM passed) AS is_last
    FROM pass, (SELECT count(*) AS members FROM page) all_members
  ),
  -- With a new id, it goes to the end of the queue, so that a locked member holds up no other pass.
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

/** The row from `continueExpiryPass`. */
export interface ExpiryPassRow {
  readonly has_moved: boolean
}

/** The parameters for both pass statements. */
export const passParams = (limit: number) => [integerParam(limit)]
