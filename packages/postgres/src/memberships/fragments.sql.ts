/** What the statements that change memberships share. */

import type { EndDate } from "@tenure/core/EndDate"
import type { Action, UserId } from "@tenure/core/Membership"
import type { Change } from "@tenure/core/MembershipStore"
import { instant, text, uuid } from "../connection/parameters.ts"

/**
 * The common table expression `asked`: one row of the parameters that every change has. `$2` is NULL
 * for a change of all memberships, and `$3` is NULL if the change ends a membership.
 */
export const asked = `
  asked AS (
    SELECT $1::text AS project_id, $2::text AS user_id, $3::timestamptz AS to_date,
           $4::timestamptz AS at, $5::text AS request_id, $6::text AS key_id,
           $7::uuid AS event_id, $8::text AS event_type, $9::text AS body, 1 AS n
  )`

/** The parameters of a change to one membership, or to all memberships if `userId` is undefined. */
export const changeParams = (
  { at, event, origin, projectId }: Change,
  userId: UserId | undefined,
  endDate: EndDate | undefined,
) => [
  text(projectId),
  text(userId),
  instant(endDate),
  instant(at),
  text(origin.requestId),
  text(origin.keyId),
  uuid(event.id),
  text(event.type),
  text(event.body),
]

/**
 * The common table expression `project`, which locks the project: its members can be counted, and no
 * bulk extension runs at the same time.
 */
export const lockedProject = (schema: string): string => `
  project AS MATERIALIZED (
    SELECT id, bulk_seq, bulk_end_date FROM ${schema}.projects WHERE id = $1
    FOR NO KEY UPDATE
  )`

/** An expression for the effective end date of a membership `m` of a project `p`. */
export const effectiveDate =
  "CASE WHEN m.seq >= p.bulk_seq THEN m.end_date ELSE p.bulk_end_date END"

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has
 * the columns `project_id`, `user_id`, `seq`, `from_date`, `to_date`, `at`, `request_id`, `key_id` and
 * `n`, which gives the order.
 */
export const auditing = (schema: string, source: string, action: Action): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_id, user_id, seq, action, from_date, to_date, at, request_id, key_id)
    SELECT project_id, user_id, seq, '${action}', from_date, to_date, at, request_id, key_id
    FROM ${source}
    ORDER BY n
  )`

/** What every statement that changes memberships returns. */
export interface ChangeRow {
  readonly deliveries: number
}
