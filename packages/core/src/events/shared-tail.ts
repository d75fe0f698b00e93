/** New events: one reader for all followers in the process, and subscriptions to what it finds. */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { ErrorReporter, makeOutageReporter } from "../base/faults.ts"
import { sleepPoll } from "../base/time.ts"
import { type ProjectId, invariant } from "../base/values.ts"
import type {
  FeedCursor,
  FeedEvent,
  FeedHistory,
  FeedPage,
  FeedPageSize,
  FeedStart,
  FeedStore,
} from "./feed-store.ts"

/** A project's new events, oldest first, and the position after them. */
export interface EventBatch {
  readonly events: ReadonlyArray<FeedEvent>
  readonly cursor: FeedCursor
}

// How many batches wait for a slow follower.
const maxBatches = 16

const none: ReadonlyArray<EventBatch> = []

/** A subscription to a project. While idle, it is just this object, because there may be thousands. */
export class Subscription {
  readonly projectId: ProjectId
  private readonly all: Set<Subscription>
  private beginning: Latch.Latch | undefined = Latch.makeUnsafe()
  private batches = none
  private wake: (() => void) | undefined

  /** @param all - the project's open subscriptions, now including this one */
  constructor(projectId: ProjectId, all: Set<Subscription>) {
    this.projectId = projectId
    this.all = all
    all.add(this)
  }

  /** Whether a read had the project, and all events until then. */
  get hasBegun(): boolean {
    return this.beginning === undefined
  }

  /**
   * Waits until the subscription has begun or ended. Events invisible to a read started afterwards
   * arrive in a batch. Some visible ones may too, but none visible to a read before the subscription.
   */
  get begun(): Effect.Effect<void> {
    return (this.beginning ?? open).await
  }

  /** Whether no more batches come: too many have waited, or the feed cannot go on, or it was stopped. */
  get hasEnded(): boolean {
    return !this.all.has(this)
  }

  /** Takes the next batch, if there is one. */
  take(): EventBatch | undefined {
    const [batch] = this.batches
    if (batch !== undefined) this.batches = this.batches.length === 1 ? none : this.batches.slice(1)
    return batch
  }

  /**
   * Calls a function once, when there is a batch or the subscription ends. Replaces the previous
   * function.
   */
  whenReady(wake: () => void): void {
    if (this.hasEnded || this.batches.length > 0) wake()
    else this.wake = wake
  }

  begin(): void {
    this.beginning?.openUnsafe()
    this.beginning = undefined
  }

  /** Adds a batch. If too many wait, the watch ends. */
  offer(batch: EventBatch): void {
    if (this.hasEnded) return
    if (this.batches.length === maxBatches) return this.end()
    this.batches = [...this.batches, batch]
    this.call()
  }

  /** Ends the subscription and drops waiting batches. */
  end(): void {
    this.stop()
    this.call()
  }

  /** Ends the subscription after its follower has stopped waiting. */
  stop(): void {
    this.all.delete(this)
    this.batches = none
    this.begin()
  }

  private call(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }
}

const open = Latch.makeUnsafe(true)

/** Reads new events. */
export interface SharedTail {
  /** Watches a project until the watch is stopped. */
  readonly watch: (projectId: ProjectId) => Subscription
}

const pageSize: FeedPageSize = { events: 500, bytes: 262_144 }

// A follower's maximum buffer. A single event may be longer.
const maxBatchBytes = 65_536

// The pause before the next read, unless this process reports an event. While events come it depends on how many a
// read has found: few are to arrive soon, and many are to be read together.
const shortestPauseMillis = 8
const pauseMillisPerEvent = 1
const longestBusyPauseMillis = 25
const longestPauseMillis = 250

// The pause after a read with a defect.
const retryPause = "1 second"

const pauseAfter = (events: number): number =>
  Math.min(shortestPauseMillis + pauseMillisPerEvent * events, longestBusyPauseMillis)

