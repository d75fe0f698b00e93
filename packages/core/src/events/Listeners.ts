/** Connections that follow the feed until they end: who may open one, what it gets, and when it ends. */

import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Moment from "../base/Moment.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import { type Failure, Feed, type Follower, type Query, type StepFailure } from "./Feed.ts"
import type { Cursor, FeedEvent, FeedPage } from "./FeedStore.ts"
import * as Mailbox from "./Mailbox.ts"
import * as Seats from "./Seats.ts"

/**
 * Why a listener ends: its time is up and it should come again (`"over"`), Tenure is closing (`"closing"`),
 * it may not listen any more or the project is gone (`"refused"`), the feed cannot go on from its cursor
 * without a gap (`"reset"`), or its transport has closed it (`"closed"`).
 */
export type EndReason = "over" | "closing" | "refused" | "reset" | "closed"

/** What a listener gets. */
export type Message =
  /** Events of about 64 KiB at most, maybe none, and the place after them. */
  | {
      readonly _tag: "Events"
      readonly events: ReadonlyArray<FeedEvent>
      readonly cursor: Cursor
    }
  /** Nothing has come for 10 to 15 seconds. */
  | { readonly _tag: "Heartbeat" }
  | { readonly _tag: "End"; readonly reason: EndReason }

/** A listener to open. */
export interface Opening extends Query {
  /** Whose seats it takes, such as the id of an API key. */
  readonly client: string
  /** Tells whether the client may still follow the project. Asked every few seconds. */
  readonly isAllowed: Effect.Effect<boolean>
}

/** A connection that follows the feed. */
export interface Listener {
  /**
   * Waits for the next message. The first one has the place where the listener starts. After an end, all
   * messages are that end. Nothing is read for a listener that is not asked for a message. Interrupting
   * this may lose a message: close the listener instead.
   */
  readonly next: Effect.Effect<Message>
  /** Ends it, and gives back its seat. Call this as soon as the connection is gone. */
  readonly close: Effect.Effect<void>
}

/** All seats are taken: those of the client, of the project or of the process. */
export class NoSeat extends Data.TaggedError("NoSeat") {}

/**
 * Opens listeners.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Listeners } from "tenure/Listeners"
 *
 * const program = Effect.gen(function* () {
 *   const listeners = yield* Listeners
 *   const isAllowed = Effect.succeed(true)
 *   const listener = yield* listeners.open({ client: "me", projectId: "p1", isAllowed })
 *   return yield* Effect.ensuring(listener.next, listener.close)
 * })
 * ```
 */
export class Listeners extends Context.Service<
  Listeners,
  {
    /** Takes a seat until the scope is closed, for a client that waits for a page. Fails with `NoSeat`. */
    readonly seat: (client: string, project: string) => Effect.Effect<void, NoSeat, Scope.Scope>

    /**
     * Opens a listener. Whoever opens one closes it. Fails with `NoSeat`, and with what a read of the
     * feed fails with.
     */
    readonly open: (opening: Opening) => Effect.Effect<Listener, NoSeat | Failure>
  }
