/** The protocol of a WebSocket connection: the client subscribes to a project and receives its events. */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import type { Faults } from "../base/Faults.ts"
import * as Moment from "../base/Moment.ts"
import { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Listener, Listeners, Message } from "../events/Listeners.ts"
import * as Access from "./Access.ts"
import * as Frames from "./Frames.ts"

/** A socket of an adapter. */
export interface Socket {
  /** Sends a text. The promise resolves once there is room for another. */
  readonly send: (text: string) => Promise<void>
  /** Closes the connection. An adapter cuts it if the client does not close it, too. */
  readonly close: (code: number, reason: string) => void
}

/** Takes what a client sends. The connection ends if that is too much. */
export interface Receiver {
  /** Takes a message: its text, or `undefined` for a binary one. */
  receive(text: string | undefined): void
  /** Counts a ping or a pong of WebSocket itself. */
  count(): void
}

/** Whose connection it is. */
export interface Connection extends Pick<Access.Access, "renew" | "requestId"> {
  readonly keyId: ApiKeyId
}

/** What all conversations share. */
export interface Shared {
  readonly listeners: Listeners["Service"]
  readonly faults: Faults
  /** Runs an effect in a fiber, until a scope closes. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** The conversations that have not ended. */
  readonly open: Set<Conversation>
}

/** A project that the client follows. */
interface Following {
  readonly listener: Listener
  readonly access: Access.Access
}

/** A step that may wait. It returns what to wait for next, or fails with how the connection closes. */
type Turn = Effect.Effect<Following, Frames.Closing>

// How long a client may take to subscribe, and to read what was sent to it.
const subscriptionTimeout = "10 seconds"
const sendTimeout = "30 seconds"

const pingMillis = 15_000

// How many frames a client may send from one ping to the next.
const mostFrames = 20

const timedOut = Frames.closingOf({ _tag: "RequestTimeout" })
const tooManyFrames = Frames.closingOf({ _tag: "RateLimited", retryAfter: pingMillis / 1000 })
const internalError = Frames.closingOf({ _tag: "InternalError" })
const unavailable = Frames.closingOf(new StoreUnavailable({ cause: "The access is not known" }))
const projectNotFound = Frames.closingOf({ _tag: "ProjectNotFound" })
const twice = Frames.closingOf({
  _tag: "MalformedRequest",
  message: "This connection follows a project already.",
})

/** A conversation. While it waits for events it has no fiber: there may be thousands. */
export class Conversation implements Receiver {
  private readonly shared: Shared
  private readonly connection: Connection
  private readonly socket: Socket
  private turn: Fiber.Fiber<Following, Frames.Closing> | undefined
  /** Completed with the subscription, while one is awaited. */
  private asked: Deferred.Deferred<Frames.Subscription> | undefined
  private following: Following | undefined
  /** The tick of the last ping, or of the subscription. */
  private pingedAt = 0
  private owesPong = false
  private frames = 0
  private isOver = false

  constructor(shared: Shared, connection: Connection, socket: Socket) {
    this.shared = shared
    this.connection = connection
    this.socket = socket
    shared.open.add(this)
    this.run(this.subscribe(Effect.void))
  }

  receive(text: string | undefined): void {
    this.count()
    if (this.isOver) return
    if (text === undefined) return this.end(Frames.textOnly)
    const parsed = Frames.parse(text)
    if (Result.isFailure(parsed)) return this.end(Frames.closingOf(parsed.failure))
    const frame = parsed.success
    if (frame._tag === "Pong") this.owesPong = false
    else this.take(frame.subscription)
  }

  count(): void {
    this.frames++
    if (this.frames > mostFrames) this.end(tooManyFrames)
  }

  /** Ends the conversation, unless it has ended. */
  end({ code, frame, reason }: Frames.Closing): void {
    if (this.isOver) return
    this.isOver = true
    this.shared.open.delete(this)
    this.turn?.interruptUnsafe()
    if (frame !== undefined) void this.socket.send(frame).catch(() => {})
    this.socket.close(code, reason)
    if (this.following !== undefined) this.shared.run(this.following.listener.close)
  }

  private take(subscription: Frames.Subscription): void {
    const { asked } = this
    if (asked === undefined) return this.end(twice)
    // Before the step resumes, which may ask for another subscription at once.
    this.asked = undefined
    Deferred.doneUnsafe(asked, Effect.succeed(subscription))
  }

