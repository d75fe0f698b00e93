/** Makes, undoes, lists and previews bulk extensions on PostgreSQL. */

import { bulkChangeNames, maxExamples } from "@tenure/core/internal"
import {
  ApiKeyId,
  type BulkChange,
  type BulkExtension,
  BulkExtensionNotFound,
  type BulkExtensionRecord,
  BulkExtensionSettled,
  BulkExtensionUndone,
  type OrderedAdjustment,
  EndDate,
  EventId,
  type LoggedBulkExtension,
  type MembershipStore,
  Millis,
  type ProjectId,
  Reason,
  type StoredPreview,
  type Undo,
  type UndoTarget,
  UserId,
  adjustmentOf,
  bulkActions,
  composeLog,
  expiredLead,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { endPauses } from "./pauses.sql.ts"
import { activeAfter } from "./project-settings.ts"
import { rowsOfProject } from "./projects.ts"
import {
  type ChangeRow,
  type KeyClause,
  changeParams,
  lockedProject,
  nextCheckOf,
  nextSequenceRound,
  publishChange,
  requested,
  sequenceRound,
} from "./sql/clauses.ts"
import {
  type Integer,
  bigintsParam,
  instantParam,
  instantsParam,
  integerParam,
  jsonOf,
  millisOf,
  flagParam,
  textParam,
  uuidParam,
  wholeMillisOf,
} from "./sql/values.ts"

/**
 * The time of a bulk change. A member who ended before that time, with the old and with the new date, is not
 * announced again. `$4` is the process's time: a date that is still to come there must not count as past only
 * because the database's clock is ahead.
 */
const madeAt = "least(statement_timestamp(), $4::timestamptz)"

/**
 * The time since which a pass looks for members in project `p` whom bulk extensions have made active. Until
 * it comes, they are all still active. NULL where ends are not watched.
 */
const unseenSince = (schema: string, p: string): string =>
  `CASE WHEN NOT EXISTS (SELECT FROM ${schema}.expiry_settings) THEN NULL
        WHEN ${p}.next_check_at <= statement_timestamp() THEN coalesce(${p}.bulk_unseen_since, ${madeAt})
        ELSE ${madeAt} END`

/** The common table expression `audited`: the row for a bulk change in `changed`. */
const auditBulkChange = (
  schema: string,
  action: string,
  subject: string,
  by = "NULL",
  inDays = "NULL",
): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_number, subject, seq, action, to_date, extend_by, at, request_id, key_id, reason, in_days)
    SELECT project_number, ${subject}, ${sequenceRound("seq")}, ${action}, to_date, ${by}, at, request_id, key_id, reason, ${inDays}
    FROM changed
  )`

/** A duration in milliseconds, `$12`. */
const extendBy = "$12::bigint * interval '1 millisecond'"

/**
 * Changes all end dates in a project without writing to any membership. Returns one row with the numbers of
 * memberships and deliveries, if the project exists. Where ends are watched, members who have ended may need
 * a next check immediately after an extension by a duration.
 */
export const extendAll = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  project AS (
    UPDATE ${schema}.projects
    SET seq = ${nextSequenceRound("seq")}, bulk_seq = ${nextSequenceRound("seq")}, bulk_changed_at = ${madeAt}, bulk_unseen_since = ${unseenSince(schema, "projects")},
        next_check_at = least(next_check_at, ${nextCheckOf(schema, "coalesce($3::timestamptz, '-infinity')")})
    WHERE id = $1 ${idempotency.condition}
    RETURNING number, membership_count, seq
  ),
  changed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq, p.membership_count AS total,
           ${schema}.add_bulk_extension(p.number, p.seq, a.event_id, $11::text, a.to_date, ${extendBy},
             $13::boolean, a.at, a.request_id, a.key_id, a.reason, p.membership_count) AS added
    FROM asked a, project p
  ),
  ${auditBulkChange(
    schema,
    `CASE $11 WHEN '${bulkChangeNames.set}' THEN '${bulkActions.set}' WHEN '${bulkChangeNames.neverShorten}' THEN '${bulkActions.neverShorten}' ELSE '${bulkActions.extendBy}' END`,
    "event_id::text",
    extendBy,
    "nullif($13::boolean, false)",
  )},${publishChange(schema, "changed")}${idempotency.keeping("changed", `concat_ws(' ', total, ${millisOf("to_date")})`)}
  SELECT seq, total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** The parameters for `extendAll`. */
export const extendAllParams = (extension: BulkExtension) => {
  const { bulk } = extension
  const isByDuration = bulk.mode === "extendBy"
  return [
    ...changeParams(extension, undefined, isByDuration ? undefined : bulk.endDate),
    textParam(bulkChangeNames[bulk.mode]),
    textParam(isByDuration ? String(bulk.by) : undefined),
    flagParam(!isByDuration && bulk.inDays === true),
  ]
}

/** The row that a bulk change returns. */
export interface BulkChangeRow extends ChangeRow {
  /** The number of memberships. */
  readonly total: Integer
}

/**
 * Undoes the bulk extension `$11` if it was made after `$12`. Returns one row, with whether it could be
 * undone, if the project exists.
 */
export const undo = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},
  decided AS MATERIALIZED (
    SELECT p.number, ${schema}.undo_bulk_extension(
             p.number, $11::uuid, $12::timestamptz, a.at, a.request_id, a.key_id) AS outcome
    FROM asked a, project p
  ),
  turned AS (
    UPDATE ${schema}.projects p
    SET seq = ${nextSequenceRound("p.seq")}, bulk_changed_at = ${madeAt}, bulk_unseen_since = ${unseenSince(schema, "p")},
        next_check_at = least(p.next_check_at, ${nextCheckOf(schema, "timestamptz '-infinity'")})
    FROM decided j WHERE p.number = j.number AND j.outcome = 'undone'
    RETURNING p.number, p.seq, p.membership_count
  ),
  changed AS MATERIALIZED (
    SELECT a.*, t.number AS project_number, t.seq, t.membership_count AS total FROM asked a, turned t
  ),
  ${auditBulkChange(schema, "'bulk_undone'", "$11::text")},${publishChange(schema, "changed")}${idempotency.keeping("changed", "total::text")}
  SELECT j.outcome, c.seq, c.total, (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM decided j LEFT JOIN changed c ON true
`

