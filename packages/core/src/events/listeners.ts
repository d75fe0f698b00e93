/** Connections that follow the feed: who may open one, what it receives, and when it ends. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { ErrorReporter, type OutageReporter, makeOutageReporter } from "../base/faults.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { currentMoment, readMonotonicMillis, sleepPoll } from "../base/time.ts"
import { invariant } from "../base/values.ts"
import { connectionLimits, giveSlotBack, makeConnectionLimit } from "./connection-limit.ts"
import type { FeedCursor, FeedEvent, FeedPage } from "./feed-store.ts"
import { Feed, type FeedFailure, type FeedQuery } from "./feed.ts"
import type { FollowFailure, Follower } from "./follower.ts"

type Receive<Message> = (message: Message) => void

/** A place for one message. An empty one is no more than this object, because there may be thousands. */
export class SingleSlotQueue<Message> {
  private held: Message | undefined
  private last: Message | undefined
  private receiver: Receive<Message> | undefined

  /** Whether there is no message. */
  get isEmpty(): boolean {
    return this.held === undefined && this.last === undefined
  }

  /** Whether somebody waits for a message. */
  get isAwaited(): boolean {
    return this.receiver !== undefined
  }

  /** Hands over the next message, or the last one, which can be had again and again, when it is there. */
  receive(receiver: Receive<Message>): void {
    const message = this.last ?? this.held
    this.held = undefined
    if (message === undefined) this.receiver = receiver
    else receiver(message)
  }

  /** Waits for the next message. */
  get take(): Effect.Effect<Message> {
    return Effect.callback((resume) => {
      this.receive((message) => resume(Effect.succeed(message)))
      return Effect.sync(() => {
        this.receiver = undefined
      })
    })
  }

  /** Puts a message. There must be none but the last. */
  put(message: Message): void {
    invariant(this.held === undefined, "a message replaced one that nobody has taken")
    if (!this.hand(message)) this.held = message
  }

  /** Puts the last message, in place of any other. It stays the last. */
  end(message: Message): void {
    this.last ??= message
    this.hand(this.last)
  }

  private hand(message: Message): boolean {
    const { receiver } = this
    this.receiver = undefined
    receiver?.(message)
    return receiver !== undefined
  }
}

/**
 * Why a listener ends: its time is up and the client should reconnect (`"over"`), Tenure is closing (`"closing"`),
 * it may not listen any more or the project is gone (`"refused"`), nobody could say for nearly ten seconds whether
 * it may (`"unavailable"`), the feed cannot go on from its cursor
 * without a gap (`"reset"`), or its transport has closed it (`"closed"`).
 */
export type ListenerEndReason = "over" | "closing" | "refused" | "unavailable" | "reset" | "closed"

/** What a listener gets. */
export type ListenerMessage =
  /** Events of about 64 KiB at most, maybe none, and the place after them. */
  | {
      readonly _tag: "Events"
      readonly events: ReadonlyArray<FeedEvent>
      readonly cursor: FeedCursor
    }
  /** Nothing has come for 10 to 15 seconds. */
  | { readonly _tag: "Heartbeat" }
  | { readonly _tag: "End"; readonly reason: ListenerEndReason }

/** A listener to open. */
export interface ListenerRequest extends FeedQuery {
  /** Whose slots it uses, such as the id of an API key. */
  readonly client: string
  /**
   * Tells whether the client may still follow the project: `undefined` if that cannot be found out now. Run every
   * few seconds. The answer is that of a second ago at the earliest, as is the permission to open the listener.
   */
  readonly isAllowed: Effect.Effect<boolean | undefined>
  /**
   * What the answer depends on, besides the client and the project, such as the digest of an API key. One answer then
   * counts for all listeners with the same. By default, each is asked for alone.
   */
  readonly grant?: string | undefined
}

/** A connection that follows the feed. */
export interface Listener {
  /**
   * Waits for the next message. The first one has the cursor at which the listener starts. Once it has
   * ended, every message is that end. Nothing is read for a listener until its next message is asked for.
   * Interrupting this may lose a message: close the listener instead.
   */
  readonly next: Effect.Effect<ListenerMessage>
  /** Calls a function with the next message, as `next` returns it. */
  readonly receive: (receiver: (message: ListenerMessage) => void) => void
  /** Ends it and frees its slot. Call this as soon as the connection is gone. */
  readonly close: Effect.Effect<void>
}

