/** Clauses that statements in several modules share: events, sequences, changes, audit rows, idempotency keys. */

import type {
  AuditAction,
  Change,
  ChangeContext,
  EndDate,
  IdempotencyKey,
  NonMembershipAction,
  UserId,
} from "@tenure/core/store"
import { type Integer, instantParam, textParam, textsParam, uuidParam } from "./values.ts"

/** A text that sorts after all user ids, even those that begin with a tilde. */
export const afterAllUsers = "\u007f"

/** Quotes a schema name. */
export const quoted = (schema: string): string => `"${schema}"`

/**
 * Deletes up to 1000 rows that meet a condition, except locked ones. Returns one row for each.
 *
 * It finds them by `ctid`, for which there is only one plan. In a join with the limited subquery, the planner
 * may run the subquery again for each row in the table, and each run finds more rows.
 */
export const deleteSome = (schema: string, table: string, condition: string): string => `
  DELETE FROM ${schema}.${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${schema}.${table}
    WHERE ${condition}
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  ))
  RETURNING 1
`

/**
 * An expression for the next check for an end date. It is NULL if end dates are not watched yet; `least` with
 * the stored one ignores that, and keeps an earlier next check. So an extension that postpones the end
 * changes no indexed column.
 */
export const nextCheckOf = (schema: string, endDate: string): string =>
  `${endDate} - (SELECT x.longest FROM ${schema}.expiry_settings x)`

/** An expression for the time of a change that is requested at a time. Same rule as `changeTime` in core. */
export const changeTimeSql = (at: string): string => `greatest(${at}, statement_timestamp())`

/**
 * Whether the own date of a membership `m` applies, and is the same as another: then it was set before.
 *
 * @param change - expressions for the date and the project's bulk_seq
 */
export const isSameDateSql = ({
  bulkSeq,
  endDate,
}: {
  readonly bulkSeq: string
  readonly endDate: string
}): string => `m.end_date = ${endDate} AND m.seq >= ${bulkSeq}`

/**
 * An expression for `date_set_at` when a membership `m` gets an end date.
 *
 * @param change - expressions for the date, the time of the change, and the project's bulk_seq
 */
export const dateSetAtSql = ({
  at,
  ...change
}: Parameters<typeof isSameDateSql>[0] & { readonly at: string }): string =>
  `CASE WHEN ${isSameDateSql(change)} THEN m.date_set_at ELSE ${changeTimeSql(at)} END`

/** Whether a webhook `w` receives a project's events with a type. Takes two expressions. */
export const receives = (project: string, type: string): string =>
  `w.project_number = ${project} AND w.disabled_at IS NULL
      AND (w.event_types IS NULL OR ${type} = ANY (w.event_types))`

/** An expression for a delivery's `member`, from the event body, if the webhook `w` is ordered. */
export const memberOf = (schema: string, body: string): string =>
  `CASE WHEN w.ordered THEN ${schema}.member_of(${body}) END`

/**
 * The common table expressions `published` and `delivered`: they store the events in `source`, and one
 * delivery of each to every enabled webhook in its project that receives its type. `source` has the columns
 * `project_number`, `event_id`, `event_type`, `at`, `body` and `n`, which gives the order. An event's
 * deliveries are in the order of the webhook list.
 *
 * @param options.body - an expression for the body, in place of that column
 * @param options.condition - a further condition on a webhook `w` and a row `s` from `source`
 */
export const eventAndDeliveries = (
  schema: string,
  source: string,
  { body = "body", condition = "true" } = {},
): string => `
  published AS (
    INSERT INTO ${schema}.events (id, project_number, type, at, body)
    SELECT event_id, project_number, event_type, at, ${body} FROM ${source}
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at, member)
    SELECT s.event_id, w.id, clock_timestamp(), ${memberOf(schema, body)}
    FROM ${source} s
    JOIN ${schema}.webhooks w ON ${receives("s.project_number", "s.event_type")} AND ${condition}
    ORDER BY s.n, w.position
    RETURNING webhook_id
  )`

/** One row per event or attempt in the batch that the statement accepted. */
export interface AcceptedItemRow {
  /** The position in the batch, from 1. */
  readonly n: number
  readonly deliveries: number
}

/** Whether a statement has stored deliveries. */
export const hasDeliveries = (rows: ReadonlyArray<AcceptedItemRow>): boolean =>
  rows.some(({ deliveries }) => deliveries > 0)

