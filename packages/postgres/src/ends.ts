/** Counts the memberships in a project that end on each day. */

import { lastEndDate, noAdjustment } from "@tenure/core/internal"
import {
  type Adjustment,
  type OrderedAdjustment,
  EndDate,
  type EndCells,
  type EndsQuery,
  type Extended,
  type MembershipStore,
  Millis,
  type ProjectId,
  type ProjectNotFound,
  StoreUnavailable,
  cellOf,
  composeWith,
  type TimeZone,
  dayOf,
  dayStartsOf,
  endCellsAt,
  endCountsOf,
  extendingActions,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Executor } from "./connection/executor.ts"
import { endPauses } from "./pauses.sql.ts"
import { type SettingsRow, settingsColumns, toSettings } from "./project-settings.ts"
import { rowsOfProject } from "./projects.ts"
import {
  type Integer,
  bigintParam,
  bigintsParam,
  instantsParam,
  integerParam,
  integersParam,
  millisOf,
  textParam,
  textsParam,
  wholeMillisOf,
} from "./sql/values.ts"

/**
 * Returns the time, the project `$1`'s number, and the bulk extensions that apply to end dates, oldest first.
 * Without any, it returns one row that has none; no row if the project does not exist.
 */
const readLog = (schema: string): string => `
  SELECT ${millisOf("statement_timestamp()")} AS now, p.number, ${settingsColumns("p")}, b.seq,
         ${wholeMillisOf("b.addition")} AS addition, ${millisOf("b.minimum")} AS minimum,
         (SELECT min(day) - date '1970-01-01' FROM ${schema}.audit_parts) AS first_part, c.paused
  FROM ${schema}.projects p
  CROSS JOIN LATERAL (
    SELECT count(*) AS paused FROM ${schema}.memberships m
    WHERE m.project_number = p.number AND m.paused_at IS NOT NULL
  ) c
  LEFT JOIN ${schema}.bulk_extensions b ON b.project_number = p.number AND b.state <> 'settled'
  WHERE p.id = $1::text
  ORDER BY b.seq
`

interface LogRow extends SettingsRow {
  readonly now: Integer
  readonly number: Integer
  readonly seq: Integer | null
  readonly addition: Integer | null
  readonly minimum: Integer | null
  /** The day on which the oldest audit part began. Rows from that day may also have been in an earlier part. */
  readonly first_part: number
  readonly paused: Integer
}

const toComposed = ({ addition, minimum, seq }: LogRow): ReadonlyArray<OrderedAdjustment> =>
  seq === null
    ? []
    : [
        {
          order: Number(seq),
          addition: addition === null ? undefined : Millis(Number(addition)),
          minimum: minimum === null ? undefined : EndDate(Number(minimum)),
        },
      ]

/** Counts the own dates of members who are not paused in the project `$1`, in the cells that begin at `$2`. */
const countOwnInCells = (schema: string): string => `
  SELECT width_bucket(end_date, $2::timestamptz[]) AS cell, count(*) AS members
  FROM ${schema}.memberships WHERE project_number = $1::bigint AND paused_at IS NULL
  GROUP BY cell
`

/**
 * Counts the effective end dates of members who are not paused in the project `$1`, in the cells that begin at `$2`. `$3` are the bulk
 * extensions' numbers, `$4` what each and all later ones add to a date, `$5` and `$6` the first and last cell
 * that they lead to. The last element in each array is for members whose dates were set later.
 */
const countInCells = (schema: string): string => `
  WITH log AS MATERIALIZED (
    SELECT ARRAY(
      SELECT a * interval '1 millisecond' FROM unnest($4::bigint[]) WITH ORDINALITY u (a, n) ORDER BY n
    ) AS additions
  )
  SELECT cell, count(*) AS members
  FROM (
    SELECT greatest(($5::integer[])[m.place], least(($6::integer[])[m.place],
             width_bucket(m.end_date + (SELECT additions FROM log)[m.place], $2::timestamptz[])
           )) AS cell
    FROM (
      SELECT end_date, width_bucket(seq, $3::bigint[]) + 1 AS place
      FROM ${schema}.memberships WHERE project_number = $1::bigint AND paused_at IS NULL
      -- Otherwise, the array position is computed for each use.
      OFFSET 0
    ) m
  ) counted
  GROUP BY cell
`

interface CellRow {
  readonly cell: number
  readonly members: Integer
}

const none = Millis(0)

