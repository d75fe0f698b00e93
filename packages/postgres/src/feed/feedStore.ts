/** The feed on PostgreSQL. */

import { CursorExpired, type FeedPage, type FeedStore, type From } from "@tenure/core/FeedStore"
import { ProjectNotFound } from "@tenure/core/Project"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import * as Place from "./Place.ts"
import { type FeedRow, readFeed, readFeedParams, toEvent } from "./readFeed.sql.ts"
import * as Snapshot from "./Snapshot.ts"

/** Returns the place of a cursor, or where the feed begins. */
const placeOf = (from: From): Place.Place | undefined =>
  from === "start" || from === "now" ? Place.start("", 0) : Place.parse(from)

/** Makes the page of what was read after a place. */
const pageOf = (
  { base, epoch, within }: Place.Place,
  now: Place.Seen,
  rows: ReadonlyArray<FeedRow>,
  most: number,
): FeedPage => {
  const until = within === undefined ? now : within.until
  const prefix = Place.prefixOf(epoch, base, until)
  const events = rows.flatMap((row) =>
    row.xid === null
      ? []
      : [{ ...toEvent(row), cursor: Place.cursorWithin(prefix, BigInt(row.xid), row.id) }],
  )
  const last = events.at(-1)
  const found = rows[0]?.found ?? 0
  const endsEarly = last !== undefined && (found === most || events.length < found)
  return {
    events,
    cursor: endsEarly ? last.cursor : Place.cursorAfter(epoch, until),
    isLast: !endsEarly && within === undefined,
  }
}

/**
 * Makes the store.
 *
 * @param retention - how long events are kept, in milliseconds
 */
export const make = (executor: Executor, retention: number): FeedStore["Service"] => {
  const statement = readFeed(executor.schema)
  return {
    read: Effect.fnUntraced(function* (projects, from, size) {
      const place = placeOf(from)
      if (place === undefined) return yield* new CursorExpired()
      const limited = from === "now" ? { ...size, events: 0 } : size
      const rows = yield* executor.execute<FeedRow>(
        statement,
        readFeedParams(projects, place, limited),
        { owner: readsOf(projects[0]) },
      )
      const [row] = rows
      if (row === undefined) return yield* new ProjectNotFound({ projectId: projects[0] })
      const { epoch } = row
      const now = { snapshot: Snapshot.parse(row.snapshot), at: Number(row.read_at) }
      if (from === "now") {
        return { events: [], cursor: Place.cursorAfter(epoch, now), isLast: true }
      }
      if (from === "start") return pageOf(Place.start(epoch, now.at), now, rows, size.events)
      return place.epoch === epoch && now.at - place.base.at <= retention
        ? pageOf(place, now, rows, size.events)
        : yield* new CursorExpired()
    }),
  }
}