/**
 * The size of a round. Changes are numbered by `seq`, in rounds: a change to one membership takes the next
 * number after the last ones used by the membership and the project; a bulk extension or an import takes the
 * first number in a new round, which no membership has reached, and so need not read any.
 *
 * So no membership is in a later round than its project. When a membership has used up its round, it takes a
 * number from the project, which thereby enters the next round.
 *
 * A project can have 90 billion rounds, ten bulk extensions a second for 285 years, before its numbers exceed
 * safe integers. And the project is locked only for every 100,000th change to a member.
 */
export const round = 100_000

/** An expression for the round that a number is in. */
export const sequenceRound = (seq: string): string => `${seq} / ${round}`

/** An expression for the first number in the next round. */
export const nextSequenceRound = (seq: string): string => `(${sequenceRound(seq)} + 1) * ${round}`

/**
 * An expression for the `seq` that a change to a membership gets, after the last changes to the membership
 * and to the project. The function in the migrations may lock the project.
 *
 * @param last - an expression for the `seq` of the membership's last change
 * @param project - the name of a row with the columns `project_number`, `project_seq` and `bulk_seq`
 * @param count - an expression for how many changes take numbers, much less than a round. The last number is
 *   returned; the others take those before it
 */
export const nextSeq = (schema: string, last: string, project: string, count = "1"): string =>
  `${schema}.next_seq(greatest(${last}, ${project}.project_seq), ${project}.project_number, ${project}.project_seq, ${project}.bulk_seq, ${count})`

/** The number that `nextSeq` gives to one change, if no other change takes it. */
export const expectedSeq = (last: string, projectSeq: string): string => {
  const later = `greatest(${last}, ${projectSeq})`
  return `CASE WHEN ${later} % ${round} < ${round} - 1 THEN ${later} + 1 ELSE ${nextSequenceRound(later)} END`
}

/**
 * The common table expression `asked`: one row with the parameters that every change has. `$2` is NULL for a
 * change to all memberships, and `$3` is NULL if the change ends a membership.
 */
export const requested = `
  asked AS (
    SELECT $1::text AS project_id, $2::text AS user_id, $3::timestamptz AS to_date,
           $4::timestamptz AS at, $5::text AS request_id, $6::text AS key_id,
           $7::uuid AS event_id, $8::text AS event_type, $9::text AS head, $10::text AS reason, 1 AS n
  )`

/** The parameters for a change to one membership, or to all memberships if `userId` is undefined. */
export const changeParams = (
  { at, event, origin, projectId, reason }: Change,
  userId: UserId | undefined,
  endDate: EndDate | undefined,
) => [
  textParam(projectId),
  textParam(userId),
  instantParam(endDate),
  instantParam(at),
  textParam(origin.requestId),
  textParam(origin.keyId),
  uuidParam(event.id),
  textParam(event.type),
  textParam(event.head),
  textParam(reason),
]

/** One result row per change in the batch whose target exists. */
export interface ItemRow extends ChangeRow {
  /** The change's position in the batch, from 1. */
  readonly n: number
}

/** The columns to read when a project is locked. */
export const projectColumns = "id, number, seq, bulk_seq, ending_backfilled_to"

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

/**
 * The common table expression `quick`: if a statement reads it, its commit does not wait for the disk. A
 * server crash may undo the commit as a whole, together with other such commits, but none that waited. Not
 * for a statement that writes memberships: their versions are transaction numbers, which are used again after
 * a crash.
 */
export const quickCommit = `quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`

/** The effective end date of a membership `m` in a project `p`, with the functions in the migrations. */
const effectiveDate = (schema: string, adjusted: string): string =>
  `${schema}.date_after_pause(${schema}.effective_end_date(m.end_date, m.seq, p.bulk_seq, ${adjusted}), m.paused_at, m.resumes_at)`

/** The assignment for a new end date of a membership `m`. A pause stays, but adds nothing any more if it is over. */
export const updatePausedAt = (schema: string): string =>
  `paused_at = ${schema}.next_paused_at(m.paused_at, m.resumes_at)`

/** An expression for the effective end date of a membership `m` in a project `p`, as the statement sees them. */
export const effectiveEndDateSql = (schema: string): string =>
  effectiveDate(
    schema,
    `(
    SELECT ${schema}.adjusted_end_date(m.end_date, b.addition, b.minimum) FROM ${schema}.bulk_extensions b
    WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
  )`,
  )

