/** What the statements that change memberships share. */

import type { EndDate } from "@tenure/core/EndDate"
import type { Action, UserId } from "@tenure/core/Membership"
import type { Change, Grant } from "@tenure/core/MembershipStore"
import { instant, instants, text, texts, uuid, uuids } from "../connection/parameters.ts"
import type { Integer } from "../connection/results.ts"
import { newEnd, settingEnd } from "../ending/fragments.sql.ts"
import { alarmOf } from "../expiry/fragments.sql.ts"
import type { OnceEachPart } from "../idempotency/fragments.sql.ts"
import { publishing } from "../outbox/fragments.sql.ts"
import { roundOf } from "../sequence.sql.ts"

/**
 * The common table expression `asked`: one row of the parameters that every change has. `$2` is NULL
 * for a change of all memberships, and `$3` is NULL if the change ends a membership.
 */
export const asked = `
  asked AS (
    SELECT $1::text AS project_id, $2::text AS user_id, $3::timestamptz AS to_date,
           $4::timestamptz AS at, $5::text AS request_id, $6::text AS key_id,
           $7::uuid AS event_id, $8::text AS event_type, $9::text AS head, $10::text AS reason, 1 AS n
  )`

/** The parameters of a change to one membership, or to all memberships if `userId` is undefined. */
export const changeParams = (
  { at, event, origin, projectId, reason }: Change,
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
  text(event.head),
  text(reason),
]

/**
 * The common table expression `asked` for many changes of one membership each: one row for each. The
 * parameters are arrays with one element for each change.
 *
 * @param once - the parts of the statement for idempotency keys
 * @param further - parameters that only some changes have, and the names of their columns
 */
export const askedOfEach = (once: OnceEachPart, further = { types: "", columns: "" }): string => `
  asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                         $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[]${further.types}${once.types})
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, head, reason
          ${further.columns}${once.columns}, n)
    ${once.condition}
  )`

/** The parameters of many changes of one membership each. */
export const paramsOfEach = (changes: ReadonlyArray<Grant>) => [
  texts(changes.map(({ projectId }) => projectId)),
  texts(changes.map(({ userId }) => userId)),
  instants(changes.map(({ endDate }) => endDate)),
  instants(changes.map(({ at }) => at)),
  texts(changes.map(({ origin }) => origin.requestId)),
  texts(changes.map(({ origin }) => origin.keyId)),
  uuids(changes.map(({ event }) => event.id)),
  texts(changes.map(({ event }) => event.type)),
  texts(changes.map(({ event }) => event.head)),
  texts(changes.map(({ reason }) => reason)),
]

/** The row of each of many changes that found what it changes. */
export interface EachRow extends ChangeRow {
  /** The position of the change, from 1. */
  readonly n: number
}

/** The columns of a locked project. */
export const projectColumns = "id, number, seq, bulk_seq, set_seq, bulk_end_date, ends_to"

/**
 * The common table expression `project`, which locks the project: its members can be counted, and no
 * bulk extension runs at the same time.
 *
 * @param condition - a further condition, after others
 */
export const lockedProject = (schema: string, condition = ""): string => `
  project AS MATERIALIZED (
    SELECT ${projectColumns} FROM ${schema}.projects WHERE id = $1 ${condition}
    FOR NO KEY UPDATE
  )`

/** The same for the projects `$1` of many changes. */
export const lockedProjects = (schema: string): string => `
  project AS MATERIALIZED (
    SELECT ${projectColumns} FROM ${schema}.projects WHERE id = ANY ($1)
    -- All statements lock projects in the same order, too, and before memberships.
    ORDER BY id
    FOR NO KEY UPDATE
  )`

/** The effective end date of a membership `m` of a project `p`, by the function of the migrations. */
const dateAbove = (schema: string, floor: string): string =>
  `${schema}.effective_end_date(m.end_date, m.seq, p.bulk_seq, p.set_seq, p.bulk_end_date, ${floor})`

