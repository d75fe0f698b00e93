/** Statements that read and change memberships. */

import {
  type AuditAction,
  type DateChange,
  EndDate,
  type Extension,
  type Grant,
  type Import,
  type Membership,
  type Metadata,
  type MetadataChange,
  type ProjectId,
  type Publication,
  UserId,
  metadataFromJson,
  metadataJson,
  mostPreviewed,
} from "@tenure/core/store"
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
  effectiveDateLocked,
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
} from "./sql/clauses.ts"
import {
  type Integer,
  flagsParam,
  instantParam,
  instantsParam,
  jsonOf,
  millisOf,
  textParam,
  textsParam,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/**
 * The common table expression `asked` for many changes of one membership each: one row for each. The
 * parameters are arrays with one element for each change.
 *
 * @param once - the parts of the statement for idempotency keys
 * @param further - parameters that only some changes have, and the names of their columns
 */
const requestedOfEach = (once: KeyClauseOfEach, further = { types: "", columns: "" }): string => `
  asked AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
                         $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[]${further.types}${once.types})
    WITH ORDINALITY
    AS a (project_id, user_id, to_date, at, request_id, key_id, event_id, event_type, head, reason
          ${further.columns}${once.columns}, n)
    ${once.condition}
  )`

/** The parameters of many changes of one membership each. */
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
]

/** Returns the JSON of metadata, or nothing for NULL, which leaves what there is. */
const jsonIfGiven = ({ metadata }: { readonly metadata?: Metadata | undefined }) =>
  metadata && metadataJson(metadata)

/** The parameters of `grant`. */
export const grantParams = (grants: ReadonlyArray<Grant>) => [
  ...paramsOfEach(grants),
  textsParam(grants.map(jsonIfGiven)),
]

/** The same for the projects `$1` of many changes. */
const lockedProjects = (schema: string): string => `
  project AS MATERIALIZED (
    SELECT ${projectColumns} FROM ${schema}.projects WHERE id = ANY ($1)
    -- All statements lock projects in the same order, too, and before memberships.
    ORDER BY id
    FOR NO KEY UPDATE
  )`

/** The values of `ending_generation` and `ending_lower_bound` of a new membership of a locked project `p`. */
export const newEndingColumns = (endDate: string): string => `
  CASE WHEN p.ending_backfilled_to IS NOT NULL THEN p.bulk_seq END,
  CASE WHEN p.ending_backfilled_to IS NOT NULL THEN ${endDate} END`

/**
 * The values of `ending_generation` and `ending_lower_bound` of a membership `m` that is given an end date, by the
 * functions of the migrations.
 *
 * @param seq - an expression for the bulk_seq of the project
 */
const endingColumns = (schema: string, seq: string, endDate: string) => ({
  generation: `${schema}.next_ending_generation(m.ending_generation, ${seq})`,
  lowerBound: `${schema}.next_ending_lower_bound(m.ending_generation, m.ending_lower_bound, ${seq}, ${endDate})`,
})

/** The assignments of these values. */
export const updateEndingColumns = (schema: string, seq: string, endDate: string): string => {
  const { generation, lowerBound } = endingColumns(schema, seq, endDate)
  return `ending_generation = ${generation}, ending_lower_bound = ${lowerBound}`
}

/**
 * The common table expression `granted`: it creates the memberships of `asked`, or sets their end dates, and their
 * metadata unless that is NULL.
 * `project` has the projects, which are locked.
 *
 * @param seq - an expression for the seq of new memberships of a project `p`, greater than that of the project
 */
const grantedRows = (schema: string, seq: string): string => `
  granted AS (
    INSERT INTO ${schema}.memberships AS m (project_number, user_id, end_date, date_set_at, seq, next_check_at, ending_generation, ending_lower_bound, metadata)
    SELECT p.number, a.user_id, a.to_date, ${changeTimeSql("a.at")}, ${seq}, ${nextCheckOf(schema, "a.to_date")}, ${newEndingColumns("a.to_date")},
           a.metadata
    FROM asked a
    JOIN project p ON p.id = a.project_id
    ORDER BY p.id, a.user_id COLLATE "C"
    ON CONFLICT (project_number, user_id) DO UPDATE
    SET end_date = excluded.end_date,
        date_set_at = ${dateSetAtSql({
          endDate: "excluded.end_date",
          at: "excluded.date_set_at",
          bulkSeq: "(SELECT p.bulk_seq FROM project p WHERE p.number = m.project_number)",
        })},
        seq = greatest(${lastSeq} + 1, excluded.seq),
        next_check_at = least(m.next_check_at, excluded.next_check_at),
        metadata = coalesce(excluded.metadata, m.metadata),
        ${updateEndingColumns(schema, "excluded.ending_generation", "excluded.ending_lower_bound")},
        previous_end_date =
          (SELECT ${effectiveDateLocked(schema)} FROM project p WHERE p.number = m.project_number)
    RETURNING m.project_number, user_id, (xmax = 0) AS is_new, seq, previous_end_date AS from_date,
              end_date AS to_date, metadata
  )`