/** The parameters for `undo`. */
export const undoParams = (change: Undo) => [
  ...changeParams(change, undefined, undefined),
  uuidParam(change.bulkExtensionId),
  instantParam(change.madeAfter),
]

/** The row from `undo`. */
export interface UndoRow extends BulkChangeRow {
  readonly outcome: "undone" | "unknown" | "undone before" | "settled"
}

/** Returns the error if a bulk extension cannot be undone. */
export const undoFailure = (
  outcome: UndoRow["outcome"],
  bulkExtensionId: EventId,
): BulkExtensionNotFound | BulkExtensionUndone | BulkExtensionSettled | undefined => {
  switch (outcome) {
    case "unknown":
      return new BulkExtensionNotFound({ bulkExtensionId })
    case "undone before":
      return new BulkExtensionUndone({ bulkExtensionId })
    case "settled":
      return new BulkExtensionSettled({ bulkExtensionId })
    case "undone":
      return undefined
  }
}

/**
 * Returns up to `$3` bulk extensions in the project `$1`, newest first. If `$2` is not NULL, only those older
 * than the one with this id. Returns one empty row if there are none, and no row if the project does not
 * exist.
 */
const listBulkExtensions = (schema: string): string => `
  SELECT b.id, b.seq, b.mode, b.state, ${millisOf("b.end_date")} AS end_date,
         ${wholeMillisOf("b.extend_by")} AS extend_by,
         ${wholeMillisOf("b.own_addition")} AS own_addition, ${millisOf("b.own_minimum")} AS own_minimum, b.own_in_days, ${millisOf("b.at")} AS at, b.request_id, b.key_id,
         b.reason, b.total, ${millisOf("b.undone_at")} AS undone_at, b.undone_request_id, b.undone_key_id
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT * FROM ${schema}.bulk_extensions b
    WHERE b.project_number = p.number AND ($2::uuid IS NULL OR b.seq < (
      SELECT o.seq FROM ${schema}.bulk_extensions o WHERE o.project_number = p.number AND o.id = $2
    ))
    ORDER BY b.seq DESC LIMIT $3::integer
  ) b ON true
  WHERE p.id = $1::text
  ORDER BY b.seq DESC
`

