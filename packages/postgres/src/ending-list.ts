/**
 * Lists memberships by end date.
 *
 * An index orders the memberships in each generation by a lower bound on their own end dates. A generation is
 * the members whose dates were set between the same two bulk extensions, so that later extensions keep their
 * order. A request walks through all generations at once, ordered by the dates that the bounds lead to. It
 * lists members that end then, and raises the bounds of members that end later. Members found to have ended
 * are separate generations, which later requests skip unless a bulk extension makes their members active
 * again.
 */

import {
  type EndDate,
  EndingCursor,
  type Membership,
  type MembershipStore,
  type ProjectId,
  ProjectNotFound,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import { type MembershipRow, toMembership } from "./memberships.sql.ts"
import { endPauses } from "./pauses.sql.ts"
import { activeAfter, settingsColumns } from "./project-settings.ts"
import { afterAllUsers, effectiveEndDateSql, effectiveFormSql } from "./sql/clauses.ts"
import {
  type Integer,
  bigintParam,
  instantParam,
  integerParam,
  millisOf,
  textParam,
} from "./sql/values.ts"

/** A position in the list. Positions are ordered by these properties, from the first on. */
export interface EndingPlace {
  /** The effective date that follows from the lower bound, in milliseconds since the epoch. */
  readonly at: number
  /** The `ending_generation`. */
  readonly generation: number
  /** The `ending_lower_bound`, in milliseconds since the epoch. */
  readonly bound: number
  readonly userId: string
}

// The first instants of the years 0000 and 10000. All end dates are in between.
const earliest = -62_167_219_200_000
const latest = 253_402_300_800_000

// Greater than every `ending_generation`.
const beyondGenerations = 1e17

/** The position before all memberships. */
const start: EndingPlace = {
  at: earliest,
  generation: -beyondGenerations,
  bound: earliest,
  userId: "",
}

/** Writes a position as a cursor. */
const cursorOf = ({ at, bound, generation, userId }: EndingPlace): EndingCursor =>
  EndingCursor(`${at}.${generation}.${bound}.${userId}`)

// Cursors are untrusted, so their numbers are brought into the valid range.
const within = (min: number, text: string, max: number): number =>
  Math.min(Math.max(Number(text), min), max)

/** Reads a position from a cursor. */
const placeOf = (cursor: EndingCursor): EndingPlace => {
  const [, at = "", generation = "0", bound = at, userId = ""] =
    /^(-?\d+)(?:\.(-?\d+)\.(-?\d+))?\.(.*)$/.exec(cursor) ?? []
  return {
    at: within(earliest, at, latest),
    generation: within(-beyondGenerations, generation, beyondGenerations),
    bound: within(earliest, bound, latest),
    userId,
  }
}

/** An expression for the generation of members found to have ended, from their former one, or back. */
const endedGeneration = (generation: string): string => `-1 - ${generation}`

/**
 * Makes new members in the project `$1` get index entries from now on. It is a separate statement, so that
 * those after it see all members without one.
 */
const beginEndingBackfill = (schema: string): string => `
  UPDATE ${schema}.projects SET ending_backfilled_to = '' WHERE id = $1::text AND ending_backfilled_to IS NULL
`

/**
 * Adds the next `$2` members to the index, and stops at the first one that is locked or has changed. Returns
 * one row: the user id up to which all members are in it then.
 */
export const continueEndingBackfill = (schema: string): string => `
  WITH project AS MATERIALIZED (
    SELECT number, bulk_seq, settled_seq, ending_backfilled_to, ${activeAfter("o")} AS active_after FROM ${schema}.projects o WHERE id = $1::text
  ),
  page AS MATERIALIZED (
    SELECT m.*
    FROM project p
    CROSS JOIN LATERAL (
      SELECT m.project_number, m.user_id, m.seq FROM ${schema}.memberships m
      WHERE m.project_number = p.number AND m.user_id > p.ending_backfilled_to
      ORDER BY m.user_id LIMIT $2::integer
    ) m
  ),
  -- Not joined, because PostgreSQL would keep a copy of the joined row beside each locked one. From an array,
  -- the planner expects few rows and uses the index. For many, it would read the whole table.
  locked AS MATERIALIZED (
    SELECT m.project_number, m.user_id, m.seq, m.end_date, m.paused_at, m.resumes_at FROM ${schema}.memberships m
    WHERE m.project_number = (SELECT number FROM project)
      AND m.user_id = ANY (ARRAY(SELECT user_id FROM page))
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  free AS MATERIALIZED (
    SELECT m.project_number, m.user_id, m.end_date AS own_date, ${effectiveEndDateSql(schema)} AS end_date,
           greatest(p.settled_seq, (
             SELECT b.seq FROM ${schema}.bulk_extensions b
             WHERE b.project_number = m.project_number AND b.seq <= m.seq ORDER BY b.seq DESC LIMIT 1
           )) AS generation,
           p.active_after
    FROM project p, locked m
    -- A row that has changed meanwhile may follow a bulk extension that this statement does not see. As a
    -- condition, this is no join, which a plan made for few rows would do by comparing each with each.
    WHERE ((m.user_id, m.seq) IN (SELECT user_id, seq FROM page)) IS TRUE
  ),
  placed AS (
    UPDATE ${schema}.memberships m
    SET ending_generation =
          CASE WHEN f.end_date <= f.active_after THEN ${endedGeneration("f.generation")} ELSE f.generation END,
        ending_lower_bound = f.own_date
    FROM free f
    WHERE m.project_number = f.project_number AND m.user_id = f.user_id AND m.ending_generation IS NULL
  ),
  left_out AS MATERIALIZED (
    SELECT min(user_id) AS first FROM page WHERE user_id NOT IN (SELECT user_id FROM free)
  )
  SELECT CASE WHEN l.first IS NULL AND (SELECT count(*) FROM page) < $2 THEN '${afterAllUsers}'
         ELSE coalesce((SELECT max(user_id) FROM page WHERE l.first IS NULL OR user_id < l.first), '') END AS ending_backfilled_to
  FROM project, left_out l
`

/** The row from `continueEndingBackfill`. */
interface BackfillRow {
  readonly ending_backfilled_to: string
}

/** The parameters for `continueEndingBackfill`. */
export const continueEndingBackfillParams = (projectId: ProjectId, limit: number) => [
  textParam(projectId),
  integerParam(limit),
]

/** Records the user id `$2` that the backfill has reached. */
const recordEndingBound = (schema: string): string => `
  UPDATE ${schema}.projects SET ending_backfilled_to = greatest(ending_backfilled_to, $2::text) WHERE id = $1::text
`

// As text: postgres.js converts a timestamp to a `Date`, which it cannot do for the year 0, where the list
// begins.
const placeAt = "$2::text::timestamptz"
const placeBound = "$4::text::timestamptz"
const endBefore = "$8::text::timestamptz"

/**
 * Walks through up to `$6` memberships after the position (`$2`, `$3`, `$4`, `$5`) and before the date `$8`,
 * in index order. Returns up to `$7` that end before `$8` and are not paused, ordered by end; one empty row if there are none,
 * and no row if the project does not exist.
 *
 * A membership that ends later than its lower bound says gets a new bound. The walk stops at the first such
 * row that is locked or has changed meanwhile, because it may belong behind the result.
 */
export const walkByEndDate = (schema: string): string => {
  const form = effectiveFormSql(schema)
  return `
  WITH RECURSIVE project AS MATERIALIZED (
    SELECT number, bulk_seq, settled_seq, ${settingsColumns("o")}, ${activeAfter("o")} AS active_after,
           ending_backfilled_to IS NOT DISTINCT FROM '${afterAllUsers}' AS is_kept
    FROM ${schema}.projects o WHERE id = $1::text
  ),
  -- The generations in the index: after many bulk extensions, few generations may still have members.
  present AS (
    SELECT -9223372036854775808 AS code, false AS is_there
    UNION ALL
    SELECT m.ending_generation, true
    FROM present c
    CROSS JOIN project p
    CROSS JOIN LATERAL (
      SELECT m.ending_generation FROM ${schema}.memberships m
      WHERE m.project_number = p.number AND m.ending_generation > c.code
      ORDER BY m.ending_generation LIMIT 1
    ) m
  ),
  -- The bulk extensions that apply to each generation; none for the newest. The code also marks generations
  -- of expired members. Only those count that are active now.
  part AS MATERIALIZED (
    SELECT e.code, e.seq, b.seq AS next_seq, b.minimum,
           CASE WHEN b.seq IS NULL THEN interval '0' ELSE b.addition END AS addition,
           CASE WHEN e.code < 0 THEN greatest(${placeAt}, p.active_after) ELSE ${placeAt} END AS after,
           CASE WHEN (e.code < 0 AND ${placeAt} < p.active_after) OR e.code < $3::bigint THEN 'later'
                WHEN e.code = $3 THEN 'rest' ELSE 'all' END AS of_equal
    FROM project p
    CROSS JOIN (
      SELECT code, CASE WHEN code < 0 THEN ${endedGeneration("code")} ELSE code END AS seq FROM present WHERE is_there
    ) e
    LEFT JOIN LATERAL (
      SELECT b.seq, b.addition, b.minimum FROM ${schema}.bulk_extensions b
      WHERE b.project_number = p.number AND b.seq > e.seq AND b.state <> 'settled' ORDER BY b.seq LIMIT 1
    ) b ON true
    WHERE (b.minimum < ${endBefore}) IS NOT FALSE AND (e.seq = p.settled_seq OR EXISTS (
      SELECT FROM ${schema}.bulk_extensions o
      WHERE o.project_number = p.number AND o.seq = e.seq AND o.state <> 'settled'
    ))
  ),
  -- Each generation's range in the index.
  range AS MATERIALIZED (
    SELECT code, seq, next_seq, addition, minimum,
           CASE WHEN minimum > after OR (minimum = after AND of_equal = 'all') THEN '-infinity'
                WHEN minimum = after AND of_equal = 'rest' THEN ${placeBound}
                ELSE after - addition END AS from_bound,
           CASE WHEN minimum > after OR of_equal = 'all' THEN ''
                WHEN of_equal = 'rest' THEN CASE WHEN minimum = after OR after - addition = ${placeBound} THEN $5::text ELSE '' END
                ELSE '${afterAllUsers}' END AS from_user,
           CASE WHEN addition IS NULL THEN 'infinity' ELSE ${endBefore} - addition END AS until
    FROM part
  ),
  walked AS MATERIALIZED (
    SELECT w.*, row_number() OVER (ORDER BY w.at, w.generation, w.bound, w.user_id) AS n,
           -- The bound after this walk. If the own date is later, but both lead to the same end, the bound
           -- stays.
           CASE WHEN w.end_date > w.at THEN w.own_date ELSE w.bound END AS next_bound
    FROM (
      SELECT m.project_number, m.user_id, m.seq, m.end_date AS own_date, m.ending_generation AS generation,
             m.ending_lower_bound AS bound, m.metadata, m.at, m.paused_at IS NOT NULL AS is_paused,
             -- Skips the bulk extensions for members that have not changed since others in their generation.
             CASE WHEN m.seq >= m.generation_seq AND (m.seq < m.next_seq) IS NOT FALSE
             THEN ${schema}.adjusted_end_date(m.end_date, m.addition, m.minimum)
             ELSE ${effectiveEndDateSql(schema)} END AS end_date,
             ${form.inDays} AS in_days, ${form.keptDay} AS kept_day
      FROM project p
      CROSS JOIN LATERAL (
        SELECT m.*, r.seq AS generation_seq, r.next_seq, r.addition, r.minimum,
               ${schema}.adjusted_end_date(m.ending_lower_bound, r.addition, r.minimum) AS at
        FROM range r
        CROSS JOIN LATERAL (
          SELECT * FROM ${schema}.memberships m
          WHERE m.project_number = p.number AND m.ending_generation = r.code
            AND (m.ending_lower_bound, m.user_id) > (r.from_bound, r.from_user) AND m.ending_lower_bound < r.until
          ORDER BY m.ending_lower_bound, m.user_id
          LIMIT $6::integer
        ) m
        ORDER BY at, m.ending_generation, m.ending_lower_bound, m.user_id
        LIMIT $6
      ) m
    ) w
  ),
  to_move AS MATERIALIZED (
    SELECT w.*, w.end_date <= p.active_after AS has_expired FROM walked w, project p
    WHERE w.end_date <= p.active_after OR w.end_date > w.at
  ),
  moving AS MATERIALIZED (
    SELECT w.* FROM to_move w
    JOIN ${schema}.memberships m ON m.project_number = w.project_number AND m.user_id = w.user_id
    WHERE m.seq = w.seq AND m.ending_generation = w.generation AND m.ending_lower_bound = w.bound
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  moved AS (
    UPDATE ${schema}.memberships m
    SET ending_generation = CASE WHEN w.has_expired THEN ${endedGeneration("w.generation")} ELSE w.generation END,
        ending_lower_bound = w.own_date
    FROM moving w
    WHERE m.project_number = w.project_number AND m.user_id = w.user_id
  ),
  reached AS MATERIALIZED (
    SELECT * FROM walked
    WHERE n < coalesce((SELECT min(n) FROM to_move WHERE n NOT IN (SELECT n FROM moving)), $6 + 1)
  ),
  turn AS MATERIALIZED (
    SELECT p.is_kept, counts.walked < $6 AND counts.walked = counts.reached AS is_whole,
           far.at, far.generation, far.bound, far.user_id
    FROM project p
    CROSS JOIN (
      SELECT (SELECT count(*) FROM walked) AS walked, (SELECT count(*) FROM reached) AS reached
    ) counts
    LEFT JOIN (SELECT * FROM reached ORDER BY n DESC LIMIT 1) far ON true
  )
  SELECT t.is_whole, t.is_kept, ${millisOf("t.at")} AS far_at, t.generation AS far_generation,
         ${millisOf("t.bound")} AS far_bound, t.user_id AS far_user,
         w.user_id, ${millisOf("w.end_date")} AS end_date, w.generation, ${millisOf("w.next_bound")} AS bound,
         w.in_days, w.kept_day, coalesce(w.metadata, '{}') AS metadata, NULL::bigint AS paused_at, NULL::bigint AS resumes_at,
         ${settingsColumns("p")}
  FROM project p, turn t
  LEFT JOIN LATERAL (
    SELECT * FROM reached w
    WHERE w.end_date > p.active_after AND w.end_date < ${endBefore} AND NOT w.is_paused
      AND (t.is_whole OR (w.end_date, w.generation, w.next_bound, w.user_id) <= (t.at, t.generation, t.bound, t.user_id))
    ORDER BY w.end_date, w.generation, w.next_bound, w.user_id
    LIMIT $7::integer
  ) w ON true
  ORDER BY w.end_date, w.generation, w.next_bound, w.user_id
`
}

/** The limits on a walk. */
export interface WalkRequest {
  readonly projectId: ProjectId
  readonly before: EndDate
  /** The maximum number of memberships to walk through. */
  readonly maxSteps: number
  /** The maximum number of memberships to return. */
  readonly limit: number
}

/** The parameters for `walkByEndDate` from a position. */
export const walkParams = (
  { at, bound, generation, userId }: EndingPlace,
  { before, limit, maxSteps, projectId }: WalkRequest,
) => [
  textParam(projectId),
  instantParam(at),
  bigintParam(generation),
  instantParam(bound),
  textParam(userId),
  integerParam(maxSteps),
  integerParam(limit),
  instantParam(before),
]

/** A row from `walkByEndDate`. It may have no membership. */
interface WalkRow extends MembershipRow {
  /** Whether all members are in the index. */
  readonly is_kept: boolean
  /** Whether this is the end of the list. */
  readonly is_whole: boolean
  /** The position of the last membership in the walk. */
  readonly far_at: Integer | null
  readonly far_generation: Integer | null
  readonly far_bound: Integer | null
  readonly far_user: string | null
  /** The membership's position, together with the end date. */
  readonly generation: Integer | null
  readonly bound: Integer | null
}

/** Returns where the list continues after a walk; `undefined` at its end. */
const nextPlace = (
  place: EndingPlace,
  rows: readonly [WalkRow, ...ReadonlyArray<WalkRow>],
  limit: number,
): EndingPlace | undefined => {
  const [first] = rows
  const last = rows.length === limit ? rows.at(-1) : undefined
  if (last !== undefined && last.user_id !== null) {
    return {
      at: Number(last.end_date),
      generation: Number(last.generation),
      bound: Number(last.bound),
      userId: last.user_id,
    }
  }
  if (first.is_whole) return undefined
  if (first.far_user === null) return place
  return {
    at: Number(first.far_at),
    generation: Number(first.far_generation),
    bound: Number(first.far_bound),
    userId: first.far_user,
  }
}

// How many memberships a request walks through besides those it lists, and at least in its first walk.
const maxWalked = { inAll: 2000, first: 100 } as const

// How many members a request adds to the index.
const maxPlaced = 10_000

/** Makes the operation that lists memberships by end date. */
export const makeListEnding = ({
  execute,
  schema,
}: Executor): MembershipStore["Service"]["listEnding"] => {
  const sql = {
    walk: walkByEndDate(schema),
    begin: beginEndingBackfill(schema),
    goOn: continueEndingBackfill(schema),
    note: recordEndingBound(schema),
    endPauses: endPauses(schema),
  }

  /** Adds members to the index that are not in it. Returns whether all are in it now. */
  const backfill = Effect.fnUntraced(function* (projectId: ProjectId) {
    const options = { owner: readsOf(projectId), isLong: true }
    yield* execute(sql.begin, [textParam(projectId)], options)
    const [row] = yield* execute<BackfillRow>(
      sql.goOn,
      continueEndingBackfillParams(projectId, maxPlaced),
      options,
    )
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    yield* execute(sql.note, [textParam(projectId), textParam(row.ending_backfilled_to)], options)
    return row.ending_backfilled_to === afterAllUsers
  })

  return Effect.fnUntraced(function* (projectId, { after, before, limit }) {
    yield* execute(sql.endPauses, [textParam(projectId)], { owner: readsOf(projectId) })
    const memberships: Array<Membership> = []
    let place: EndingPlace | undefined = after === undefined ? start : placeOf(after)
    let maxSteps = Math.max(limit, maxWalked.first)
    let left = limit + maxWalked.inAll
    while (place !== undefined && memberships.length < limit && left > 0) {
      const asked = {
        projectId,
        before,
        maxSteps: Math.min(maxSteps, left),
        limit: limit - memberships.length,
      }
      const [first, ...others] = yield* execute<WalkRow>(sql.walk, walkParams(place, asked), {
        owner: readsOf(projectId),
      })
      if (first === undefined) return yield* new ProjectNotFound({ projectId })
      if (!first.is_kept) {
        if (yield* backfill(projectId)) continue
        break
      }
      memberships.push(...[first, ...others].flatMap((row) => toMembership(projectId, row)))
      left -= asked.maxSteps
      maxSteps *= 4
      place = nextPlace(place, [first, ...others], asked.limit)
    }
    return { memberships, next: place && cursorOf(place) }
  })
}
