import {
  ApiKeyId,
  type AuditAction,
  AuditCursor,
  type AuditRow,
  type BulkMode,
  type ChangeContext,
  type Disclosure,
  EndDate,
  type Extension,
  type Grant,
  type Import,
  type Membership,
  ProjectId,
  type ProjectSummary,
  Reason,
  UserId,
  bulkActions,
} from "@tenure/core/store"
import { parkedId, parkedIdOf } from "./sql/clauses.ts"
import {
  type ItemRow,
  type KeyClause,
  type KeyClauseOfEach,
  alarmOf,
  auditAndPublish,
  auditRow,
  auditRows,
  changeContextParams,
  effectiveDateLocked,
  effectiveEndDateSql,
  endedRows,
  grantedRows,
  isInProject,
  lockedProject,
  lockedProjects,
  nextSeq,
  nextSequenceRound,
  noProjectNumber,
  paramsOfEach,
  publishChange,
  requested,
  requestedOfEach,
  sequenceRound,
  updateEndingColumns,
} from "./sql/clauses.ts"
import {
  type Integer,
  flagsParam,
  instantParam,
  instantsParam,
  millisOf,
  nilUuid,
  textParam,
  textsParam,
  uuidParam,
} from "./sql/values.ts"

/**
 * Counts the memberships of a project, and those that end after `$2`. Returns one row if the
 * project exists. Reads all memberships of the project: an index on the end date would take longer to
 * write at each extension than all other indexes.
 */
export const countMemberships = (schema: string): string => `
  SELECT p.members AS total, c.later
  FROM ${schema}.projects p
  CROSS JOIN LATERAL (
    SELECT count(*) AS later FROM ${schema}.memberships m
    WHERE m.project_number = p.number AND ${effectiveEndDateSql(schema)} > $2::timestamptz
  ) c
  WHERE p.id = $1::text
`

/** The row that it returns. */
export interface CountsRow {
  readonly total: Integer
  readonly later: Integer
}

/** Creates a project, unless it exists. Returns one row, unless the idempotency key is known. */
export const createProject = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  created AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ON CONFLICT DO NOTHING
    RETURNING ${noProjectNumber} AS project_number, id AS subject
  ),${auditRow(schema, "created", 2, "'project_created'")}${once.keeping("asked", undefined, noProjectNumber)}
  SELECT FROM asked
`

/** The parameters of `createProject`. */
export const createProjectParams = (projectId: ProjectId, occasion: ChangeContext) => [
  textParam(projectId),
  ...changeContextParams(occasion),
]

/** A project to create, and who asked for it. */
export interface Creation {
  readonly projectId: ProjectId
  readonly occasion: ChangeContext
}

/** Creates projects, except for those that exist. In the order of their ids, so that two of these do not deadlock. */
export const createProjects = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, at, request_id, key_id
    FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[]) AS a (id, at, request_id, key_id)
    ORDER BY id
  ),
  inserted AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ORDER BY id ON CONFLICT DO NOTHING
    RETURNING id
  ),
  created AS (
    SELECT ${noProjectNumber} AS project_number, id AS subject, at, request_id, key_id
    FROM inserted JOIN asked USING (id)
  ),${auditRow(schema, "created", undefined, "'project_created'")}
  SELECT
`

/** The parameters of `createProjects`. */
export const createProjectsParams = (creations: ReadonlyArray<Creation>) => [
  textsParam(creations.map(({ projectId }) => projectId)),
  instantsParam(creations.map(({ occasion }) => occasion.at)),
  textsParam(creations.map(({ occasion }) => occasion.origin.requestId)),
  textsParam(creations.map(({ occasion }) => occasion.origin.keyId)),
]

/**
 * Deletes a project, by calling the function `delete_project` of the migrations, where it is described.
 * Returns one row if the project existed.
 */
export const deleteProject = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT WHERE true ${once.condition}),
  deleted AS MATERIALIZED (
    SELECT ${noProjectNumber} AS project_number, $1::text AS subject
    FROM asked, ${schema}.delete_project($1::text, $2::text)
  ),${auditRow(schema, "deleted", 3, "'project_deleted'")}${once.keeping("deleted")}
  SELECT FROM deleted
