/** Statements that read and change memberships. */

import {
  type AuditAction,
  type DateChange,
  EndDate,
  type Extension,
  type Grant,
  type GrantIfAbsent,
  type Import,
  type Membership,
  type Metadata,
  type MetadataChange,
  type Pause,
  type ProjectId,
  type Publication,
  UserId,
  metadataFromJson,
  defaultProjectSettings,
  metadataJson,
  maxPreviewed,
} from "@tenure/core/store"
import {
  type SettingsRow,
  graceOf,
  graceSeconds,
  settingsColumns,
  toSettings,
} from "./project-settings.ts"
import {
  type ItemRow,
  type KeyClause,
  type KeyClauseOfEach,
  type StatementForms,
  afterAllUsers,
  auditRowsAs,
  changeParams,
  changeTimeSql,
  dateSetAtSql,
  isSameDateSql,
  effectiveDateLocked,
  effectiveFormLocked,
  effectiveEndDateSql,
  lastSeq,
  endedRows,
  expectedSeq,
  lockedProject,
  nextCheckOf,
  nextSeq,
  nextSequenceRound,
  projectColumns,
  publishChange,
  receives,
  requested,
  sequenceRound,
  updatePausedAt,
} from "./sql/clauses.ts"
import {
  type Integer,
  flagsParam,
  smallintsParam,
  instantParam,
  instantsParam,
  integersParam,
  jsonOf,
  millisOf,
  textParam,
  textsParam,
  toMillis,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/**
 * The common table expression `asked` for a batch: one row per change to one membership. The parameters are
 * arrays with one element per change.
 *
 * @param idempotency - the clause for idempotency keys
 * @param further - parameters that only some changes have, and their column names
 */
const requestedOfEach = (
  idempotency: KeyClauseOfEach,
  further = { types: "", columns: "" },
): string => `
  asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                         $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[],
                         $11::boolean[], $12::smallint[]${further.types}${idempotency.types})
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, head, reason,
          in_days, kept_day${further.columns}${idempotency.columns}, n)
    ${idempotency.condition}
  )`

/** The parameters for `requestedOfEach`. */
export const paramsOfEach = (changes: ReadonlyArray<DateChange>) => [
  textsParam(changes.map(({ projectId }) => projectId)),
  textsParam(changes.map(({ userId }) => userId)),
  instantsParam(changes.map(({ endDate }) => endDate)),
  instantsParam(changes.map(({ at }) => at)),
  textsParam(changes.map(({ origin }) => origin.requestId)),
  textsParam(changes.map(({ origin }) => origin.keyId)),
  uuidsParam(changes.map(({ event }) => event.id)),
  textsParam(changes.map(({ event }) => event.type)),
  textsParam(changes.map(({ event }) => event.head)),
  textsParam(changes.map(({ reason }) => reason)),
  flagsParam(changes.map(({ inDays = false }) => inDays)),
  smallintsParam(changes.map(({ keptDay }) => keptDay)),
]

/** Returns metadata as JSON, or `undefined`, which keeps the stored metadata. */
const jsonIfGiven = ({ metadata }: { readonly metadata?: Metadata | undefined }) =>
  metadata && metadataJson(metadata)

/** The parameters for `grant`. */
export const grantParams = (grants: ReadonlyArray<Grant>) => [
  ...paramsOfEach(grants),
  textsParam(grants.map(jsonIfGiven)),
  textsParam(grants.map(({ timeZone = defaultProjectSettings.timeZone }) => timeZone)),
  integersParam(grants.map(({ grace = defaultProjectSettings.grace }) => graceSeconds({ grace }))),
]

/** The parameters for `grantIfAbsent`. */
export const grantIfAbsentParams = (grants: ReadonlyArray<GrantIfAbsent>) => [
  ...grantParams(grants),
  flagsParam(grants.map(({ isFinal }) => isFinal)),
]

/**
 * The common table expression `project` for a batch: locks the projects `$1`.
 *
 * @param further - more columns to read
 */
const lockedProjects = (schema: string, further = ""): string => `
  project AS MATERIALIZED (
    SELECT ${projectColumns}${further} FROM ${schema}.projects WHERE id = ANY ($1)
    -- All statements lock projects in the same order, too, and before memberships.
    ORDER BY id
    FOR NO KEY UPDATE
  )`

/** The values for `ending_generation` and `ending_lower_bound` in a new membership. `p` is its locked project. */
export const newEndingColumns = (endDate: string): string => `
  CASE WHEN p.ending_backfilled_to IS NOT NULL THEN p.bulk_seq END,
  CASE WHEN p.ending_backfilled_to IS NOT NULL THEN ${endDate} END`

/**
 * The values for `ending_generation` and `ending_lower_bound` when a membership `m` gets an end date, with
 * the functions in the migrations.
 *
 * @param seq - an expression for the project's bulk_seq
 */
const endingColumns = (schema: string, seq: string, endDate: string) => ({
  generation: `${schema}.next_ending_generation(m.ending_generation, ${seq})`,
  lowerBound: `${schema}.next_ending_lower_bound(m.ending_generation, m.ending_lower_bound, ${seq}, ${endDate})`,
})

/** The assignments for `endingColumns`. */
export const updateEndingColumns = (schema: string, seq: string, endDate: string): string => {
  const { generation, lowerBound } = endingColumns(schema, seq, endDate)
  return `ending_generation = ${generation}, ending_lower_bound = ${lowerBound}`
}

/** An expression over the locked project `p` of a membership `m`. */
const inLockedProject = (expression: string): string =>
  `(SELECT ${expression} FROM project p WHERE p.number = m.project_number)`

/** Inserts the memberships in `asked`. The parameters are those of `grantedRows`. */
const insertedRows = (schema: string, seq: string, isOfMany = false): string => `
    INSERT INTO ${schema}.memberships AS m (project_number, user_id, end_date, in_days, kept_day, date_set_at, seq, next_check_at, ending_generation, ending_lower_bound, metadata${isOfMany ? ", set_with_others_at, paused_at, resumes_at" : ""})
    SELECT p.number, a.user_id, a.to_date, a.in_days, a.kept_day, ${changeTimeSql("a.at")}, ${seq}, ${isOfMany ? `least(${nextCheckOf(schema, "a.to_date")}, a.resumes_at)` : nextCheckOf(schema, "a.to_date")}, ${newEndingColumns("a.to_date")},
           a.metadata${isOfMany ? `, ${changeTimeSql("a.at")}, a.paused_at, a.resumes_at` : ""}
    FROM asked a
    JOIN project p ON p.id = a.project_id
    ORDER BY p.id, a.user_id COLLATE "C"
    ON CONFLICT (project_number, user_id) DO UPDATE`

/**
 * The common table expression `granted`: it creates the memberships in `asked`, or sets their end dates and,
 * unless it is NULL, their metadata. `project` has the locked projects.
 *
 * @param seq - an expression for the `seq` that new memberships in a project `p` get, greater than the
 *   project's
 * @param isOfMany - whether this is a change of many
 */
const grantedRows = (schema: string, seq: string, isOfMany = false): string => {
  const isSame = isSameDateSql({
    endDate: "excluded.end_date",
    bulkSeq: inLockedProject("p.bulk_seq"),
  })
  return `
  granted AS (${insertedRows(schema, seq, isOfMany)}
    SET end_date = excluded.end_date, in_days = excluded.in_days, kept_day = excluded.kept_day,
        date_set_at = CASE WHEN ${isSame} THEN m.date_set_at ELSE excluded.date_set_at END,${
          isOfMany
            ? `
        set_with_others_at = CASE WHEN ${isSame} THEN m.set_with_others_at ELSE excluded.set_with_others_at END,
        paused_at = coalesce(excluded.paused_at, ${schema}.next_paused_at(m.paused_at, m.resumes_at)),
        resumes_at = CASE WHEN excluded.paused_at IS NULL THEN m.resumes_at ELSE excluded.resumes_at END,`
            : `
        ${updatePausedAt(schema)},`
        }
        seq = greatest(${lastSeq} + 1, excluded.seq),
        next_check_at = least(m.next_check_at, excluded.next_check_at),
        metadata = coalesce(excluded.metadata, m.metadata),
        ${updateEndingColumns(schema, "excluded.ending_generation", "excluded.ending_lower_bound")},
        previous_end_date =
          ${inLockedProject(effectiveDateLocked(schema))}
    RETURNING m.project_number, user_id, (xmax = 0) AS is_new, seq, previous_end_date AS from_date,
              end_date AS to_date, in_days, kept_day, metadata, ${pauseColumns(schema)}
  )`
}

/** The columns for the pause that a membership `m` is in, under their own names. */
const pauseColumns = (schema: string): string =>
  ["paused_at", "resumes_at"]
    .map(
      (column) =>
        `CASE WHEN ${schema}.is_paused(m.paused_at, m.resumes_at) THEN m.${column} END AS ${column}`,
    )
    .join(", ")

/** The columns of a row, in milliseconds since the epoch. */
const pauseMillis = (row: string): string =>
  `${millisOf(`${row}.paused_at`)} AS paused_at, ${millisOf(`${row}.resumes_at`)} AS resumes_at`

// Without a date, there is no state to record; new metadata leave it as it is.
const withoutState: ReadonlySet<AuditAction> = new Set(["ended", "updated"])

/** The common table expression `audited`, as in `auditRowsAs`, with one action. */
const auditRows = (schema: string, source: string, action: AuditAction): string =>
  auditRowsAs(schema, source, `'${action}'`, !withoutState.has(action))

/**
 * The last common table expressions in a change: `audited`, and those in `publishChange`. `source` has the
 * columns for both.
 */
const auditAndPublish = (schema: string, source: string, action: AuditAction): string =>
  `${auditRows(schema, source, action)},${publishChange(schema, source, "metadata")}`

/** Removes a membership. Returns one row with the number of deliveries, if the membership existed. */
export const endMembership = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema)},
  ${endedRows(schema, idempotency.condition)},
  changed AS (SELECT a.*, e.project_number, e.seq, e.from_date, e.metadata FROM asked a, ended e),
  ${auditAndPublish(schema, "changed", "ended")}${idempotency.keeping("changed")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/**
 * Sets the metadata `$11` if the membership has the metadata `$12`. Returns one row with the number of
 * deliveries, if it does.
 */
export const setMetadata = (schema: string, idempotency: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, idempotency.condition)},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq FROM asked a, project p
  ),
  changed AS (
    UPDATE ${schema}.memberships m
    SET metadata = $11::text, dateless_seq = ${nextSeq(schema, lastSeq, "a")}
    FROM placed a
    WHERE m.project_number = a.project_number AND m.user_id = a.user_id AND coalesce(m.metadata, '{}') = $12::text
    RETURNING a.project_number, a.user_id, a.at, a.request_id, a.key_id, a.event_id, a.event_type, a.head, a.reason, a.n,
              m.dateless_seq AS seq, m.metadata,
              (SELECT ${effectiveDateLocked(schema)} FROM project p) AS from_date,
              (SELECT ${effectiveDateLocked(schema)} FROM project p) AS to_date
  ),
  ${auditAndPublish(schema, "changed", "updated")}${idempotency.keeping("changed")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** The parameters for `setMetadata`. */
export const setMetadataParams = (changed: MetadataChange) => [
  ...changeParams(changed, changed.userId, undefined),
  textParam(metadataJson(changed.metadata)),
  textParam(metadataJson(changed.expected)),
]

/**
 * Sets end dates for different users, with a function in the migrations. Returns the position, from 1, and
 * the number of deliveries for each existing membership.
 */
export const extend = (schema: string): StatementForms => {
  const call = (name: string, params: number): string =>
    `SELECT n, seq, metadata, deliveries FROM ${schema}.${name}(${Array.from({ length: params }, (_, index) => `$${index + 1}`).join(", ")})`
  return { always: call("extend", 12), idempotency: call("extend_once", 16) }
}

/**
 * The same if several extensions are for one membership. They are made in order, each with its own `seq`,
 * audit row and event, and the membership is written once.
 */
export const extendInOrder = (schema: string, idempotency: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(idempotency)},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq,
           row_number() OVER in_order AS step, lag(a.to_date) OVER in_order AS date_before,
           count(*) OVER (PARTITION BY p.id, a.user_id) AS steps
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WINDOW in_order AS (PARTITION BY p.id, a.user_id ORDER BY a.n)
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  written AS (
    UPDATE ${schema}.memberships m
    SET end_date = p.to_date, in_days = p.in_days, kept_day = p.kept_day,
        date_set_at = ${dateSetAtSql({ endDate: "p.to_date", at: "p.at", bulkSeq: "p.bulk_seq" })},
        seq = ${nextSeq(schema, lastSeq, "p", "p.steps")},
        next_check_at = least(m.next_check_at, ${nextCheckOf(schema, "p.to_date")}),
        ${updateEndingColumns(schema, "p.bulk_seq", "p.to_date")}, ${updatePausedAt(schema)},
        previous_end_date = ${effectiveEndDateSql(schema)}
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id AND p.step = p.steps
    RETURNING p.project_number, p.user_id, m.seq, m.previous_end_date, m.metadata, ${pauseColumns(schema)}
  ),
  found AS (
    SELECT p.*, w.metadata, w.paused_at, w.resumes_at, w.seq - p.steps + p.step AS seq, coalesce(p.date_before, w.previous_end_date) AS from_date
    FROM placed p JOIN written w ON w.project_number = p.project_number AND w.user_id = p.user_id
  ),
  ${auditAndPublish(schema, "found", "extended")}${idempotency.keeping("found")}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * The result of an extension `p` for a membership `m`, which may depend on its end date: one is expected, or
 * a later one is kept. With `expectsForm`, it may depend on the form of that.
 */
const extendedIf = (schema: string, expectsForm: boolean): string => {
  const { generation, lowerBound } = endingColumns(schema, "made.bulk_seq", "made.to_date")
  const dateSetAt = dateSetAtSql({
    endDate: "made.to_date",
    at: "made.at",
    bulkSeq: "made.bulk_seq",
  })
  const { inDays, keptDay } = effectiveFormLocked(schema)
  const isOtherForm = expectsForm
    ? `CASE WHEN p.expected_in_days IS NOT NULL
    THEN ${inDays} <> p.expected_in_days OR ${keptDay} IS DISTINCT FROM p.expected_kept_day ELSE false END`
    : "false"
  return `(end_date, in_days, kept_day, date_set_at, seq, next_check_at, ending_generation, ending_lower_bound, paused_at, previous_end_date) = (
    SELECT coalesce(made.to_date, m.end_date),
           CASE WHEN made.to_date IS NULL THEN m.in_days ELSE made.in_days END,
           CASE WHEN made.to_date IS NULL THEN m.kept_day ELSE made.kept_day END,
           CASE WHEN made.to_date IS NULL THEN m.date_set_at ELSE ${dateSetAt} END,
           CASE WHEN made.to_date IS NULL THEN m.seq ELSE ${nextSeq(schema, lastSeq, "p")} END,
           least(m.next_check_at, ${nextCheckOf(schema, "made.to_date")}), ${generation}, ${lowerBound},
           CASE WHEN made.to_date IS NULL THEN m.paused_at ELSE ${schema}.next_paused_at(m.paused_at, m.resumes_at) END,
           -- NULL if the date is as expected, and its form is not.
           CASE WHEN NOT before.has_other_form OR before.end_date <> p.expected_date THEN before.end_date END
    FROM (SELECT ${effectiveDateLocked(schema)} AS end_date, ${isOtherForm} AS has_other_form OFFSET 0) before
    LEFT JOIN LATERAL (
      SELECT p.to_date, p.in_days, p.kept_day, p.at, p.bulk_seq
      WHERE (before.end_date <> p.expected_date) IS NOT TRUE AND NOT before.has_other_form
        AND NOT (p.keeps_later AND before.end_date > p.to_date)
    ) made ON true
  )`
}

const laterDate = `CASE WHEN ends_later THEN ${millisOf("from_date")}::text END`

/**
 * Sets end dates where memberships have the expected dates, or do not end later. Returns a row for each
 * existing membership: its position, from 1, its date if that was not as expected, its date if it ends later
 * and stays, and the number of deliveries.
 *
 * It locks the projects: a compared date stays the same until the change commits, and no bulk extension
 * replaces it in between.
 *
 * A membership that stays as it is, or does not have the expected date, is written unchanged. So it is
 * locked, and its date is the current one even if other transactions have changed it since the statement
 * began.
 *
 * @param expectsForm - whether extensions may expect a form; comparing it makes the statement 7 % slower
 */
const extendingIf = (
  schema: string,
  idempotency: KeyClauseOfEach,
  expectsForm: boolean,
): string => `
  WITH ${requestedOfEach(idempotency, {
    types: `, $13::timestamptz[], $14::boolean[]${expectsForm ? ", $15::boolean[], $16::smallint[]" : ""}`,
    columns: `, expected_date, keeps_later${expectsForm ? ", expected_in_days, expected_kept_day" : ""}`,
  })},
  ${lockedProjects(schema)},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq
    FROM asked a
    JOIN project p ON p.id = a.project_id
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  found AS (
    UPDATE ${schema}.memberships m
    SET ${extendedIf(schema, expectsForm)}
    -- Both columns come from one table, so that the index finds each membership, however many members the
    -- planner assumes.
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id
    RETURNING p.*, m.seq, m.previous_end_date AS from_date, m.metadata, ${pauseColumns(schema)}
  ),
  answered AS (
    SELECT *, keeps_later AND from_date > to_date AS ends_later
    FROM found WHERE (from_date <> expected_date) IS NOT TRUE AND from_date IS NOT NULL
  ),
  changed AS (SELECT * FROM answered WHERE NOT ends_later),
  ${auditAndPublish(schema, "changed", "extended")}${idempotency.keeping("answered", undefined, laterDate)}
  SELECT n::integer, seq, metadata, CASE WHEN from_date IS NULL THEN ${millisOf("expected_date")}
              WHEN from_date <> expected_date THEN ${millisOf("from_date")} END AS conflicting_date,
         CASE WHEN keeps_later AND from_date > to_date THEN ${millisOf("from_date")} END AS later_date,
         (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM found
`

export const extendIf = (schema: string, idempotency: KeyClauseOfEach): string =>
  extendingIf(schema, idempotency, false)

/** The same if extensions expect a form, too. */
export const extendIfForm = (schema: string, idempotency: KeyClauseOfEach): string =>
  extendingIf(schema, idempotency, true)

/** Whether an extension expects a form of the current date. */
export const isOfForm = ({ expectedForm }: Extension): boolean => expectedForm !== undefined

/** Whether an extension depends on the membership's current date. */
export const isConditional = ({ expectedEndDate, mode }: Extension): boolean =>
  expectedEndDate !== undefined || mode === "neverShorten"

/** The parameters for `extendIf`. */
export const extendIfParams = (extensions: ReadonlyArray<Extension>) => [
  ...paramsOfEach(extensions),
  instantsParam(extensions.map(({ expectedEndDate }) => expectedEndDate)),
  flagsParam(extensions.map(({ mode }) => mode === "neverShorten")),
]

/** The parameters for `extendIfForm`. */
export const extendIfFormParams = (extensions: ReadonlyArray<Extension>) => [
  ...extendIfParams(extensions),
  flagsParam(extensions.map(({ expectedForm }) => expectedForm?.inDays)),
  smallintsParam(extensions.map(({ expectedForm }) => expectedForm?.keptDay)),
]

/** A row from `extendIf`, for an existing membership. */
export interface ExtendedRow extends ItemRow {
  /** The membership's end date, if another one was expected. */
  readonly conflicting_date: Integer | null
  /** The membership's end date, if it is later and stays. */
  readonly later_date: Integer | null
}

/** Returns a membership with its effective end date, if it exists. */
export const findMembership = (schema: string): string => `
  SELECT user_id, ${millisOf("end_date")} AS end_date, in_days, kept_day, metadata::text, ${pauseMillis("m")}, ${settingsColumns("m")}
  FROM ${schema}.memberships_current m
  WHERE project_id = $1::text AND user_id = $2::text
`

/** The common table expression `asked`: parameters whose projects exist. */
const findUnlockedAsked = (schema: string): string => `
  asked AS MATERIALIZED (
    SELECT a.n, p.number AS project_number, a.user_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (project_id, user_id, n)
    JOIN ${schema}.projects p ON p.id = a.project_id
  )`

/** The common table expression `member`: the memberships in `asked` that are not locked. */
const unlockedMembers = (schema: string): string => `
  member AS MATERIALIZED (
    SELECT a.n
    FROM asked a
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    FOR NO KEY UPDATE OF m SKIP LOCKED
  )`

/** Returns the position, from 1, of each existing membership that is not locked. */
export const findUnlocked = (schema: string): string => `
  WITH ${findUnlockedAsked(schema)},${unlockedMembers(schema)}
  SELECT n::integer FROM member
`

/**
 * Returns the position, from 1, of each membership that can be granted without waiting: neither its project
 * nor an existing membership is locked.
 */
export const findGrantable = (schema: string): string => `
  WITH ${findUnlockedAsked(schema)},${unlockedMembers(schema)},
  project AS MATERIALIZED (
    SELECT number FROM ${schema}.projects WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED
  )
  SELECT a.n::integer
  FROM asked a
  JOIN project p ON p.number = a.project_number
  LEFT JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
  WHERE m.user_id IS NULL OR EXISTS (SELECT FROM member WHERE n = a.n)
`

/** The parameters of both statements. */
export const findUnlockedParams = (changes: ReadonlyArray<DateChange>) => [
  textsParam(changes.map(({ projectId }) => projectId)),
  textsParam(changes.map(({ userId }) => userId)),
]

/**
 * The text that `formatGrantAnswer` writes, in SQL.
 *
 * @param isLeft - an expression for whether nothing was changed
 */
const grantAnswer = (isLeft: string): string =>
  `${millisOf("at")} || ' ' || ${millisOf("to_date")} || CASE WHEN in_days THEN ' day ' ELSE ' instant ' END
    || coalesce(kept_day::text, '-') || ' ' || time_zone || ' ' || grace_seconds::bigint * 1000
    || ' ' || coalesce(${millisOf("paused_at")}::text, '-') || ' ' || coalesce(${millisOf("resumes_at")}::text, '-')
    || CASE WHEN ${isLeft} THEN ' left ' ELSE ' granted ' END
    || coalesce(metadata, '{}')`

/**
 * The common table expression `counted`: it counts the new memberships in `granted`. When a member's round
 * ends, the project goes on to the next one, too.
 *
 * @param condition - on the rows `g`
 */
const countedGrants = (schema: string, condition = "true"): string => `
  counted AS (
    UPDATE ${schema}.projects p
    SET membership_count = p.membership_count + g.new_members,
        seq = CASE WHEN ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")} THEN g.seq ELSE p.seq END
    FROM (
      SELECT project_number, count(*) FILTER (WHERE is_new) AS new_members, max(seq) AS seq
      FROM granted WHERE ${condition} GROUP BY project_number
    ) g
    WHERE p.number = g.project_number AND (g.new_members > 0 OR ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")})
  )`

const furtherOfGrant = {
  types: ", $13::text[], $14::text[], $15::integer[]",
  columns: ", metadata, time_zone, grace_seconds",
}

/**
 * Creates memberships, or sets the end dates of existing ones. Returns the position, from 1, and the number
 * of deliveries where the project exists.
 */
export const grant = (schema: string, idempotency: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(idempotency, furtherOfGrant)},
  ${lockedProjects(schema)},
  ${grantedRows(schema, "p.seq + 1")},
  ${countedGrants(schema)},
  changed AS (
    SELECT a.project_id, a.user_id, a.to_date, a.at, a.request_id, a.key_id, a.event_id, a.event_type, a.head, a.reason,
           a.n, a.in_days, a.kept_day, ${settingsColumns("a")}, g.project_number, g.seq, g.from_date, g.metadata, g.paused_at, g.resumes_at${idempotency.columns}
    FROM asked a
    JOIN project p ON p.id = a.project_id
    JOIN granted g ON g.project_number = p.number AND g.user_id = a.user_id
  ),
  ${auditAndPublish(schema, "changed", "granted")}${idempotency.keeping("changed", grantAnswer("false"))}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries, ${pauseMillis("changed")} FROM changed
`

/** A row from `grant`. */
export type GrantedRow = ItemRow & Pick<MembershipRow, "paused_at" | "resumes_at">

/**
 * Creates memberships for users without one. Returns a row where the project exists: the position, from 1,
 * the number of deliveries and, if the user has a membership, that membership.
 *
 * An existing membership is written unchanged. So it is locked, and its date is the current one even if other
 * transactions have changed it since the statement began. The key of a change without effect is stored only
 * if `$16` says so.
 */
export const grantIfAbsent = (schema: string, idempotency: KeyClauseOfEach): string => {
  const { inDays, keptDay } = effectiveFormLocked(schema)
  return `
  WITH ${requestedOfEach(idempotency, {
    types: `${furtherOfGrant.types}, $16::boolean[]`,
    columns: `${furtherOfGrant.columns}, is_final`,
  })},
  ${lockedProjects(schema, ", time_zone, grace_seconds")},
  granted AS (${insertedRows(schema, "p.seq + 1")}
    SET previous_end_date = m.previous_end_date
    RETURNING m.project_number, user_id, (xmax = 0) AS is_new, seq, metadata, ${pauseColumns(schema)},
              ${inLockedProject(effectiveDateLocked(schema))} AS to_date,
              ${inLockedProject(inDays)} AS in_days, ${inLockedProject(keptDay)} AS kept_day
  ),
  ${countedGrants(schema, "is_new")},
  found AS (
    SELECT a.project_id, a.user_id, a.at, a.request_id, a.key_id, a.event_id, a.event_type, a.head, a.reason,
           a.n, a.is_final, g.project_number, g.seq, g.is_new, g.to_date, NULL::timestamptz AS from_date, g.in_days, g.kept_day,
           CASE WHEN g.is_new THEN a.time_zone ELSE p.time_zone END AS time_zone,
           CASE WHEN g.is_new THEN a.grace_seconds ELSE p.grace_seconds END AS grace_seconds, g.metadata, g.paused_at, g.resumes_at${idempotency.columns}
    FROM asked a
    JOIN project p ON p.id = a.project_id
    JOIN granted g ON g.project_number = p.number AND g.user_id = a.user_id
  ),
  changed AS (SELECT * FROM found WHERE is_new),
  answered AS (SELECT * FROM found WHERE is_new OR is_final),
  ${auditAndPublish(schema, "changed", "granted")}${idempotency.keeping("answered", grantAnswer("NOT is_new"))}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries, metadata, user_id,
         CASE WHEN NOT is_new THEN ${millisOf("to_date")} END AS end_date, in_days, kept_day, time_zone, grace_seconds, ${pauseMillis("found")}
  FROM found
`
}

/** A row from `grantIfAbsent`. Without an end date, the membership is new. */
export type GrantedIfAbsentRow = ItemRow & Omit<MembershipRow, "metadata">

/**
 * Creates memberships in a project, or sets the end dates if they exist. Returns one row with the number of
 * deliveries, if the project exists.
 */
export const importAll = (schema: string, idempotency: KeyClause): string => `
  WITH asked AS MATERIALIZED (
    SELECT $1::text AS project_id, user_id, to_date, metadata, in_days, kept_day, paused_at, resumes_at, $4::timestamptz AS at, n
    FROM unnest($2::text[], $3::timestamptz[], $11::text[], $12::boolean[], $13::smallint[], $14::timestamptz[], $15::timestamptz[])
    WITH ORDINALITY AS a (user_id, to_date, metadata, in_days, kept_day, paused_at, resumes_at, n)
  ),
  ${lockedProject(schema, idempotency.condition)},
  ${grantedRows(schema, nextSequenceRound("p.seq"), true)},
  counted AS (
    UPDATE ${schema}.projects p
    SET membership_count = p.membership_count + (SELECT count(*) FROM granted WHERE is_new), seq = ${nextSequenceRound("p.seq")}
    FROM project WHERE p.number = project.number
  ),
  -- Places in the import by user id. Not joined with the granted rows: a plan made for few rows would compare
  -- each with each.
  placed AS MATERIALIZED (SELECT array_agg(n ORDER BY user_id COLLATE "C") AS places FROM asked),
  changed AS (
    SELECT project_number, user_id, seq, from_date, to_date, in_days, kept_day, paused_at, resumes_at, $4::timestamptz AS at,
           $5::text AS request_id, $6::text AS key_id, $10::text AS reason,
           (SELECT places FROM placed)[row_number() OVER (ORDER BY user_id COLLATE "C")] AS n
    FROM granted
  ),
  ${auditRows(schema, "changed", "imported")},
  happened AS (
    SELECT number AS project_number, ${nextSequenceRound("seq")} AS seq, $7::uuid AS event_id, $8::text AS event_type, $4::timestamptz AS at,
           $9::text AS head, 1 AS n
    FROM project
  ),${publishChange(schema, "happened")}${idempotency.keeping("project", undefined, "number")}
  SELECT seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM happened
`

/** The parameters for `importAll`. */
export const importParams = ({ at, event, memberships, origin, projectId, reason }: Import) => [
  textParam(projectId),
  textsParam(memberships.map(({ userId }) => userId)),
  instantsParam(memberships.map(({ endDate }) => endDate)),
  instantParam(at),
  textParam(origin.requestId),
  textParam(origin.keyId),
  uuidParam(event.id),
  textParam(event.type),
  textParam(event.head),
  textParam(reason),
  textsParam(memberships.map(jsonIfGiven)),
  flagsParam(memberships.map(({ inDays = false }) => inDays)),
  smallintsParam(memberships.map(({ keptDay }) => keptDay)),
  instantsParam(memberships.map(({ pause }) => pause?.since)),
  instantsParam(memberships.map(({ pause }) => pause?.until)),
]

const listing = (schema: string, condition: string): string => `
  SELECT m.user_id, ${millisOf("m.end_date")} AS end_date, m.in_days, m.kept_day, m.metadata::text, ${pauseMillis("m")}, ${settingsColumns("p")}
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT user_id, end_date, in_days, kept_day, metadata, paused_at, resumes_at FROM ${schema}.memberships_current
    WHERE project_number = p.number AND user_id > $2::text
      AND ($4::text IS NULL OR $4 = CASE WHEN paused_at IS NOT NULL THEN 'paused'
                                    WHEN end_date > $5::timestamptz - ${graceOf("p")} THEN 'active' ELSE 'expired' END) ${condition}
    ORDER BY user_id
    LIMIT $3::integer
  ) m ON true
  WHERE p.id = $1::text
  ORDER BY m.user_id
