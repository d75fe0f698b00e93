/** Selects members by their changes in the audit trail on PostgreSQL, with the state before. */

import {
  ApiKeyId,
  type BulkChange,
  type BulkChangeMade,
  type ChangedMember,
  EndDate,
  EventId,
  type MembershipStore,
  Millis,
  type ProjectId,
  type SelectedChangesPage,
  UserId,
  announcementActions,
  bulkActions,
  datelessActions,
  maxClockSkewMillis,
  selectableActions,
  statelessActions,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { rowsOfProject } from "./projects.ts"
import { round } from "./sql/clauses.ts"
import {
  instantParam,
  integerParam,
  millisOf,
  textParam,
  textsParam,
  wholeMillisOf,
} from "./sql/values.ts"

const listOf = (actions: Iterable<string>): string =>
  [...actions].map((action) => `'${action}'`).join(", ")

/** Whether a pause ended by itself in a row. */
const isUnasked = (row: string): string =>
  `${row}.action = 'resumed' AND ${row}.resumes_at IS NOT NULL AND ${row}.paused_at IS NULL`

/** Whether a row is a selected change. Same rule as in the function in the migrations. */
const isSelected = (row: string): string => `
  ${row}.action IN (${listOf(selectableActions)}) AND (${isUnasked(row)}) IS NOT TRUE
  AND ${row}.at >= $4::timestamptz
  AND ($5::timestamptz IS NULL OR ${row}.at < $5::timestamptz)
  AND ($6::text IS NULL OR ${row}.key_id = $6::text)
  AND ($7::text[] IS NULL OR ${row}.request_id = ANY ($7::text[]))`

/** A user's newest row before the first selected one, `f`, with one of the actions not listed. */
const newestBefore = (schema: string, actions: Iterable<string>, condition = "true"): string => `
  SELECT o.seq, o.id, o.action, o.to_date, o.in_days, o.kept_day, o.paused_at, o.resumes_at FROM ${schema}.audit o
  WHERE o.project_number = (SELECT number FROM project) AND o.user_id = f.user_id
    AND (o.seq, o.id) < (f.seq, f.id) AND o.action NOT IN (${listOf(actions)}) AND ${condition}
  ORDER BY o.seq DESC, o.id DESC LIMIT 1`

/**
 * Returns a page of members in the project `$1` after the user `$2`, up to `$3`, with changes since `$4` and
 * before `$5`, by the principal `$6` and the requests `$7`: one row with the page, or none without the project.
 * Rows since `$4` are in parts that were written at `$8` or later.
 *
 * Where a pause is over that no row has ended, its end comes immediately before the next change.
 */
export const selectChanges = (schema: string): string => `
  WITH project AS MATERIALIZED (SELECT p.number FROM ${schema}.projects p WHERE p.id = $1::text),
  start AS MATERIALIZED (SELECT ${schema}.first_audit_id_since($8::timestamptz) AS id),
  first AS MATERIALIZED (
    SELECT f.* FROM project p, start s, ${schema}.first_selected_changes(
      p.number, $2::text, $3::integer, s.id, ARRAY[${listOf(selectableActions)}],
      $4::timestamptz, $5::timestamptz, $6::text, $7::text[]
    ) f
  ),
  member AS MATERIALIZED (
    SELECT f.user_id, f.seq, f.at, f.from_date,
           own.seq AS own_seq, own.id AS own_id, own.to_date AS own_date, own.in_days, own.kept_day,
           state.paused_at AS pause_since, state.resumes_at AS pause_until,
           -- A server's clock may be behind, so these actions tell by the pause that they left.
           coalesce(state.paused_at IS NOT NULL AND CASE
             WHEN f.action IN ('granted', 'imported', 'extended') AND f.paused_at IS NULL THEN true
             ELSE f.action <> 'resumed' AND state.resumes_at <= f.at
           END, false) AS is_over,
           other.key_id AS other_key_id, other.at AS other_at
    FROM first f
    LEFT JOIN LATERAL (${newestBefore(schema, statelessActions)}) state ON true
    LEFT JOIN LATERAL (
      SELECT state.* WHERE state.action <> 'paused'
      UNION ALL
      SELECT * FROM (${newestBefore(schema, datelessActions, "state.action = 'paused'")}) dated
    ) own ON true
    LEFT JOIN LATERAL (
      SELECT o.key_id, o.at FROM ${schema}.audit o
      WHERE o.project_number = (SELECT number FROM project) AND o.id >= (SELECT id FROM start)
        AND o.user_id = f.user_id AND (o.seq, o.id) >= (f.seq, f.id)
        AND o.action NOT IN (${listOf(announcementActions)}) AND (${isUnasked("o")}) IS NOT TRUE
        AND (o.action = 'moved' OR (${isSelected("o")}) IS NOT TRUE)
      ORDER BY o.seq, o.id LIMIT 1
    ) other ON true
  ),
  earliest AS MATERIALIZED (SELECT own_seq AS seq, own_id AS id FROM member ORDER BY own_seq, own_id LIMIT 1),
  bulk AS MATERIALIZED (
    SELECT b.*, x.undone_at
    FROM (
      ${[
        "(b.seq, b.id) > (SELECT e.seq, e.id FROM earliest e)",
        "b.id >= (SELECT id FROM start) AND b.at >= $4::timestamptz",
      ].map(
        (condition) => `
      SELECT b.seq, b.id, b.subject, b.action, b.to_date, b.extend_by, b.at, b.request_id, b.key_id, b.in_days
      FROM ${schema}.audit b
      WHERE b.project_number = (SELECT number FROM project) AND b.action IN (${listOf(Object.values(bulkActions))})
        AND ${condition}`,
      ).join(`
      UNION`)}
    ) b
    LEFT JOIN ${schema}.bulk_extensions x
      ON x.project_number = (SELECT number FROM project) AND x.seq = b.seq * ${round}
  ),
  -- No other change has the round of a bulk extension before it.
  log AS MATERIALIZED (SELECT ARRAY(SELECT seq FROM bulk ORDER BY seq) AS seqs)
  SELECT (
    SELECT coalesce(json_agg(json_build_object(
      'userId', m.user_id, 'from', ${millisOf("m.from_date")}, 'bulkBefore', width_bucket(m.seq, l.seqs),
      'isOver', m.is_over, 'otherKeyId', m.other_key_id, 'otherAt', ${millisOf("m.other_at")},
      'date', ${millisOf("m.own_date")}, 'ownBefore', width_bucket(m.own_seq, l.seqs), 'keptDay', m.kept_day,
      'inDays', m.in_days IS TRUE OR m.is_over AND EXISTS (
        SELECT FROM bulk b
        WHERE b.in_days AND b.seq > m.own_seq AND b.seq <= m.seq AND (b.undone_at <= m.at) IS NOT TRUE
      ),
      'since', ${millisOf("m.pause_since")}, 'until', ${millisOf("m.pause_until")}
    ) ORDER BY m.user_id), '[]')::text
    FROM member m, log l
  ) AS members, (
    SELECT coalesce(json_agg(json_build_object(
      'id', b.subject, 'action', b.action, 'date', ${millisOf("b.to_date")}, 'by', ${wholeMillisOf("b.extend_by")},
      'inDays', b.in_days IS TRUE, 'at', ${millisOf("b.at")}, 'keyId', b.key_id, 'requestId', b.request_id,
      'isUndone', b.undone_at IS NOT NULL
    ) ORDER BY b.seq), '[]')::text
    FROM bulk b
  ) AS bulk
  FROM project
`

/** The parameters for `selectChanges`. */
export const selectChangesParams = (
  projectId: ProjectId,
  { after, limit, selection }: SelectedChangesPage,
) => {
  const { keyId, requestIds, since, until } = selection
  return [
    textParam(projectId),
    textParam(after ?? ""),
    integerParam(limit),
    instantParam(since),
    instantParam(until),
    textParam(keyId),
    requestIds === undefined ? null : textsParam(requestIds),
    instantParam(since - maxClockSkewMillis),
  ]
}

/** A member in the page, as JSON. Instants are in milliseconds since the epoch. */
interface MemberJson {
  readonly userId: string
  readonly from: number | null
  readonly bulkBefore: number
  /** Whether its pause had ended by itself, without a row. */
  readonly isOver: boolean
  /** The own date before, its form, and how many bulk extensions came before it. */
  readonly date: number | null
  readonly ownBefore: number | null
  readonly keptDay: number | null
  readonly inDays: boolean
  readonly since: number | null
  readonly until: number | null
  readonly otherKeyId: string | null
  readonly otherAt: number | null
}

/** A bulk extension in the page, as JSON. */
interface BulkJson {
  readonly id: string
  readonly action: string
  readonly date: number | null
  readonly by: number | null
  readonly inDays: boolean
  readonly at: number
  readonly keyId: string | null
  readonly requestId: string | null
  readonly isUndone: boolean
}

/** The row from `selectChanges`, with two arrays as JSON. */
interface PageRow {
  readonly members: string
  readonly bulk: string
}

const keyOf = (keyId: string | null): ApiKeyId | undefined =>
  keyId === null ? undefined : ApiKeyId(keyId)

/** Returns the own date before the first selected change. The end of a pause is one, too. */
const toDateBefore = ({
  bulkBefore,
  date,
  from,
  inDays,
  isOver,
  keptDay,
  ownBefore,
}: MemberJson): ChangedMember["before"] => {
  if (isOver && from !== null)
    return { endDate: EndDate(from), inDays, keptDay: undefined, bulkBefore }
  return date === null
    ? undefined
    : { endDate: EndDate(date), inDays, keptDay: keptDay ?? undefined, bulkBefore: ownBefore ?? 0 }
}

const toMember = (member: MemberJson): ChangedMember => {
  const { bulkBefore, from, isOver, otherAt, otherKeyId, since, until, userId } = member
  return {
    userId: UserId(userId),
    from: from === null ? undefined : EndDate(from),
    bulkBefore,
    before: toDateBefore(member),
    pause: since === null || isOver ? undefined : { since, until: until ?? undefined },
    other: otherAt === null ? undefined : { keyId: keyOf(otherKeyId), at: otherAt },
  }
}

const toChange = ({ action, by, date, inDays }: BulkJson): BulkChange =>
  date === null
    ? { mode: "extendBy", by: Millis(by ?? 0) }
    : {
        mode: action === bulkActions.set ? "set" : "neverShorten",
        endDate: EndDate(date),
        ...(inDays && { inDays }),
      }

const toBulkChange = (made: BulkJson): BulkChangeMade => ({
  id: EventId(made.id),
  change: toChange(made),
  at: made.at,
  keyId: keyOf(made.keyId),
  requestId: made.requestId ?? undefined,
  isUndone: made.isUndone,
})

/** Makes the operation that selects members by their changes. */
export const makeSelectedChanges = ({
  execute,
  schema,
}: Executor): Pick<MembershipStore["Service"], "selectedChanges"> => {
  const statement = selectChanges(schema)
  return {
    selectedChanges: Effect.fnUntraced(function* (projectId, page) {
      const rows = yield* execute<PageRow>(statement, selectChangesParams(projectId, page), {
        owner: readsOf(projectId),
        isLong: true,
      })
      const [row] = yield* rowsOfProject(projectId, rows)
      const members: ReadonlyArray<MemberJson> = JSON.parse(row.members)
      const bulk: ReadonlyArray<BulkJson> = JSON.parse(row.bulk)
      return { members: members.map(toMember), bulk: bulk.map(toBulkChange) }
    }),
  }
}
