/** Connections that follow the feed until they end: who may open one, what it gets, and when it ends. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { Faults } from "../base/Faults.ts"
import * as Moment from "../base/Moment.ts"
import * as Outage from "../base/Outage.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import * as Step from "../base/Step.ts"
import { type Failure, Feed, type Query } from "./Feed.ts"
import type { Cursor, FeedEvent, FeedPage } from "./FeedStore.ts"
import type { Follower, StepFailure } from "./Follower.ts"
import { Mailbox } from "./Mailbox.ts"
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
  /** Calls a function with what `next` would return. */
  readonly receive: (receiver: (message: Message) => void) => void
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

/**
 * Reads the next events, or the end, if they are there. While the store does not answer, or its reads end
 * in defects, asks it again.
 */
const read = (follower: Follower, reading: Outage.Outage): Effect.Effect<Message | undefined> => {
  const again = Effect.andThen(
    Effect.sleep(retryPause),
    Effect.suspend(() => read(follower, reading)),
  )
  return follower.ready().pipe(
    Effect.matchEffect({
      onSuccess: (page) => {
        reading.succeeded()
        return Effect.succeed(page && eventsOf(page))
      },
      onFailure: (failure) =>
        failure._tag === "StoreUnavailable" ? again : Effect.succeed(endFor(reasonOf(failure))),
    }),
    Effect.catchCause((cause) => Effect.andThen(reading.failed(cause), again)),
  )
}

/** What all listeners share. */
interface Shared {
  /** Reports reads that end in defects. */
  readonly reading: Outage.Outage
  /** Runs an effect in a fiber. */
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Forgets a listener that is closed, and gives back its seat. */
  readonly forget: (listener: Open) => void
}

/** A listener. One that waits has no fiber, and little beside this object, because there may be thousands. */
class Open implements Listener {
  private readonly shared: Shared
  readonly opening: Opening
  /** The tick at which its time is up. */
  readonly until: number
  private readonly follower: Follower
  private readonly mailbox = new Mailbox<Message>()
  /** At how many checks it has been waiting for the same message. */
  private silent = 0
  private isReading = false
  private reading: Fiber.Fiber<void> | undefined

  constructor(
    shared: Shared,
    opening: Opening,
    follower: Follower,
    first: FeedPage,
    until: number,
  ) {
    this.shared = shared
    this.opening = opening
    this.follower = follower
    this.until = until
    this.mailbox.put(eventsOf(first))
  }

  get next(): Effect.Effect<Message> {
    return Effect.suspend(() => {
      this.readNext()
      return this.mailbox.take
    })
  }

  receive(receiver: (message: Message) => void): void {
    this.readNext()
    this.mailbox.receive(receiver)
  }

  end(reason: EndReason): void {
    this.mailbox.end(endFor(reason))
  }

  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.end("closed")
      this.follower.stop()
      this.shared.forget(this)
      return this.reading === undefined ? Effect.void : Fiber.interrupt(this.reading)
    })
  }

  /** Ends it when its time is up, and has it get a heartbeat when it has been waiting for long. */
  checkTime(now: number): void {
    if (now >= this.until) this.end("over")
    if (!this.mailbox.isAwaited || ++this.silent < silentChecks) return
    this.silent = 0
    this.mailbox.put({ _tag: "Heartbeat" })
  }

  /** Reads ahead no further than the next message. What is being read goes on during heartbeats. */
  private readNext(): void {
    if (this.isReading || !this.mailbox.isEmpty) return
    this.isReading = true
    this.read()
  }

  private read(): void {
    const reading = Effect.map(read(this.follower, this.shared.reading), (message) => {
      this.reading = undefined
      if (message === undefined) this.follower.whenReady(() => this.read())
      else this.put(message)
    })
    const fiber = this.shared.run(reading)
    if (fiber.pollUnsafe() === undefined) this.reading = fiber
  }

  private put(message: Message): void {
    this.isReading = false
    this.silent = 0
    if (message._tag === "End") this.mailbox.end(message)
    else this.mailbox.put(message)
  }
}

/** Ends a listener whose client may not listen any more: at once if that is known. */
const checkClient = (listener: Open, clock: Clock.Clock): Effect.Effect<void> => {
  const asked = Step.begin(listener.opening.isAllowed, clock)
  const answer = Step.isDone(asked)
    ? asked
    : Effect.timeoutOrElse(asked, {
        duration: answerTimeout,
        orElse: () => Effect.succeed(true),
      })
  return Effect.mapEager(answer, (isAllowed) => {
    if (!isAllowed) listener.end("refused")
  })
}

