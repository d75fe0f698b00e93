/**
 * The event feed on PostgreSQL: snapshots, cursors and pages.
 *
 * Transaction numbers follow the order in which transactions begin to write, not the order in which they
 * commit. So the feed orders events by snapshots, which say which transactions had ended at a moment.
 */

import {
  CursorExpired,
  type Event,
  EventId,
  EventType,
  FeedCursor,
  type FeedHistory,
  type FeedPage,
  type FeedPageSize,
  type FeedStart,
  type FeedStore,
  ProjectId,
  ProjectNotFound,
  StoreUnavailable,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type Executor, readsOf } from "./connection/executor.ts"
import { integerParam, textParam, textsParam, uuidParam } from "./sql/values.ts"

/** A PostgreSQL snapshot. It sees the transactions before `xmin`, and those before `xmax` that are not in `running`. */
export interface Snapshot {
  readonly xmin: bigint
  readonly xmax: bigint
  /** Transactions that had not ended, in ascending order. */
  readonly running: ReadonlyArray<bigint>
}

/** The snapshot that sees nothing. */
const emptySnapshot: Snapshot = { xmin: 1n, xmax: 1n, running: [] }

// 64-bit numbers without the sign bit, so that PostgreSQL can read all.
const maxNumber = 2n ** 63n - 1n

/** The snapshot that sees everything in a past epoch. */
const finalSnapshot: Snapshot = { xmin: maxNumber, xmax: maxNumber, running: [] }

/** Whether a snapshot sees a transaction. */
export const snapshotSees = ({ running, xmax }: Snapshot, xid: bigint): boolean =>
  xid < xmax && !running.includes(xid)

/**
 * Returns a snapshot that sees what `base` sees, and what the later snapshot `now` sees up to the transaction
 * `last`.
 */
export const mergeSnapshot = (base: Snapshot, now: Snapshot, last: bigint): Snapshot => {
  const xmax = [base.xmax, last < now.xmax ? last + 1n : now.xmax].reduce((a, b) => (a > b ? a : b))
  const running = [...base.running, ...now.running.filter((xid) => xid >= base.xmax)].filter(
    (xid) => xid < xmax && (xid > last || !snapshotSees(now, xid)),
  )
  return { xmin: running[0] ?? xmax, xmax, running }
}

/** Writes a snapshot as PostgreSQL does. */
const formatSnapshot = ({ running, xmax, xmin }: Snapshot): string =>
  `${xmin}:${xmax}:${running.join(",")}`

/** Reads a snapshot that PostgreSQL wrote. */
const parseSnapshot = (text: string): Snapshot => {
  const [xmin = "1", xmax = "1", running = ""] = text.split(":")
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: running === "" ? [] : running.split(",").map(BigInt),
  }
}

/** A moment at which the feed was read, with its snapshot. */
export interface SeenEvents {
  readonly snapshot: Snapshot
  /** The time, in milliseconds since the epoch, by the database's clock. */
  readonly at: number
}

/** An epoch, within which transaction numbers can be compared. They mean nothing in another one. */
export interface Epoch {
  /** From 1. */
  readonly number: number
  /** Distinguishes it from the epoch with the same number in a copied database. */
  readonly identity: string
}

/**
 * A position: after all earlier epochs, after everything that `base` sees and, if a page ended early, within
 * what follows.
 */
export interface FeedPosition {
  readonly epoch: Epoch
  readonly base: SeenEvents
  readonly within: Within | undefined
}

/**
 * A position within what `until` sees and `base` does not: after an event, ordered by transaction and id.
 * What becomes visible later comes after all this, even if its transaction has a smaller number.
 */
interface Within {
  readonly until: SeenEvents
  readonly xid: bigint
  readonly id: EventId
}

/** The position at which an epoch begins, as seen at a moment. */
const startOf = (epoch: Epoch, at: number): FeedPosition => ({
  epoch,
  base: { snapshot: emptySnapshot, at },
  within: undefined,
})

/** The position before the first epoch. */
const feedStart = startOf({ number: 0, identity: "" }, 0)

const digits = (value: bigint | number): string => value.toString(36)

// Running transactions are close to each other, so the gaps between them are short.
const seenText = ({ at, snapshot: { running, xmax, xmin } }: SeenEvents): string =>
  [
    digits(at),
    digits(xmin),
    digits(xmax - xmin),
    ...running.map((xid, index) => digits(xid - (running[index - 1] ?? xmin))),
  ].join("-")

