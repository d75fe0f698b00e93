/**
 * The feed: subscriptions to new events, one reader for all followers in the process, and the service.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter, makeOutageReporter } from "../base/faults.ts"
import { checkNames, makeNameChecks } from "../base/field-names.ts"
import { readingMethod } from "../base/host-method.ts"
import { invariant } from "../base/invariant.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { sleepPoll } from "../base/time.ts"
import { type ProjectId, type ProjectNotFound, copyOwn } from "../base/values.ts"
import { type EventId, Hooks } from "./event.ts"
import {
  type CursorExpired,
  type FeedCursor,
  type FeedEvent,
  type FeedHistory,
  type FeedPage,
  type FeedPageSize,
  type FeedStart,
  FeedStore,
  type LatestEvents,
} from "./feed-store.ts"
import { feedNames, feedPage, feedQuery, latestPage, maxEvents } from "./inputs.ts"

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
interface SharedTail {
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
          "a page of the feed ended where it began, but was not the last",
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

/** The events to read. */
export interface FollowRequest extends Decoded<typeof feedQuery> {}

/** Why a step from page to page fails. */
export type FollowFailure = ProjectNotFound | CursorExpired | StoreUnavailable

/** The reader shared by all followers. */
export interface PageSource {
  readonly tail: SharedTail
  /** Reads a page, limited by a follower's buffer. */
  readonly read: (asked: FollowRequest) => Effect.Effect<FeedPage, FollowFailure>
  /** Waits until the feed is closing. */
  readonly closing: Effect.Effect<void>
}

/** Removes events with other types. */
const filterTypes = (page: FeedPage, types: FollowRequest["types"]): FeedPage =>
  types === undefined
    ? page
    : { ...page, events: page.events.filter(({ type }) => types.includes(type)) }

const noIds: ReadonlySet<EventId> = new Set()

const idsOf = ({ events }: FeedPage): ReadonlySet<EventId> =>
  events.length === 0 ? noIds : new Set(events.map(({ id }) => id))

/** Returns consecutive pages of about 64 KiB at most. The creator must stop it. */
export class Follower {
  private readonly source: PageSource
  private asked: FollowRequest
  private watch: Subscription | undefined
  /** Events read since the subscription began: they may also arrive in a batch. */
  private known = noIds

  constructor(source: PageSource, asked: FollowRequest) {
    this.source = source
    this.asked = asked
  }

  /** Returns the next stored events, possibly none, and the position after them. Call it first. */
  get stored(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.map(this.read, (page) => this.reach(page))
  }

  /**
   * Returns the next events, at least one, and the position after them; `undefined` if there are none
   * yet. Can be called again after a failure.
   */
  ready(): Effect.Effect<FeedPage | undefined, FollowFailure> {
    return Effect.suspend(() => {
      const page = this.take()
      if (page !== undefined || this.watch !== undefined) return Effect.succeed(page)
      return Effect.flatMap(this.catchUp, (found) =>
        this.reach(found).events.length > 0 ? Effect.succeed(found) : this.ready(),
      )
    })
  }

  /** Calls a function once, when there may be events. Replaces the previous function. */
  whenReady(wake: () => void): void {
    if (this.watch === undefined) wake()
    else this.watch.whenReady(wake)
  }

  /** Waits for the next events. */
  page(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.flatMap(this.ready(), (page) =>
      page === undefined ? Effect.flatMap(this.waiting, () => this.page()) : Effect.succeed(page),
    )
  }

  /** Waits for the next page, or returns none if the feed is closing. */
  get next(): Effect.Effect<Option.Option<FeedPage>, FollowFailure> {
    return Effect.raceFirst(
      Effect.asSome(this.page()),
      Effect.as(this.source.closing, Option.none()),
    )
  }

  /** Ends the watch, if there is one. */
  stop(): void {
    this.watch?.stop()
    this.watch = undefined
  }

  private get waiting(): Effect.Effect<void> {
    return Effect.callback((resume) => this.whenReady(() => resume(Effect.void)))
  }