/**
 * The common table expression `audited`, which adds an audit row for each row of `source`. That has
 * the columns `project_number`, `user_id`, `seq`, `from_date`, `to_date`, `at`, `request_id`, `key_id`,
 * `reason` and `n`, which gives the order.
 */
const auditRows = (schema: string, source: string, action: AuditAction): string =>
  auditRowsAs(schema, source, `'${action}'`)

/**
 * The common table expressions that a change ends with: `audited` and those of `publishing`. `source` has
 * what both need, with `head` in place of `body`.
 */
const auditAndPublish = (schema: string, source: string, action: AuditAction): string =>
  `${auditRows(schema, source, action)},${publishChange(schema, source, "metadata")}`

/** Removes a membership. Returns one row, with the number of deliveries, if the membership existed. */
export const endMembership = (schema: string, once: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema)},
  ${endedRows(schema, once.condition)},
  changed AS (SELECT a.*, e.project_number, e.seq, e.from_date, e.metadata FROM asked a, ended e),
  ${auditAndPublish(schema, "changed", "ended")}${once.keeping("changed")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/**
 * Sets the metadata `$11` of a membership that has the metadata `$12`. Returns one row, with the number of deliveries,
 * if there is such a membership.
 */
export const setMetadata = (schema: string, once: KeyClause): string => `
  WITH ${requested},
  ${lockedProject(schema, once.condition)},
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
  ${auditAndPublish(schema, "changed", "updated")}${once.keeping("changed")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`

/** The parameters of `setMetadata`. */
export const setMetadataParams = (changed: MetadataChange) => [
  ...changeParams(changed, changed.userId, undefined),
  textParam(metadataJson(changed.metadata)),
  textParam(metadataJson(changed.expected)),
]

/**
 * Sets the end dates of memberships of different users, in a function of the migrations. Returns the positions, from 1, of
 * the memberships that exist, and the number of deliveries.
 */
export const extend = (schema: string): StatementForms => {
  const call = (name: string, params: number): string =>
    `SELECT n, seq, metadata, deliveries FROM ${schema}.${name}(${Array.from({ length: params }, (_, index) => `$${index + 1}`).join(", ")})`
  return { always: call("extend", 10), once: call("extend_once", 14) }
}

/**
 * The same for extensions of which several are of the same membership. They are made in order, each with a number, an
 * audit row and an event of its own, and the membership is written once.
 */
export const extendInOrder = (schema: string, once: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(once)},
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
    SET end_date = p.to_date,
        date_set_at = ${dateSetAtSql({ endDate: "p.to_date", at: "p.at", bulkSeq: "p.bulk_seq" })},
        seq = ${nextSeq(schema, lastSeq, "p", "p.steps")},
        next_check_at = least(m.next_check_at, ${nextCheckOf(schema, "p.to_date")}),
        ${updateEndingColumns(schema, "p.bulk_seq", "p.to_date")},
        previous_end_date = ${effectiveEndDateSql(schema)}
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id AND p.step = p.steps
    RETURNING p.project_number, p.user_id, m.seq, m.previous_end_date, m.metadata
  ),
  found AS (
    SELECT p.*, w.metadata, w.seq - p.steps + p.step AS seq, coalesce(p.date_before, w.previous_end_date) AS from_date
    FROM placed p JOIN written w ON w.project_number = p.project_number AND w.user_id = p.user_id
  ),
  ${auditAndPublish(schema, "found", "extended")}${once.keeping("found")}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/**
 * What an extension `p` makes of a membership `m` if that has the date that is expected, and does not end later if that
 * is to be kept.
 */
