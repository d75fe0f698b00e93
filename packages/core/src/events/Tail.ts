/** Reads new events once for everybody in the process who follows the feed. */

import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { ProjectId } from "../base/Project.ts"
import type { Cursor, FeedEvent, FeedPage, FeedStore, From, PageSize } from "./FeedStore.ts"

/** New events of one project, oldest first, and the place after them. */
export interface Batch {
  readonly events: ReadonlyArray<FeedEvent>
  readonly cursor: Cursor
}

/** What a follower watches. */
export interface Watch {
  /**
   * Waits until the watch has begun: what is not visible to a read that begins later comes in a batch. So
   * may some of what is visible to it, but nothing that was visible to a read before the watch.
   */
  readonly begun: Effect.Effect<void>
  /** The batches. If too many wait, or if the feed cannot go on, they end, without those that wait. */
  readonly batches: Queue.Dequeue<Batch, Cause.Done>
  readonly stop: () => void
}

/** Reads new events. */
export interface Tail {
  /** Watches a project until the watch is stopped. */
  readonly watch: (projectId: ProjectId) => Effect.Effect<Watch>
}

interface Watcher {
  readonly projectId: ProjectId
  readonly batches: Queue.Queue<Batch, Cause.Done>
  /** Open after the first read that had the project, and all events until then. */
  readonly admitted: Latch.Latch
}

// How many batches wait for a watcher that is slower than the events.
const mostBatches = 16

const pageSize: PageSize = { events: 500, bytes: 262_144 }

// What a follower may hold at a time. One event may be longer.
const maxBatchBytes = 65_536

// How long to wait for the next read if nothing in this process tells of an event.
const shortestPauseMillis = 25
const longestPauseMillis = 250

/** Makes batches of the new events of a project. */
const batchesOf = (events: ReadonlyArray<FeedEvent>, cursor: Cursor): ReadonlyArray<Batch> => {
  const batches: Array<Batch> = []
  let start = 0
  let bytes = 0
  for (const [index, event] of events.entries()) {
    bytes += event.body.length
    if (bytes < maxBatchBytes) continue
    batches.push({ events: events.slice(start, index + 1), cursor: event.cursor })
    start = index + 1
    bytes = 0
  }
  return start < events.length ? [...batches, { events: events.slice(start), cursor }] : batches
}

/** Makes batches of new events, by their projects. */
const batchesByProject = (events: ReadonlyArray<FeedEvent>, cursor: Cursor) => {
  const byProject = new Map<ProjectId, Array<FeedEvent>>()
  for (const event of events) {
    const own = byProject.get(event.projectId)
    if (own === undefined) byProject.set(event.projectId, [event])
    else own.push(event)
  }
  return new Map([...byProject].map(([projectId, own]) => [projectId, batchesOf(own, cursor)]))
}

const isSome = <A>(list: ReadonlyArray<A>): list is readonly [A, ...ReadonlyArray<A>] =>
  list.length > 0

/**
 * Reads for as long as the scope is open and somebody watches.
 *
 * @param published - waits until this process has stored an event
 */
export const make = Effect.fnUntraced(function* (
  store: FeedStore["Service"],
  published: Effect.Effect<void>,
): Effect.fn.Return<Tail, never, Scope.Scope> {
  const watchers = new Set<Watcher>()
  const joined = yield* Latch.make()
  let from: From = "now"
  let pauseMillis = shortestPauseMillis

  const lose = (watcher: Watcher): void => {
    watchers.delete(watcher)
    watcher.admitted.openUnsafe()
    Queue.endUnsafe(watcher.batches)
    // Whoever is too slow keeps no events from being forgotten.
    Queue.shutdownUnsafe(watcher.batches)
  }

  const hand = ({ cursor, events }: FeedPage): void => {
    from = cursor
    pauseMillis = events.length > 0 ? shortestPauseMillis : pauseMillis * 2
    const batches = batchesByProject(events, cursor)
    for (const watcher of watchers) {
      if (!watcher.admitted.isOpen()) continue
      const own = batches.get(watcher.projectId) ?? []
      if (!own.every((batch) => Queue.offerUnsafe(watcher.batches, batch))) lose(watcher)
    }
  }

  /** Reads what has come since the last read, or finds the place to begin. Returns whether that is all. */
  const read = Effect.suspend(() => {
    const asked = [...watchers]
    const projects = [...new Set(asked.map(({ projectId }) => projectId))]
    if (!isSome(projects)) return Effect.succeed(true)
    return Effect.match(store.read(projects, from, pageSize), {
      onSuccess: (page) => {
        // Who joins has read beyond the place of this page, so some of its events would come twice.
        hand(page)
        if (page.isLast) for (const { admitted } of asked) admitted.openUnsafe()
        return page.isLast
      },
      onFailure: ({ _tag }) => {
        // The store may answer again. In all other cases, each watcher is to find out for itself.
        if (_tag !== "StoreUnavailable") for (const watcher of watchers) lose(watcher)
        return true
      },
    })
  })

  const step = Effect.gen(function* () {
    if (watchers.size === 0) {
      yield* joined.await
      // Nobody needs what has come meanwhile.
      from = "now"
      pauseMillis = shortestPauseMillis
    }
    yield* joined.close
    const isAll = yield* read
    const pause = Effect.sleep(Math.min(pauseMillis, longestPauseMillis))
    if (isAll) yield* Effect.raceAllFirst([pause, published, joined.await])
  })

  yield* Effect.forkScoped(Effect.forever(step))

  return {
    watch: (projectId) =>
      Effect.gen(function* () {
        const batches = yield* Queue.dropping<Batch, Cause.Done>(mostBatches)
        const admitted = yield* Latch.make()
        const watcher: Watcher = { projectId, batches, admitted }
        watchers.add(watcher)
        yield* joined.open
        return { begun: admitted.await, batches, stop: () => lose(watcher) }
      }),
  }
})