/** The same for a statement that has locked the project, and may have waited for it. */
export const effectiveDateLocked = (schema: string): string =>
  effectiveDate(schema, `${schema}.date_after_bulk_extensions(m.project_number, m.seq, m.end_date)`)

/** An expression for the kept day of a membership `m`: a pause that is over drops it. */
const keptDayAfterPause = (schema: string, keptDay: string): string =>
  `CASE WHEN ${schema}.time_paused(m.paused_at, m.resumes_at) = interval '0' THEN ${keptDay} END`

/** Expressions for the form of the end date of a membership `m` in a project `p`, as the statement sees them. */
export const effectiveFormSql = (schema: string) => {
  const firstLater = `FROM ${schema}.bulk_extensions b
    WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1`
  return {
    inDays: `${schema}.effective_in_days(m.in_days, m.seq, p.bulk_seq, (SELECT b.in_days ${firstLater}))`,
    keptDay: keptDayAfterPause(
      schema,
      `${schema}.effective_kept_day(m.kept_day, m.seq, p.bulk_seq,
      (SELECT ${schema}.keeps_date(m.end_date, b.addition, b.minimum) ${firstLater}))`,
    ),
  }
}

/** The same for a statement that has locked the project, and may have waited for it. */
export const effectiveFormLocked = (schema: string) => ({
  inDays: `${schema}.effective_in_days(m.in_days, m.seq, p.bulk_seq,
    ${schema}.in_days_after_bulk_extensions(m.project_number, m.seq))`,
  keptDay: keptDayAfterPause(
    schema,
    `${schema}.effective_kept_day(m.kept_day, m.seq, p.bulk_seq,
    ${schema}.keeps_date_after_bulk_extensions(m.project_number, m.seq, m.end_date))`,
  ),
})

/** An expression for the `seq` of the last change to a membership `m`, including changes that kept its end date. */
export const lastSeq = "greatest(m.seq, m.dateless_seq)"

/**
 * The common table expressions `ended` and `counted`: they remove user `$2` from the locked project. The
 * project then takes the `seq` of this change, so that the user gets a greater one after coming back.
 *
 * @param condition - a further condition, after others
 */
export const endedRows = (schema: string, condition = ""): string => `
  ended AS (
    DELETE FROM ${schema}.memberships m USING project p
    WHERE m.project_number = p.number AND m.user_id = $2 ${condition}
    RETURNING p.number AS project_number, greatest(${lastSeq}, p.seq) + 1 AS seq,
              ${effectiveDateLocked(schema)} AS from_date, m.metadata
  ),
  counted AS (
    UPDATE ${schema}.projects p SET membership_count = p.membership_count - 1, seq = e.seq
    FROM ended e WHERE p.number = e.project_number
  )`

/**
 * The same as `eventAndDeliveries` for events about changes: `source` has the columns `seq` and, in place of
 * `body`, `head`. Same format as `completeEvent` in core.
 *
 * @param metadata - for events about one membership: an expression for the JSON of its metadata, which may be
 *   NULL
 */
export const publishChange = (schema: string, source: string, metadata?: string): string => {
  const noted =
    metadata === undefined ? "" : ` || coalesce(',"metadata":' || nullif(${metadata}, '{}'), '')`
  return eventAndDeliveries(schema, source, {
    body: `head${noted} || ',"sequence":' || seq || '}}'`,
  })
}

/**
 * The common table expression `audited`: it adds an audit row for each row in `source`, which has the columns
 * `project_number`, `user_id`, `seq`, `from_date`, `to_date`, `at`, `request_id`, `key_id`, `reason` and `n`.
 * `n` gives the order.
 *
 * @param action - an SQL expression
 * @param hasState - whether `source` also has `in_days`, `kept_day`, `paused_at` and `resumes_at`: the state
 *   after the change, if the membership still exists then
 * @param otherUser - an SQL expression for the other user in a move
 */