`

/**
 * Returns the memberships after `$2`, ordered by user id, up to a limit. If `$4` is not NULL, only those in
 * this state at `$5`. Returns one empty row if the page is empty, and no row if
 * the project does not exist.
 */
export const listMemberships = (schema: string): string => listing(schema, "")

/** The same for the users `$6` only. */
export const listMembershipsOf = (schema: string): string =>
  listing(schema, "AND user_id = ANY ($6::text[])")

/** The same for users whose ids start with `$6` only. */
export const listMembershipsWithPrefix = (schema: string): string =>
  listing(schema, `AND user_id >= $6::text AND user_id < $6 || '${afterAllUsers}'`)

/** A membership row. An empty page has one row without values. */
export interface MembershipRow extends SettingsRow {
  readonly user_id: string | null
  readonly end_date: Integer | null
  readonly in_days: boolean | null
  readonly kept_day: number | null
  /** As JSON. */
  readonly metadata: string | null
  readonly paused_at: Integer | null
  readonly resumes_at: Integer | null
}

/** Returns the pause in a row. */
export const toPause = ({
  paused_at,
  resumes_at,
}: Pick<MembershipRow, "paused_at" | "resumes_at">): Pause | undefined =>
  paused_at === null ? undefined : { since: Number(paused_at), until: toMillis(resumes_at) }

/** Converts a row to a membership. An empty row gives none. */
export const toMembership = (
  projectId: ProjectId,
  {
    end_date,
    in_days,
    kept_day,
    metadata,
    paused_at,
    resumes_at,
    user_id,
    ...settings
  }: MembershipRow,
): ReadonlyArray<Membership> =>
  user_id === null || end_date === null || metadata === null
    ? []
    : [
        {
          projectId,
          userId: UserId(user_id),
          endDate: EndDate(Number(end_date)),
          inDays: in_days === true,
          keptDay: kept_day ?? undefined,
          metadata: metadataFromJson(metadata),
          pause: toPause({ paused_at, resumes_at }),
          ...toSettings(settings),
        },
      ]

/**
 * Returns how an event with the type `$3` would be published in the project `$1`, for a change to the member
 * `$2`, or to many if that is NULL. Returns no row if the project does not exist.
 */
export const previewPublication = (schema: string): string => `
  SELECT CASE WHEN $2::text IS NULL THEN ${nextSequenceRound("p.seq")}
         ELSE ${expectedSeq(`coalesce(${lastSeq}, 0)`, "p.seq")} END AS seq,
         m.metadata, (SELECT count(*) FROM ${schema}.webhooks w WHERE ${receives("p.number", "$3::text")}) AS total,
         ${jsonOf(`ARRAY(
           SELECT ARRAY[w.id::text, w.url] FROM ${schema}.webhooks w WHERE ${receives("p.number", "$3::text")}
           ORDER BY w.position LIMIT ${maxPreviewed}
         )`)} AS first
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.memberships m ON m.project_number = p.number AND m.user_id = $2::text
  WHERE p.id = $1::text
`

/** The row from `previewPublication`. */
export interface PublicationRow {
  readonly seq: Integer
  readonly metadata: string | null
  readonly total: Integer
  /** Webhook ids and URLs as JSON. */
  readonly first: string
}

/** Converts a `previewPublication` row. */
export const toPublication = ({ first, metadata, seq, total }: PublicationRow): Publication => {
  const webhooks: ReadonlyArray<readonly [id: string, url: string]> = JSON.parse(first)
  return {
    sequence: Number(seq),
    metadata: metadata ?? undefined,
    total: Number(total),
    first: webhooks.map(([webhookId, url]) => ({ webhookId, url })),
  }
}