`

/** The parameters of `deleteProject`. */
export const deleteProjectParams = (
  projectId: ProjectId,
  channel: string,
  occasion: ChangeContext,
) => [textParam(projectId), textParam(channel), ...changeContextParams(occasion)]

/** Removes a membership. Returns one row, with the number of deliveries, if the membership existed. */
export const endMembership = (schema: string, once: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema)},
  ${endedRows(schema, once.condition)},
  changed AS (SELECT a.*, e.project_number, e.seq, e.from_date FROM asked a, ended e),
  ${auditAndPublish(schema, "changed", "ended")}${once.keeping("changed")}
  SELECT seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** Statements that erase a person: see `erase` of the store. */

/**
 * A statement that removes the user `$2` from up to a thousand audit rows of the project `$1`, with the
 * reasons, which may name the person.
 *
 * @param condition - a further condition on a row `o`
 */
const erasing = (schema: string, condition: string): string => `
    UPDATE ${schema}.audit SET user_id = NULL, reason = NULL
    WHERE ${isInProject(schema)} AND (seq, id) IN (
      SELECT o.seq, o.id FROM ${schema}.audit o
      WHERE o.${isInProject(schema)} AND o.user_id = $2::text AND ${condition}
      LIMIT 1000
    )
    RETURNING 1`

/**
 * Ends a membership, if there is one, removes the user from the first audit rows, and records that the person
 * is erased, and that the rest is to follow. Returns one row, with the seq of the end and the number of deliveries, if the project exists.
 */
export const eraseMembership = (schema: string, once: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, once.condition)},
  ${endedRows(schema)},
  erased AS (${erasing(schema, "EXISTS (SELECT FROM project)")}
  ),
  audited AS (
    INSERT INTO ${schema}.audit (project_number, seq, action, at, request_id, key_id)
    SELECT p.number, ${sequenceRound("p.seq")}, 'person_erased', a.at, a.request_id, a.key_id FROM asked a, project p
  ),
  pending AS (
    INSERT INTO ${schema}.erasures (project_number, user_id, at)
    SELECT p.number, a.user_id, a.at FROM asked a, project p
    ON CONFLICT (project_number, user_id) DO UPDATE SET at = excluded.at, begun_in = excluded.begun_in
  ),
  changed AS (SELECT a.*, e.project_number, e.seq FROM asked a, ended e),
  ${publishChange(schema, "changed")}${once.keeping("project", "round(extract(epoch FROM $4::timestamptz) * 1000)::bigint::text", "number")}
  SELECT (SELECT seq FROM ended) AS seq, (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM project
`

// Whether a row was written until `$3`, or that is NULL.
const isUntil = (row: string): string => `($3::timestamptz IS NULL OR ${row}.at <= $3::timestamptz)`

/** Removes the user from the next audit rows that were written until `$3`. Returns one row if there may be more. */
export const eraseAudit = (schema: string): string => `
  WITH erased AS (${erasing(schema, isUntil("o"))}
  )
  SELECT FROM erased HAVING count(*) = 1000
`

// The responses of receivers may have the user id, too.
const withoutResponses = `(
      SELECT jsonb_agg(CASE WHEN t.one #> '{result,body}' IS NULL THEN t.one
             ELSE jsonb_set(t.one, '{result,body}', '""') END ORDER BY t.n)
      FROM jsonb_array_elements(d.attempts) WITH ORDINALITY t (one, n)
    )`

// Whether a delivery `d` is of one of the events of `old`, and was attempted. An array is looked up in the
// index, however many deliveries the planner expects.
const hasResponses = "d.event_id = ANY (ARRAY(SELECT id FROM old)) AND d.attempts <> '[]'"

/**
 * Removes the user `$2` from events of a project until `$3`, as `Erasure` of the core says, and the responses of
 * receivers to these from their deliveries. Looks at the next thousand events of the project, after the
 * event `$5` of the transaction `$4`; if `$6` is not NULL, of transactions before that one. Returns one row with the last of them, if there may be more.
 */
