import { EndDate } from "@tenure/core/EndDate"
import type { Candidate } from "@tenure/core/Expiry"
import { UserId } from "@tenure/core/Membership"
import { ProjectId } from "@tenure/core/Project"
import { Millis } from "@tenure/core/Units"
import { bigint, bigints, integer } from "../connection/parameters.ts"
import { type Integer, jsonOf, millisOf } from "../connection/results.ts"
import { effectiveDate } from "../memberships/fragments.sql.ts"

/** What is decided by, of a membership `m` of a project `p`. */
const columns = (schema: string): string => `
  p.id AS project_id, m.project_number, m.user_id, ${millisOf(effectiveDate(schema))} AS end_date,
  ${millisOf("m.announced_end")} AS announced_end, m.announced_lead,
  m.xmin::text AS version, ${millisOf("statement_timestamp()")} AS now`

/**
 * Returns up to `$1` memberships whose alarms have come, the earliest first, without those that others have
 * locked, or whose projects they have locked.
 *
 * Rows that change before they are locked are current, but not the floors beside them. So an end date may be
 * one that never held: `settleDue` compares it with the one that holds.
 */
export const findDue = (schema: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.memberships m
  JOIN ${schema}.projects p ON p.number = m.project_number
  -- A project that is parked while it moves has no name.
  WHERE m.alarm_at <= statement_timestamp() AND p.id > chr(31)
  ORDER BY m.alarm_at LIMIT $1
  -- The project first: no membership is written to that is left out for its project.
  FOR NO KEY UPDATE OF p, m SKIP LOCKED
`

/** Returns up to `$1` memberships whose alarms have come of each of the projects `$2`, by their numbers. */
export const findDueOf = (schema: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.projects p
  CROSS JOIN LATERAL (
    SELECT m.*, m.xmin FROM ${schema}.memberships m
    WHERE m.project_number = p.number AND m.alarm_at <= statement_timestamp()
    ORDER BY m.alarm_at LIMIT $1
  ) m
  WHERE p.number = ANY ($2)
`

/**
 * Looks at the next `$1` projects after the number `$2`. Returns one row: the number of the last of them, and
 * the numbers of those with memberships whose alarms have come.
 */
export const findProjectsDue = (schema: string): string => `
  SELECT max(p.number) AS last,
         ${jsonOf("coalesce(array_agg(m.project_number ORDER BY m.project_number) FILTER (WHERE m.project_number IS NOT NULL), '{}')")} AS due
  FROM (
    SELECT number FROM ${schema}.projects WHERE number > $2 AND id > chr(31) ORDER BY number LIMIT $1
  ) p
  -- With a limit, one member of each is looked at: a plan for EXISTS may read those of all projects.
  LEFT JOIN LATERAL (
    SELECT m.project_number FROM ${schema}.memberships m
    WHERE m.project_number = p.number AND m.alarm_at <= statement_timestamp()
    ORDER BY m.alarm_at LIMIT 1
  ) m ON true
`

/** The parameters of `findDue`. */
export const findDueParams = (limit: number) => [integer(limit)]

/** The parameters of `findDueOf`, for up to `limit` projects: they have equal shares of it. */
export const findDueOfParams = (limit: number, projects: ReadonlyArray<bigint>) => [
  integer(Math.floor(limit / projects.length)),
  bigints(projects),
]

/** The parameters of `findProjectsDue`. */
export const findProjectsDueParams = (most: number, after: bigint) => [integer(most), bigint(after)]

/** The row of `findProjectsDue`. */
export interface ProjectsDueRow {
  /** NULL if there is no further project. */
  readonly last: Integer | null
  readonly due: string
}

/** Returns the numbers of the projects. */
export const toProjectsDue = ({ due }: ProjectsDueRow): ReadonlyArray<bigint> => {
  const numbers: ReadonlyArray<number> = JSON.parse(due)
  return numbers.map(BigInt)
}

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