  private run(turn: Turn): void {
    this.turn = this.shared.run(turn)
    this.turn.addObserver((exit) => {
      this.turn = undefined
      if (Exit.isFailure(exit)) this.fail(exit.cause)
      else if (!this.isOver) this.wait(exit.value)
    })
  }

  private wait(following: Following): void {
    following.listener.receive((message) => {
      if (!this.isOver) this.run(this.answer(following, message))
    })
  }

  private fail(cause: Cause.Cause<Frames.Closing>): void {
    const closing = Cause.findErrorOption(cause)
    if (Option.isSome(closing)) return this.end(closing.value)
    // The scope has closed.
    if (Cause.hasInterrupts(cause)) return this.end(Frames.reconnect)
    const { faults, run } = this.shared
    run(faults.defect("A connection ended in a defect", cause, this.connection.requestId))
    this.end(internalError)
  }

  /** Waits for a subscription, which may arrive while `before` is still running. */
  private subscribe(before: Effect.Effect<void, Frames.Closing>): Turn {
    const asked = Deferred.makeUnsafe<Frames.Subscription>()
    this.asked = asked
    const subscription = Effect.timeoutOrElse(Deferred.await(asked), {
      duration: subscriptionTimeout,
      orElse: () => Effect.fail(timedOut),
    })
    return Effect.flatMap(Effect.andThen(before, subscription), (given) => this.follow(given))
  }

  private follow({ after, project, types }: Frames.Subscription): Turn {
    const access = { ...this.connection, projectId: project }
    const { faults, listeners } = this.shared
    const opening = {
      client: this.connection.keyId,
      projectId: project,
      after,
      types,
      isAllowed: Access.isGiven(access, faults),
    }
    // A listener that is open when the conversation ends is closed then, or as soon as it begins.
    return Effect.uninterruptibleMask((restore) =>
      Effect.matchEffect(Effect.andThen(restore(Access.admit(access)), listeners.open(opening)), {
        onSuccess: (listener) => this.begin({ listener, access }),
        onFailure: (failure): Turn => {
          if (failure._tag === "CursorExpired") return restore(this.reset)
          const error = failure._tag === "NoSlot" ? Access.noSlot : failure
          return Effect.fail(Frames.closingOf(error))
        },
      }),
    )
  }

  private begin(following: Following): Turn {
    return Effect.flatMap(Moment.now, ({ tick }) => {
      this.following = following
      this.pingedAt = tick
      return Effect.as(this.isOver ? following.listener.close : Effect.void, following)
    })
  }

  /** Tells the client that the feed cannot continue without a gap, and waits for a new subscription. */
  private get reset(): Turn {
    return Effect.suspend(() => this.subscribe(this.send(Frames.reset)))
  }

  /** Passes on what the listener receives. */
  private answer(following: Following, message: Message): Turn {
    switch (message._tag) {
      case "Events": {
        const frames = [
          ...message.events.map(Frames.printEvent),
          Frames.printCursor(message.cursor),
        ]
        return Effect.as(Effect.andThen(this.send(...frames), this.pingIfDue), following)
      }
      case "Heartbeat":
        return Effect.as(this.pingIfDue, following)
      case "End":
        if (message.reason === "reset") {
          return Effect.andThen(following.listener.close, this.reset)
        }
        if (message.reason === "refused") return this.refuse(following)
        return Effect.fail(message.reason === "unavailable" ? unavailable : Frames.reconnect)
    }
  }

  /** Fails with the reason why the listener was refused: if access still holds, the project is gone. */
  private refuse({ access }: Following): Turn {
    return Effect.andThen(
      Effect.mapError(Access.check(access), Frames.closingOf),
      Effect.fail(projectNotFound),
    )
  }

  private send(...frames: ReadonlyArray<string>): Effect.Effect<void, Frames.Closing> {
    return Effect.tryPromise(() =>
      Promise.all(frames.map((frame) => this.socket.send(frame))),
    ).pipe(
      // The client has gone, and the signal will tell.
      Effect.catch(() => Effect.never),
      Effect.timeoutOrElse({ duration: sendTimeout, orElse: () => Effect.fail(timedOut) }),
    )
  }

  private get pingIfDue(): Effect.Effect<void, Frames.Closing> {
    return Effect.flatMap(Moment.now, ({ tick }) => {
      if (tick - this.pingedAt < pingMillis) return Effect.void
      if (this.owesPong) return Effect.fail(timedOut)
      this.pingedAt = tick
      this.owesPong = true
      this.frames = 0
      return this.send(Frames.ping)
    })
  }
}