export const eraseEvents = (schema: string): string => `
  WITH page AS MATERIALIZED (
    SELECT e.xid, e.id, e.at, e.body FROM ${schema}.events e
    WHERE ${isInProject(schema)} AND (e.xid, e.id) > ($4::text::xid8, $5::uuid)
      AND ($6::text IS NULL OR e.xid < $6::text::xid8)
    ORDER BY e.xid, e.id LIMIT 1000
  ),
  old AS MATERIALIZED (
    SELECT p.id FROM page p
    WHERE ${isUntil("p")} AND p.body ~ ('"user_id":("' || $2::text || '"|' || $2::text || ')[,}]')
  ),
  erased AS (
    UPDATE ${schema}.events e
    SET body = regexp_replace(
      regexp_replace(
        e.body, '"user_id":("' || $2::text || '"|' || $2::text || ')(?=[,}])', '"user_id":null', 'g'
      ),
      CASE WHEN e.type LIKE 'membership.%' THEN '"reason":"([^"\\\\]|\\\\.)*"' ELSE '$^' END,
      '"reason":null'
    )
    WHERE e.id = ANY (ARRAY(SELECT id FROM old))
  ),
  attempted AS MATERIALIZED (
    SELECT d.event_id, d.webhook_id FROM ${schema}.deliveries d
    WHERE ${hasResponses}
    -- All statements lock deliveries in the same order, which avoids deadlocks.
    ORDER BY d.event_id, d.webhook_id
    FOR UPDATE
  ),
  open AS (
    UPDATE ${schema}.deliveries d SET attempts = ${withoutResponses}
    FROM attempted a WHERE d.event_id = a.event_id AND d.webhook_id = a.webhook_id
  ),
  ended AS (
    UPDATE ${schema}.ended_deliveries d SET attempts = ${withoutResponses}
    WHERE ${hasResponses}
  )
  SELECT xid::text, id::text FROM (
    SELECT p.*, row_number() OVER (ORDER BY p.xid, p.id) AS n FROM page p
  ) p WHERE p.n = 1000
`

/** The event before all others, for `eraseEvents`. */
export const beforeFirst: EventPlace = { xid: "0", id: nilUuid }

/** The parameters of `eraseAudit`. */
export const eraseAuditParams = ({ at, projectId, userId }: Erased) => [
  textParam(projectId),
  textParam(userId),
  instantParam(at),
]

/** The parameters of `eraseEvents`. */
export const eraseEventsParams = (erased: Erased, after: EventPlace) => [
  ...eraseAuditParams(erased),
  textParam(after.xid),
  uuidParam(after.id),
  textParam(erased.begunIn),
]

/**
 * Returns the transactions that have written events and are open: those of `$1`, or all others than the one
 * that asks. What they have published is not seen yet.
 */
export const listPublishing = (schema: string): string => `
  SELECT DISTINCT l.virtualtransaction AS id FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.relation = '${schema}.events'::regclass
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1))
`

/** The row of `listPublishing`. */
export interface PublishingRow {
  readonly id: string
}

/** Returns the erasure of the user `$2` in the project `$1` that is not complete, if there is one. */
export const findErasure = (schema: string): string => `
  SELECT $1::text AS project_id, user_id, ${millisOf("at")} AS at, begun_in::text FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text
`

/**
 * Returns an erasure that is not complete, if there is one since whose beginning all transactions are over that were
 * open then: what they have published is seen now.
 */
export const findErasureDue = (schema: string): string => `
  SELECT p.id AS project_id, e.user_id, ${millisOf("e.at")} AS at, e.begun_in::text
  FROM ${schema}.erasures e
  -- A project that is parked while it moves has no name.
  JOIN ${schema}.projects p ON p.number = e.project_number AND p.id > chr(31)
  WHERE e.begun_in < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY e.begun_in LIMIT 1
`

/** The row of both statements. */
export interface ErasureRow {
  readonly project_id: string
  readonly user_id: string
  readonly at: Integer
  readonly begun_in: string
}

/** Records that the erasure of the user `$2` in the project `$1` is complete, unless it has begun anew since `$3`. */
export const completeErasure = (schema: string): string => `
  DELETE FROM ${schema}.erasures
  WHERE ${isInProject(schema)} AND user_id = $2::text AND begun_in = $3::text::xid8
`

/** Who is erased, with all or with what was written until a time or before a transaction. */
export interface Erased {
  readonly projectId: ProjectId
  readonly userId: UserId
  /** Until when, in milliseconds since the epoch. */
  readonly at: number | undefined
  /** Before which transaction events were written. */
  readonly begunIn?: string | undefined
}