  private get read(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.suspend(() => this.source.read(this.asked))
  }

  private reach(page: FeedPage): FeedPage {
    this.asked = { ...this.asked, after: page.cursor }
    return page
  }

  /**
   * Takes batches up to the first with something new. Earlier batches' positions may precede the
   * current one.
   */
  private take(): FeedPage | undefined {
    for (let batch = this.watch?.take(); batch !== undefined; batch = this.watch?.take()) {
      const page = this.pageOf(batch)
      if (page.events.length > 0) return this.reach(page)
    }
    if (this.watch?.hasEnded === true) this.stop()
    return undefined
  }

  private pageOf({ cursor, events }: EventBatch): FeedPage {
    const unknown = this.known.size === 0 ? events : events.filter(({ id }) => !this.known.has(id))
    return filterTypes({ events: unknown, cursor, isLast: true }, this.asked.types)
  }

  /** Reads stored events. At their end, subscribes. */
  private get catchUp(): Effect.Effect<FeedPage, FollowFailure> {
    return Effect.flatMap(this.read, (page) =>
      page.events.length > 0 || !page.isLast
        ? Effect.succeed(page)
        : Effect.onError(
            Effect.suspend(() => this.watchFrom(page)),
            () => Effect.sync(() => this.stop()),
          ),
    )
  }

  /** Subscribes. Without a second read, earlier events would be missed. */
  private watchFrom(page: FeedPage): Effect.Effect<FeedPage, FollowFailure> {
    invariant(this.watch === undefined, "a follower subscribed twice")
    this.reach(page)
    const watch = this.source.tail.watch(this.asked.projectId)
    this.watch = watch
    return Effect.map(Effect.andThen(watch.begun, this.read), (rest) => {
      this.known = idsOf(rest)
      if (!rest.isLast) this.stop()
      return rest
    })
  }
}

/** Waits until a signal aborts. Without a signal, waits forever. */
export const aborted = (signal: AbortSignal | undefined): Effect.Effect<void> =>
  signal === undefined
    ? Effect.never
    : Effect.callback((resume) => {
        const abort = () => resume(Effect.void)
        if (signal.aborted) return abort()
        signal.addEventListener("abort", abort, { once: true })
        return Effect.sync(() => signal.removeEventListener("abort", abort))
      })

/** The events to read. */
export interface FeedQuery extends HostInputOf<typeof feedQuery> {}

/** The page to read. */
export interface FeedPageQuery extends HostInputOf<typeof feedPage> {
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined
}

/** The latest events to read. */
export interface LatestEventsQuery extends HostInputOf<typeof latestPage> {}

/** Why events cannot be read. */
export type FeedFailure = InvalidInput | FollowFailure

const checks = makeNameChecks(feedNames)

/** Fails if a field of a method is named wrong that is not one of the service. */
export const checkFeedFields = (
  method: "consume" | "stream",
  given: object,
): Effect.Effect<void, InvalidInput> =>
  Effect.suspend(() => {
    const fault = checks[method]?.([given])
    return fault === undefined ? Effect.void : Effect.fail(fault)
  })

const maxPageBytes = 1_048_576

// A follower's maximum buffer.
const maxFollowedBytes = 65_536

// How many pages to read without an event of the requested types. The caller may continue from there.
const maxEmpty = 10

/**
 * Reads the events of projects in an order in which none is skipped, and none comes twice.
 *
 * Every method fails with `InvalidInput` if an argument is invalid, with `ProjectNotFound`, with
 * `CursorExpired` if the feed cannot go on from the cursor without a gap, and with `StoreUnavailable`
 * if the store does not answer.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Feed } from "tenure/effect"
 *
 * const page = Effect.flatMap(Feed, (feed) => feed.read({ projectId: "p1", after: "start" }))
 * ```
 */
