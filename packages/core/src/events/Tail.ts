/** Reads new events once for everybody in the process who follows the feed of a history. */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { Faults } from "../base/Faults.ts"
import * as Outage from "../base/Outage.ts"
import type { ProjectId } from "../base/Project.ts"
import type { FeedEvent, FeedPage, From, History, PageSize } from "./FeedStore.ts"
import { type Batch, Watch } from "./Watch.ts"

/** Reads new events. */
export interface Tail {
  /** Watches a project until the watch is stopped. */
  readonly watch: (projectId: ProjectId) => Watch
}

const pageSize: PageSize = { events: 500, bytes: 262_144 }

// What a follower may hold at a time. One event may be longer.
const maxBatchBytes = 65_536

// How long to wait for the next read if nothing in this process tells of an event.
const shortestPauseMillis = 25
const longestPauseMillis = 250

// How long to wait after a read that ended in a defect.
const retryPause = "1 second"

/** Makes batches of the new events of a project. */
const batchesOf = (
  events: ReadonlyArray<FeedEvent>,
  cursor: Batch["cursor"],
): ReadonlyArray<Batch> => {
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
const batchesByProject = (events: ReadonlyArray<FeedEvent>, cursor: Batch["cursor"]) => {
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
  history: History,
  published: Effect.Effect<void>,
): Effect.fn.Return<Tail, never, Scope.Scope> {
  const watches = new Set<Watch>()
  const joined = yield* Latch.make()
  const reading = Outage.make(yield* Faults, "New events cannot be read")
  let from: From = "now"
  let pauseMillis = shortestPauseMillis

  const hand = ({ cursor, events }: FeedPage): void => {
    reading.succeeded()
    from = cursor
    pauseMillis = events.length > 0 ? shortestPauseMillis : pauseMillis * 2
    const batches = batchesByProject(events, cursor)
    for (const watch of watches) {
      if (watch.hasBegun) for (const batch of batches.get(watch.projectId) ?? []) watch.offer(batch)
    }
  }

  /** Reads what has come since the last read, or finds the place to begin. Returns whether that is all. */
  const read = Effect.suspend(() => {
    const asked = [...watches]
    const projects = [...new Set(asked.map(({ projectId }) => projectId))]
    if (!isSome(projects)) return Effect.succeed(true)
    return Effect.match(history.read(projects, from, pageSize), {
      onSuccess: (page) => {
        // Who joins has read beyond the place of this page, so some of its events would come twice.
        hand(page)
        if (page.isLast) for (const watch of asked) watch.begin()
        return page.isLast
      },
      onFailure: ({ _tag }) => {
        // The store may answer again. In all other cases, each follower is to find out for itself.
        if (_tag !== "StoreUnavailable") for (const watch of watches) watch.end()
        return true
      },
    })
  })

  const step = Effect.gen(function* () {
    if (watches.size === 0) {
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

  // The place stays, so those who watch miss nothing when the store works again.
  const next = Effect.catchCause(step, (cause) =>
    Effect.andThen(reading.failed(cause), Effect.sleep(retryPause)),
  )

  yield* Effect.forkScoped(Effect.forever(next))

  return {
    watch: (projectId) => {
      const watch = new Watch(projectId, watches)
      joined.openUnsafe()
      return watch
    },
  }
})