/** The row of `eraseMembership`. */
export interface ErasedRow {
  /** NULL if there was no membership. */
  readonly seq: Integer | null
  readonly deliveries: number
}

/** The row of `eraseEvents`: the place of an event among those of its project. */
export interface EventPlace {
  readonly xid: string
  readonly id: string
}

/** What the two statements do differently. */
interface Form {
  readonly asked: string
  /** The common table expression `project`. */
  readonly project: string
  /** Expressions for the dates of a membership `m` before and after a change `p`. */
  readonly before: string
  readonly after: string
}

/** Common table expressions up to `found`: the memberships that exist. */
const finding = (schema: string, { after, asked, before, project }: Form): string => `
  WITH ${asked},
  ${project},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq, p.set_seq, p.bulk_end_date
    FROM asked a
    JOIN project p ON p.id = a.project_id
    -- All statements lock memberships in the same order, which avoids deadlocks.
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  found AS (
    UPDATE ${schema}.memberships m
    SET end_date = ${after},
        seq = ${nextSeq(schema, "m.seq", "p")},
        alarm_at = least(m.alarm_at, ${alarmOf(schema, "p.to_date")}),
        ${updateEndingColumns("p.bulk_seq", after)},
        previous_end_date = ${before}
    -- Both columns come from one table, so that the index finds each membership, whatever is known of
    -- how many a project has.
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id
    RETURNING p.*, m.seq, m.previous_end_date AS from_date
  )`

/**
 * Sets the end dates of memberships. Returns the positions, from 1, of the memberships that exist, and the number
 * of deliveries.
 *
 * It locks no project, so the seq follows that of the membership if this is greater than the project's. Otherwise
 * a statement that read the project before a bulk extension could undo a later extension of the same membership.
 */
export const extend = (schema: string, once: KeyClauseOfEach): string => `
  ${finding(schema, {
    asked: requestedOfEach(once),
    project: `project AS NOT MATERIALIZED (SELECT * FROM ${schema}.projects)`,
    before: effectiveEndDateSql(schema),
    after: "p.to_date",
  })},
  ${auditAndPublish(schema, "found", "extended")}${once.keeping("found")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * The same for extensions of which several have the same membership. They are made in order, each with a number, an
 * audit row and an event of its own, and the membership is written once.
 */
export const extendInOrder = (schema: string, once: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(once)},
  placed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq AS project_seq, p.bulk_seq, p.set_seq, p.bulk_end_date,
           row_number() OVER in_order AS step, lag(a.to_date) OVER in_order AS date_before,
           count(*) OVER (PARTITION BY p.id, a.user_id) AS steps
    FROM asked a
    JOIN ${schema}.projects p ON p.id = a.project_id
    WINDOW in_order AS (PARTITION BY p.id, a.user_id ORDER BY a.n)
    ORDER BY p.id, a.user_id COLLATE "C"
  ),
  written AS (
    UPDATE ${schema}.memberships m
    SET end_date = p.to_date,
        seq = ${nextSeq(schema, "m.seq", "p", "p.steps")},
        alarm_at = least(m.alarm_at, ${alarmOf(schema, "p.to_date")}),
        ${updateEndingColumns("p.bulk_seq", "p.to_date")},
        previous_end_date = ${effectiveEndDateSql(schema)}
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id AND p.step = p.steps
    RETURNING p.project_number, p.user_id, m.seq, m.previous_end_date
  ),
  found AS (
    SELECT p.*, w.seq - p.steps + p.step AS seq, coalesce(p.date_before, w.previous_end_date) AS from_date
    FROM placed p JOIN written w ON w.project_number = p.project_number AND w.user_id = p.user_id
  ),
  ${auditAndPublish(schema, "found", "extended")}${once.keeping("found")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * The end date afterwards: that which is asked for, or the one that there is if it is not the expected one, or
 * later and to be kept. Each effective date in a statement is a plan of its own that every execution prepares, so
 * this has only one.
 */
const dateAfter = (schema: string): string =>
  `greatest(
     coalesce(
       nullif(${effectiveDateLocked(schema)}, p.expected_date),
       CASE WHEN p.keeps_later THEN greatest(p.to_date, p.expected_date) ELSE p.to_date END
     ),
     CASE WHEN p.expected_date IS NULL THEN p.to_date END
   )`

const laterDate = `CASE WHEN ends_later THEN ${millisOf("from_date")}::text ELSE '' END`

/**
 * Sets the end dates of memberships that have the dates that are expected, or that do not end later. Returns the
 * positions, from 1, of the memberships that exist, the dates of those that were expected to have others, the dates
 * of those that end later and are left, and the number of deliveries.
 *
 * It locks the projects: a date that is compared holds until the change is committed, and no bulk extension
 * replaces it in between.
 *
 * A membership that is left, or has another date than is expected, is set to the date that it has. So it is locked,
 * and its date is the current one even if other transactions have changed it since the statement began.
 */
export const extendIf = (schema: string, once: KeyClauseOfEach): string => `
  ${finding(schema, {
    asked: requestedOfEach(once, {
      types: ", $11::timestamptz[], $12::boolean[]",
      columns: ", expected_date, keeps_later",
    }),
    project: lockedProjects(schema),
    before: effectiveDateLocked(schema),
    after: dateAfter(schema),
  })},
  answered AS (
    SELECT *, keeps_later AND from_date > to_date AS ends_later
    FROM found WHERE (from_date <> expected_date) IS NOT TRUE
  ),
  changed AS (SELECT * FROM answered WHERE NOT ends_later),
  ${auditAndPublish(schema, "changed", "extended")}${once.keeping("answered", laterDate)}
  SELECT n::integer, seq, CASE WHEN from_date <> expected_date THEN ${millisOf("from_date")} END AS conflicting_date,
         CASE WHEN keeps_later AND from_date > to_date THEN ${millisOf("from_date")} END AS later_date,
         (SELECT count(*) FROM delivered)::integer AS deliveries
  FROM found