/** The parameters for `countInCells` after its first two. */
const logParams = (cells: Pick<EndCells, "bounds">, composed: ReadonlyArray<OrderedAdjustment>) => {
  const last = cellOf(cells, lastEndDate)
  const cellOfMinimum = (minimum: EndDate | undefined): number =>
    minimum === undefined ? 0 : cellOf(cells, minimum)
  const adjustments: ReadonlyArray<Adjustment> = [...composed, noAdjustment]
  return [
    bigintsParam(composed.map(({ order }) => BigInt(order))),
    bigintsParam(adjustments.map(({ addition = none }) => BigInt(addition))),
    integersParam(adjustments.map(({ minimum }) => cellOfMinimum(minimum))),
    // Without an addition, the earlier date makes no difference.
    integersParam(
      adjustments.map(({ addition, minimum }) =>
        addition === undefined ? cellOfMinimum(minimum) : last,
      ),
    ),
  ]
}

/**
 * Reads the newest `$2` audit rows in the project `$1`. Returns one row with the number of extended
 * memberships for each of the days that begin at `$4`, of which `$5` is the first, and one for all earlier days. The trail is long, and has no index by time, because each extension would write to it.
 */
const countExtended = (schema: string): string => `
  SELECT $5::integer - 1 + width_bucket(a.at, $4::timestamptz[]) AS day, count(*) AS rows,
         count(*) FILTER (WHERE a.action = ANY ($3::text[])) AS extended,
         min(a.id) AS first_id
  FROM (
    SELECT id, at, action FROM ${schema}.audit WHERE project_number = $1::bigint
    ORDER BY seq DESC, id DESC LIMIT $2::integer
  ) a
  GROUP BY day
`

interface ExtendedRow {
  readonly day: number
  readonly rows: Integer
  readonly extended: Integer
  /** The lowest id among these rows. The day with the lowest id has the oldest row, even if the clock was set. */
  readonly first_id: Integer
}

// Reading this many takes about 100 ms.
const maxRows = 100_000

/** Returns the first whole day since a day in UTC, in a time zone. */
const wholeDaySince = (day: number, timeZone: TimeZone): number => {
  const since = day * 86_400_000
  const there = dayOf(since, timeZone)
  return dayOf(since - 1, timeZone) === there ? there + 1 : there
}

const toExtended = (
  rows: ReadonlyArray<ExtendedRow>,
  { first_part: firstPart, now }: Pick<LogRow, "first_part" | "now">,
  timeZone: TimeZone,
): Extended => {
  const read = rows.reduce((sum, { rows: count }) => sum + Number(count), 0)
  const isNew = firstPart === dayOf(Number(now))
  const firstKept = isNew ? -Infinity : wholeDaySince(firstPart + 1, timeZone)
  const oldest = rows.reduce<ExtendedRow | undefined>(
    (before, row) =>
      before !== undefined && BigInt(before.first_id) < BigInt(row.first_id) ? before : row,
    undefined,
  )
  const firstRead = oldest === undefined || read < maxRows ? -Infinity : oldest.day + 1
  return {
    byDay: new Map(rows.map(({ day, extended }) => [day, Number(extended)])),
    knownFrom: Math.max(firstKept, firstRead),
  }
}

type CountFailure = ProjectNotFound | StoreUnavailable

interface Question extends EndsQuery {
  readonly projectId: ProjectId
}

/** A count of the memberships that ended in a time before now: see `countEndedBetween` in the port. */
interface EndedQuestion {
  readonly projectId: ProjectId
  readonly from: Millis
  readonly to: Millis
}

/** Callers that wait for the same count. */
interface Turn<Asked, Counts> {
  readonly question: Asked
  readonly key: string
  readonly callers: Set<(exit: Exit.Exit<Counts, CountFailure>) => void>
}

// One project delays others by at most this many counts.
const maxTurnsOfProject = 2

// A count takes about a second for millions of members.
const maxTurns = 16

// As for other long calls, including the wait for a turn.
const maxWaiting = "30 seconds"

const crowded = Exit.fail(new StoreUnavailable({ cause: "too many counts of ends wait" }))

/**
 * Runs one count at a time, however many callers there are, because each reads all members in a project.
 * Callers that ask for the same share the next count, which begins after they asked, so that it includes
 * their earlier changes.
 */