/** No slot is free: for the client, for the project or in the process. */
class ConnectionLimitReached extends TaggedError("NoSlot") {}

/**
 * Opens listeners.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Listeners } from "tenure/effect"
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
    /** Takes a slot until the scope closes, for a client that waits for a page. Fails with `NoSlot`. */
    readonly slot: (
      client: string,
      project: string,
    ) => Effect.Effect<void, ConnectionLimitReached, Scope.Scope>

    /**
     * Opens a listener, which the caller has to close. Fails with `NoSlot`, and with the errors of
     * reading the feed.
     */
    readonly open: (
      opening: ListenerRequest,
    ) => Effect.Effect<Listener, ConnectionLimitReached | FeedFailure>
  }
>()("@tenure/core/Listeners") {
  static readonly layer: Layer.Layer<Listeners, never, Feed> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

// Ten minutes, a fifth more or less, so that clients which connected together do not reconnect together.
const shortestLifeMillis = 480_000
const longestLifeMillis = 720_000

// How long after one round of checks the next one begins.
const checkPauseMillis = 4000

// How long the store of keys or the host may take to say whether a client may still listen. Together with the pause
// it is shorter than what follows, so that a client of whom nobody knows does not delay others for too long.
const answerTimeout = "3 seconds"

/** How old what is known of a client may be when it is checked, in milliseconds. */
export const maxAccessAge = 1000

// The listeners of a revoked key have to end within ten seconds, also if nobody can say that it is revoked. So they
// end when they were last allowed so long ago; an answer is `maxAge` old, and the time is looked at every second.
const maxUncertainMillis = 8000
const timePauseMillis = 1000

// A heartbeat is due after so many looks at the time without a message, so after 15 seconds at the latest.
const silentSeconds = 15

// How many checks run at the same time.
const concurrency = 64

// When a listener that has ended frees its slot although its transport has not closed it.
const abandonedMillis = 60_000

// How long to wait before the store is asked again.
const retryPause = "1 second"

const reasonOf = ({
  _tag,
}: Exclude<FollowFailure, { readonly _tag: "StoreUnavailable" }>): ListenerEndReason =>
  _tag === "CursorExpired" ? "reset" : "refused"

const eventsOf = ({ cursor, events }: FeedPage): ListenerMessage => ({
  _tag: "Events",
  events,
  cursor,
})

const endFor = (reason: ListenerEndReason): ListenerMessage => ({ _tag: "End", reason })

/**
 * Reads the next events or the end, if there are any yet. Tries again while the store does not answer, or
 * its reads end in defects.
 */
const read = (
  follower: Follower,
  reading: OutageReporter,
): Effect.Effect<ListenerMessage | undefined> => {
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
  readonly reading: OutageReporter
  /** Runs an effect in a fiber. */
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Removes a closed listener and frees its slot. */
  readonly forget: (listener: Open) => Effect.Effect<void>
}

/** A listener. While it waits it has no fiber and little more than this object: there may be thousands. */
class Open implements Listener {
  private readonly shared: Shared
  readonly opening: ListenerRequest
  /** The tick at which it ends. */
  readonly until: number
  private readonly follower: Follower
  private readonly mailbox = new SingleSlotQueue<ListenerMessage>()
  /** The tick since which nobody has said that its client may still listen. */
  allowedAt: number
  /** How many looks in a row have found it waiting for the same message. */
  private silent = 0
  private isReading = false
  private reading: Fiber.Fiber<void> | undefined

  constructor(
    shared: Shared,
    opening: ListenerRequest,
    follower: Follower,
    first: FeedPage,
    now: number,
    lifeMillis: number,
  ) {
    this.shared = shared
    this.opening = opening
    this.follower = follower
    this.allowedAt = now
    this.until = now + lifeMillis
    this.mailbox.put(eventsOf(first))
  }

  get next(): Effect.Effect<ListenerMessage> {
    return Effect.suspend(() => {
      this.readNext()
      return this.mailbox.take
    })
  }

  receive(receiver: (message: ListenerMessage) => void): void {
    this.readNext()
    this.mailbox.receive(receiver)
  }

  end(reason: ListenerEndReason): void {
    this.mailbox.end(endFor(reason))
  }

  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.end("closed")
      this.follower.stop()
      const { reading } = this
      const stopped = reading === undefined ? Effect.void : Fiber.interrupt(reading)
      return Effect.andThen(this.shared.forget(this), stopped)
    })
  }

  /**
   * Ends it when its time is up, or when nobody has said for too long that its client may listen, or sends a
   * heartbeat if it has been waiting for long.
   */
  checkTime(now: number): void {
    if (now >= this.until) this.end("over")
    if (now >= this.allowedAt + maxUncertainMillis) this.end("unavailable")
    if (!this.mailbox.isAwaited || ++this.silent < silentSeconds) return
    this.silent = 0
    this.mailbox.put({ _tag: "Heartbeat" })
  }

  /** Reads no further ahead than the next message. A read continues during heartbeats. */
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
    const fiber = this.shared.run(Effect.catchDefect(reading, (defect) => this.fail(defect)))
    if (fiber.pollUnsafe() === undefined) this.reading = fiber
  }

  private fail(defect: unknown): Effect.Effect<void> {
    this.end("unavailable")
    return this.shared.reading.failed(Cause.die(defect))
  }

  private put(message: ListenerMessage): void {
    this.isReading = false
    this.silent = 0
    if (message._tag === "End") this.mailbox.end(message)
    else this.mailbox.put(message)
  }
}

