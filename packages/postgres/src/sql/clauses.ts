/** Clauses that statements of several modules share. */

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

/** A text after all user ids, also after those that begin with a tilde. */
export const afterAllUsers = "\u007f"

/** Quotes the name of a schema. */
export const quoted = (schema: string): string => `"${schema}"`

/**
 * Deletes up to 1000 rows that meet a condition, without those that somebody has locked. Returns one row for each.
 *
 * It finds them by their places, which takes one plan only. In a join with the limited subquery, the planner may run
 * that anew for each row of the table, and each run finds further rows.
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
 * An expression for the next check of an end date: NULL if nobody has watched end dates yet. `least` of that and
 * of the stored one ignores NULL, and leaves an earlier next check as it is. So an extension that postpones
 * the end changes no column that an index has.
 */
export const nextCheckOf = (schema: string, endDate: string): string =>
  `${endDate} - (SELECT x.longest FROM ${schema}.expiry_settings x)`

/** An expression for when a change is made that is asked for at a time, as `changeTime` of core says. */
export const changeTimeSql = (at: string): string => `greatest(${at}, statement_timestamp())`

/**
 * An expression for the `date_set_at` of a membership `m` that is given an end date. If its own date holds and is the
 * same, it was set before.
 *
 * @param change - expressions for the date, the time of the change, and the bulk_seq of the project
 */
export const dateSetAtSql = ({
  at,
  bulkSeq,
  endDate,
}: {
  readonly at: string
  readonly bulkSeq: string
  readonly endDate: string
}): string =>
  `CASE WHEN m.end_date = ${endDate} AND m.seq >= ${bulkSeq} THEN m.date_set_at ELSE ${changeTimeSql(at)} END`

/** What the statements that publish events share. */

/** Whether a webhook `w` receives the events of a project with a type: two expressions. */
export const receives = (project: string, type: string): string =>
  `w.project_number = ${project} AND w.disabled_at IS NULL
      AND (w.event_types IS NULL OR ${type} = ANY (w.event_types))`

/** An expression for the member of a delivery of the event with a body to a webhook `w`, if that is ordered. */
export const memberOf = (schema: string, body: string): string =>
  `CASE WHEN w.ordered THEN ${schema}.member_of(${body}) END`

/**
 * The common table expressions `published` and `delivered`: they store the events of `source`, and a
 * delivery of each to every webhook of its project that is enabled and receives its type. `source` has
 * the columns `project_number`, `event_id`, `event_type`, `at`, `body` and `n`, which gives the order; the
 * deliveries of an event are in that of the list of webhooks.
 *
 * @param options.body - an expression for the body, in place of that column
 * @param options.condition - a further condition on a webhook `w` and a row `s` of `source`
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

/** The row for each event or attempt of a batch that the statement accepted. */
export interface AcceptedItemRow {
  /** The position in the batch, from 1. */
  readonly n: number
  readonly deliveries: number
}

/** Whether a statement has stored deliveries. */
export const hasDeliveries = (rows: ReadonlyArray<AcceptedItemRow>): boolean =>
  rows.some(({ deliveries }) => deliveries > 0)

/**
 * The numbers of changes, `seq`. A change of one membership takes the next number after that of the membership
 * and that of the project. A bulk extension or an import takes the first number of a new round: it knows that
 * no membership has come so far, without looking at any.
 *
 * So the round of no membership is later than that of its project. The membership that is changed as often as a
 * round has numbers takes its number from the project, which is then in the next round.
 */

/**
 * How many numbers a round has. A project can have 90 billion rounds before its numbers are no safe integers: ten
 * bulk extensions a second for 285 years. And a project is locked for every 100,000th change of a member.
 */
export const round = 100_000

/** An expression for the round of a number. */
export const sequenceRound = (seq: string): string => `${seq} / ${round}`

/** An expression for the first number of the round after that of a number. */
export const nextSequenceRound = (seq: string): string => `(${sequenceRound(seq)} + 1) * ${round}`

