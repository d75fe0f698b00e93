import type { Extension } from "@tenure/core/MembershipStore"
import { flags, instants } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"
import { settingEnd } from "../ending/fragments.sql.ts"
import { alarmOf } from "../expiry/fragments.sql.ts"
import type { OnceEachPart } from "../idempotency/fragments.sql.ts"
import { nextSeq } from "../sequence.sql.ts"
import {
  askedOfEach,
  type EachRow,
  effectiveDate,
  effectiveDateLocked,
  lockedProjects,
  paramsOfEach,
  recordingChange,
} from "./fragments.sql.ts"

/** What the two statements do differently. */
interface Form {
  readonly asked: string
  /** The common table expression `project`. */
  readonly project: string
  /** Expressions for the dates of a membership `m` before and after a change `p`. */
  readonly before: string
  readonly after: string
}

/** Common table expressions up to `found`: the memberships that exist. */
const finding = (schema: string, { after, asked, before, project }: Form): string => `
  WITH ${asked},
  ${project},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq, p.set_seq, p.bulk_end_date
    FROM asked a
    JOIN project p ON p.id = a.project_id
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  found AS (
    UPDATE ${schema}.memberships m
    SET end_date = ${after},
        seq = ${nextSeq(schema, "m.seq", "p")},
        alarm_at = least(m.alarm_at, ${alarmOf(schema, "p.to_date")}),
        ${settingEnd("p.bulk_seq", after)},
        previous_end_date = ${before}
    -- Both columns come from one table, so that the index finds each membership, whatever is known of
    -- how many a project has.
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id
    RETURNING p.*, m.seq, m.previous_end_date AS from_date
  )`

/**
 * Sets the end dates of memberships. Returns the positions, from 1, of the memberships that exist, and the number
 * of deliveries.
 *
 * It locks no project, so the seq follows that of the membership if this is greater than the project's. Otherwise
 * a statement that read the project before a bulk extension could undo a later extension of the same membership.
 */
export const extend = (schema: string, once: OnceEachPart): string => `
  ${finding(schema, {
    asked: askedOfEach(once),
    project: `project AS NOT MATERIALIZED (SELECT * FROM ${schema}.projects)`,
    before: effectiveDate(schema),
    after: "p.to_date",
  })},
  ${recordingChange(schema, "found", "extended")}${once.keeping("found")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * The same for extensions of which several have the same membership. They are made in order, each with a number, an
 * audit row and an event of its own, and the membership is written once.
 */
export const extendInOrder = (schema: string, once: OnceEachPart): string => `
  WITH ${askedOfEach(once)},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq, p.set_seq, p.bulk_end_date,
           row_number() OVER in_order AS step, lag(a.to_date) OVER in_order AS date_before,
           count(*) OVER (PARTITION BY p.id, a.user_id) AS steps
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WINDOW in_order AS (PARTITION BY p.id, a.user_id ORDER BY a.n)
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  written AS (
    UPDATE ${schema}.memberships m
    SET end_date = p.to_date,
        seq = ${nextSeq(schema, "m.seq", "p", "p.steps")},
        alarm_at = least(m.alarm_at, ${alarmOf(schema, "p.to_date")}),
        ${settingEnd("p.bulk_seq", "p.to_date")},
        previous_end_date = ${effectiveDate(schema)}
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id AND p.step = p.steps
    RETURNING p.project_number, p.user_id, m.seq, m.previous_end_date
  ),
  found AS (
    SELECT p.*, w.seq - p.steps + p.step AS seq, coalesce(p.date_before, w.previous_end_date) AS from_date
    FROM placed p JOIN written w ON w.project_number = p.project_number AND w.user_id = p.user_id
  ),
  ${recordingChange(schema, "found", "extended")}${once.keeping("found")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * The end date afterwards: that which is asked for, or the one that there is if it is not the expected one, or
 * later and to be kept. Each effective date in a statement is a plan of its own that every execution prepares, so
 * this has only one.
 */
const dateAfter = (schema: string): string =>
  `greatest(
     coalesce(
       nullif(${effectiveDateLocked(schema)}, p.expected_date),
       CASE WHEN p.keeps_later THEN greatest(p.to_date, p.expected_date) ELSE p.to_date END
     ),
     CASE WHEN p.expected_date IS NULL THEN p.to_date END
   )`

const laterDate = `CASE WHEN ends_later THEN ${millisOf("from_date")}::text ELSE '' END`

/**
 * Sets the end dates of memberships that have the dates that are expected, or that do not end later. Returns the
 * positions, from 1, of the memberships that exist, the dates of those that were expected to have others, the dates
 * of those that end later and are left, and the number of deliveries.
 *
 * It locks the projects: a date that is compared holds until the change is committed, and no bulk extension
 * replaces it in between.
 *
 * A membership that is left, or has another date than is expected, is set to the date that it has. So it is locked,
 * and its date is the current one even if other transactions have changed it since the statement began.
 */
export const extendIf = (schema: string, once: OnceEachPart): string => `
  ${finding(schema, {
    asked: askedOfEach(once, {
      types: ", $11::timestamptz[], $12::boolean[]",
      columns: ", expected_date, keeps_later",
    }),
    project: lockedProjects(schema),
    before: effectiveDateLocked(schema),
    after: dateAfter(schema),
  })},
  answered AS (
    SELECT *, keeps_later AND from_date > to_date AS ends_later
    FROM found WHERE (from_date <> expected_date) IS NOT TRUE
  ),
  changed AS (SELECT * FROM answered WHERE NOT ends_later),
  ${recordingChange(schema, "changed", "extended")}${once.keeping("answered", laterDate)}
  SELECT n::integer, seq, CASE WHEN from_date <> expected_date THEN ${millisOf("from_date")} END AS conflicting_date,
         CASE WHEN keeps_later AND from_date > to_date THEN ${millisOf("from_date")} END AS later_date,
         (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM found
`

/** Whether an extension depends on the date that the membership has. */
export const isConditional = ({ expectedEndDate, mode }: Extension): boolean =>
  expectedEndDate !== undefined || mode === "neverShorten"

/** The parameters of `extendIf`. */
export const extendIfParams = (extensions: ReadonlyArray<Extension>) => [
  ...paramsOfEach(extensions),
  instants(extensions.map(({ expectedEndDate }) => expectedEndDate)),
  flags(extensions.map(({ mode }) => mode === "neverShorten")),
]

/** The row of `extendIf` of each membership that exists. */
export interface ExtendedRow extends EachRow {
  /** The end date of the membership if another one was expected. */
  readonly conflicting_date: Integer | null
  /** The end date of the membership if it is later, and is left. */
  readonly later_date: Integer | null
}
