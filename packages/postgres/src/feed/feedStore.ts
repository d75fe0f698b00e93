/** The feed on PostgreSQL. */

import {
  CursorExpired,
  type FeedPage,
  type FeedStore,
  type From,
  type History,
  type PageSize,
} from "@tenure/core/FeedStore"
import { ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import * as Place from "./Place.ts"
import { type FeedRow, readFeed, readFeedParams, toEvent, useNumbers } from "./readFeed.sql.ts"
import * as Snapshot from "./Snapshot.ts"

// How many transactions may have been used since the last one whose number is certainly not used again.
const mostUnused = 1000n

/** Returns the place of a cursor, or where the feed begins. */
const placeOf = (from: From): Place.Place | undefined =>
  from === "start" || from === "now" ? Place.start("", 0) : Place.parse(from)

/** What was read after a place. */
interface Read {
  readonly now: Place.Seen
  readonly rows: ReadonlyArray<FeedRow>
  /** The most events that were asked for. */
  readonly most: number
  /** A transaction whose number is certainly not used again. */
  readonly used: bigint
}

const largest = (...values: readonly [bigint, ...ReadonlyArray<bigint>]): bigint =>
  values.reduce((one, other) => (one > other ? one : other))

/**
 * Returns what has been seen when no more events are after a place. It does not go beyond the last event:
 * a crash of the database undoes transactions that nobody has seen, and their numbers are used again.
 */
const seenAfter = (
  { snapshot }: Place.Seen,
  now: Place.Seen,
  last: bigint,
  used: bigint,
): Place.Seen => ({
  at: now.at,
  snapshot: Snapshot.advance(snapshot, now.snapshot, largest(last, used, snapshot.xmax - 1n)),
})

/**
 * Makes the page of what was read after a place. A page that ended early is continued with what was visible
 * then, so that pages are in the order of commits. While more transactions are running than a cursor can
 * hold, it leaves out events of the youngest: a later page has them.
 */
const pageOf = (
  { base, epoch, within }: Place.Place,
  { most, now, rows, used }: Read,
): FeedPage => {
  const until = within?.until ?? Place.fitting(now)
  const prefix = Place.prefixOf(epoch, base, until)
  const read = rows.flatMap((row) => (row.xid === null ? [] : [{ row, xid: BigInt(row.xid) }]))
  const shown = read.filter(({ xid }) => xid < until.snapshot.xmax)
  const events = shown.map(({ row, xid }) => ({
    ...toEvent(row),
    cursor: Place.cursorWithin(prefix, xid, row.id),
  }))
  const last = events.at(-1)
  const found = rows[0]?.found ?? 0
  const isWhole = shown.length === read.length
  return last !== undefined && isWhole && (found === most || events.length < found)
    ? { events, cursor: last.cursor, isLast: false }
    : {
        events,
        cursor: Place.cursorAfter(
          epoch,
          seenAfter(base, until, shown.at(-1)?.xid ?? within?.xid ?? 0n, used),
        ),
        isLast: within === undefined,
      }
}

/**
 * Whether a place is ahead of a database: it was made before the disk was set back to an earlier time, which leaves
 * the epoch as it was. What is stored now could have the numbers that the place has passed.
 */
const isAhead = ({ base, within }: Place.Place, { xmax }: Snapshot.Snapshot): boolean =>
  largest(base.snapshot.xmax, within?.until.snapshot.xmax ?? 0n) > xmax

const utf8 = new TextEncoder()

/** Returns the room that a page has left, if it is not the last one and has any. */
const restOf = ({ events, isLast }: FeedPage, size: PageSize): PageSize | undefined => {
  if (isLast || events.length >= size.events) return undefined
  const bytes = events.reduce((sum, { body }) => sum + utf8.encode(body).length, 0)
  return bytes < size.bytes
    ? { events: size.events - events.length, bytes: size.bytes - bytes }
    : undefined
}

/**
 * Makes the store.
 *
 * @param retention - how long events are kept, in milliseconds
 */
export const make = (executor: Executor, retention: number): FeedStore["Service"] => {
  const statement = readFeed(executor.schema)
  let lastUsed = { epoch: "", xid: 0n }

  /**
   * Returns a transaction whose number is certainly not used again. It is one of the last, because pages
   * of other projects, too, go on after it.
   */
  const findUsed = Effect.fnUntraced(function* ({ epoch, used }: FeedRow, now: Snapshot.Snapshot) {
    const known = largest(BigInt(used ?? 0), lastUsed.epoch === epoch ? lastUsed.xid : 0n)
    if (now.xmax - known <= mostUnused) return known
    const [row] = yield* executor.executeApart<{ readonly xid: string }>(useNumbers, [])
    lastUsed = { epoch, xid: BigInt(row?.xid ?? 0) }
    return lastUsed.xid
  })

  const readPage = Effect.fnUntraced(function* (
    projects: Parameters<History["read"]>[0],
    from: From,
    size: PageSize,
  ): Effect.fn.Return<FeedPage, Effect.Error<ReturnType<History["read"]>>> {
    // Whether the project exists counts before the cursor, so a text that is none is looked up as well.
    const place = placeOf(from)
    const limited = from === "now" || place === undefined ? { ...size, events: 0 } : size
    const rows = yield* executor.execute<FeedRow>(
      statement,
      readFeedParams(projects, place ?? Place.start("", 0), limited),
      { owner: readsOf(projects[0]) },
    )
    const [row] = rows
    if (row === undefined) return yield* new ProjectNotFound({ projectId: projects[0] })
    const { epoch } = row
    const now = { snapshot: Snapshot.parse(row.snapshot), at: Number(row.read_at) }
    const isBeginning = from === "now" || from === "start"
    const isKnown = place?.epoch === epoch && !isAhead(place, now.snapshot)
    if (place === undefined || (!isBeginning && (!isKnown || now.at - place.base.at > retention))) {
      return yield* new CursorExpired()
    }
    const page = pageOf(isBeginning ? Place.start(epoch, now.at) : place, {
      now,
      rows,
      most: size.events,
      used: yield* findUsed(row, now.snapshot),
    })
    const rest = restOf(page, size)
    if (rest === undefined || place.within === undefined || row.found > page.events.length) {
      return page
    }
    // What was visible when the pages began has come to its end. What has become visible since fills the page.
    const next = yield* readPage(projects, page.cursor, rest)
    return { ...next, events: [...page.events, ...next.events] }
  })

  return { read: readPage }
}
