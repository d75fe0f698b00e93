import type { Extension } from "@tenure/core/MembershipStore"
import { instants } from "../connection/parameters.ts"
import { type Integer, millisOf } from "../connection/results.ts"
import { settingEnd } from "../ending/fragments.sql.ts"
import { alarmOf } from "../expiry/fragments.sql.ts"
import type { OnceEachPart } from "../idempotency/fragments.sql.ts"
import {
  askedOfEach,
  type EachRow,
  effectiveDate,
  paramsOfEach,
  recordingChange,
} from "./fragments.sql.ts"

/**
 * The end date afterwards: that which is asked for, or the one that there is if it is not the expected one. Each
 * effective date in a statement is a plan of its own that every execution prepares, so this has only one.
 */
const dateAfter = (schema: string): string =>
  `CASE WHEN p.expected_date IS NULL THEN p.to_date
   ELSE coalesce(nullif(${effectiveDate(schema)}, p.expected_date), p.to_date) END`

/**
 * Sets the end dates of memberships that have the dates that are expected. Returns the positions, from 1,
 * of the memberships that exist, the dates of those that were expected to have others, and the number of
 * deliveries.
 *
 * The seq follows that of the membership if this is greater than the project's. Otherwise a statement that
 * read the project before a bulk extension could undo a later extension of the same membership.
 *
 * A membership that has another date than is expected is set to the date that it has. So it is locked,
 * and its date is the current one even if other transactions have changed it since the statement began.
 */
export const extend = (schema: string, once: OnceEachPart): string => `
  WITH ${askedOfEach(once, { types: ", $11::timestamptz[]", columns: ", expected_date" })},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq, p.set_seq, p.bulk_end_date
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  found AS (
    UPDATE ${schema}.memberships m
    SET end_date = ${dateAfter(schema)},
        seq = greatest(m.seq, p.project_seq) + 1,
        alarm_at = least(m.alarm_at, ${alarmOf(schema, "p.to_date")}),
        ${settingEnd("p.bulk_seq", dateAfter(schema))},
        previous_end_date = ${effectiveDate(schema)}
    -- Both columns come from one table, so that the index finds each membership, whatever is known of
    -- how many a project has.
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id
    RETURNING p.*, m.seq, m.previous_end_date AS from_date
  ),
  changed AS (SELECT * FROM found WHERE (from_date <> expected_date) IS NOT TRUE),
  ${recordingChange(schema, "changed", "extended")}${once.keeping("changed")}
  SELECT n::integer, seq, CASE WHEN from_date <> expected_date THEN ${millisOf("from_date")} END AS conflicting_date,
         (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM found
`

/** The parameters of `extend`. */
export const extendParams = (extensions: ReadonlyArray<Extension>) => [
  ...paramsOfEach(extensions),
  instants(extensions.map(({ expectedEndDate }) => expectedEndDate)),
]

/** The row of each membership that exists. */
export interface ExtendedRow extends EachRow {
  /** The end date of the membership if another one was expected. */
  readonly conflicting_date: Integer | null
}