/**
 * An expression for the number of a change of a membership, after that of its last change and that of the project, by the
 * function of the migrations, which may lock the project.
 *
 * @param last - an expression for the number of the last change of the membership
 * @param project - the name of a row with the columns `project_number`, `project_seq` and `bulk_seq`
 * @param count - how many changes take numbers: an expression, much less than a round. The last one is returned, and
 *   the others have those before it
 */
export const nextSeq = (schema: string, last: string, project: string, count = "1"): string =>
  `${schema}.next_seq(greatest(${last}, ${project}.project_seq), ${project}.project_number, ${project}.project_seq, ${project}.bulk_seq, ${count})`

/** The number that `nextSeq` gives to one change, if no other takes it. */
export const expectedSeq = (last: string, projectSeq: string): string => {
  const later = `greatest(${last}, ${projectSeq})`
  return `CASE WHEN ${later} % ${round} < ${round} - 1 THEN ${later} + 1 ELSE ${nextSequenceRound(later)} END`
}

/** What the statements that change memberships share. */

/**
 * The common table expression `asked`: one row of the parameters that every change has. `$2` is NULL
 * for a change of all memberships, and `$3` is NULL if the change ends a membership.
 */
export const requested = `
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

/** The row of each of many changes that found what it changes. */
export interface ItemRow extends ChangeRow {
  /** The position of the change, from 1. */
  readonly n: number
}

/** The columns of a locked project. */
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
 * The common table expression `quick`, for a statement that reads it: its commit does not wait for the disk. A crash of the
 * server may undo it, as a whole, with other commits of this kind, but none that waited.
 * Not for a statement that writes memberships: their versions are numbers of transactions, which a crash has used again.
 */
export const quickCommit = `quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`

/** The end date of a membership `m` of a project `p`, by the function of the migrations. */
const effectiveDate = (schema: string, adjusted: string): string =>
  `${schema}.effective_end_date(m.end_date, m.seq, p.bulk_seq, ${adjusted})`

/** An expression for the end date of a membership `m` of a project `p`, as the statement sees them. */
export const effectiveEndDateSql = (schema: string): string =>
  effectiveDate(
    schema,
    `(
    SELECT ${schema}.adjusted_end_date(m.end_date, b.addition, b.minimum) FROM ${schema}.bulk_extensions b
    WHERE b.project_number = m.project_number AND b.seq > m.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
  )`,
  )

/** The same in a statement that has locked the project, and may have waited for it. */
export const effectiveDateLocked = (schema: string): string =>
  effectiveDate(schema, `${schema}.date_after_bulk_extensions(m.project_number, m.seq, m.end_date)`)

/** An expression for the number of the last change of a membership `m`, also of one that left its end date. */
export const lastSeq = "greatest(m.seq, m.dateless_seq)"

/**
 * The common table expressions `ended` and `counted`: they remove the membership of the user `$2` of the
 * locked project. The project's seq is then that of the change, so that the user has a greater one after
 * coming back.
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
 * The same as `publishing`, for events of changes with the column `seq`, and with `head` in place of `body`, as
 * `completeEvent` of core makes them.
 *
 * @param metadata - for events of one membership: an expression for the JSON of its metadata, which may be NULL
 */
export const publishChange = (schema: string, source: string, metadata?: string): string => {
  const noted =
    metadata === undefined ? "" : ` || coalesce(',"metadata":' || nullif(${metadata}, '{}'), '')`
  return eventAndDeliveries(schema, source, {
    body: `head${noted} || ',"sequence":' || seq || '}}'`,
  })
}

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has
 * the columns `project_number`, `user_id`, `seq`, `from_date`, `to_date`, `at`, `request_id`, `key_id`,
 * `reason` and `n`, which gives the order.
 *
 * @param action - an expression in SQL
 * @param otherUser - an expression in SQL for the other user of a move
 */
export const auditRowsAs = (
  schema: string,
  source: string,
  action: `'${AuditAction}'` | `CASE ${string} END`,
  otherUser = "NULL",
): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_number, user_id, other_user_id, seq, action, from_date, to_date, at, request_id, key_id, reason)
    SELECT project_number, user_id, ${otherUser}, ${sequenceRound("seq")}, ${action}, from_date, to_date, at, request_id, key_id, reason
    FROM ${source}
    ORDER BY n
  )`

