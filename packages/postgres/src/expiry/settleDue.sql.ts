import type { Outcome } from "@tenure/core/Expiry"
import { bigints, instants, integers, texts, uuids } from "../connection/parameters.ts"
import { millisOf } from "../connection/results.ts"
import {
  auditingAs,
  effectiveDateLocked,
  projectColumns,
  publishingChange,
} from "../memberships/fragments.sql.ts"
import { nextSeq } from "../sequence.sql.ts"
import type { DueRow } from "./findDue.sql.ts"

/**
 * Does what was decided of memberships, if they have not changed since they were read and have the end dates by
 * which it was decided, and nobody has locked them: sets alarms, and publishes and audits
 * announcements. Returns the positions, from 1, of those that were announced, with their sequences, and the number of deliveries.
 */
export const settleDue = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[],
                         $6::timestamptz[], $7::integer[], $8::uuid[], $9::text[], $10::timestamptz[],
                         $11::text[])
    WITH ORDINALITY
    AS a (project_number, user_id, version, end_date, alarm_at, announced_end, announced_lead, event_id,
          event_type, at, head, n)
  ),
  project AS MATERIALIZED (
    -- A project that is parked while it moves has no name.
    SELECT ${projectColumns} FROM ${schema}.projects WHERE number = ANY ($1) AND id > chr(31)
    -- Nothing waits for a lock while it holds those of other projects.
    FOR NO KEY UPDATE SKIP LOCKED
  ),
  unchanged AS MATERIALIZED (
    SELECT a.*, p.seq AS project_seq, p.bulk_seq FROM asked a
    JOIN project p ON p.number = a.project_number
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    WHERE m.xmin::text = a.version AND ${millisOf(effectiveDateLocked(schema))} = a.end_date
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  settled AS (
    UPDATE ${schema}.memberships m
    SET alarm_at = u.alarm_at,
        -- The sequence is greater than those of all bulk extensions, so the date has to be the member's own.
        end_date = coalesce(u.announced_end, m.end_date),
        seq = CASE WHEN u.announced_end IS NULL THEN m.seq ELSE ${nextSeq(schema, "m.seq", "u")} END,
        announced_end = coalesce(u.announced_end, m.announced_end),
        announced_lead = coalesce(u.announced_lead, m.announced_lead)
    FROM unchanged u
    WHERE m.project_number = u.project_number AND m.user_id = u.user_id
    RETURNING u.*, m.seq
  ),
  announced AS (
    SELECT s.project_number, s.user_id, s.seq, s.announced_end AS from_date,
           s.announced_end AS to_date, s.announced_lead, s.event_id, s.event_type, s.head, s.at,
           NULL::text AS request_id, NULL::text AS key_id, NULL::text AS reason, s.n
    FROM settled s WHERE s.event_id IS NOT NULL
  ),
  ${auditingAs(schema, "announced", "CASE announced_lead WHEN 0 THEN 'expired' ELSE 'expiring' END")},${publishingChange(schema, "announced")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM announced
`

/** The parameters of `settleDue`: memberships, and what was decided of each. */
export const settleDueParams = (
  decided: ReadonlyArray<{ readonly row: DueRow; readonly outcome: Outcome }>,
) => {
  const rows = decided.map(({ row }) => row)
  const announcements = decided.map(({ outcome }) => outcome.announcement)
  return [
    bigints(rows.map(({ project_number }) => BigInt(project_number))),
    texts(rows.map(({ user_id }) => user_id)),
    texts(rows.map(({ version }) => version)),
    bigints(rows.map(({ end_date }) => BigInt(end_date))),
    instants(decided.map(({ outcome }) => outcome.alarm)),
    instants(announcements.map((one) => one?.endDate)),
    integers(announcements.map((one) => one && one.lead / 1000)),
    uuids(announcements.map((one) => one?.event.id)),
    texts(announcements.map((one) => one?.event.type)),
    instants(announcements.map((one) => one?.event.at)),
    texts(announcements.map((one) => one?.event.head)),
  ]
}