/** A row in the list. An empty list has one row without values. */
interface BulkExtensionRow {
  readonly id: string | null
  readonly seq: Integer
  readonly mode: string
  readonly state: "open" | "settling" | "settled"
  readonly end_date: Integer | null
  readonly extend_by: Integer | null
  /** With `own_minimum`, its effect on an end date, including extensions that were joined with it. */
  readonly own_addition: Integer | null
  readonly own_minimum: Integer | null
  readonly own_in_days: boolean | null
  readonly at: Integer
  readonly request_id: string | null
  readonly key_id: string | null
  readonly reason: string | null
  readonly total: Integer
  readonly undone_at: Integer | null
  readonly undone_request_id: string | null
  readonly undone_key_id: string | null
}

const changeOf = ({ end_date, extend_by, mode }: BulkExtensionRow): BulkChange =>
  end_date === null
    ? { mode: "extendBy", by: Millis(Number(extend_by)) }
    : {
        mode: mode === bulkChangeNames.set ? "set" : "neverShorten",
        endDate: EndDate(Number(end_date)),
      }

const originOf = (requestId: string | null, keyId: string | null) => ({
  requestId: requestId ?? undefined,
  keyId: keyId === null ? undefined : ApiKeyId(keyId),
})

/** Converts a row to a bulk extension. An empty row gives none. */
const toRecord = (row: BulkExtensionRow): ReadonlyArray<BulkExtensionRecord> =>
  row.id === null
    ? []
    : [
        {
          id: EventId(row.id),
          change: changeOf(row),
          at: Number(row.at),
          reason: row.reason === null ? undefined : Reason(row.reason),
          origin: originOf(row.request_id, row.key_id),
          total: Number(row.total),
          undone:
            row.undone_at === null
              ? undefined
              : {
                  at: Number(row.undone_at),
                  by: originOf(row.undone_request_id, row.undone_key_id),
                },
        },
      ]

/** The last end date, which `adjusted_end_date` does not exceed. */
const lastEndDateSql = "timestamptz '9999-12-31 23:59:59.999+00'"

/** A membership `m`'s end date after bulk extensions, from arrays with their additions and minimums. */
const dateAfter = (schema: string, additions: string, minimums: string): string => `
  CASE WHEN m.place > cardinality(l.seqs) THEN m.end_date ELSE ${schema}.adjusted_end_date(
    m.end_date, l.${additions}[m.place] * interval '1 millisecond', l.${minimums}[m.place]
  ) END`

/**
 * The memberships in a project `p`, with their end dates before and after a change to its bulk extensions
 * `l`. Reading an array element costs much less than searching the table of bulk extensions for each
 * membership.
 *
 * @param idempotency - `OFFSET 0` computes each date once; otherwise, it is computed for each use
 */
const datesWithLog = (schema: string, idempotency: "" | "OFFSET 0"): string => `
  SELECT m.user_id, ${dateAfter(schema, "old_additions", "old_minimums")} AS before,
         ${dateAfter(schema, "additions", "minimums")} AS after, m.is_paused, m.told_end, m.told_lead
  FROM (
    SELECT m.user_id, m.end_date, m.paused_at IS NOT NULL AS is_paused, m.announced_end AS told_end, m.announced_lead_seconds AS told_lead,
           width_bucket(m.seq, l.seqs) + 1 AS place
    FROM ${schema}.memberships m WHERE m.project_number = p.number ${idempotency}
  ) m ${idempotency}`

/**
 * Counts what would change in the project `$1` with the bulk extensions `$2`, `$3` and `$4`: their numbers,
 * and what each and all later ones add and set as a minimum. `$5` and `$6` are the current ones. Returns one
 * row if the project exists. `moved` counts the memberships that get another end date, are not paused, and may be announced, by
 * the part in which that is: `$7` has where these begin, in milliseconds from now. Reads all memberships in the project, because an index on the effective end date
 * would cost each extension more than all other indexes.
 */