/** An expression for the effective end date of a membership `m` of a project `p`, as the statement sees them. */
export const effectiveDate = (schema: string): string =>
  dateAbove(
    schema,
    `(
    SELECT f.end_date FROM ${schema}.floors f
    WHERE f.project_number = m.project_number AND f.seq > m.seq ORDER BY f.seq LIMIT 1
  )`,
  )

/** The same in a statement that has locked the project, and may have waited for it. */
export const effectiveDateLocked = (schema: string): string =>
  dateAbove(schema, `${schema}.floor_after(m.project_number, m.seq)`)

/**
 * The common table expression `granted`: it creates the memberships of `asked`, or sets their end dates.
 * `project` has the projects, which are locked.
 *
 * @param seq - an expression for the seq of new memberships of a project `p`, greater than that of the project
 */
export const granting = (schema: string, seq: string): string => `
  granted AS (
    INSERT INTO ${schema}.memberships AS m (project_number, user_id, end_date, seq, alarm_at, ends_seq, ends_from)
    SELECT p.number, a.user_id, a.to_date, ${seq}, ${alarmOf(schema, "a.to_date")}, ${newEnd("a.to_date")}
    FROM asked a
    JOIN project p ON p.id = a.project_id
    ORDER BY p.id, a.user_id COLLATE "C"
    ON CONFLICT (project_number, user_id) DO UPDATE
    SET end_date = excluded.end_date,
        seq = greatest(m.seq + 1, excluded.seq),
        alarm_at = least(m.alarm_at, excluded.alarm_at),
        ${settingEnd("excluded.ends_seq", "excluded.ends_from")},
        previous_end_date =
          (SELECT ${effectiveDateLocked(schema)} FROM project p WHERE p.number = m.project_number)
    RETURNING m.project_number, user_id, (xmax = 0) AS is_new, seq, previous_end_date AS from_date,
              end_date AS to_date
  )`

/**
 * The common table expressions `ended` and `counted`: they remove the membership of the user `$2` of the
 * locked project. The project's seq is then that of the change, so that the user has a greater one after
 * coming back.
 *
 * @param condition - a further condition, after others
 */
export const ending = (schema: string, condition = ""): string => `
  ended AS (
    DELETE FROM ${schema}.memberships m USING project p
    WHERE m.project_number = p.number AND m.user_id = $2 ${condition}
    RETURNING p.number AS project_number, greatest(m.seq, p.seq) + 1 AS seq,
              ${effectiveDateLocked(schema)} AS from_date
  ),
  counted AS (
    UPDATE ${schema}.projects p SET members = p.members - 1, seq = e.seq
    FROM ended e WHERE p.number = e.project_number
  )`

/**
 * The common table expressions that a change ends with: `audited` and those of `publishing`. `source` has
 * what both need, with `head` in place of `body`.
 */
export const recordingChange = (schema: string, source: string, action: Action): string =>
  `${auditing(schema, source, action)},${publishingChange(schema, source)}`

/** The same as `publishing`, for events of changes with the column `seq`, and with `head` in place of `body`. */
export const publishingChange = (schema: string, source: string): string =>
  publishing(schema, source, { body: `head || ',"sequence":' || seq || '}}'` })

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has
 * the columns `project_number`, `user_id`, `seq`, `from_date`, `to_date`, `at`, `request_id`, `key_id`,
 * `reason` and `n`, which gives the order.
 */
export const auditing = (schema: string, source: string, action: Action): string =>
  auditingAs(schema, source, `'${action}'`)

/** The same, with the action as an expression in SQL. */
export const auditingAs = (
  schema: string,
  source: string,
  action: `'${Action}'` | `CASE ${string} END`,
): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_number, user_id, seq, action, from_date, to_date, at, request_id, key_id, reason)
    SELECT project_number, user_id, ${roundOf("seq")}, ${action}, from_date, to_date, at, request_id, key_id, reason
    FROM ${source}
    ORDER BY n
  )`

/** What every statement that changes memberships returns. */
export interface ChangeRow {
  /** The sequence of the change. */
  readonly seq: Integer
  readonly deliveries: number
}