/** What every statement that changes memberships returns. */
export interface ChangeRow {
  /** The sequence of the change. */
  readonly seq: Integer
  /** The JSON of the metadata of the membership, of a change of one. */
  readonly metadata?: string | null
  readonly deliveries: number
}

/** What the statements share that change something else than memberships. */

/** The number of the project of what belongs to none. */
export const noProjectNumber = 0

const contextFrom = (first: number | undefined): string =>
  first === undefined
    ? "s.at, s.request_id, s.key_id"
    : `$${first}::timestamptz, $${first + 1}::text, $${first + 2}::text`

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has the
 * columns `project_number` and `subject`.
 *
 * @param first - the number of the first of the three parameters, which `changeContextParams` returns; without it,
 *   `source` has the columns `at`, `request_id` and `key_id`
 * @param action - what happened, as an expression in SQL
 * @param changes - an expression for the JSON of what was replaced
 */
export const auditRow = (
  schema: string,
  source: string,
  first: number | undefined,
  action: `'${NonMembershipAction}'` | `CASE ${string} END` | `$${number}::text`,
  changes = "NULL",
): string => `
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, subject, action, at, request_id, key_id, changes)
    SELECT s.project_number,
           coalesce((SELECT ${sequenceRound("p.seq")} FROM ${schema}.projects p WHERE p.number = s.project_number), 0),
           s.subject, ${action}, ${contextFrom(first)}, ${changes}
    FROM ${source} s
  )`

/** The parameters of `recording`. */
export const changeContextParams = ({ at, origin }: ChangeContext) => [
  instantParam(at),
  textParam(origin.requestId),
  textParam(origin.keyId),
]

/** What the statements share that make a change with an idempotency key once. */

/** The parts of a statement that differ if its change has an idempotency key. */
export interface KeyClause {
  /** A further condition on the change, after others. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the key for each row of `source`.
   *
   * @param answer - an expression for what the answer needs
   * @param project - an expression for the number of the project with which the key is forgotten
   */
  readonly keeping: (source: string, answer?: string, project?: string | number) => string
}

/** Whether the project of an answer `k`, if it has one, was not deleted. */
export const keyProjectExists = (schema: string): string => `(
        k.project_number = ${noProjectNumber}
        OR EXISTS (SELECT FROM ${schema}.projects o WHERE o.number = k.project_number)
      )`

/**
 * The common table expression `left_over`, which deletes keys of deleted projects: others can have them. Who
 * stores a key counts its rows first, so that they are deleted by then.
 *
 * @param using - the tables besides the answers `k`
 * @param condition - which keys
 */
const clearing = (schema: string, using: string, condition: string): string => `,
  left_over AS (
    DELETE FROM ${schema}.idempotency_keys k ${using}
    WHERE ${condition} AND NOT ${keyProjectExists(schema)}
    RETURNING 1
  )`

const afterClearing = "(SELECT count(*) FROM left_over) l (deleted)"

/** The parts of a statement without an idempotency key. */
const always: KeyClause = { condition: "", keeping: () => "" }

/**
 * The parts of a statement with an idempotency key. It changes nothing if the key is known, and is
 * repeated if another statement stores the key at the same time.
 *
 * @param first - the number of the first of the statement's parameters for the key
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

/** The two forms of a statement: for changes without and with an idempotency key. */
export interface StatementForms {
  readonly always: string
  readonly once: string
}

/**
 * Makes the forms of a statement.
 *
 * @param params - how many parameters both forms have
 */
