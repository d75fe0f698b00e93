/** Places in a list by end dates, and the texts of their cursors. */

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
import { effectiveEndDateSql } from "./sql/clauses.ts"
import {
  type Integer,
  bigintParam,
  instantParam,
  integerParam,
  millisOf,
  textParam,
  toMillis,
} from "./sql/values.ts"

/** The bound of a membership that has ended. */
const ended = "timestamptz '10000-01-01 00:00:00+00'"

/** An expression for the bound of a membership that has just been looked at. */
const lowerBoundOf = (endDate: string): string =>
  `CASE WHEN ${endDate} <= statement_timestamp() THEN ${ended} ELSE ${endDate} END`

/** A place in an order of dates, and of users among the same ones. */
interface Dated {
  /** In milliseconds since the epoch. */
  readonly from: number
  readonly userId: string
}

/** A place among the memberships whose bounds say when they end: by the end, and by user. */
export interface MemberPosition extends Dated {
  readonly _tag: "Own"
  /** Members with a smaller `ending_generation` are no longer looked for: they are listed, or were given places of their own. */
  readonly passed: number
}

/** A place in the index among those that have not changed since a bulk extension. */
interface Older extends Dated {
  /** The `ending_generation`. */
  readonly seq: number
  /** The `ending_generation` at which the walk ends: the `bulk_seq` when it began. */
  readonly upTo: number
}

/** A place among those that may end at the date of the last bulk extension, and are listed if they do. */
export interface BulkPosition extends Older {
  readonly _tag: "Bulk"
  /** The date, in milliseconds since the epoch. */
  readonly date: number
}

/**
 * A place among those that another bulk extension, to a date that the list has passed, has taken from their places.
 * Those that end later are given new ones.
 */
export interface SortPosition extends Older {
  readonly _tag: "Sort"
  /** The place in the list, where it goes on afterwards. */
  readonly at: Dated
}

/** A place. */
type EndingScanPosition = MemberPosition | BulkPosition | SortPosition

// The first instants of the years 0000 and 10000: no end date, and no bound, is before or after.
const earliest = -62_167_219_200_000
const latest = 253_402_300_800_000

const beginning: Dated = { from: earliest, userId: "" }

// Less than every `ending_generation`, and more.
const none = -1
const beyondSeqs = 1e17

/** The place before all memberships. */
const endingStart: EndingScanPosition = { _tag: "Own", ...beginning, passed: none }

/** Returns the text of a place. */
const formatScanCursor = (place: EndingScanPosition): EndingCursor => {
  const { from, userId } = place
  switch (place._tag) {
    case "Own":
      return EndingCursor(`${from}.${userId}.${place.passed}`)
    case "Bulk":
      return EndingCursor(`${place.date}.${userId}.${place.seq}.${from}.${place.upTo}`)
    case "Sort": {
      const { at } = place
      return EndingCursor(`${at.from}.${at.userId}.${place.seq}.${from}.${place.upTo}.${userId}`)
    }
  }
}

// A cursor may come from anybody, so what it says is brought into the range that a place can have.
const within = (least: number, text: string, most: number): number =>
  Math.min(Math.max(Number(text), least), most)

const instantOf = (text: string): number => within(earliest, text, latest)

const seqOf = (text = String(none)): number => within(none, text, beyondSeqs)

/** Returns the place of a text. */
const parseScanCursor = (cursor: EndingCursor): EndingScanPosition => {
  const [date = "", one = "", seq, from, upTo, other] = cursor.split(".")
  const first: Dated = { from: instantOf(date), userId: one }
  if (from === undefined) return { _tag: "Own", ...first, passed: seqOf(seq) }
  const older = { from: instantOf(from), seq: seqOf(seq), upTo: seqOf(upTo) }
  return other === undefined
    ? { _tag: "Bulk", ...older, userId: one, date: first.from }
    : { _tag: "Sort", ...older, userId: other, at: first }
}

/** Returns where in the order of ends the list goes on after older members. */
const scanGoal = (place: BulkPosition | SortPosition): Dated =>
  place._tag === "Bulk" ? { from: place.date + 1, userId: "" } : place.at