`

/** Whether an extension depends on the date that the membership has. */
export const isConditional = ({ expectedEndDate, mode }: Extension): boolean =>
  expectedEndDate !== undefined || mode === "neverShorten"

/** The parameters of `extendIf`. */
export const extendIfParams = (extensions: ReadonlyArray<Extension>) => [
  ...paramsOfEach(extensions),
  instantsParam(extensions.map(({ expectedEndDate }) => expectedEndDate)),
  flagsParam(extensions.map(({ mode }) => mode === "neverShorten")),
]

/** The row of `extendIf` of each membership that exists. */
export interface ExtendedRow extends ItemRow {
  /** The end date of the membership if another one was expected. */
  readonly conflicting_date: Integer | null
  /** The end date of the membership if it is later, and is left. */
  readonly later_date: Integer | null
}

/** What an extension of each mode does to the project, and which floors it makes superfluous. */
const effects = {
  set: {
    also: `, bulk_end_date = $3, set_seq = ${nextSequenceRound("seq")}`,
    covered: "'infinity'",
  },
  neverShorten: { also: "", covered: "$3" },
} as const satisfies Record<BulkMode, unknown>

const adding = (schema: string): string => `,
  added AS (
    INSERT INTO ${schema}.floors (project_number, seq, end_date)
    SELECT project_number, seq, to_date FROM changed
  )`

/**
 * Sets the end date of all memberships of a project, or of those that end earlier, and touches none of
 * them. Returns one row, with the number of memberships and of deliveries, if the project exists.
 */
export const extendAll =
  (mode: BulkMode) =>
  (schema: string, once: KeyClause): string =>
    `
  WITH ${requested},
  project AS (
    UPDATE ${schema}.projects
    SET last_bulk_end_date = $3, seq = ${nextSequenceRound("seq")}, bulk_seq = ${nextSequenceRound("seq")}${effects[mode].also},
        alarm_at = least(alarm_at, ${alarmOf(schema, "$3::timestamptz")})
    WHERE id = $1 ${once.condition}
    RETURNING number, members, seq
  ),
  changed AS MATERIALIZED (
    SELECT a.*, p.number AS project_number, p.seq, NULL::timestamptz AS from_date,
           p.members AS total, ${schema}.remove_floors(p.number, ${effects[mode].covered}) AS removed
    FROM asked a, project p
  )${mode === "neverShorten" ? adding(schema) : ""},
  ${auditAndPublish(schema, "changed", bulkActions[mode])}${once.keeping("changed", "total::text")}
  SELECT seq, total, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** Returns a membership with its effective end date, if it exists. */