// A cursor has at most 8,192 characters, all but fewer than 200 for two lists of running transactions. A list
// may get one more transaction.
const maxListLength = 3900

/**
 * Returns a moment whose snapshot fits into a cursor: the same one, unless about 1,900 or more transactions
 * are running. Then it does not see the youngest, nor what began after these.
 */
export const fitsPage = (seen: SeenEvents): SeenEvents => {
  const { running, xmin } = seen.snapshot
  let length = 0
  const first = running.findIndex((xid, index) => {
    length += 1 + digits(xid - (running[index - 1] ?? xmin)).length
    return length > maxListLength
  })
  const xmax = running[first]
  return xmax === undefined
    ? seen
    : { ...seen, snapshot: { xmin, xmax, running: running.slice(0, first) } }
}

const epochText = ({ identity, number }: Epoch): string => `${identity}.${digits(number)}`

/** The common beginning of all cursors in a page. */
export const cursorPrefix = (epoch: Epoch, base: SeenEvents, until: SeenEvents): string =>
  `${epochText(epoch)}.${seenText(base)}.${seenText(until)}`

/** The cursor for an event in the page with this prefix. */
export const formatPartialCursor = (prefix: string, xid: bigint, id: string): FeedCursor =>
  FeedCursor(`${prefix}.${digits(xid)}.${id}`)

/** The cursor for the position after everything that has been seen. */
export const formatFeedCursor = (epoch: Epoch, base: SeenEvents): FeedCursor =>
  FeedCursor(`${epochText(epoch)}.${seenText(base)}`)

const numberPattern = /^[0-9a-z]{1,13}$/

const parseNumber = (text: string): bigint | undefined => {
  if (!numberPattern.test(text)) return undefined
  let value = 0n
  for (const digit of text) value = value * 36n + BigInt(Number.parseInt(digit, 36))
  return value <= maxNumber ? value : undefined
}

// PostgreSQL's greatest integer.
const maxEpochs = 2n ** 31n - 1n

const isNumbers = (values: ReadonlyArray<bigint | undefined>): values is ReadonlyArray<bigint> =>
  values.every((value) => value !== undefined)

const isAscending = (values: ReadonlyArray<bigint>): boolean =>
  values.every((value, index) => index === 0 || value > (values[index - 1] ?? value))

const parseSeen = (text: string | undefined): SeenEvents | undefined => {
  const numbers = (text ?? "").split("-").map(parseNumber)
  if (!isNumbers(numbers)) return undefined
  const [at, xmin, length, ...gaps] = numbers
  if (at === undefined || at > 8_640_000_000_000_000n) return undefined
  if (xmin === undefined || xmin === 0n || length === undefined) return undefined
  const xmax = xmin + length
  let last = xmin
  const running = gaps.map((gap) => (last += gap))
  const isSnapshot = xmax <= maxNumber && isAscending([...running, xmax])
  return isSnapshot ? { at: Number(at), snapshot: { xmin, xmax, running } } : undefined
}

/** The position after an event that became visible between two moments. */
const placeWithin = (
  epoch: Epoch,
  base: SeenEvents,
  until: SeenEvents | undefined,
  xid: bigint | undefined,
  id: string,
): FeedPosition | undefined => {
  if (until === undefined || !EventId.is(id)) return undefined
  // PostgreSQL has no snapshot with the number 0, because it is no transaction.
  if (xid === undefined || xid === 0n) return undefined
  if (!snapshotSees(until.snapshot, xid)) return undefined
  return { epoch, base, within: { until, xid, id } }
}

/** Reads a cursor. Returns `undefined` for text that this store does not write. */
export const parseFeedCursor = (cursor: FeedCursor): FeedPosition | undefined => {
  const [identity = "", ofEpoch = "", ofBase, ofUntil, ofXid = "", id = "", ...others] =
    cursor.split(".")
  const number = parseNumber(ofEpoch)
  const base = parseSeen(ofBase)
  if (number === undefined || number > maxEpochs) return undefined
  if (base === undefined || others.length > 0) return undefined
  const epoch = { number: Number(number), identity }
  return ofUntil === undefined
    ? { epoch, base, within: undefined }
    : placeWithin(epoch, base, parseSeen(ofUntil), parseNumber(ofXid), id)
}