const placeAfter = (place: BulkPosition | SortPosition, passed: number): EndingScanPosition => ({
  _tag: "Own",
  ...scanGoal(place),
  passed,
})

/** What a walk knows of the project. */
interface Bulk {
  readonly seq: number
  /** The date of the last bulk extension, in milliseconds since the epoch. */
  readonly date: number | undefined
}

/** Returns where to go on if nothing is left of the part of the list that a place is in, if there is more. */
const nextPart = (
  place: EndingScanPosition,
  { date, seq }: Bulk,
  before: number,
): EndingScanPosition | undefined => {
  if (place._tag !== "Own") return placeAfter(place, place.upTo)
  return date === undefined || place.passed === seq || before <= date
    ? undefined
    : { _tag: "Bulk", ...beginning, seq: place.passed, upTo: seq, date }
}

/** What a walk from a place has found. */
interface ScanState {
  readonly rows: ReadonlyArray<ScanRow>
  /** Where to go on; `undefined` at the end of the list. */
  readonly next: EndingScanPosition | undefined
}

/** Returns where to go on if a bulk extension has made what a walk from a place found useless. */
const elsewhere = (
  place: EndingScanPosition,
  { date, seq }: Bulk,
  before: number,
): EndingScanPosition | undefined => {
  switch (place._tag) {
    case "Own": {
      if (date === undefined || place.passed === seq || date >= place.from) return undefined
      const { from, passed, userId } = place
      return { _tag: "Sort", ...beginning, seq: passed, upTo: seq, at: { from, userId } }
    }
    case "Bulk":
      // What was left of them ends later now.
      return date === undefined || date > place.date || before <= place.date
        ? placeAfter(place, none)
        : undefined
    case "Sort":
      return undefined
  }
}

/**
 * Decides what counts of the rows of a walk from a place, and where to go on.
 *
 * @param limit - the most memberships that it could return
 */
const nextScan = (
  place: EndingScanPosition,
  [first, ...others]: readonly [ScanRow, ...ReadonlyArray<ScanRow>],
  { before, limit }: { readonly before: number; readonly limit: number },
): ScanState => {
  const bulk = { seq: Number(first.bulk_seq), date: toMillis(first.bulk_date) }
  const other = elsewhere(place, bulk, before)
  if (other !== undefined) return { rows: [], next: other }
  const rows = [first, ...others].filter(({ user_id }) => user_id !== null)
  const last = rows.length === limit ? rows.at(-1) : undefined
  if (last === undefined && first.is_whole) return { rows, next: nextPart(place, bulk, before) }
  const at =
    last === undefined
      ? { seq: first.far_seq, from: first.far_from, userId: first.far_user }
      : {
          seq: last.ending_generation,
          from: place._tag === "Own" ? last.end_date : last.ending_lower_bound,
          userId: last.user_id,
        }
  if (at.userId === null) return { rows, next: place }
  const dated = { from: Number(at.from), userId: at.userId }
  return {
    rows,
    next:
      place._tag === "Own" ? { ...place, ...dated } : { ...place, ...dated, seq: Number(at.seq) },
  }
}

/**
 * Statements that give a place in the order of ends to the members of a project whose ends nobody has listed yet.
 */

/** What comes after all user ids. */
const afterAllUsers = ":"

/**
 * Has new members of the project `$1` get places from now on. It is a statement of its own: those that follow it
 * see all members who have none.
 */
const beginEndingBackfill = (schema: string): string => `
  UPDATE ${schema}.projects SET ending_backfilled_to = '' WHERE id = $1::text AND ending_backfilled_to IS NULL
`

/**
 * Assigns places to the next `$2` members, and stops at the first one that is locked or has changed. Returns one row: up to which
 * user id all members have places then.
 */