const extendedIf = (schema: string): string => {
  const { generation, lowerBound } = endingColumns(schema, "made.bulk_seq", "made.to_date")
  const dateSetAt = dateSetAtSql({
    endDate: "made.to_date",
    at: "made.at",
    bulkSeq: "made.bulk_seq",
  })
  return `(end_date, date_set_at, seq, next_check_at, ending_generation, ending_lower_bound, previous_end_date) = (
    SELECT coalesce(made.to_date, m.end_date),
           CASE WHEN made.to_date IS NULL THEN m.date_set_at ELSE ${dateSetAt} END,
           CASE WHEN made.to_date IS NULL THEN m.seq ELSE ${nextSeq(schema, lastSeq, "p")} END,
           least(m.next_check_at, ${nextCheckOf(schema, "made.to_date")}), ${generation}, ${lowerBound},
           before.end_date
    FROM (SELECT ${effectiveDateLocked(schema)} AS end_date OFFSET 0) before
    LEFT JOIN LATERAL (
      SELECT p.to_date, p.at, p.bulk_seq
      WHERE (before.end_date <> p.expected_date) IS NOT TRUE AND NOT (p.keeps_later AND before.end_date > p.to_date)
    ) made ON true
  )`
}

const laterDate = `CASE WHEN ends_later THEN ${millisOf("from_date")}::text ELSE '' END`

/**
 * Sets the end dates of memberships that have the dates that are expected, or that do not end later. Returns the
 * positions, from 1, of the memberships that exist, the dates of those that were expected to have others, the dates
 * of those that end later and are left, and the number of deliveries.
 *
 * It locks the projects: a date that is compared holds until the change is committed, and no bulk extension
 * replaces it in between.
 *
 * A membership that is left, or has another date than is expected, is written as it is. So it is locked, and its date
 * is the current one even if other transactions have changed it since the statement began.
 */