/** Reads projects' next events with the function in the migrations, which describes it. */
const readFeed = (schema: string): string => `
  SELECT * FROM ${schema}.read_feed(
    $1, $2, $3::text::pg_snapshot, $4::text::pg_snapshot, $5::text::xid8, $6, $7, $8
  )
`

/**
 * Reads a project's latest events by epoch, transaction and id, newest first, or those before an event if one
 * is given. `found` also counts those beyond `most_bytes`. Without an event, there is one row that has none.
 */
const readLatest = (schema: string): string => `
  SELECT p.id AS project_id, e.found, e.id, e.type, e.at, e.body
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.events b ON b.id = $2 AND b.project_number = p.number
  LEFT JOIN LATERAL (
    SELECT n.*, (count(*) OVER ())::integer AS found,
           sum(octet_length(n.body)) OVER (ORDER BY n.epoch DESC, n.xid DESC, n.id DESC) - octet_length(n.body) AS before
    FROM (
      SELECT o.epoch, o.xid, o.id, o.type, o.at, o.body FROM ${schema}.events o
      WHERE o.project_number = p.number AND (o.epoch, o.xid, o.id) < (
        CASE WHEN $2::uuid IS NULL THEN ${maxEpochs} ELSE b.epoch END,
        CASE WHEN $2::uuid IS NULL THEN '18446744073709551615'::xid8 ELSE b.xid END,
        coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      )
      ORDER BY o.epoch DESC, o.xid DESC, o.id DESC LIMIT $3
    ) n
  ) e ON e.before < $4
  WHERE p.id = $1
  ORDER BY e.epoch DESC, e.xid DESC, e.id DESC
`

interface LatestRow {
  readonly project_id: string
  /** Null if there is no event. */
  readonly found: number | null
  readonly id: string
  readonly type: string
  readonly at: Date
  readonly body: string
}

/**
 * Records on disk that all transaction numbers so far are used. Returns the last one. It needs no table, so
 * every role may run it.
 */
const useNumbers = `
  SELECT pg_current_xact_id()::text AS xid, pg_logical_emit_message(true, 'tenure', '')::text
  FROM (SELECT set_config('synchronous_commit', 'on', true)) s
`

/** The parameters for `readFeed`. */
const readFeedParams = (
  projects: ReadonlyArray<ProjectId>,
  { base, epoch, within }: FeedPosition,
  size: FeedPageSize,
) => [
  textsParam(projects),
  integerParam(epoch.number),
  textParam(formatSnapshot(base.snapshot)),
  textParam(within && formatSnapshot(within.until.snapshot)),
  textParam(within?.xid.toString()),
  uuidParam(within?.id),
  integerParam(size.events),
  integerParam(size.bytes),
]

/** A row from `readFeed`, which may have no event. */
interface FeedRow {
  /** Null if an epoch has to begin. */
  readonly current_epoch: number | null
  readonly epoch: number
  readonly identity: string
  /** Null if the epoch is not over. */
  readonly next_epoch: number | null
  readonly next_identity: string | null
  readonly snapshot: string
  readonly read_at: Date
  readonly found: number
  readonly used: string | null
  readonly xid: string | null
  readonly id: string
  readonly project_id: string
  readonly type: string
  readonly at: Date
  readonly body: string
}

/** Converts a row that has an event. */
const toEvent = (row: Omit<LatestRow, "found">): Event => ({
  id: EventId(row.id),
  projectId: ProjectId(row.project_id),
  type: EventType(row.type),
  at: Number(row.at),
  body: row.body,
})

// How long to wait for transactions that are in the way of an epoch, or for another process that begins it.
const untilBegun = { times: 10, schedule: Schedule.spaced("100 millis") }

const unbegun = Effect.fail(
  new StoreUnavailable({ cause: "open transactions keep an epoch of the feed from its beginning" }),
)

/**
 * Begins an epoch of the feed if the database has another history than before, with the function in the
 * migrations, which describes it. Fails if transactions are in the way for longer than a second.
 */
export const beginEpoch = <E>(
  run: (sql: string) => Effect.Effect<ReadonlyArray<{ readonly is_current: boolean }>, E>,
  schema: string,
): Effect.Effect<void, E | StoreUnavailable> =>
  run(`SELECT ${schema}.begin_epoch() AS is_current`).pipe(
    Effect.map(([row]) => row?.is_current === true),
    Effect.repeat({ ...untilBegun, until: (isCurrent) => isCurrent }),
    Effect.flatMap((isCurrent) => (isCurrent ? Effect.void : unbegun)),
  )