export const continueEndingBackfill = (schema: string): string => `
  WITH project AS MATERIALIZED (
    SELECT number, bulk_seq, overwrite_seq, bulk_end_date, ending_backfilled_to FROM ${schema}.projects WHERE id = $1::text
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
  -- Joined with nothing: PostgreSQL keeps a copy of what a locked row is joined with beside each. From an array, few
  -- rows are expected, which are looked up in the index. For many, the whole table would be read.
  locked AS MATERIALIZED (
    SELECT m.project_number, m.user_id, m.seq, m.end_date FROM ${schema}.memberships m
    WHERE m.project_number = (SELECT number FROM project)
      AND m.user_id = ANY (ARRAY(SELECT user_id FROM page))
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  free AS MATERIALIZED (
    SELECT m.project_number, m.user_id, p.bulk_seq, ${effectiveEndDateSql(schema)} AS end_date
    FROM project p, locked m
    -- Who has changed it meanwhile may know of a bulk extension that the project does not have here. Such a
    -- condition is no join either, which a plan made for few rows would do by comparing each with each.
    WHERE ((m.user_id, m.seq) IN (SELECT user_id, seq FROM page)) IS TRUE
  ),
  placed AS (
    UPDATE ${schema}.memberships m SET ending_generation = f.bulk_seq, ending_lower_bound = ${lowerBoundOf("f.end_date")}
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

/** The row of `goOn`. */
interface BackfillRow {
  readonly ending_backfilled_to: string
}

/** The parameters of `goOn`. */
export const continueEndingBackfillParams = (projectId: ProjectId, most: number) => [
  textParam(projectId),
  integerParam(most),
]

/** Takes note of how far that has come, `$2`. */
const recordEndingBound = (schema: string): string => `
  UPDATE ${schema}.projects SET ending_backfilled_to = greatest(ending_backfilled_to, $2::text) WHERE id = $1::text
`

/**
 * Statements that go through memberships in the order of the index, put those in their places that have
 * others, and return those that are listed.
 *
 * They walk from a place to the first that is to be moved and is locked, or has changed meanwhile: it may belong
 * behind what they return.
 */

/** What one of the two statements does. */
interface Walk {
  /** Before when those of a project end that it lists. */
  readonly until: string
  /** Which memberships `m` of a project `p` it walks. */
  readonly range: string
  /** Which of those that it has walked, `w`, it moves, besides those that have ended. */
  readonly isMoved: string
  /** Which of them it lists if it has come as far as `t`, and in which order. */
  readonly isListed: string
  readonly order: string
}

const walk = (schema: string, { isListed, isMoved, order, range, until }: Walk): string => `
  WITH project AS MATERIALIZED (
    SELECT number, bulk_seq, overwrite_seq, bulk_end_date, last_bulk_end_date AS bulk_date,
           ending_backfilled_to IS NOT DISTINCT FROM '${afterAllUsers}' AS is_kept,
           ${until} AS until
    FROM ${schema}.projects WHERE id = $1::text
  ),
  walked AS MATERIALIZED (
    SELECT w.*, p.bulk_seq, p.bulk_date, w.end_date <= statement_timestamp() AS has_ended,
           row_number() OVER (ORDER BY w.ending_generation, w.ending_lower_bound, w.user_id) AS n
    FROM project p
    CROSS JOIN LATERAL (
      SELECT m.project_number, m.user_id, m.seq, m.ending_generation, m.ending_lower_bound, ${effectiveEndDateSql(schema)} AS end_date
      FROM ${schema}.memberships m
      WHERE m.project_number = p.number AND ${range}
      ORDER BY m.ending_generation, m.ending_lower_bound, m.user_id
      LIMIT $5::integer
    ) w
  ),
  to_move AS MATERIALIZED (SELECT * FROM walked w WHERE w.has_ended OR ${isMoved}),
  moving AS MATERIALIZED (
    SELECT w.* FROM to_move w
    JOIN ${schema}.memberships m ON m.project_number = w.project_number AND m.user_id = w.user_id
    WHERE m.seq = w.seq AND m.ending_generation = w.ending_generation AND m.ending_lower_bound = w.ending_lower_bound
    FOR NO KEY UPDATE OF m SKIP LOCKED
  ),
  moved AS (
    UPDATE ${schema}.memberships m
    SET ending_generation = w.bulk_seq, ending_lower_bound = ${lowerBoundOf("w.end_date")}
    FROM moving w
    WHERE m.project_number = w.project_number AND m.user_id = w.user_id
  ),
  reached AS MATERIALIZED (
    SELECT * FROM walked
    WHERE n < coalesce((SELECT min(n) FROM to_move WHERE n NOT IN (SELECT n FROM moving)), $5 + 1)
  ),
  turn AS MATERIALIZED (
    SELECT p.*, far.ending_generation, far.ending_lower_bound, far.user_id,
           (SELECT count(*) FROM walked) AS walked, (SELECT count(*) FROM reached) AS reached
    FROM project p
    LEFT JOIN (SELECT * FROM reached ORDER BY n DESC LIMIT 1) far ON true
  )
  SELECT t.walked < $5 AND t.walked = t.reached AS is_whole, t.is_kept, t.bulk_seq, ${millisOf("t.bulk_date")} AS bulk_date,
         t.ending_generation AS far_seq, ${millisOf("t.ending_lower_bound")} AS far_from, t.user_id AS far_user,
         w.user_id, ${millisOf("w.end_date")} AS end_date, w.ending_generation, ${millisOf("w.ending_lower_bound")} AS ending_lower_bound
  FROM turn t
  LEFT JOIN LATERAL (
    SELECT * FROM reached w WHERE NOT w.has_ended AND ${isListed} ORDER BY ${order} LIMIT $6::integer
  ) w ON true
  ORDER BY ${order}