/** Groups listeners by their clients. */
const byClient = (listeners: Iterable<Open>): Iterable<ReadonlyArray<Open>> => {
  const groups = new Map<string, Array<Open>>()
  for (const listener of listeners) {
    const group = groups.get(listener.opening.client)
    if (group === undefined) groups.set(listener.opening.client, [listener])
    else group.push(listener)
  }
  return groups.values()
}

const make = Effect.gen(function* () {
  const feed = yield* Feed
  const faults = yield* Faults
  const checking = Outage.make(faults, "Listeners cannot be checked")
  const seats = Seats.make(Seats.most)
  const open = new Set<Open>()
  const someOpen = yield* Latch.make()
  const someDeleted = yield* Latch.make()
  const deletions = yield* ProjectDeletions
  deletions.listen(() => someDeleted.openUnsafe())

  const takeSeat = (client: string, project: string): Effect.Effect<void, NoSeat> =>
    Effect.suspend(() => (seats.take(client, project) ? Effect.void : Effect.fail(new NoSeat())))

  /** Ends the listeners of a project that does not exist any more. */
  const checkProject = (projectId: string, listeners: ReadonlyArray<Open>) =>
    feed.read({ projectId, limit: 1 }).pipe(
      Effect.catchTag("ProjectNotFound", () =>
        Effect.sync(() => {
          for (const one of listeners) if (one.opening.projectId === projectId) one.end("refused")
        }),
      ),
      // A store that does not answer ends nothing.
      Effect.ignore,
    )

  // Whether there was a defect since the last round of checks began.
  let hasFailed = false

  /** Runs a check, whose defect keeps no other one from running. */
  const apart = (check: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.matchCauseEffectEager(check, {
      onSuccess: () => Effect.void,
      onFailure: (cause) => {
        hasFailed = true
        return checking.failed(cause)
      },
    })

  /** Asks about the listeners of a client: first about one, whose answer is then known for the others. */
  const checkClients = ([first, ...others]: ReadonlyArray<Open>, clock: Clock.Clock) =>
    first === undefined
      ? Effect.void
      : Effect.flatMapEager(apart(checkClient(first, clock)), () => {
          const checks = others.map((listener) => apart(checkClient(listener, clock)))
          const waiting = checks.filter((one) => !Step.isDone(one))
          return Effect.all(waiting, { concurrency, discard: true })
        })

  const check = Effect.gen(function* () {
    hasFailed = false
    const listeners = [...open]
    const clock = yield* Clock.Clock
    const tick = Moment.tick(clock)
    for (const listener of listeners) listener.checkTime(tick)
    const left = listeners.filter(({ until }) => tick >= until + farewellMillis)
    const projects = new Set(listeners.map(({ opening }) => opening.projectId))
    const options = { concurrency, discard: true }
    yield* Effect.forEach(left, (listener) => listener.close, options)
    yield* Effect.forEach(projects, (id) => apart(checkProject(id, listeners)), options)
    yield* Effect.forEach(byClient(listeners), (own) => checkClients(own, clock), options)
    if (!hasFailed) checking.succeeded()
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
      for (const listener of open) listener.end("closing")
    }),
  )

  const shared: Shared = {
    reading: Outage.make(faults, "Events cannot be read for listeners"),
    run: yield* FiberSet.makeRuntime<never, void, never>(),
    forget: (listener) => {
      if (!open.delete(listener)) return
      seats.giveBack(listener.opening.client, listener.opening.projectId)
      if (open.size === 0) someOpen.closeUnsafe()
    },
  }

  /** Begins to listen with a seat, which the listener gives back. */
  const begin = Effect.fnUntraced(function* (
    opening: Opening,
    interruptible: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>,
  ) {
    const follower = yield* feed.follower(opening)
    const first = yield* interruptible(follower.stored)
    const lifeMillis = yield* Random.nextBetween(shortestLifeMillis, longestLifeMillis)
    const until = (yield* Moment.now).tick + lifeMillis
    const listener = new Open(shared, opening, follower, first, until)
    open.add(listener)
    someOpen.openUnsafe()
    if (isClosing) listener.end("closing")
    return listener
  })

  return Listeners.of({
    seat: (client, project) =>
      Effect.acquireRelease(takeSeat(client, project), () =>
        Effect.sync(() => seats.giveBack(client, project)),
      ),

    open: (opening) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(
          takeSeat(opening.client, opening.projectId),
          Effect.onError(begin(opening, restore), () =>
            Effect.sync(() => seats.giveBack(opening.client, opening.projectId)),
          ),
        ),
      ),
  })
})