export const withAndWithoutKey = (
  schema: string,
  statement: (schema: string, once: KeyClause) => string,
  params: number,
): StatementForms => ({
  always: statement(schema, always),
  once: statement(schema, partOf(schema, params + 1)),
})

/** The parts of a statement of many changes that differ if each change has an idempotency key. */
export interface KeyClauseOfEach {
  /** The types of further parameters, each with one element for each change. */
  readonly types: string
  /** The columns that these are in the rows `a` of what is asked. */
  readonly columns: string
  /** The condition on what is asked. */
  readonly condition: string
  /**
   * Common table expressions, after others, which store the keys of the rows of `source`.
   *
   * @param answer - an expression for what the answers need
   */
  readonly keeping: (source: string, answer?: string) => string
}

/**
 * The parts of a statement of many changes with different idempotency keys. It makes those whose key is
 * unknown, and is repeated if another statement stores one of the keys at the same time.
 *
 * @param first - the number of the first of the statement's parameters for the keys
 */
const eachPartOf = (schema: string, first: number): KeyClauseOfEach => ({
  types: [0, 1, 2, 3].map((n) => `, $${first + n}::text[]`).join(""),
  columns: ", owner, key, fingerprint, response",
  condition: `WHERE NOT EXISTS (
      SELECT FROM ${schema}.idempotency_keys k
      WHERE k.owner = a.owner AND k.key = a.key AND ${keyProjectExists(schema)}
    )`,
  // In the same order in all statements, which avoids deadlocks.
  keeping: (
    source,
    answer = "''",
  ) => `${clearing(schema, "USING asked a", "k.owner = a.owner AND k.key = a.key")},
  kept AS (
    INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response)
    SELECT owner, key, project_number, fingerprint, coalesce(response, ${answer})
    FROM ${afterClearing}, ${source}
    ORDER BY owner COLLATE "C", key COLLATE "C"
  )`,
})

/**
 * Makes the forms of a statement of many changes.
 *
 * @param params - how many parameters both forms have
 */
export const withAndWithoutKeys = (
  schema: string,
  statement: (schema: string, once: KeyClauseOfEach) => string,
  params: number,
): StatementForms => ({
  always: statement(schema, { types: "", columns: "", condition: "", keeping: () => "" }),
  once: statement(schema, eachPartOf(schema, params + 1)),
})

const onceParams = ({ answer, fingerprint, key, owner }: IdempotencyKey) => [
  textParam(owner),
  textParam(key),
  textParam(fingerprint),
  textParam(answer),
]

/** Returns the form of a statement that a change needs, and all of its parameters. */
export const pickForm = (
  statement: StatementForms,
  params: ReadonlyArray<unknown>,
  once: IdempotencyKey | undefined,
): readonly [statement: string, params: ReadonlyArray<unknown>] =>
  once === undefined
    ? [statement.always, params]
    : [statement.once, [...params, ...onceParams(once)]]

/** The same for many changes, of which all have an idempotency key or none has. */
export const pickFormOfEach = (
  statement: StatementForms,
  params: ReadonlyArray<unknown>,
  changes: ReadonlyArray<{ readonly once?: IdempotencyKey | undefined }>,
): readonly [statement: string, params: ReadonlyArray<unknown>] => {
  const onces = changes.flatMap(({ once }) => once ?? [])
  return onces.length === 0
    ? [statement.always, params]
    : [
        statement.once,
        [
          ...params,
          textsParam(onces.map(({ owner }) => owner)),
          textsParam(onces.map(({ key }) => key)),
          textsParam(onces.map(({ fingerprint }) => fingerprint)),
          textsParam(onces.map(({ answer }) => answer)),
        ],
      ]
}

/** What statements share that name a project. */

/** Whether a row is of the project with the id `$1`: all tables have the number of the project. */
export const isInProject = (schema: string): string =>
  `project_number = (SELECT number FROM ${schema}.projects WHERE id = $1::text)`