export const findMembership = (schema: string): string => `
  SELECT user_id, ${millisOf("end_date")} AS end_date FROM ${schema}.memberships_current
  WHERE project_id = $1::text AND user_id = $2::text
`

/** The common table expression `asked`: the parameters whose projects exist. */
const findUnlockedAsked = (schema: string): string => `
  asked AS MATERIALIZED (
    SELECT a.n, p.number AS project_number, a.user_id
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (project_id, user_id, n)
    JOIN ${schema}.projects p ON p.id = a.project_id
  )`

/** The common table expression `member`: the memberships of `asked` that nobody has locked. */
const unlockedMembers = (schema: string): string => `
  member AS MATERIALIZED (
    SELECT a.n
    FROM asked a
    JOIN ${schema}.memberships m ON m.project_number = a.project_number AND m.user_id = a.user_id
    FOR NO KEY UPDATE OF m SKIP LOCKED
  )`

/** Returns the positions, from 1, of the memberships that exist and that nobody has locked. */
export const findUnlocked = (schema: string): string => `
  WITH ${findUnlockedAsked(schema)},${unlockedMembers(schema)}
  SELECT n::integer FROM member
`

/**
 * Returns the positions, from 1, of the memberships that can be granted: nobody has locked the project,
 * nor the membership if it exists.
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
export const findUnlockedParams = (changes: ReadonlyArray<Grant>) => [
  textsParam(changes.map(({ projectId }) => projectId)),
  textsParam(changes.map(({ userId }) => userId)),
]

/**
 * Creates memberships, or sets the end dates of those that exist. Returns the positions, from 1, of the
 * memberships whose project exists, and the number of deliveries.
 */
export const grant = (schema: string, once: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(once)},
  ${lockedProjects(schema)},
  ${grantedRows(schema, "p.seq + 1")},
  -- Where the round of a member ends, the project goes on to the next one, too.
  counted AS (
    UPDATE ${schema}.projects p
    SET members = p.members + g.new_members,
        seq = CASE WHEN ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")} THEN g.seq ELSE p.seq END
    FROM (
      SELECT project_number, count(*) FILTER (WHERE is_new) AS new_members, max(seq) AS seq
      FROM granted GROUP BY project_number
    ) g
    WHERE p.number = g.project_number AND (g.new_members > 0 OR ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")})
  ),
  changed AS (
    SELECT a.*, g.project_number, g.seq, g.from_date
    FROM asked a
    JOIN project p ON p.id = a.project_id
    JOIN granted g ON g.project_number = p.number AND g.user_id = a.user_id
  ),
  ${auditAndPublish(schema, "changed", "granted")}${once.keeping("changed")}
  SELECT n::integer, seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

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
export const otherHistory = (schema: string): string => `
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
export interface HistoryRow {
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
export const toAuditRow = (
  projectId: ProjectId | undefined,
  row: HistoryRow,
): ReadonlyArray<AuditRow> =>
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

/**
 * Creates memberships of a project, or sets the end dates of those that exist. Returns one row, with the
 * number of deliveries, if the project exists.
 */
export const importAll = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (
    SELECT $1::text AS project_id, user_id, to_date, n
    FROM unnest($2::text[], $3::timestamptz[]) WITH ORDINALITY AS a (user_id, to_date, n)
  ),
  ${lockedProject(schema, once.condition)},
  ${grantedRows(schema, nextSequenceRound("p.seq"))},
  counted AS (
    UPDATE ${schema}.projects p
    SET members = p.members + (SELECT count(*) FROM granted WHERE is_new), seq = ${nextSequenceRound("p.seq")}
    FROM project WHERE p.number = project.number
  ),
  -- Who has which place in the import, in the order of the user ids. Not joined with what was granted: a plan made
  -- for few rows would compare each with each.
  placed AS MATERIALIZED (SELECT array_agg(n ORDER BY user_id COLLATE "C") AS places FROM asked),
  changed AS (
    SELECT project_number, user_id, seq, from_date, to_date, $4::timestamptz AS at,
           $5::text AS request_id, $6::text AS key_id, $10::text AS reason,
           (SELECT places FROM placed)[row_number() OVER (ORDER BY user_id COLLATE "C")] AS n
    FROM granted
  ),
  ${auditRows(schema, "changed", "imported")},
  happened AS (
    SELECT number AS project_number, ${nextSequenceRound("seq")} AS seq, $7::uuid AS event_id, $8::text AS event_type, $4::timestamptz AS at,
           $9::text AS head, 1 AS n
    FROM project
  ),${publishChange(schema, "happened")}${once.keeping("project", undefined, "number")}
  SELECT seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM happened
`

/** The parameters of `importAll`. */
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
]