const beginEpochOn = (executor: Executor) =>
  beginEpoch((sql) => executor.executeApart(sql, []), executor.schema)

/** Begins an epoch of the feed at the start, if necessary. If that fails, the next reader repeats it. */
export const startEpoch = (executor: Executor): Effect.Effect<void> =>
  Effect.catchCause(beginEpochOn(executor), (cause) =>
    Effect.logWarning("An epoch of the feed cannot begin and will later", cause),
  )

// How many transactions there may be since the last one whose number is certainly not used again.
const maxUnused = 1000n

/** Returns a cursor's position, or where the feed begins. */
const placeOf = (from: FeedStart): FeedPosition | undefined =>
  from === "start" || from === "now" ? feedStart : parseFeedCursor(from)

/** The result of a read after a position. */
interface Read {
  readonly now: SeenEvents
  readonly rows: ReadonlyArray<FeedRow>
  /** The maximum number of events that was requested. */
  readonly maxEvents: number
  /** A transaction whose number is certainly not used again. */
  readonly used: bigint
  /** The epoch to continue with, if the position's epoch is over. */
  readonly nextEpoch: Epoch | undefined
}

const largest = (...values: readonly [bigint, ...ReadonlyArray<bigint>]): bigint =>
  values.reduce((one, other) => (one > other ? one : other))

/**
 * Returns what has been seen when there are no more events after a position. It does not go beyond the last
 * event: a database crash undoes transactions that no reader has seen, and their numbers are used again.
 */
const seenAfter = (
  { snapshot }: SeenEvents,
  now: SeenEvents,
  last: bigint,
  used: bigint,
): SeenEvents => ({
  at: now.at,
  snapshot: mergeSnapshot(snapshot, now.snapshot, largest(last, used, snapshot.xmax - 1n)),
})

/**
 * Makes the page from what was read after a position. If a page ended early, the next one continues with what
 * was visible then, so that pages are in commit order. Everything in a past epoch is visible. If more
 * transactions are running than fit into a cursor, the page leaves out events of the youngest, which a later
 * page has.
 */
const pageOf = (
  { base, epoch, within }: FeedPosition,
  { maxEvents, nextEpoch, now, rows, used }: Read,
): FeedPage => {
  const newest = nextEpoch === undefined ? fitsPage(now) : { at: now.at, snapshot: finalSnapshot }
  const until = within?.until ?? newest
  const prefix = cursorPrefix(epoch, base, until)
  const read = rows.flatMap((row) => (row.xid === null ? [] : [{ row, xid: BigInt(row.xid) }]))
  const shown = read.filter(({ xid }) => xid < until.snapshot.xmax)
  const events = shown.map(({ row, xid }) => ({
    ...toEvent(row),
    cursor: formatPartialCursor(prefix, xid, row.id),
  }))
  const last = events.at(-1)
  const found = rows[0]?.found ?? 0
  const isWhole = shown.length === read.length
  if (last !== undefined && isWhole && (found === maxEvents || events.length < found))
    return { events, cursor: last.cursor, isLast: false }
  if (nextEpoch !== undefined && until.snapshot.xmax === finalSnapshot.xmax) {
    const cursor = formatFeedCursor(nextEpoch, startOf(nextEpoch, now.at).base)
    return { events, cursor, isLast: false }
  }
  const seen = seenAfter(base, until, shown.at(-1)?.xid ?? within?.xid ?? 0n, used)
  return { events, cursor: formatFeedCursor(epoch, seen), isLast: within === undefined }
}

/**
 * Whether a position in the current epoch is ahead of the database: it was made before the disk was set back
 * to an earlier time, which keeps the epoch. New events could then have numbers that the position has passed.
 */
const isAhead = ({ base, within }: FeedPosition, { xmax }: Snapshot): boolean =>
  largest(base.snapshot.xmax, within?.until.snapshot.xmax ?? 0n) > xmax

const utf8 = new TextEncoder()

/** Returns the remaining size in a page, if it is not the last one and is not full. */
const restOf = ({ events, isLast }: FeedPage, size: FeedPageSize): FeedPageSize | undefined => {
  if (isLast || events.length >= size.events) return undefined
  const bytes = events.reduce((sum, { body }) => sum + utf8.encode(body).length, 0)
  return bytes < size.bytes
    ? { events: size.events - events.length, bytes: size.bytes - bytes }
    : undefined
}

