/** The audit trail on PostgreSQL: history pages, and recorded disclosures. */

import { type Disclosure } from "@tenure/core/internal"
import {
  ApiKeyId,
  type AuditAction,
  AuditCursor,
  type AuditRow,
  type ChangeContext,
  EndDate,
  type MembershipStore,
  Millis,
  type ProjectId,
  Reason,
  UserId,
  bulkActions,
  changesOfUser,
  datelessActions,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { rowsOfProject } from "./projects.ts"
import { auditRow, changeContextParams, isInProject, noProjectNumber } from "./sql/clauses.ts"
import { type Integer, integerParam, millisOf, textParam, wholeMillisOf } from "./sql/values.ts"

// The columns that a subquery passes on.
const columnsOf = (row: string): string =>
  "seq id user_id other_user_id subject action from_date to_date extend_by at request_id key_id reason changes"
    .replaceAll(/\S+/g, `${row}.$&`)
    .replaceAll(" ", ", ")

// Joined for the name, because revoked keys stay and names never change.
const columns = (schema: string): string => `
         a.seq, a.id, a.user_id, coalesce(a.subject, a.other_user_id) AS subject, a.action, ${millisOf("a.from_date")} AS from_date,
         ${millisOf("a.to_date")} AS to_date, ${wholeMillisOf("a.extend_by")} AS extend_by, ${millisOf("a.at")} AS at, a.request_id, a.key_id, a.reason, a.changes,
         (SELECT k.name FROM ${schema}.api_keys k WHERE k.id = a.key_id) AS key_name`

const latest = "9223372036854775807"

/** A row's place in the trail. */
const placeOf = (row: string): string => `(${row}.seq, ${row}.id)`

/**
 * The cursor's place, from the parameters `seq` and `id`, which are NULL for the first page. The place is
 * NULL if no row has the cursor, so that no row comes after it.
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

const historyAuditRows = (schema: string, rows: string): string => `
  SELECT ${columns(schema)}
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (${rows}) a ON true
  WHERE p.id = $1::text
  ORDER BY ${newestFirst("a")}
`

/**
 * Returns a project's newest `$2` audit rows before the cursor `$3` and `$4`, newest first. Returns one empty
 * row if there are none, and no row if the project does not exist.
 */
export const projectHistory = (schema: string): string =>
  historyAuditRows(
    schema,
    `
    SELECT * FROM ${schema}.audit a
    WHERE a.project_number = p.number AND ${placeOf("a")} < ${cursorIn(schema, "$3", "$4")}
    ORDER BY ${newestFirst("a")} LIMIT $2::integer`,
  )

/** The maximum number of bulk rows that a page in a user's history is made from. */
export const maxBulkRows = 500

/**
 * Returns the rows for a page in user `$5`'s history, before the cursor `$3` and `$4`: the user's newest `$2`
 * rows with the change before them, and the bulk rows since that change. `changesOfUser` decides which of
 * these had an effect on this membership. Returns one empty row if there are none, and no row if the project
 * does not exist.
 */
export const userHistory = (schema: string): string => `
  WITH project AS MATERIALIZED (SELECT p.number FROM ${schema}.projects p WHERE p.id = $1::text),
  own AS MATERIALIZED (
    SELECT ${columnsOf("o")} FROM ${schema}.audit o
    WHERE o.project_number = (SELECT number FROM project) AND o.user_id = $5::text
      AND ${placeOf("o")} < ${cursorIn(schema, "$3", "$4")}
    ORDER BY ${newestFirst("o")} LIMIT $2::integer
  ),
  before AS MATERIALIZED (
    SELECT ${columnsOf("o")} FROM ${schema}.audit o
    WHERE o.project_number = (SELECT number FROM project) AND o.user_id = $5::text
      AND ${placeOf("o")} < (SELECT n.seq, n.id FROM own n ORDER BY n.seq, n.id LIMIT 1)
      AND o.action NOT IN (${[...datelessActions].map((action) => `'${action}'`).join(", ")})
    ORDER BY ${newestFirst("o")} LIMIT 1
  ),
  bulk AS MATERIALIZED (
    SELECT ${columnsOf("b")} FROM ${schema}.audit b
    WHERE b.project_number = (SELECT number FROM project)
      AND b.action IN ('${bulkActions.set}', '${bulkActions.neverShorten}', '${bulkActions.extendBy}', 'bulk_undone')
      AND ${placeOf("b")} < ${cursorIn(schema, "$3", "$4")}
      AND ${placeOf("b")} > (coalesce((SELECT seq FROM before), -1), coalesce((SELECT id FROM before), -1))
    ORDER BY ${newestFirst("b")} LIMIT ${maxBulkRows}
  ),
  member AS MATERIALIZED (
    SELECT p.number, coalesce(
      (
        SELECT n.from_date IS NOT NULL FROM ${schema}.audit n
        WHERE n.project_number = p.number AND n.user_id = $5::text AND ${placeOf("n")} >= ${cursorIn(schema, "$3", "$4")}
        ORDER BY n.seq, n.id LIMIT 1
      ),
      EXISTS (SELECT FROM ${schema}.memberships m WHERE m.project_number = p.number AND m.user_id = $5::text)
    ) AS is_member
    FROM project p
  )
  SELECT ${columns(schema)}, p.is_member
  FROM member p
  LEFT JOIN LATERAL (
    SELECT * FROM own UNION ALL SELECT * FROM before UNION ALL SELECT * FROM bulk
  ) a ON true
  ORDER BY ${newestFirst("a")}
`

/** Returns audit rows that belong to no project: the newest `$1` before `$2` and `$3`. */
const otherHistory = (schema: string): string => `
  SELECT ${columns(schema)} FROM ${schema}.audit a
  WHERE a.project_number = ${noProjectNumber} AND ${placeOf("a")} < ${cursorIn(schema, "$2", "$3", `project_number = ${noProjectNumber}`)}
  ORDER BY ${newestFirst("a")}
  LIMIT $1::integer
`

/** The parameters for a cursor. */
export const cursorParams = (cursor: AuditCursor | undefined) => {
  const [seq, id] = cursor === undefined ? [] : cursor.split(".")
  return [textParam(seq), textParam(id)]
}

/** A row from these statements, which may be empty. */
interface HistoryRow {
  readonly seq: Integer | null
  readonly id: Integer | null
  readonly user_id: string | null
  readonly subject: string | null
  readonly action: AuditAction | null
  readonly from_date: Integer | null
  readonly to_date: Integer | null
  readonly extend_by: Integer | null
  readonly at: Integer
  readonly request_id: string | null
  readonly key_id: string | null
  readonly key_name: string | null
  readonly reason: string | null
  /** An array of `FieldChange` as JSON. */
  readonly changes: string | null
}

const endDateOf = (millis: Integer | null): EndDate | undefined =>
  millis === null ? undefined : EndDate(Number(millis))

/** A row from `userHistory`. */
interface UserHistoryRow extends HistoryRow {
  /** Whether the user was a member after the newest row. */
  readonly is_member: boolean
}

const changesOf = ({ changes }: HistoryRow): AuditRow["changes"] =>
  changes === null ? [] : JSON.parse(changes)

/** Converts a row to an audit row. An empty row gives none. */
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
          by: row.extend_by === null ? undefined : Millis(Number(row.extend_by)),
          changes: changesOf(row),
          at: Number(row.at),
        },
      ]

