/** The audit trail on PostgreSQL. */

import { type Disclosure } from "@tenure/core/internal"
import {
  ApiKeyId,
  type AuditAction,
  AuditCursor,
  type AuditRow,
  type ChangeContext,
  EndDate,
  type MembershipStore,
  type ProjectId,
  Reason,
  UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { rowsOfProject } from "./projects.ts"
import { auditRow, changeContextParams, isInProject, noProjectNumber } from "./sql/clauses.ts"
import { type Integer, integerParam, millisOf, textParam } from "./sql/values.ts"

// The columns of a row in a subquery.
const columnsOf = (row: string): string =>
  "seq id user_id subject action from_date to_date at request_id key_id reason"
    .replaceAll(/\S+/g, `${row}.$&`)
    .replaceAll(" ", ", ")

// Keys stay when they are revoked, and their names never change.
const columns = (schema: string): string => `
         a.seq, a.id, a.user_id, a.subject, a.action, ${millisOf("a.from_date")} AS from_date,
         ${millisOf("a.to_date")} AS to_date, ${millisOf("a.at")} AS at, a.request_id, a.key_id, a.reason,
         (SELECT k.name FROM ${schema}.api_keys k WHERE k.id = a.key_id) AS key_name`

const latest = "9223372036854775807"

/** The place of a row in the trail. */
const placeOf = (row: string): string => `(${row}.seq, ${row}.id)`

/**
 * The place of the cursor in the parameters `seq` and `id`. They are NULL for the first page. The place is NULL,
 * so that no row comes after it, if no row has the cursor.
 */
const cursorIn = (
  schema: string,
  seq: string,
  id: string,
  condition = isInProject(schema),
): string => {
  const valueOf = (column: string, parameter: string) =>
    `CASE WHEN ${parameter}::text IS NULL THEN ${latest} ELSE (
      SELECT c.${column} FROM ${schema}.audit c
      WHERE c.${condition} AND c.seq = ${seq}::text::bigint AND c.id = ${id}::text::bigint
    ) END`
  return `(${valueOf("seq", seq)}, ${valueOf("id", id)})`
}

const newestFirst = (row: string): string => `${row}.seq DESC, ${row}.id DESC`

// Whether a row of the project is of all memberships. The index of these rows has the same conditions.
const isBulk = (row: string): string =>
  `${row}.project_number = p.number AND ${row}.action IN ('bulk_extended', 'bulk_lengthened')`

const historyAuditRows = (schema: string, rows: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (${rows}) a ON true
  WHERE p.id = $1::text
  ORDER BY ${newestFirst("a")}
`

/**
 * Returns the newest `$2` audit rows of a project that are older than the cursor `$3` and `$4`, newest
 * first. Returns one empty row if there are none, and no row if the project does not exist.
 */
export const projectHistory = (schema: string): string =>
  historyAuditRows(
    schema,
    `
    SELECT * FROM ${schema}.audit a
    WHERE a.project_number = p.number AND ${placeOf("a")} < ${cursorIn(schema, "$3", "$4")}
    ORDER BY ${newestFirst("a")} LIMIT $2::integer`,
  )

/**
 * The spans between changes of the membership of the user `$5`: each ends with one of the changes that may
 * be on the page, or the newest with the cursor, and starts with the change before. The membership existed
 * in a span if the change at its end or, for the newest, the next one has replaced a date; without a next
 * one, if it exists now.
 */
const spans = (schema: string): string => `
  SELECT e.*, lead(e.seq) OVER older AS start_seq, lead(e.id) OVER older AS start_id,
         lead(e.to_date) OVER older AS start_date
  FROM (
    SELECT o.seq, o.id, o.to_date, o.from_date IS NOT NULL AS existed FROM own o
    UNION ALL
    SELECT c.seq, c.id, NULL, coalesce(
      (
        SELECT n.from_date IS NOT NULL FROM ${schema}.audit n
        WHERE n.project_number = p.number AND n.user_id = $5::text AND ${placeOf("n")} >= ${placeOf("c")}
        ORDER BY n.seq, n.id LIMIT 1
      ),
      EXISTS (SELECT FROM ${schema}.memberships m WHERE m.project_number = p.number AND m.user_id = $5::text)
    )
    FROM (VALUES ${cursorIn(schema, "$3", "$4")}) c (seq, id)
  ) e
  WINDOW older AS (ORDER BY e.seq DESC, e.id DESC)`

// Whether a row is of all memberships, and in the span `s`.
const isBulkIn = (row: string): string => `${isBulk(row)} AND ${placeOf(row)} < ${placeOf("s")}
    AND ${placeOf(row)} > (coalesce(s.start_seq, -1), coalesce(s.start_id, -1))`

/** The newest bulk extensions in the span `s`, if all of the project apply to every membership. */
const newestIn = (schema: string): string => `
  SELECT ${columnsOf("b")} FROM ${schema}.audit b
  WHERE ${isBulkIn("b")} AND NOT bulk.may_not_apply
  ORDER BY ${newestFirst("b")} LIMIT $2::integer`

/**
 * The newest that applied, if some of the project set earlier dates only. These applied if the date before
 * was earlier: the last that was set for this membership or for every member, or a later one of such an
 * extension since then.
 */
const appliedIn = (schema: string): string => `
  SELECT ${columnsOf("b")}
  FROM (
    SELECT n.*, max(n.to_date) OVER (
             PARTITION BY n.dates_so_far ORDER BY n.seq, n.id
             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS previous_date
    FROM (
      SELECT b.*, count(*) FILTER (WHERE b.action = 'bulk_extended') OVER (ORDER BY b.seq, b.id)
               AS dates_so_far
      FROM ${schema}.audit b
      WHERE ${isBulkIn("b")} AND bulk.may_not_apply
    ) n
  ) b
  WHERE b.action = 'bulk_extended' OR (
    b.to_date > greatest(b.previous_date, CASE b.dates_so_far WHEN 0 THEN s.start_date END)
  ) IS NOT FALSE
  ORDER BY ${newestFirst("b")} LIMIT $2::integer`

/**
 * Returns the audit rows of the user `$5` in a project, in the same way, with the bulk extensions that
 * applied to the membership.
 *
 * Reads as many rows of the user as the page may have, and the bulk extensions of one span after the other,
 * until the page is full: as many as that, or all of a span if some of the project set earlier dates only.
 */
export const userHistory = (schema: string): string =>
  historyAuditRows(
    schema,
    `
    WITH own AS MATERIALIZED (
      SELECT ${columnsOf("o")} FROM ${schema}.audit o
      WHERE o.project_number = p.number AND o.user_id = $5::text AND ${placeOf("o")} < ${cursorIn(schema, "$3", "$4")}
      ORDER BY ${newestFirst("o")} LIMIT $2::integer
    ),
    bulk AS MATERIALIZED (
      SELECT EXISTS (
        SELECT FROM ${schema}.audit b WHERE b.project_number = p.number AND b.action = 'bulk_lengthened'
      ) AS may_not_apply
    )
    SELECT * FROM (
      SELECT * FROM own
      UNION ALL
      (
        -- A span is read after those that are newer, so the limit leaves out the oldest.
        SELECT a.* FROM (${spans(schema)} ORDER BY ${newestFirst("e")}) s
        CROSS JOIN bulk
        CROSS JOIN LATERAL ((${newestIn(schema)}) UNION ALL (${appliedIn(schema)})) a
        WHERE s.existed
        LIMIT $2::integer
      )
    ) a
    ORDER BY ${newestFirst("a")} LIMIT $2::integer`,
  )

/** Returns the audit rows of what belongs to no project: the newest `$1` older than `$2` and `$3`. */
const otherHistory = (schema: string): string => `
  SELECT ${columns(schema)} FROM ${schema}.audit a
  WHERE a.project_number = ${noProjectNumber} AND ${placeOf("a")} < ${cursorIn(schema, "$2", "$3", `project_number = ${noProjectNumber}`)}
  ORDER BY ${newestFirst("a")}
  LIMIT $1::integer
`

/** The parameters of a cursor. */
export const cursorParams = (cursor: AuditCursor | undefined) => {
  const [seq, id] = cursor === undefined ? [] : cursor.split(".")
  return [textParam(seq), textParam(id)]
}

/** A row of the statements, which may be empty. */
interface HistoryRow {
  readonly seq: Integer | null
  readonly id: Integer | null
  readonly user_id: string | null
  readonly subject: string | null
  readonly action: AuditAction | null
  readonly from_date: Integer | null
  readonly to_date: Integer | null
  readonly at: Integer
  readonly request_id: string | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly reason: string | null
}

const endDateOf = (millis: Integer | null): EndDate | undefined =>
  millis === null ? undefined : EndDate(Number(millis))

/** Converts a row to an audit row, or to nothing if it is empty. */
const toAuditRow = (projectId: ProjectId | undefined, row: HistoryRow): ReadonlyArray<AuditRow> =>
  row.action === null
    ? []
    : [
        {
          cursor: AuditCursor(`${row.seq}.${row.id}`),
          projectId,
          userId: row.user_id === null ? undefined : UserId(row.user_id),
          action: row.action,
          subject: row.subject ?? undefined,
          origin: {
            requestId: row.request_id ?? undefined,
            keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
          },
          keyName: row.key_name ?? undefined,
          reason: row.reason === null ? undefined : Reason(row.reason),
          from: endDateOf(row.from_date),
          to: endDateOf(row.to_date),
          at: Number(row.at),
        },
      ]

/** Adds an audit row. Returns one row if the project exists. */
const recordDisclosure = (schema: string): string => `
  WITH shown AS MATERIALIZED (
    SELECT number AS project_number, $3::text AS subject FROM ${schema}.projects WHERE id = $1::text
  ),${auditRow(schema, "shown", 4, "$2::text")}
  SELECT FROM shown
`

/** The parameters of `recordDisclosure`. */
const recordDisclosureParams = (
  projectId: ProjectId,
  { action, subject }: Disclosure,
  occasion: ChangeContext,
) => [textParam(projectId), textParam(action), textParam(subject), ...changeContextParams(occasion)]

/** Makes the part of the store that reads the audit trail, and adds disclosures to it. */
export const makeAuditTrail = (
  executor: Executor,
): Pick<MembershipStore["Service"], "history" | "recordShown"> => {
  const { schema } = executor
  const sql = {
    recordShown: recordDisclosure(schema),
    projectHistory: projectHistory(schema),
    userHistory: userHistory(schema),
    otherHistory: otherHistory(schema),
  }

  return {
    recordShown: Effect.fnUntraced(function* (projectId, shown, occasion) {
      const params = recordDisclosureParams(projectId, shown, occasion)
      const rows = yield* executor.execute(sql.recordShown, params, { owner: projectId })
      yield* rowsOfProject(projectId, rows)
    }),

    history: Effect.fnUntraced(function* (projectId, { after, limit, userId }) {
      if (projectId === undefined) {
        const rows = yield* executor.execute<HistoryRow>(sql.otherHistory, [
          integerParam(limit),
          ...cursorParams(after),
        ])
        return rows.flatMap((row) => toAuditRow(undefined, row))
      }
      const params = [textParam(projectId), integerParam(limit), ...cursorParams(after)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userId === undefined
        ? executor.execute<HistoryRow>(sql.projectHistory, params, manner)
        : executor.execute<HistoryRow>(sql.userHistory, [...params, textParam(userId)], manner)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toAuditRow(projectId, row))
    }),
  }
}