const previewBulkChange = (schema: string): string => `
  WITH project AS MATERIALIZED (
    SELECT o.number, o.membership_count, ${activeAfter("o")} AS active_after
    FROM ${schema}.projects o WHERE o.id = $1::text
  ),
  log AS MATERIALIZED (
    SELECT $2::bigint[] AS seqs, $3::bigint[] AS additions, $4::timestamptz[] AS minimums,
           $5::bigint[] AS old_additions, $6::timestamptz[] AS old_minimums,
           ARRAY(
             SELECT date_trunc('milliseconds', statement_timestamp()) + o.millis * interval '1 millisecond'
             FROM unnest($7::bigint[]) WITH ORDINALITY o (millis, n) ORDER BY o.n
           ) AS moved_from
  )
  SELECT p.membership_count AS total, c.shortened, c.reactivated, c.capped, c.lifetimes_ended, c.moved, ${jsonOf(
    `coalesce(ARRAY(
      SELECT ARRAY[d.user_id, ${millisOf("d.before")}::text, ${millisOf("d.after")}::text]
      FROM (${datesWithLog(schema, "")} ORDER BY m.user_id) d
      WHERE d.before <> d.after LIMIT ${maxExamples}
    ), '{}')`,
  )} AS examples
  FROM project p, log l
  CROSS JOIN LATERAL (
    SELECT ${["shortened", "reactivated", "capped", "lifetimes_ended"]
      .map((name) => `coalesce(sum(${name}), 0) AS ${name}`)
      .join(", ")},
           coalesce(json_object_agg(part, moved), '{}')::text AS moved
    FROM (
      SELECT width_bucket(after, l.moved_from)
               + CASE WHEN told_end = after AND told_lead = 0 THEN cardinality(l.moved_from) + 1 ELSE 0 END AS part,
             count(*) FILTER (WHERE after < before) AS shortened,
             count(*) FILTER (WHERE NOT is_paused AND before <= p.active_after AND after > p.active_after) AS reactivated,
             count(*) FILTER (WHERE before < ${lastEndDateSql} AND after = ${lastEndDateSql}) AS capped,
             count(*) FILTER (WHERE before = ${lastEndDateSql} AND after < ${lastEndDateSql}) AS lifetimes_ended,
             count(*) FILTER (
               WHERE before <> after AND NOT is_paused AND (
                 told_lead = ${expiredLead / 1000} AND (greatest(before, after) <= p.active_after OR told_end = after)
               ) IS NOT TRUE
             ) AS moved
      FROM (${datesWithLog(schema, "OFFSET 0")}) d
      GROUP BY part
    ) parts
  ) c
`

/** The parameters for `previewBulkChange`. */
const previewParams = (
  projectId: ProjectId,
  before: ReadonlyArray<LoggedBulkExtension>,
  after: ReadonlyArray<LoggedBulkExtension>,
  offsets: ReadonlyArray<number>,
) => [
  textParam(projectId),
  bigintsParam(after.map(({ order }) => BigInt(order))),
  ...adjustmentParams(composeLog(after)),
  ...adjustmentParams(composeLog(before)),
  bigintsParam(offsets.map(BigInt)),
]

const adjustmentParams = (composed: ReadonlyArray<OrderedAdjustment>) => [
  bigintsParam(
    composed.map(({ addition }) => (addition === undefined ? undefined : BigInt(addition))),
  ),
  instantsParam(composed.map(({ minimum }) => minimum)),
]

/** The row from `previewBulkChange`. */
interface PreviewRow {
  readonly total: Integer
  readonly shortened: Integer
  readonly reactivated: Integer
  readonly capped: Integer
  readonly lifetimes_ended: Integer
  readonly examples: string
  /** An object with counts by part, as JSON. */
  readonly moved: string
}

const toPreview = (row: PreviewRow, parts: number): StoredPreview => {
  const moved: Readonly<Record<number, number>> = JSON.parse(row.moved)
  const examples: ReadonlyArray<readonly [user: string, before: string, after: string]> =
    JSON.parse(row.examples)
  return {
    total: Number(row.total),
    shortened: Number(row.shortened),
    reactivated: Number(row.reactivated),
    capped: Number(row.capped),
    lifetimesEnded: Number(row.lifetimes_ended),
    examples: examples.map(([userId, before, after]) => ({
      userId: UserId(userId),
      endDate: EndDate(Number(before)),
      wouldEnd: EndDate(Number(after)),
    })),
    moved: Array.from({ length: parts }, (_, part) => moved[part] ?? 0),
  }
}