const makeTurns = Effect.fnUntraced(function* <
  Asked extends { readonly projectId: ProjectId },
  Counts,
>(count: (question: Asked) => Effect.Effect<Counts, CountFailure>) {
  // Outside the callers' contexts, which may hold a transaction.
  const fork = Effect.runForkWith(yield* Effect.context())
  const waiting: Array<Turn<Asked, Counts>> = []
  let isRunning = false

  const next = (): void => {
    const turn = waiting.shift()
    isRunning = turn !== undefined
    if (turn === undefined) return
    fork(count(turn.question)).addObserver((exit) => {
      for (const resume of turn.callers) resume(exit)
      next()
    })
  }

  const turnFor = (question: Asked): Turn<Asked, Counts> | undefined => {
    const key = JSON.stringify(question)
    const known = waiting.find((turn) => turn.key === key)
    if (known !== undefined) return known
    const own = waiting.filter((turn) => turn.question.projectId === question.projectId)
    if (waiting.length >= maxTurns || own.length >= maxTurnsOfProject) return undefined
    const turn: Turn<Asked, Counts> = { question, key, callers: new Set() }
    waiting.push(turn)
    return turn
  }

  return (question: Asked): Effect.Effect<Counts, CountFailure> =>
    Effect.callback<Counts, CountFailure>((resume) => {
      const turn = turnFor(question)
      if (turn === undefined) return resume(crowded)
      turn.callers.add(resume)
      if (!isRunning) next()
      return Effect.sync(() => {
        turn.callers.delete(resume)
        const place = turn.callers.size === 0 ? waiting.indexOf(turn) : -1
        if (place !== -1) waiting.splice(place, 1)
      })
    }).pipe(Effect.timeoutOrElse({ duration: maxWaiting, orElse: () => crowded }))
})

const options = { owner: "counts of ends", isLong: true }

/** Makes the operations that count ends. */
export const makeCountEnds = Effect.fnUntraced(function* ({
  execute,
  isInTransaction,
  schema,
}: Executor): Effect.fn.Return<
  Pick<MembershipStore["Service"], "countEnds" | "countEndedBetween">
> {
  const sql = {
    log: readLog(schema),
    countOwn: countOwnInCells(schema),
    count: countInCells(schema),
    extended: countExtended(schema),
    endPauses: endPauses(schema),
  }

  /** Reads what a count begins with, after pauses that are over were ended. */
  const begin = (projectId: ProjectId) =>
    Effect.andThen(
      execute(sql.endPauses, [textParam(projectId)], options),
      execute<LogRow>(sql.log, [textParam(projectId)], options),
    )

  /** Counts the end dates in each cell of a project, with its bulk extensions. */
  const countCells = (
    project: LogRow["number"],
    cells: Pick<EndCells, "bounds">,
    composed: ReadonlyArray<OrderedAdjustment>,
  ) => {
    const params = [bigintParam(BigInt(project)), instantsParam(cells.bounds)]
    return composed.length === 0
      ? execute<CellRow>(sql.countOwn, params, options)
      : execute<CellRow>(sql.count, [...params, ...logParams(cells, composed)], options)
  }

  const count = Effect.fnUntraced(function* (
    { change, days, projectId }: Question,
    concurrency: number,
  ) {
    const rows = yield* begin(projectId)
    const [first] = yield* rowsOfProject(projectId, rows)
    const { now, number } = first
    const settings = toSettings(first)
    const cells = endCellsAt({ days }, Number(now), settings)
    const composed = composeWith(rows.flatMap(toComposed), change)
    const counting = countCells(number, cells, composed)
    const reading = execute<ExtendedRow>(
      sql.extended,
      [
        bigintParam(BigInt(number)),
        integerParam(maxRows),
        textsParam([...extendingActions]),
        instantsParam(dayStartsOf(cells)),
        integerParam(cells.days.first),
      ],
      options,
    )
    const [counted, extended] = yield* Effect.all([counting, reading], { concurrency })
    return endCountsOf(
      cells,
      new Map(counted.map(({ cell, members }) => [cell, Number(members)])),
      toExtended(extended, first, settings.timeZone),
      Number(first.paused),
    )
  })

  const countEnded = Effect.fnUntraced(function* ({ from, projectId, to }: EndedQuestion) {
    const rows = yield* begin(projectId)
    const [{ now, number }] = yield* rowsOfProject(projectId, rows)
    // A membership that ended exactly then counts for `from`, and not for `to`.
    const bounds = [to, from].map((ago) => Number(now) - ago + 1)
    const counted = yield* countCells(number, { bounds }, rows.flatMap(toComposed))
    return Number(counted.find(({ cell }) => cell === 1)?.members ?? 0)
  })

  const inTurn = yield* makeTurns((question: Question) => count(question, 2))
  const endedInTurn = yield* makeTurns(countEnded)

  return {
    countEnds: (projectId, query) =>
      Effect.flatMap(isInTransaction, (isJoined) =>
        isJoined ? count({ projectId, ...query }, 1) : inTurn({ projectId, ...query }),
      ),

    countEndedBetween: (projectId, ago) =>
      Effect.flatMap(isInTransaction, (isJoined) =>
        (isJoined ? countEnded : endedInTurn)({ projectId, ...ago }),
      ),
  }
})