/** Splits a project's new events into batches. */
const batchesOf = (
  events: ReadonlyArray<FeedEvent>,
  cursor: EventBatch["cursor"],
): ReadonlyArray<EventBatch> => {
  const batches: Array<EventBatch> = []
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

/** Splits new events into batches by project. */
const batchesByProject = (events: ReadonlyArray<FeedEvent>, cursor: EventBatch["cursor"]) => {
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
const makeSharedTail = Effect.fnUntraced(function* (
  history: FeedHistory,
  published: Effect.Effect<void>,
): Effect.fn.Return<SharedTail, never, Scope.Scope> {
  const watches = new Map<ProjectId, Set<Subscription>>()
  // Those that have not begun.
  const joining = new Set<Subscription>()
  const joined = yield* Latch.make()
  const reading = makeOutageReporter(yield* ErrorReporter, "New events cannot be read")
  let from: FeedStart = "now"
  let pauseMillis = shortestPauseMillis

  const hand = ({ cursor, events }: FeedPage): void => {
    reading.succeeded()
    from = cursor
    pauseMillis = events.length > 0 ? pauseAfter(events.length) : pauseMillis * 2
    for (const [projectId, batches] of batchesByProject(events, cursor)) {
      for (const watch of watches.get(projectId) ?? []) {
        if (watch.hasBegun) for (const batch of batches) watch.offer(batch)
      }
    }
  }

  /** Returns the projects that somebody watches. */
  const watched = (): ReadonlyArray<ProjectId> => {
    for (const [projectId, own] of watches) if (own.size === 0) watches.delete(projectId)
    return [...watches.keys()]
  }

  /** Returns the subscriptions that have not begun. Those that have ended count as begun. */
  const waiting = (): ReadonlyArray<Subscription> => {
    for (const watch of joining) if (watch.hasBegun) joining.delete(watch)
    return [...joining]
  }

  const endAll = (): void => {
    for (const own of watches.values()) for (const watch of own) watch.end()
  }

  /** Reads new events, or finds the starting position. Returns whether that is all. */
  const read = Effect.suspend(() => {
    const asked = waiting()
    const projects = watched()
    if (!isSome(projects)) return Effect.succeed(true)
    return Effect.match(history.read(projects, from, pageSize), {
      onSuccess: (page) => {
        // The next read follows at once, and would return the same page forever.
        invariant(
          page.isLast || page.cursor !== from,
          "a page ended where it began, but was not the last",
        )
        // New subscribers have read beyond this page's start: some of its events would arrive twice.
        hand(page)
        if (page.isLast) for (const watch of asked) watch.begin()
        return page.isLast
      },
      onFailure: ({ _tag }) => {
        // The store may answer again. In all other cases, each follower is to find out for itself.
        if (_tag !== "StoreUnavailable") endAll()
        return true
      },
    })
  })

  const step = Effect.gen(function* () {
    if (watched().length === 0) {
      yield* joined.await
      // Nobody needs the events in between.
      from = "now"
      pauseMillis = shortestPauseMillis
    }
    yield* joined.close
    const isAll = yield* read
    const pause = sleepPoll(Math.min(pauseMillis, longestPauseMillis))
    if (isAll) yield* Effect.raceAllFirst([pause, published, joined.await])
  })

  // The position stays, so subscribers miss nothing when the store works again.
  const next = Effect.catchCause(step, (cause) =>
    Effect.andThen(reading.failed(cause), Effect.sleep(retryPause)),
  )

  yield* Effect.forkScoped(Effect.forever(next))

  return {
    watch: (projectId) => {
      const own = watches.get(projectId) ?? new Set()
      watches.set(projectId, own)
      const watch = new Subscription(projectId, own)
      joining.add(watch)
      joined.openUnsafe()
      return watch
    },
  }
})

/** Makes a tail of each history, so that one that does not answer delays no other. */
export const tailOf = Effect.fnUntraced(function* (
  store: FeedStore["Service"],
  published: Effect.Effect<void>,
): Effect.fn.Return<SharedTail, never, Scope.Scope> {
  const { histories } = store
  if (histories === undefined) return yield* makeSharedTail(store, published)
  const tails = new Map<FeedHistory, SharedTail>()
  for (const history of histories.all) {
    tails.set(history, yield* makeSharedTail(history, published))
  }
  return {
    watch: (projectId) => {
      const tail = tails.get(histories.of(projectId))
      invariant(tail !== undefined, "nobody reads the history of a project")
      return tail.watch(projectId)
    },
  }
})