`

/**
 * Walks through up to `$5` memberships whose bounds say when they end, after the place (`$2`, `$3`) and before
 * `$4`; if `$7` is not the `bulk_seq` of the project, up to the date of the last bulk extension. Returns up to `$6`
 * of them in the order of their ends; one empty row if there are none, and no row if the project does not exist.
 */
export const scanEnding = (schema: string): string =>
  walk(schema, {
    until: `
      CASE WHEN last_bulk_end_date IS NULL OR bulk_seq = $7::bigint THEN $4::timestamptz
      ELSE least($4, last_bulk_end_date + interval '1 millisecond') END`,
    range: `m.ending_generation = p.bulk_seq AND (m.ending_lower_bound, m.user_id) > ($2::timestamptz, $3::text)
      AND m.ending_lower_bound < p.until`,
    isMoved: "w.end_date > w.ending_lower_bound",
    isListed: `w.end_date < t.until
      AND ((t.walked < $5 AND t.walked = t.reached) OR (w.end_date, w.user_id) <= (t.ending_lower_bound, t.user_id))`,
    order: "w.end_date, w.user_id",
  })

/**
 * Walks through up to `$5` memberships that have not changed since a bulk extension, after the place (`$7`, `$2`,
 * `$3`) and before the `ending_generation` `$8`. Those that end after (`$4`, `$9`) in the order of ends get places in it.
 * Returns up to `$6` of those that end in the millisecond before `$4`, in the order of the index, in the same way.
 */
export const scanOlderBounds = (schema: string): string =>
  walk(schema, {
    until: "$4::timestamptz",
    range: `m.ending_generation < $8::bigint
      AND (m.ending_generation, m.ending_lower_bound, m.user_id) > ($7::bigint, $2::timestamptz, $3::text)`,
    isMoved: "(w.end_date, w.user_id) > ($4, $9::text)",
    isListed: "w.end_date = t.until - interval '1 millisecond'",
    order: "w.ending_generation, w.ending_lower_bound, w.user_id",
  })

/** How far a walk goes. */
export interface ScanRequest {
  readonly projectId: ProjectId
  readonly before: EndDate
  /** The most memberships to walk through. */
  readonly most: number
  /** The most memberships to return. */
  readonly limit: number
}

/** The parameters of `walkEnds` from a place. */
export const scanEndingParams = (
  place: MemberPosition,
  { before, limit, most, projectId }: ScanRequest,
) => [
  textParam(projectId),
  instantParam(place.from),
  textParam(place.userId),
  instantParam(before),
  integerParam(most),
  integerParam(limit),
  bigintParam(place.passed),
]

/** The parameters of `walkOlder` from a place. */
export const scanOlderBoundsParams = (
  place: BulkPosition | SortPosition,
  { limit, most, projectId }: ScanRequest,
) => {
  const goal = scanGoal(place)
  return [
    textParam(projectId),
    instantParam(place.from),
    textParam(place.userId),
    instantParam(goal.from),
    integerParam(most),
    integerParam(place._tag === "Bulk" ? limit : 0),
    bigintParam(place.seq),
    bigintParam(place.upTo),
    textParam(goal.userId),
  ]
}

/** A row of both statements. Without a membership, it has no values of one. */
interface ScanRow extends MembershipRow {
  /** Whether all members have places. */
  readonly is_kept: boolean
  /** Whether nothing is left in the range. */
  readonly is_whole: boolean
  /** The number of the last bulk extension. */
  readonly bulk_seq: Integer
  /** The date of the last bulk extension. */
  readonly bulk_date: Integer | null
  /** The place of the last membership that was walked. */
  readonly far_seq: Integer | null
  readonly far_from: Integer | null
  readonly far_user: string | null
  /** The place of the membership in the index. */
  readonly ending_generation: Integer | null
  readonly ending_lower_bound: Integer | null
}

/** Lists of memberships by their ends. */

// How many memberships a request walks through besides those that it lists, and its first walk at least.
const mostWalked = { inAll: 2000, first: 100 } as const

// How many members a request gives places to.
const mostPlaced = 10_000

/** Makes that operation of the store. */
export const makeListEnding = ({
  execute,
  schema,
}: Executor): MembershipStore["Service"]["listEnding"] => {
  const walking = { ends: scanEnding(schema), older: scanOlderBounds(schema) }
  const keeping = {
    begin: beginEndingBackfill(schema),
    goOn: continueEndingBackfill(schema),
    note: recordEndingBound(schema),
  }

  /** Assigns places to members of a project that lack one. Returns whether all have one now. */
  const place = Effect.fnUntraced(function* (projectId: ProjectId) {
    const manner = { owner: readsOf(projectId), isLong: true }
    yield* execute(keeping.begin, [textParam(projectId)], manner)
    const [row] = yield* execute<BackfillRow>(
      keeping.goOn,
      continueEndingBackfillParams(projectId, mostPlaced),
      manner,
    )
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    yield* execute(
      keeping.note,
      [textParam(projectId), textParam(row.ending_backfilled_to)],
      manner,
    )
    return row.ending_backfilled_to === afterAllUsers
  })

  const go = (at: EndingScanPosition, asked: ScanRequest) => {
    const manner = { owner: readsOf(asked.projectId) }
    return at._tag === "Own"
      ? execute<ScanRow>(walking.ends, scanEndingParams(at, asked), manner)
      : execute<ScanRow>(walking.older, scanOlderBoundsParams(at, asked), manner)
  }

  return Effect.fnUntraced(function* (projectId, { after, before, limit }) {
    const memberships: Array<Membership> = []
    let at: EndingScanPosition | undefined =
      after === undefined ? endingStart : parseScanCursor(after)
    let most = Math.max(limit, mostWalked.first)
    let left = limit + mostWalked.inAll
    while (at !== undefined && memberships.length < limit && left > 0) {
      const asked = {
        projectId,
        before,
        most: Math.min(most, left),
        limit: limit - memberships.length,
      }
      const [first, ...others] = yield* go(at, asked)
      if (first === undefined) return yield* new ProjectNotFound({ projectId })
      if (!first.is_kept) {
        if (yield* place(projectId)) continue
        break
      }
      const { next, rows } = nextScan(at, [first, ...others], asked)
      memberships.push(...rows.flatMap((row) => toMembership(projectId, row)))
      left -= asked.most
      most *= 4
      at = next
    }
    return { memberships, next: at && formatScanCursor(at) }
  })
}
