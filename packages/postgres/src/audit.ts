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
  announcementActions,
  bulkActions,
  changesOfUser,
  datelessActions,
  isSelective,
  maxClockSkewMillis,
  maxSearchedRows,
  searchingHistory,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { rowsOfProject } from "./projects.ts"
import { auditRow, changeContextParams, isInProject, noProjectNumber } from "./sql/clauses.ts"
import {
  type Integer,
  flagParam,
  instantParam,
  integerParam,
  millisOf,
  textParam,
  wholeMillisOf,
} from "./sql/values.ts"

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

const announcements = announcementActions.map((action) => `'${action}'`).join(", ")

/**
 * Returns the newest `$2` audit rows before the cursor `$3` and `$4` that match a filter, out of the first
 * `maxSearchedRows` rows after it: in a project, or with `$1` NULL in none. Rows are read in their order until
 * enough are found, without an index for the filter, which each change would have to keep. If fewer are found,
 * `reached` is the cursor of the last row that was read, unless the trail ends there, or no row is later than
 * `$11`. Returns one empty row if none is found, and no row if the project does not exist.
 */
export const searchProjectHistory = (schema: string): string => {
  const inProject = "project_number = (SELECT number FROM project)"
  const read = (columnList: string) => `
    SELECT ${columnList} FROM ${schema}.audit o
    WHERE o.${inProject} AND ${placeOf("o")} < ${cursorIn(schema, "$3", "$4", inProject)}
    ORDER BY ${newestFirst("o")} LIMIT ${maxSearchedRows}`
  return `
  WITH project AS MATERIALIZED (
    SELECT p.number FROM ${schema}.projects p WHERE p.id = $1::text
    UNION ALL SELECT ${noProjectNumber} WHERE $1::text IS NULL
  ),
  found AS MATERIALIZED (
    SELECT * FROM (${read(columnsOf("o"))}) r
    WHERE ($5::text IS NULL OR r.key_id = $5::text)
      AND ($6::text IS NULL OR r.action = $6::text)
      AND ($7::text IS NULL OR r.request_id = $7::text)
      AND ($8::timestamptz IS NULL OR r.at >= $8::timestamptz)
      AND ($9::timestamptz IS NULL OR r.at < $9::timestamptz)
      AND ($10::boolean OR r.action NOT IN (${announcements}))
    ORDER BY ${newestFirst("r")} LIMIT $2::integer
  )
  SELECT ${columns(schema)},
         -- Read again only if it is needed.
         CASE WHEN (SELECT count(*) FROM found) < $2::integer
           AND ($11::timestamptz IS NULL OR EXISTS (SELECT FROM (${read("o.at")}) r WHERE r.at >= $11::timestamptz))
         THEN (
           SELECT r.seq || '.' || r.id FROM (${read("o.seq, o.id")}) r
           ORDER BY ${newestFirst("r")} OFFSET ${maxSearchedRows - 1} LIMIT 1
         ) END AS reached
  FROM project p
  LEFT JOIN found a ON true
  ORDER BY ${newestFirst("a")}
`
}

/** The parameters for `searchProjectHistory`, which looks for one row more than fits on the page. */
export const searchParams = (
  projectId: ProjectId | undefined,
  { action, after, announcements: all = true, keyId, limit, requestId, since, until }: Search,
) => [
  textParam(projectId),
  integerParam(limit + 1),
  ...cursorParams(after),
  ...[keyId, action, requestId].map(textParam),
  ...[since, until].map(instantParam),
  flagParam(all),
  instantParam(since === undefined ? undefined : since - maxClockSkewMillis),
]

/** The parameters for a cursor. */
export const cursorParams = (cursor: AuditCursor | undefined) => {
  const [seq, id] = cursor === undefined ? [] : cursor.split(".")
  return [textParam(seq), textParam(id)]
}

type Search = Omit<Parameters<MembershipStore["Service"]["searchHistory"]>[1], "userId">

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

/** A row from `searchProjectHistory`. */
interface FoundRow extends HistoryRow {
  /** The cursor of the last row that was read. */
  readonly reached: string | null
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
): Pick<MembershipStore["Service"], "history" | "recordShown" | "searchHistory"> => {
  const { schema } = executor
  const sql = {
    recordShown: recordDisclosure(schema),
    projectHistory: projectHistory(schema),
    userHistory: userHistory(schema),
    otherHistory: otherHistory(schema),
    searchProjectHistory: searchProjectHistory(schema),
  }

  const history: MembershipStore["Service"]["history"] = Effect.fnUntraced(function* (
    projectId,
    { after, limit, userId },
  ) {
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
  })
  // A page of a user's history is made from no more bulk extensions.
  const searchUserHistory = searchingHistory(history, maxBulkRows)

  return {
    recordShown: Effect.fnUntraced(function* (projectId, shown, context) {
      const params = recordDisclosureParams(projectId, shown, context)
      const rows = yield* executor.execute(sql.recordShown, params, { owner: projectId })
      yield* rowsOfProject(projectId, rows)
    }),

    history,

    searchHistory: Effect.fnUntraced(function* (projectId, { userId, ...search }) {
      // A user's changes have an index, and without a filter, all rows match.
      if (userId !== undefined || !isSelective(search)) {
        return yield* searchUserHistory(projectId, { userId, ...search })
      }
      const found = yield* executor.execute<FoundRow>(
        sql.searchProjectHistory,
        searchParams(projectId, search),
        projectId === undefined ? undefined : { owner: readsOf(projectId) },
      )
      const rows = projectId === undefined ? found : yield* rowsOfProject(projectId, found)
      const all = rows.flatMap((row) => toAuditRow(projectId, row))
      const page = all.slice(0, search.limit)
      if (all.length > page.length) return { rows: page, next: page.at(-1)?.cursor }
      const reached = rows[0]?.reached ?? undefined
      return { rows: page, next: reached === undefined ? undefined : AuditCursor(reached) }
    }),
  }
}