>()("@tenure/core/Listeners") {
  static readonly layer: Layer.Layer<Listeners, never, Feed> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

// Ten minutes, a fifth more or less, so that those who came together do not come again together.
const shortestLifeMillis = 480_000
const longestLifeMillis = 720_000

// How often listeners are checked. An API key may be known for four seconds by then, and one that is
// revoked is to end its listeners within ten.
const checkPause = "5 seconds"

// At how many checks nothing has come until a heartbeat: after 15 seconds at the latest.
const silentChecks = 3

// How long a host may take to tell whether a client may still listen.
const answerTimeout = "5 seconds"

// How many checks are under way at a time.
const concurrency = 64

// How long a listener that has ended keeps its seat if its transport does not close it.
const farewellMillis = 60_000

// How long to wait before the store is asked again.
const retryPause = "1 second"

const reasonOf = ({
  _tag,
}: Exclude<StepFailure, { readonly _tag: "StoreUnavailable" }>): EndReason =>
  _tag === "CursorExpired" ? "reset" : "refused"

const eventsOf = ({ cursor, events }: FeedPage): Message => ({ _tag: "Events", events, cursor })

const endFor = (reason: EndReason): Message => ({ _tag: "End", reason })

/** Waits for the next events, or the end. While the store does not answer, it is asked again and again. */
const messageOf = (follower: Follower): Effect.Effect<Message> =>
  Effect.matchEffect(follower.page, {
    onSuccess: (page) => Effect.succeed(eventsOf(page)),
    onFailure: (failure) =>
      failure._tag === "StoreUnavailable"
        ? Effect.andThen(Effect.sleep(retryPause), messageOf(follower))
        : Effect.succeed(endFor(reasonOf(failure))),
  })

/** A listener as it is checked. */
interface Open {
  readonly projectId: string
  readonly isAllowed: Effect.Effect<boolean>
  /** The tick at which its time is up. */
  readonly until: number
  readonly mailbox: Mailbox.Mailbox<Message>
  /** At how many checks it has been waiting for the same message. */
  silent: number
  readonly close: Effect.Effect<void>
}

const end = ({ mailbox }: Open, reason: EndReason): void => mailbox.end(endFor(reason))

/** Ends a listener whose time is up, and has one that waits for long get a heartbeat. */
const checkTime = (listener: Open, now: number): void => {
  if (now >= listener.until) end(listener, "over")
  if (listener.mailbox.isIdle() || ++listener.silent < silentChecks) return
  listener.silent = 0
  listener.mailbox.put({ _tag: "Heartbeat" })
}

/** Ends a listener whose client may not listen any more. */
const checkClient = (listener: Open): Effect.Effect<void> =>
  Effect.map(Effect.timeoutOption(listener.isAllowed, answerTimeout), (answer) => {
    if (Option.isSome(answer) && !answer.value) end(listener, "refused")
  })

const make = Effect.gen(function* () {
  const feed = yield* Feed
  const seats = Seats.make(Seats.most)
  const open = new Set<Open>()
  const someOpen = yield* Latch.make()
  const someDeleted = yield* Latch.make()
  const deletions = yield* ProjectDeletions
  deletions.listen(() => someDeleted.openUnsafe())

  const seat = (client: string, project: string) =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          const giveBack = seats.take(client, project)
          return giveBack === undefined ? Effect.fail(new NoSeat()) : Effect.succeed(giveBack)
        }),
        (giveBack) => Effect.sync(giveBack),
      ),
    )

  /** Has the sweep check a listener until the scope is closed. */
  const watch = (listener: Open) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        open.add(listener)
        someOpen.openUnsafe()
      }),
      () =>
        Effect.sync(() => {
          open.delete(listener)
          if (open.size === 0) someOpen.closeUnsafe()
        }),
    )

  /** Ends the listeners of a project that does not exist any more. */
  const checkProject = (projectId: string, listeners: ReadonlyArray<Open>) =>
    feed.read({ projectId, limit: 1 }).pipe(
      Effect.catchTag("ProjectNotFound", () =>
        Effect.sync(() => {
          for (const one of listeners) if (one.projectId === projectId) end(one, "refused")
        }),
      ),
      // A store that does not answer ends nothing.
      Effect.ignore,
    )

  const check = Effect.gen(function* () {
    const listeners = [...open]
    const { tick } = yield* Moment.now
    for (const listener of listeners) checkTime(listener, tick)
    const left = listeners.filter(({ until }) => tick >= until + farewellMillis)
    const projects = new Set(listeners.map(({ projectId }) => projectId))
    const options = { concurrency, discard: true } as const
    yield* Effect.forEach(left, ({ close }) => close, options)
    yield* Effect.forEach(projects, (id) => checkProject(id, listeners), options)
    yield* Effect.forEach(listeners, checkClient, options)
  })

  const checkNext = Effect.gen(function* () {
    yield* someOpen.await
    yield* Effect.raceFirst(Effect.sleep(checkPause), someDeleted.await)
    yield* someDeleted.close
    yield* check
  })

  yield* Effect.forkScoped(Effect.forever(checkNext))

  let isClosing = false
  yield* Effect.forkScoped(
    Effect.map(feed.closing, () => {
      isClosing = true
      for (const listener of open) end(listener, "closing")
    }),
  )

  const begin = Effect.fnUntraced(function* (
    { client, isAllowed, ...query }: Opening,
    scope: Scope.Closeable,
  ): Effect.fn.Return<Listener, NoSeat | Failure, Scope.Scope> {
    yield* seat(client, query.projectId)
    const follower = yield* feed.follow(query)
    const mailbox = Mailbox.make<Message>()
    mailbox.put(eventsOf(yield* follower.stored))
    const lifeMillis = yield* Random.nextBetween(shortestLifeMillis, longestLifeMillis)
    const listener: Open = {
      projectId: query.projectId,
      isAllowed,
      until: (yield* Moment.now).tick + lifeMillis,
      mailbox,
      silent: 0,
      close: Effect.suspend(() => {
        end(listener, "closed")
        return Scope.close(scope, Exit.void)
      }),
    }
    yield* watch(listener)
    if (isClosing) end(listener, "closing")

    // The first message is there.
    let isReading = true
    const read = Effect.map(messageOf(follower), (message) => {
      listener.silent = 0
      if (message._tag === "End") mailbox.end(message)
      else mailbox.put(message)
    })
    /** Reads ahead no further than the next message. What is being read goes on during heartbeats. */
    const readNext = Effect.suspend(() => {
      if (isReading) return Effect.void
      isReading = true
      return Effect.asVoid(Effect.forkIn(read, scope, { startImmediately: true }))
    })

    const next = Effect.andThen(
      readNext,
      Effect.map(mailbox.take, (message) => {
        if (message._tag === "Events") isReading = false
        return message
      }),
    )
    return { next, close: listener.close }
  })

  return Listeners.of({
    seat,
    open: (opening) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend(() => {
          const scope = Scope.makeUnsafe()
          return Effect.onError(Scope.provide(restore(begin(opening, scope)), scope), (cause) =>
            Scope.close(scope, Exit.failCause(cause)),
          )
        }),
      ),
  })
})