export const auditRowsAs = (
  schema: string,
  source: string,
  action: `'${AuditAction}'` | `CASE ${string} END`,
  hasState = false,
  otherUser = "NULL",
): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_number, user_id, other_user_id, seq, action, from_date, to_date, at, request_id, key_id, reason${hasState ? ", in_days, kept_day, paused_at, resumes_at" : ""})
    SELECT project_number, user_id, ${otherUser}, ${sequenceRound("seq")}, ${action}, from_date, to_date, at, request_id, key_id, reason${hasState ? ", nullif(in_days, false), kept_day, paused_at, resumes_at" : ""}
    FROM ${source}
    ORDER BY n
  )`

/** A row that every statement which changes memberships returns. */
export interface ChangeRow {
  /** The change's `seq`. */
  readonly seq: Integer
  /** The membership's metadata as JSON, for a change to one membership. */
  readonly metadata?: string | null
  readonly deliveries: number
}

/** The project number of whatever belongs to no project. */
export const noProjectNumber = 0

const contextFrom = (first: number | undefined): string =>
  first === undefined
    ? "s.at, s.request_id, s.key_id"
    : `$${first}::timestamptz, $${first + 1}::text, $${first + 2}::text`

/**
 * The common table expression `audited` for changes to anything but memberships: it adds an audit row for
 * each row in `source`, which has the columns `project_number` and `subject`.
 *
 * @param first - the number of the first of three parameters, which `changeContextParams` returns; without
 *   it, `source` has the columns `at`, `request_id` and `key_id`
 * @param action - an SQL expression for what happened
 * @param changes - an expression for the replaced settings as JSON
 * @param reason - an expression for why it happened
 */
export const auditRow = (
  schema: string,
  source: string,
  first: number | undefined,
  action: `'${NonMembershipAction}'` | `CASE ${string} END` | `$${number}::text`,
  changes = "NULL",
  reason = "NULL",
): string => `
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, subject, action, at, request_id, key_id, changes, reason)
    SELECT s.project_number,
           coalesce((SELECT ${sequenceRound("p.seq")} FROM ${schema}.projects p WHERE p.number = s.project_number), 0),
           s.subject, ${action}, ${contextFrom(first)}, ${changes}, ${reason}
    FROM ${source} s
  )`

/** The parameters for `auditRow`. */
export const changeContextParams = ({ at, origin }: ChangeContext) => [
  instantParam(at),
  textParam(origin.requestId),
  textParam(origin.keyId),
]

/**
 * The parts that differ between a statement without and with an idempotency key, with which the change is
 * made only once.
 */
export interface KeyClause {
  /** A further condition on the change, after others. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the key for each row in `source`.
   *
   * @param answer - an expression for the data that the response needs
   * @param project - an expression for the number of the project with which the key is deleted
   */
  readonly keeping: (source: string, answer?: string, project?: string | number) => string
}

/** Whether a key `k` belongs to an existing project or to none. */
export const keyProjectExists = (schema: string): string => `(
        k.project_number = ${noProjectNumber}
        OR EXISTS (SELECT FROM ${schema}.projects o WHERE o.number = k.project_number)
      )`

/**
 * The common table expression `cleared_keys`: it deletes keys that belong to deleted projects, because others
 * may use these. A statement that stores a key counts its rows first, so that they are deleted by then.
 *
 * @param using - the tables besides the keys `k`
 * @param condition - which keys
 */
const clearing = (schema: string, using: string, condition: string): string => `,
  cleared_keys AS (
    DELETE FROM ${schema}.idempotency_keys k ${using}
    WHERE ${condition} AND NOT ${keyProjectExists(schema)}
    RETURNING 1
  )`

const afterClearing = "(SELECT count(*) FROM cleared_keys) l (deleted)"

/** The clause for a change without an idempotency key. */
const always: KeyClause = { condition: "", keeping: () => "" }

/**
 * The clause for a change with an idempotency key. The statement changes nothing if the key is known, and
 * runs again if another statement stores the key at the same time.
 *
 * @param first - the number of the statement's first parameter for the key
 */
const partOf = (schema: string, first: number): KeyClause => {
  const owner = `$${first}::text`
  const key = `$${first + 1}::text`
  const fingerprint = `$${first + 2}::text`
  const given = `$${first + 3}::text`
  return {
    condition: `AND NOT EXISTS (
      SELECT FROM ${schema}.idempotency_keys k
      WHERE k.owner = ${owner} AND k.key = ${key} AND ${keyProjectExists(schema)}
    )`,
    keeping: (
      source,
      answer = "''",
      project = "project_number",
    ) => `${clearing(schema, "", `k.owner = ${owner} AND k.key = ${key}`)},
  kept AS (
    INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response)
    SELECT ${owner}, ${key}, ${project}, ${fingerprint}, coalesce(${given}, ${answer})
    FROM ${afterClearing}, ${source}
  )`,
  }
}

/** A statement's two forms: for changes without and with an idempotency key. */
export interface StatementForms {
  readonly always: string
  readonly idempotency: string
}

/**
 * Makes a statement's two forms.
 *
 * @param params - the number of parameters in both forms
 */
export const withAndWithoutKey = (
  schema: string,
  statement: (schema: string, idempotency: KeyClause) => string,
  params: number,
): StatementForms => ({
  always: statement(schema, always),
  idempotency: statement(schema, partOf(schema, params + 1)),
})

/** The parts that differ between a batch statement without and with idempotency keys. */
export interface KeyClauseOfEach {
  /** The types of the further parameters, each with one element per change. */
  readonly types: string
  /** The columns for these parameters in the rows `a`. */
  readonly columns: string
  /** The condition on the rows `a`. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the keys for the rows in `source`.
   *
   * @param answer - an expression for the data that the responses need
   * @param instead - an expression for what takes the place of a given answer, too, unless it is NULL
   */
  readonly keeping: (source: string, answer?: string, instead?: string) => string
}

/**
 * The clause for a batch of changes with different idempotency keys. The statement makes those whose key is
 * unknown, and runs again if another statement stores one at the same time.
 *
 * @param first - the number of the statement's first parameter for the keys
 */
const eachPartOf = (schema: string, first: number): KeyClauseOfEach => ({
  types: [0, 1, 2, 3].map((n) => `, $${first + n}::text[]`).join(""),
  columns: ", owner, key, fingerprint, response",
  condition: `WHERE NOT EXISTS (
      SELECT FROM ${schema}.idempotency_keys k
      WHERE k.owner = a.owner AND k.key = a.key AND ${keyProjectExists(schema)}
    )`,
  // All statements store keys in the same order, which avoids deadlocks.
  keeping: (
    source,
    answer = "''",
    instead = "NULL",
  ) => `${clearing(schema, "USING asked a", "k.owner = a.owner AND k.key = a.key")},
  kept AS (
    INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response)
    SELECT owner, key, project_number, fingerprint, coalesce(${instead}, response, ${answer})
    FROM ${afterClearing}, ${source}
    ORDER BY owner COLLATE "C", key COLLATE "C"
  )`,
})

/**
 * Makes a batch statement's two forms.
 *
 * @param params - the number of parameters in both forms
 */
export const withAndWithoutKeys = (
  schema: string,
  statement: (schema: string, idempotency: KeyClauseOfEach) => string,
  params: number,
): StatementForms => ({
  always: statement(schema, { types: "", columns: "", condition: "", keeping: () => "" }),
  idempotency: statement(schema, eachPartOf(schema, params + 1)),
})

const onceParams = ({ answer, fingerprint, key, owner }: IdempotencyKey) => [
  textParam(owner),
  textParam(key),
  textParam(fingerprint),
  textParam(answer),
]

/** Returns the form that a change needs, with all its parameters. */
export const pickForm = (
  statement: StatementForms,
  params: ReadonlyArray<unknown>,
  idempotency: IdempotencyKey | undefined,
): readonly [statement: string, params: ReadonlyArray<unknown>] =>
  idempotency === undefined
    ? [statement.always, params]
    : [statement.idempotency, [...params, ...onceParams(idempotency)]]

/** The same for a batch in which all changes or none have an idempotency key. */
export const pickFormOfEach = (
  statement: StatementForms,
  params: ReadonlyArray<unknown>,
  changes: ReadonlyArray<{ readonly idempotency?: IdempotencyKey | undefined }>,
): readonly [statement: string, params: ReadonlyArray<unknown>] => {
  const onces = changes.flatMap(({ idempotency }) => idempotency ?? [])
  return onces.length === 0
    ? [statement.always, params]
    : [
        statement.idempotency,
        [
          ...params,
          textsParam(onces.map(({ owner }) => owner)),
          textsParam(onces.map(({ key }) => key)),
          textsParam(onces.map(({ fingerprint }) => fingerprint)),
          textsParam(onces.map(({ answer }) => answer)),
        ],
      ]
}

/** Whether a row belongs to the project with the id `$1`: all tables have the project number. */
export const isInProject = (schema: string): string =>
  `project_number = (SELECT number FROM ${schema}.projects WHERE id = $1::text)`