/** A bulk extension in the project's log, and whether it can still be undone. */
interface KeptRow extends BulkExtensionRow {
  readonly id: string
}

const isKept = (row: BulkExtensionRow): row is KeptRow => row.id !== null && row.state !== "settled"

const toLogged = (row: KeptRow): LoggedBulkExtension => ({
  order: Number(row.seq),
  adjustment: {
    addition: row.own_addition === null ? undefined : Millis(Number(row.own_addition)),
    minimum: row.own_minimum === null ? undefined : EndDate(Number(row.own_minimum)),
  },
  inDays: row.own_in_days === true,
  isUndone: row.undone_at !== null,
})

/** Decides whether a bulk extension can be undone. Same rule as the function in the migrations. */
const decideUndo = (
  rows: ReadonlyArray<BulkExtensionRow>,
  { bulkExtensionId, madeAfter }: UndoTarget,
): UndoRow["outcome"] => {
  const row = rows.find(({ id }) => id === bulkExtensionId)
  if (row === undefined) return "unknown"
  if (row.undone_at !== null) return "undone before"
  return row.state !== "open" || Number(row.at) <= madeAfter ? "settled" : "undone"
}

// More than a project ever keeps.
const maxListed = 10_000

/** Greater than every `seq`. */
const nextOrder = Number.MAX_SAFE_INTEGER

// One owner for all projects, so that previews leave half of the connections to others.
const options = { owner: "previews", isLong: true }

/** Makes the operations that list and preview bulk extensions. */
export const makeBulkExtensions = ({
  execute,
  schema,
}: Executor): Pick<
  MembershipStore["Service"],
  "bulkExtensions" | "previewBulkExtension" | "previewUndo"
> => {
  const sql = {
    list: listBulkExtensions(schema),
    preview: previewBulkChange(schema),
    endPauses: endPauses(schema),
  }

  const list = (projectId: ProjectId, after: EventId | undefined, limit: number) =>
    Effect.flatMap(
      execute<BulkExtensionRow>(
        sql.list,
        [textParam(projectId), uuidParam(after), integerParam(limit)],
        { owner: readsOf(projectId) },
      ),
      (rows) => rowsOfProject(projectId, rows),
    )

  const preview = Effect.fnUntraced(function* (
    projectId: ProjectId,
    before: ReadonlyArray<LoggedBulkExtension>,
    after: ReadonlyArray<LoggedBulkExtension>,
    offsets: ReadonlyArray<number>,
  ) {
    yield* execute(sql.endPauses, [textParam(projectId)], options)
    const params = previewParams(projectId, before, after, offsets)
    const rows = yield* execute<PreviewRow>(sql.preview, params, options)
    const [row] = yield* rowsOfProject(projectId, rows)
    return toPreview(row, 2 * (offsets.length + 1))
  })

  return {
    bulkExtensions: (projectId, { after, limit }) =>
      Effect.map(list(projectId, after, limit), (rows) => rows.flatMap(toRecord)),

    previewBulkExtension: Effect.fnUntraced(function* (projectId, change, offsets = []) {
      const rows = yield* list(projectId, undefined, maxListed)
      const log = rows.filter(isKept).toReversed().map(toLogged)
      const added = { order: nextOrder, adjustment: adjustmentOf(change) }
      return yield* preview(
        projectId,
        [...log, { ...added, isUndone: true }],
        [...log, { ...added, isUndone: false }],
        offsets,
      )
    }),

    previewUndo: Effect.fnUntraced(function* (projectId, target, offsets = []) {
      const rows = yield* list(projectId, undefined, maxListed)
      const failure = undoFailure(decideUndo(rows, target), target.bulkExtensionId)
      if (failure !== undefined) return yield* failure
      const log = rows.filter(isKept).toReversed()
      return yield* preview(
        projectId,
        log.map(toLogged),
        log.map((row) => {
          const logged = toLogged(row)
          return row.id === target.bulkExtensionId ? { ...logged, isUndone: true } : logged
        }),
        offsets,
      )
    }),
  }
}