export class Feed extends Context.Service<
  Feed,
  {
    /**
     * Reads the next events, and the place after them. A page may have fewer events than there are, even
     * none if only some types were asked for: `isLast` tells.
     */
    readonly read: (query: FeedPageQuery) => Effect.Effect<FeedPage, FeedFailure>

    /** Reads the latest events, newest first, for a list. */
    readonly latest: (
      query: LatestEventsQuery,
    ) => Effect.Effect<LatestEvents, InvalidInput | ProjectNotFound | StoreUnavailable>

    /** Follows the feed, from a place on, until the scope is closed. */
    readonly follow: (query: FeedQuery) => Effect.Effect<Follower, InvalidInput, Scope.Scope>

    /** Makes what follows the feed without a scope: whoever calls this stops it. */
    readonly follower: (query: FeedQuery) => Effect.Effect<Follower, InvalidInput>

    /** Ends all waiting for events, from now on, so that the process can end. */
    readonly release: Effect.Effect<void>

    /** Waits until waiting ends. */
    readonly closing: Effect.Effect<void>
  }
>()("@tenure/core/Feed") {
  static readonly layer: Layer.Layer<Feed, never, FeedStore> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

/** Cuts a page that has more events than were asked for. */
const cut = (page: FeedPage, limit: number): FeedPage => {
  const last = page.events[limit - 1]
  return page.events.length > limit && last !== undefined
    ? { events: page.events.slice(0, limit), cursor: last.cursor, isLast: false }
    : page
}

/** Makes a tail of each history, so that one that does not answer delays no other. */
const tailOf = Effect.fnUntraced(function* (
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
      invariant(tail !== undefined, "a project's events are in a history that nobody reads")
      return tail.watch(projectId)
    },
  }
})

const make = Effect.gen(function* () {
  const store = yield* FeedStore
  const hooks = yield* Hooks
  const tail = yield* tailOf(store, hooks.published)
  const released = yield* Latch.make()

  /** Reads a page of the types asked for. */
  const readPage = Effect.fnUntraced(function* (
    { after, projectId, types }: FollowRequest,
    limit: number,
    bytes = maxPageBytes,
  ) {
    const size = { events: types === undefined ? limit : maxEvents, bytes }
    let page = filterTypes(yield* store.read([projectId], after, size), types)
    for (let count = 1; page.events.length === 0 && !page.isLast && count < maxEmpty; count++) {
      page = filterTypes(yield* store.read([projectId], page.cursor, size), types)
    }
    return cut(page, limit)
  })

  const source: PageSource = {
    tail,
    read: (asked) => readPage(asked, maxEvents, maxFollowedBytes),
    closing: released.await,
  }

  const follower = readingMethod(feedQuery, (asked) =>
    Effect.sync(() => new Follower(source, asked)),
  )

  const readNext = Effect.fnUntraced(function* (
    { limit, waitMillis, ...asked }: Decoded<typeof feedPage>,
    signal: AbortSignal | undefined,
  ) {
    const page = yield* readPage(asked, limit)
    if (waitMillis === 0 || page.events.length > 0 || !page.isLast) return page
    const waiting = new Follower(source, { ...asked, after: page.cursor })
    const later = yield* Effect.raceFirst(
      waiting.next,
      Effect.as(aborted(signal), Option.none()),
    ).pipe(Effect.timeoutOption(waitMillis), Effect.ensuring(Effect.sync(() => waiting.stop())))
    return Option.match(Option.flatten(later), {
      onNone: () => page,
      onSome: (next) => cut(next, limit),
    })
  })

  return checkNames<Feed["Service"]>(feedNames, {
    read: (query) =>
      Effect.suspend(() => {
        const own = copyOwn(query)
        return Effect.flatMap(Effect.fromResult(feedPage.fromHost(own)), (asked) =>
          readNext(asked, own.signal),
        )
      }),

    latest: readingMethod(latestPage, ({ before, limit, projectId }) =>
      store.latest(projectId, before, { events: limit, bytes: maxPageBytes }),
    ),

    follow: (query) =>
      Effect.acquireRelease(follower(query), (made) => Effect.sync(() => made.stop())),

    follower,

    release: Effect.asVoid(released.open),
    closing: released.await,
  })
})