const listing = (schema: string, condition: string): string => `
  SELECT m.user_id, ${millisOf("m.end_date")} AS end_date
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT user_id, end_date FROM ${schema}.memberships_current
    WHERE project_id = p.id AND user_id > $2::text
      AND ($4::boolean IS NULL OR (end_date > $5::timestamptz) = $4) ${condition}
    ORDER BY user_id
    LIMIT $3::integer
  ) m ON true
  WHERE p.id = $1::text
  ORDER BY m.user_id
`

/**
 * Returns a page of memberships, ordered by user id and starting after `$2`; if `$4` is not NULL, only
 * those that are active at `$5`, or only those that are not. Returns one empty row if the page is empty,
 * and no row if the project does not exist.
 */
export const listMemberships = (schema: string): string => listing(schema, "")

/** The same, with only the memberships of the users `$6`. */
export const listMembershipsOf = (schema: string): string =>
  listing(schema, "AND user_id = ANY ($6::text[])")

/** A row of a membership. That of an empty page has no values. */
export interface MembershipRow {
  readonly user_id: string | null
  readonly end_date: Integer | null
}

/** Converts a row to a membership, or to nothing if it has no values. */
export const toMembership = (
  projectId: ProjectId,
  { end_date, user_id }: MembershipRow,
): ReadonlyArray<Membership> =>
  user_id === null || end_date === null
    ? []
    : [{ projectId, userId: UserId(user_id), endDate: EndDate(Number(end_date)) }]

const figures = `members, webhooks, ${millisOf("last_bulk_end_date")} AS last_bulk_end_date`

const projectsColumns = `id, ${figures}`

/** Returns the project `$1`, if it exists, with another id if it is parked. */
export const findProject = (schema: string): string => `
  SELECT ${projectsColumns} FROM ${schema}.projects WHERE id IN ($1::text, ${parkedId})
  ORDER BY id DESC
  LIMIT 1
`

/**
 * Returns at most `$2` projects after the id `$1`, of those with the ids `$3`, which are NULL for all. Of those
 * that are parked, it only returns what is asked for by its id.
 */
export const listProjects = (schema: string): string => `
  SELECT ${projectsColumns} FROM ${schema}.projects
  WHERE id > $1::text AND ($3::text[] IS NULL OR id = ANY ($3::text[]))
  UNION ALL
  SELECT substr(id, 2), ${figures} FROM ${schema}.projects
  WHERE id IN (SELECT ${parkedIdOf("a.id")} FROM unnest($3::text[]) a (id)) AND substr(id, 2) > $1::text
  ORDER BY id
  LIMIT $2::integer
`

/** A row of both statements. */
export interface ProjectRow {
  readonly id: string
  readonly members: Integer
  readonly webhooks: number
  readonly last_bulk_end_date: Integer | null
}

/** Converts a row. */
export const toSummary = (row: ProjectRow): ProjectSummary => ({
  id: ProjectId(row.id),
  memberships: Number(row.members),
  webhooks: row.webhooks,
  lastBulkEndDate:
    row.last_bulk_end_date === null ? undefined : EndDate(Number(row.last_bulk_end_date)),
})

/** Adds an audit row. Returns one row if the project exists. */
export const recordDisclosure = (schema: string): string => `
  WITH shown AS MATERIALIZED (
    SELECT number AS project_number, $3::text AS subject FROM ${schema}.projects WHERE id = $1::text
  ),${auditRow(schema, "shown", 4, "$2::text")}
  SELECT FROM shown
`

/** The parameters of `recordShown`. */
export const recordDisclosureParams = (
  projectId: ProjectId,
  { action, subject }: Disclosure,
  occasion: ChangeContext,
) => [textParam(projectId), textParam(action), textParam(subject), ...changeContextParams(occasion)]