/**
 * Makes the feed store.
 *
 * @param retention - how long events are kept, in milliseconds
 */
export const makePostgresFeedStore = (
  executor: Executor,
  retention: number,
): FeedStore["Service"] => {
  const statement = readFeed(executor.schema)
  let lastUsed = { identity: "", xid: 0n }
  const begin = beginEpochOn(executor)

  /**
   * Returns a transaction whose number is certainly not used again. It is recent, because pages for other
   * projects, too, continue after it.
   */
  const findUsed = Effect.fnUntraced(function* ({ identity, used }: FeedRow, now: Snapshot) {
    const known = largest(BigInt(used ?? 0), lastUsed.identity === identity ? lastUsed.xid : 0n)
    if (now.xmax - known <= maxUnused) return known
    const [row] = yield* executor.executeApart<{ readonly xid: string }>(useNumbers, [])
    lastUsed = { identity, xid: BigInt(row?.xid ?? 0) }
    return lastUsed.xid
  })

  /** Reads what comes after a position. If an epoch has to begin, it begins first. */
  const readRows = Effect.fnUntraced(function* (
    projects: Parameters<FeedHistory["read"]>[0],
    place: FeedPosition,
    size: FeedPageSize,
  ) {
    const params = readFeedParams(projects, place, size)
    const read = executor.execute<FeedRow>(statement, params, { owner: readsOf(projects[0]) })
    const isUnknown = ([row]: ReadonlyArray<FeedRow>) => row?.current_epoch === null
    const rows = yield* Effect.flatMap(read, (found) =>
      isUnknown(found) ? Effect.andThen(begin, read) : Effect.succeed(found),
    )
    return isUnknown(rows) ? yield* unbegun : rows
  })

  const readPage = Effect.fnUntraced(function* (
    projects: Parameters<FeedHistory["read"]>[0],
    from: FeedStart,
    size: FeedPageSize,
  ): Effect.fn.Return<FeedPage, Effect.Error<ReturnType<FeedHistory["read"]>>> {
    // A missing project is reported before an invalid cursor, so the project is looked up for any text.
    const place = placeOf(from)
    const limited = from === "now" || place === undefined ? { ...size, events: 0 } : size
    const rows = yield* readRows(projects, place ?? feedStart, limited)
    const [row] = rows
    if (row === undefined) return yield* new ProjectNotFound({ projectId: projects[0] })
    const epoch = { number: row.epoch, identity: row.identity }
    const now = { snapshot: parseSnapshot(row.snapshot), at: Number(row.read_at) }
    const isBeginning = from === "now" || from === "start"
    const isOver = row.next_epoch !== null
    const isKnown =
      place?.epoch.identity === epoch.identity &&
      (isOver || (epoch.number === row.current_epoch && !isAhead(place, now.snapshot)))
    if (place === undefined || (!isBeginning && (!isKnown || now.at - place.base.at > retention))) {
      return yield* new CursorExpired()
    }
    const page = pageOf(isBeginning ? startOf(epoch, now.at) : place, {
      now,
      rows,
      maxEvents: size.events,
      used: isOver ? 0n : yield* findUsed(row, now.snapshot),
      nextEpoch: isOver ? { number: row.next_epoch, identity: row.next_identity ?? "" } : undefined,
    })
    const rest = restOf(page, size)
    if (rest === undefined || row.found > page.events.length) return page
    // This page ends what was visible when the pages began, or an epoch. What comes after fills it.
    const next = yield* readPage(projects, page.cursor, rest)
    return { ...next, events: [...page.events, ...next.events] }
  })

  const latest = readLatest(executor.schema)

  return {
    read: readPage,
    latest: Effect.fnUntraced(function* (projectId, before, size) {
      const rows = yield* executor.execute<LatestRow>(
        latest,
        [
          textParam(projectId),
          uuidParam(before),
          // One more shows whether there are others.
          integerParam(size.events + 1),
          integerParam(size.bytes),
        ],
        { owner: readsOf(projectId) },
      )
      const [first] = rows
      if (first === undefined) return yield* new ProjectNotFound({ projectId })
      const events = first.found === null ? [] : rows.slice(0, size.events).map(toEvent)
      return { events, isLast: events.length === (first.found ?? 0) }
    }),
  }
}