/** Whether one answer counts for two listeners. */
const isSameGrant = ({ opening: one }: Open, { opening: other }: Open): boolean =>
  one === other ||
  (one.grant !== undefined && one.grant === other.grant && one.projectId === other.projectId)

/**
 * Asks whether a listener is still allowed, and ends it if not: at once if that is already known.
 *
 * @param own - its client's listeners: the answer may count for others, too
 */
const checkGrant = Effect.fnUntraced(function* (listener: Open, own: ReadonlyArray<Open>) {
  const { tick } = yield* currentMoment
  const isAllowed = yield* Effect.timeoutOrElse(listener.opening.isAllowed, {
    duration: answerTimeout,
    orElse: () => Effect.undefined,
  })
  for (const one of own) {
    if (isAllowed === undefined || !isSameGrant(one, listener)) continue
    if (isAllowed) one.allowedAt = tick
    else one.end("refused")
  }
})

/** Calls a function with each listener. */
const forEachOpen = (
  clients: Iterable<ReadonlyArray<Open>>,
  visit: (listener: Open) => void,
): void => {
  for (const own of clients) for (const listener of own) visit(listener)
}

const make = Effect.gen(function* () {
  const feed = yield* Feed
  const faults = yield* ErrorReporter
  const checking = makeOutageReporter(faults, "Listeners cannot be checked")
  const slots = makeConnectionLimit(connectionLimits)
  // By client, each with few.
  const open = new Map<string, ReadonlyArray<Open>>()
  const someOpen = yield* Latch.make()
  const someDeleted = yield* Latch.make()
  const deletions = yield* ProjectDeletions
  deletions.listen(() => someDeleted.openUnsafe())

  const takeSlot = (client: string, project: string): Effect.Effect<void, ConnectionLimitReached> =>
    Effect.suspend(() =>
      slots.take(client, project) ? Effect.void : Effect.fail(new ConnectionLimitReached()),
    )

  const giveBack = (client: string, project: string): Effect.Effect<void> =>
    giveSlotBack(slots, faults, client, project)

  /** Ends the listeners of a project that no longer exists. */
  const checkProject = (projectId: string, clients: Iterable<ReadonlyArray<Open>>) =>
    feed.read({ projectId, limit: 1 }).pipe(
      Effect.catchTag("ProjectNotFound", () =>
        Effect.sync(() =>
          forEachOpen(clients, (one) => {
            if (one.opening.projectId === projectId) one.end("refused")
          }),
        ),
      ),
      // A store that does not answer ends nothing: it has no events to read either.
      Effect.ignore,
    )

  // Whether a check of this round has ended in a defect.
  let hasFailed = false

  /** Runs a check so that its defect does not stop the others. */
  const apart = (check: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.matchCauseEffect(check, {
      onSuccess: () => Effect.void,
      onFailure: (cause) => {
        hasFailed = true
        return checking.failed(cause)
      },
    })

  /** Checks the listeners of a client: first one of them, whose look-up then serves the others, too. */
  const checkClient = (own: ReadonlyArray<Open>) => {
    const [first, ...others] = own.filter(
      (one, index) => own.findIndex((other) => isSameGrant(one, other)) === index,
    )
    if (first === undefined) return Effect.void
    const checked = apart(checkGrant(first, own))
    if (others.length === 0) return checked
    return Effect.andThen(
      checked,
      Effect.forEach(others, (listener) => apart(checkGrant(listener, own)), {
        concurrency,
        discard: true,
      }),
    )
  }

  const check = Effect.gen(function* () {
    hasFailed = false
    const clients = [...open.values()]
    const { tick } = yield* currentMoment
    const left: Array<Open> = []
    const projects = new Set<string>()
    forEachOpen(clients, (listener) => {
      projects.add(listener.opening.projectId)
      if (tick >= listener.until + abandonedMillis) left.push(listener)
    })
    const options = { concurrency, discard: true }
    yield* Effect.forEach(left, (listener) => listener.close, options)
    yield* Effect.all(
      [
        Effect.forEach(clients, checkClient, options),
        Effect.forEach(projects, (id) => apart(checkProject(id, clients)), options),
      ],
      { concurrency: "unbounded", discard: true },
    )
    if (!hasFailed) checking.succeeded()
  })

  const checkNext = Effect.gen(function* () {
    yield* someOpen.await
    yield* Effect.raceFirst(sleepPoll(checkPauseMillis), someDeleted.await)
    yield* someDeleted.close
    yield* check
  })

  yield* Effect.forkScoped(Effect.forever(checkNext))

  const checkTimes = Effect.gen(function* () {
    yield* someOpen.await
    yield* sleepPoll(timePauseMillis)
    const tick = readMonotonicMillis(yield* Clock.Clock)
    forEachOpen(open.values(), (listener) => listener.checkTime(tick))
  })

  // Apart from the checks, which may wait for those who do not answer.
  yield* Effect.forkScoped(Effect.forever(checkTimes))

  let isClosing = false
  yield* Effect.forkScoped(
    Effect.map(feed.closing, () => {
      isClosing = true
      forEachOpen(open.values(), (listener) => listener.end("closing"))
    }),
  )

  const shared: Shared = {
    reading: makeOutageReporter(faults, "Events cannot be read for listeners"),
    run: yield* FiberSet.makeRuntime<never, void, never>(),
    forget: (listener) =>
      Effect.suspend(() => {
        const { client, projectId } = listener.opening
        const own = open.get(client) ?? []
        const others = own.filter((one) => one !== listener)
        if (others.length === own.length) return Effect.void
        if (others.length === 0) open.delete(client)
        else open.set(client, others)
        if (open.size === 0) someOpen.closeUnsafe()
        return giveBack(client, projectId)
      }),
  }

  /** Starts to listen with a slot, which the listener frees in the end. */
  const begin = Effect.fnUntraced(function* (
    opening: ListenerRequest,
    interruptible: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>,
  ) {
    const { tick } = yield* currentMoment
    const follower = yield* feed.follower(opening)
    const first = yield* interruptible(follower.stored)
    const lifeMillis = yield* Random.nextBetween(shortestLifeMillis, longestLifeMillis)
    const listener = new Open(shared, opening, follower, first, tick, lifeMillis)
    open.set(opening.client, [...(open.get(opening.client) ?? []), listener])
    someOpen.openUnsafe()
    if (isClosing) listener.end("closing")
    return listener
  })

  return Listeners.of({
    slot: (client, project) =>
      Effect.acquireRelease(takeSlot(client, project), () => giveBack(client, project)),

    open: (opening) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(
          takeSlot(opening.client, opening.projectId),
          Effect.onError(begin(opening, restore), () =>
            giveBack(opening.client, opening.projectId),
          ),
        ),
      ),
  })
})