/** Adds an audit row for a disclosure. Returns one row if the project exists. */
const recordDisclosure = (schema: string): string => `
  WITH shown AS MATERIALIZED (
    SELECT number AS project_number, $3::text AS subject FROM ${schema}.projects WHERE id = $1::text
  ),${auditRow(schema, "shown", 4, "$2::text")}
  SELECT FROM shown
`

/** The parameters for `recordDisclosure`. */
const recordDisclosureParams = (
  projectId: ProjectId,
  { action, subject }: Disclosure,
  context: ChangeContext,
) => [textParam(projectId), textParam(action), textParam(subject), ...changeContextParams(context)]

/** Makes the operations that read the audit trail, and add disclosures to it. */
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
    recordShown: Effect.fnUntraced(function* (projectId, shown, context) {
      const params = recordDisclosureParams(projectId, shown, context)
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
      const options = { owner: readsOf(projectId) }
      if (userId === undefined) {
        const rows = yield* executor.execute<HistoryRow>(sql.projectHistory, params, options)
        return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toAuditRow(projectId, row))
      }
      const rows = yield* rowsOfProject(
        projectId,
        yield* executor.execute<UserHistoryRow>(
          sql.userHistory,
          [...params, textParam(userId)],
          options,
        ),
      )
      const oldestFirst = rows.toReversed().flatMap((row) => toAuditRow(projectId, row))
      return changesOfUser(oldestFirst, userId, rows[0].is_member).toReversed().slice(0, limit)
    }),
  }
}
