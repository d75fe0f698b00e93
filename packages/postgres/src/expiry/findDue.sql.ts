import { EndDate } from "@tenure/core/EndDate"
import type { Candidate } from "@tenure/core/Expiry"
import { UserId } from "@tenure/core/Membership"
import { ProjectId } from "@tenure/core/Project"
import { Millis } from "@tenure/core/Units"
import { integer } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"
import { effectiveDate } from "../memberships/fragments.sql.ts"

/**
 * Returns up to `$1` memberships whose alarms have come, the earliest first, without those that others have
 * locked, or whose projects they have locked.
 */
export const findDue = (schema: string): string => `
  SELECT p.id AS project_id, m.project_number, m.user_id, ${millisOf(effectiveDate(schema))} AS end_date,
         ${millisOf("m.announced_end")} AS announced_end, m.announced_lead,
         m.xmin::text AS version, p.bulk_seq, ${millisOf("statement_timestamp()")} AS now
  FROM ${schema}.memberships m
  JOIN ${schema}.projects p ON p.number = m.project_number
  -- A project that is parked while it moves has no name.
  WHERE m.alarm_at <= statement_timestamp() AND p.id > chr(31)
  ORDER BY m.alarm_at LIMIT $1
  -- The project first: no membership is written to that is left out for its project.
  FOR NO KEY UPDATE OF p, m SKIP LOCKED
`

/** The parameters of `findDue`. */
export const findDueParams = (limit: number) => [integer(limit)]

/** The row of each membership. */
export interface DueRow {
  readonly project_id: string
  readonly project_number: Integer
  readonly user_id: string
  readonly end_date: Integer
  readonly announced_end: Integer | null
  /** In seconds. */
  readonly announced_lead: number | null
  /** Another one as soon as the row has changed. */
  readonly version: string
  readonly bulk_seq: Integer
  readonly now: Integer
}

/** Returns what is decided by. */
export const toCandidate = ({
  announced_end,
  announced_lead,
  end_date,
  project_id,
  user_id,
}: DueRow): Candidate => ({
  projectId: ProjectId(project_id),
  userId: UserId(user_id),
  endDate: EndDate(Number(end_date)),
  announced:
    announced_end === null || announced_lead === null
      ? undefined
      : { endDate: EndDate(Number(announced_end)), lead: Millis(announced_lead * 1000) },
})