export const extendIf = (schema: string, once: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(once, {
    types: ", $11::timestamptz[], $12::boolean[]",
    columns: ", expected_date, keeps_later",
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
    SET ${extendedIf(schema)}
    -- Both columns come from one table, so that the index finds each membership, whatever is known of
    -- how many a project has.
    FROM placed p
    WHERE m.project_number = p.project_number AND m.user_id = p.user_id
    RETURNING p.*, m.seq, m.previous_end_date AS from_date, m.metadata
  ),
  answered AS (
    SELECT *, keeps_later AND from_date > to_date AS ends_later
    FROM found WHERE (from_date <> expected_date) IS NOT TRUE
  ),
  changed AS (SELECT * FROM answered WHERE NOT ends_later),
  ${auditAndPublish(schema, "changed", "extended")}${once.keeping("answered", laterDate)}
  SELECT n::integer, seq, metadata, CASE WHEN from_date <> expected_date THEN ${millisOf("from_date")} END AS conflicting_date,
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

/** Returns a membership with its effective end date, if it exists. */
export const findMembership = (schema: string): string => `
  SELECT user_id, ${millisOf("end_date")} AS end_date, metadata::text FROM ${schema}.memberships_current
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
export const findUnlockedParams = (changes: ReadonlyArray<DateChange>) => [
  textsParam(changes.map(({ projectId }) => projectId)),
  textsParam(changes.map(({ userId }) => userId)),
]

/** What `formatGrantAnswer` formats. */
const grantAnswer = `${millisOf("at")} || ' ' || coalesce(metadata, '{}')`

/**
 * Creates memberships, or sets the end dates of those that exist. Returns the positions, from 1, of the
 * memberships whose project exists, and the number of deliveries.
 */
export const grant = (schema: string, once: KeyClauseOfEach): string => `
  WITH ${requestedOfEach(once, { types: ", $11::text[]", columns: ", metadata" })},
  ${lockedProjects(schema)},
  ${grantedRows(schema, "p.seq + 1")},
  -- Where the round of a member ends, the project goes on to the next one, too.
  counted AS (
    UPDATE ${schema}.projects p
    SET membership_count = p.membership_count + g.new_members,
        seq = CASE WHEN ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")} THEN g.seq ELSE p.seq END
    FROM (
      SELECT project_number, count(*) FILTER (WHERE is_new) AS new_members, max(seq) AS seq
      FROM granted GROUP BY project_number
    ) g
    WHERE p.number = g.project_number AND (g.new_members > 0 OR ${sequenceRound("g.seq")} > ${sequenceRound("p.seq")})
  ),
  changed AS (
    SELECT a.project_id, a.user_id, a.to_date, a.at, a.request_id, a.key_id, a.event_id, a.event_type, a.head, a.reason,
           a.n, g.project_number, g.seq, g.from_date, g.metadata${once.columns}
    FROM asked a
    JOIN project p ON p.id = a.project_id
    JOIN granted g ON g.project_number = p.number AND g.user_id = a.user_id
  ),
  ${auditAndPublish(schema, "changed", "granted")}${once.keeping("changed", grantAnswer)}
  SELECT n::integer, seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed
`
/**
 * Creates memberships of a project, or sets the end dates of those that exist. Returns one row, with the
 * number of deliveries, if the project exists.
 */
export const importAll = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (
    SELECT $1::text AS project_id, user_id, to_date, metadata, $4::timestamptz AS at, n
    FROM unnest($2::text[], $3::timestamptz[], $11::text[]) WITH ORDINALITY AS a (user_id, to_date, metadata, n)
  ),
  ${lockedProject(schema, once.condition)},
  ${grantedRows(schema, nextSequenceRound("p.seq"))},
  counted AS (
    UPDATE ${schema}.projects p
    SET membership_count = p.membership_count + (SELECT count(*) FROM granted WHERE is_new), seq = ${nextSequenceRound("p.seq")}
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
  textsParam(memberships.map(jsonIfGiven)),
]
const listing = (schema: string, condition: string): string => `
  SELECT m.user_id, ${millisOf("m.end_date")} AS end_date, m.metadata::text
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT user_id, end_date, metadata FROM ${schema}.memberships_current
    WHERE project_number = p.number AND user_id > $2::text
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

/** The same, with only the memberships of users whose ids start with `$6`. */
export const listMembershipsWithPrefix = (schema: string): string =>
  listing(schema, `AND user_id >= $6::text AND user_id < $6 || '${afterAllUsers}'`)

/** A row of a membership. That of an empty page has no values. */
export interface MembershipRow {
  readonly user_id: string | null
  readonly end_date: Integer | null
  /** As JSON. */
  readonly metadata: string | null
}

/** Converts a row to a membership, or to nothing if it has no values. */
export const toMembership = (
  projectId: ProjectId,
  { end_date, metadata, user_id }: MembershipRow,
): ReadonlyArray<Membership> =>
  user_id === null || end_date === null || metadata === null
    ? []
    : [
        {
          projectId,
          userId: UserId(user_id),
          endDate: EndDate(Number(end_date)),
          metadata: metadataFromJson(metadata),
        },
      ]

/**
 * Returns how an event with the type `$3` would be published in the project `$1`: of a change of the member `$2`, or of
 * many if that is NULL. Returns no row if the project does not exist.
 */
export const previewPublication = (schema: string): string => `
  SELECT CASE WHEN $2::text IS NULL THEN ${nextSequenceRound("p.seq")}
         ELSE ${expectedSeq(`coalesce(${lastSeq}, 0)`, "p.seq")} END AS seq,
         m.metadata, (SELECT count(*) FROM ${schema}.webhooks w WHERE ${receives("p.number", "$3::text")}) AS total,
         ${jsonOf(`ARRAY(
           SELECT ARRAY[w.id::text, w.url] FROM ${schema}.webhooks w WHERE ${receives("p.number", "$3::text")}
           ORDER BY w.position LIMIT ${mostPreviewed}
         )`)} AS first
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.memberships m ON m.project_number = p.number AND m.user_id = $2::text
  WHERE p.id = $1::text
`

/** The row of a preview. */
export interface PublicationRow {
  readonly seq: Integer
  readonly metadata: string | null
  readonly total: Integer
  /** Ids and URLs of webhooks as JSON. */
  readonly first: string
}

/** Converts a row. */
export const toPublication = ({ first, metadata, seq, total }: PublicationRow): Publication => {
  const webhooks: ReadonlyArray<readonly [id: string, url: string]> = JSON.parse(first)
  return {
    sequence: Number(seq),
    metadata: metadata ?? undefined,
    total: Number(total),
    first: webhooks.map(([webhookId, url]) => ({ webhookId, url })),
  }
}
