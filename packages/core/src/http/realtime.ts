/** WebSocket connections that follow the feed, in the subprotocol `tenure.v1`. Adapters own the sockets. */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { type ApiError, describeApiError } from "../api/errors.ts"
import { type InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter } from "../base/faults.ts"
import { singleHeader } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"
import { currentMoment } from "../base/time.ts"
import { type ApiKeyId, joinedText } from "../base/values.ts"
import {
  type ConnectionLimit,
  connectionLimits,
  giveSlotBack,
  makeConnectionLimit,
} from "../events/connection-limit.ts"
import type { FeedCursor, FeedEvent } from "../events/feed-store.ts"
import {
  type Listener,
  type ListenerMessage,
  type ListenerRequest,
  Listeners,
} from "../events/listeners.ts"
import type { Principal } from "../keys/identity.ts"
import {
  type Authentication,
  type StreamAccess,
  admit,
  connectionLimitError,
  isStillAllowed,
  recheckAccess,
} from "./authentication.ts"
import { eventDataOf } from "./events.ts"
import type { ApiRequest } from "./request.ts"
import type { ApiResponse } from "./response.ts"

/** The subprotocol's name. */
const webSocketProtocol = "tenure.v1"

/** A client's longest frame, in characters: a cursor may have half. */
const maxLength = 16_384

const framesSubscription = Setting.object({
  type: Setting.oneOf(["subscribe"]),
  project: Setting.guarded<string>("text", Predicate.isString),
  types: Setting.optional(Setting.guarded<ReadonlyArray<string>>("an array", Array.isArray)),
  after: Setting.optional(Setting.guarded<string>("text", Predicate.isString)),
})

/** A client's requested subscription. */
export interface FrameSubscription extends Setting.OutputOf<typeof framesSubscription> {}

/** A client's frame. */
export type ClientFrame =
  | { readonly _tag: "Subscribe"; readonly subscription: FrameSubscription }
  | { readonly _tag: "Pong" }

const framesMalformed = (message: string): ApiError => ({ _tag: "MalformedRequest", message })

const notAFrame = framesMalformed(
  'A frame must be a JSON object of the type "subscribe" or "pong".',
)

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads a client's frame. Fails with the error for the client. */
export const parseFrame = (text: string): Result.Result<ClientFrame, ApiError | InvalidInput> => {
  if (text.length > maxLength) return Result.fail({ _tag: "PayloadTooLarge", limit: maxLength })
  const frame = jsonOf(text)
  if (!Predicate.hasProperty(frame, "type")) return Result.fail(notAFrame)
  if (frame.type === "pong") return Result.succeed({ _tag: "Pong" })
  if (frame.type !== "subscribe") return Result.fail(notAFrame)
  return Result.map(framesSubscription.read(frame, ""), (asked) => ({
    _tag: "Subscribe",
    subscription: asked,
  }))
}

const printEventFrame = (event: FeedEvent): string =>
  JSON.stringify({ type: "event", event: eventDataOf(event) })

const printCursorFrame = (cursor: FeedCursor): string => JSON.stringify({ type: "cursor", cursor })

const pingFrame = JSON.stringify({ type: "ping" })

const resetFrame = JSON.stringify({ type: "reset", reason: "cursor_expired" })

/** A connection's end: the last frame, if there is one, and the close frame's code and reason. */
export interface CloseFrame {
  readonly frame?: string
  readonly code: number
  readonly reason: string
}

/** The client is to connect again, and go on from its cursor. */
const reconnectClose: CloseFrame = { code: 1001, reason: "Connect again." }

/** The protocol has no binary frames. */
const textOnlyClose: CloseFrame = { code: 1003, reason: "Frames must be text." }

/** The close frame for a failed connection: a code from 4000 plus the status an HTTP response would have. */
export const closeFrameOf = (error: ApiError): CloseFrame => {
  const { code, messages, status } = describeApiError(error)
  const retry = error._tag === "RateLimited" ? { retry_after: error.retryAfter } : {}
  return {
    frame: JSON.stringify({ type: "error", error_code: code, message: messages[0], ...retry }),
    code: 4000 + status,
    reason: code,
  }
}

/** An adapter's socket. */
export interface Socket {
  /** Sends a text. The promise resolves once there is room for another. */
  readonly send: (text: string) => Promise<void>
  /** Closes the connection. An adapter cuts it if the client does not close it, too. */
  readonly close: (code: number, reason: string) => void
}

/** Receives a client's frames. The connection ends if there are too many. */
export interface FrameReceiver {
  /** Takes a message: its text, or `undefined` for a binary one. */
  receive(text: string | undefined): void
  /** Counts a ping or a pong frame from WebSocket itself. */
  count(): void
}

/** The connection's principal and access. */
export interface WebSocketConnection extends Pick<StreamAccess, "renew" | "requestId"> {
  readonly keyId: ApiKeyId
  readonly grant: ListenerRequest["grant"]
}

/** Shared by all conversations. */
export interface SessionServices {
  readonly listeners: Listeners["Service"]
  readonly faults: ErrorReporter
  /** Runs an effect in a fiber, until a scope closes. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** The open conversations. */
  readonly open: Set<WebSocketSession>
}

/** A project followed by the client. */
interface Following {
  readonly listener: Listener
  readonly access: StreamAccess
}

/** A step that may wait. It returns the next subscription to wait for, or fails with the close frame. */
type Turn = Effect.Effect<Following, CloseFrame>

// The time for a client to subscribe, and to read sent frames.
const subscriptionTimeout = "10 seconds"
const sendTimeout = "30 seconds"

const pingMillis = 15_000

// How many frames a client may send from one ping to the next.
const maxFrames = 20

const timedOut = closeFrameOf({ _tag: "RequestTimeout" })
const tooManyFrames = closeFrameOf({ _tag: "RateLimited", retryAfter: pingMillis / 1000 })
const internalError = closeFrameOf({ _tag: "InternalError" })
const unavailable = closeFrameOf(new StoreUnavailable({ cause: "The access is not known" }))
const projectNotFound = closeFrameOf({ _tag: "ProjectNotFound" })
const twice = closeFrameOf({
  _tag: "MalformedRequest",
  message: "This connection follows a project already.",
})

/** A conversation. While it waits for events it has no fiber: there may be thousands. */
class WebSocketSession implements FrameReceiver {
  private readonly shared: SessionServices
  private readonly connection: WebSocketConnection
  private readonly socket: Socket
  private turn: Fiber.Fiber<Following, CloseFrame> | undefined
  /** Completed with the subscription, while one is awaited. */
  private asked: Deferred.Deferred<FrameSubscription> | undefined
  private following: Following | undefined
  /** The tick at the last ping, or at the subscription. */
  private pingedAt = 0
  private owesPong = false
  private frames = 0
  private isOver = false

  constructor(shared: SessionServices, connection: WebSocketConnection, socket: Socket) {
    this.shared = shared
    this.connection = connection
    this.socket = socket
    shared.open.add(this)
    this.run(this.subscribe(Effect.void))
  }

  receive(text: string | undefined): void {
    this.count()
    if (this.isOver) return
    if (text === undefined) return this.end(textOnlyClose)
    const parsed = parseFrame(text)
    if (Result.isFailure(parsed)) return this.end(closeFrameOf(parsed.failure))
    const frame = parsed.success
    if (frame._tag === "Pong") this.owesPong = false
    else this.take(frame.subscription)
  }

  count(): void {
    this.frames++
    if (this.frames > maxFrames) this.end(tooManyFrames)
  }

  /** Ends the conversation, unless it has ended. */
  end({ code, frame, reason }: CloseFrame): void {
    if (this.isOver) return
    this.isOver = true
    this.shared.open.delete(this)
    this.turn?.interruptUnsafe()
    if (frame !== undefined) void this.socket.send(frame).catch(() => {})
    this.socket.close(code, reason)
    if (this.following !== undefined) this.shared.run(this.following.listener.close)
  }

  private take(subscription: FrameSubscription): void {
    const { asked } = this
    if (asked === undefined) return this.end(twice)
    // Before the step resumes, because it may ask for another subscription at once.
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

  private fail(cause: Cause.Cause<CloseFrame>): void {
    const closing = Cause.findErrorOption(cause)
    if (Option.isSome(closing)) return this.end(closing.value)
    // The scope has closed.
    if (Cause.hasInterrupts(cause)) return this.end(reconnectClose)
    const { faults, run } = this.shared
    run(faults.defect("A connection ended in a defect", cause, this.connection.requestId))
    this.end(internalError)
  }

  /** Waits for a subscription. It may arrive while `before` is still running. */
  private subscribe(before: Effect.Effect<void, CloseFrame>): Turn {
    const asked = Deferred.makeUnsafe<FrameSubscription>()
    this.asked = asked
    const subscription = Effect.timeoutOrElse(Deferred.await(asked), {
      duration: subscriptionTimeout,
      orElse: () => Effect.fail(timedOut),
    })
    return Effect.flatMap(Effect.andThen(before, subscription), (given) => this.follow(given))
  }

  private follow({ after, project, types }: FrameSubscription): Turn {
    const access = { ...this.connection, projectId: project }
    const { faults, listeners } = this.shared
    const opening = {
      client: this.connection.keyId,
      projectId: project,
      after,
      types,
      isAllowed: isStillAllowed(access, faults),
      grant: this.connection.grant,
    }
    // A listener still open when the conversation ends is closed then, or as soon as it begins.
    return Effect.uninterruptibleMask((restore) =>
      Effect.matchEffect(Effect.andThen(restore(admit(access)), listeners.open(opening)), {
        onSuccess: (listener) => this.begin({ listener, access }),
        onFailure: (failure): Turn => {
          if (failure._tag === "CursorExpired") return restore(this.reset)
          const error = failure._tag === "NoSlot" ? connectionLimitError : failure
          return Effect.fail(closeFrameOf(error))
        },
      }),
    )
  }

  private begin(following: Following): Turn {
    return Effect.flatMap(currentMoment, ({ tick }) => {
      this.following = following
      this.pingedAt = tick
      return Effect.as(this.isOver ? following.listener.close : Effect.void, following)
    })
  }

  /** Tells the client about a gap in the feed, and waits for a new subscription. */
  private get reset(): Turn {
    return Effect.suspend(() => this.subscribe(this.send(resetFrame)))
  }

  /** Passes on the listener's messages. */
  private answer(following: Following, message: ListenerMessage): Turn {
    switch (message._tag) {
      case "Events": {
        const frames = [...message.events.map(printEventFrame), printCursorFrame(message.cursor)]
        return Effect.as(Effect.andThen(this.send(...frames), this.pingIfDue), following)
      }
      case "Heartbeat":
        return Effect.as(this.pingIfDue, following)
      case "End":
        if (message.reason === "reset") {
          return Effect.andThen(following.listener.close, this.reset)
        }
        if (message.reason === "refused") return this.refuse(following)
        return Effect.fail(message.reason === "unavailable" ? unavailable : reconnectClose)
    }
  }

  /** Fails with the reason why the listener was refused: if access still holds, the project is gone. */
  private refuse({ access }: Following): Turn {
    return Effect.andThen(
      Effect.mapError(recheckAccess(access), closeFrameOf),
      Effect.fail(projectNotFound),
    )
  }

  private send(...frames: ReadonlyArray<string>): Effect.Effect<void, CloseFrame> {
    return Effect.tryPromise(() =>
      Promise.all(frames.map((frame) => this.socket.send(frame))),
    ).pipe(
      // The client has gone, and the signal will tell.
      Effect.catch(() => Effect.never),
      Effect.timeoutOrElse({ duration: sendTimeout, orElse: () => Effect.fail(timedOut) }),
    )
  }

  private get pingIfDue(): Effect.Effect<void, CloseFrame> {
    return Effect.flatMap(currentMoment, ({ tick }) => {
      if (tick - this.pingedAt < pingMillis) return Effect.void
      if (this.owesPong) return Effect.fail(timedOut)
      this.pingedAt = tick
      this.owesPong = true
      this.frames = 0
      return this.send(pingFrame)
    })
  }
}

/** An admitted connection. It ends when its request's signal aborts. */
export interface RealtimeSession {
  /**
   * Starts to follow the feed. Call it once, after the handshake.
   *
   * @returns the receiver for the client's frames
   */
  readonly start: (socket: Socket) => FrameReceiver
}

/** The answer to a request for a connection. */
export interface WebSocketHandshake {
  /** The response for a refused connection. */
  readonly response: ApiResponse
  /** The session to start after the handshake; `undefined` if the connection was not admitted. */
  readonly session: RealtimeSession | undefined
}

/** A request for a connection, and its principal. */
interface Asking {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
}

const malformed = (message: string): Effect.Effect<never, ApiError> =>
  Effect.fail({ _tag: "MalformedRequest", message })

// A Base64 nonce with 16 bytes.
const keyPattern = /^[A-Za-z0-9+/]{22}==$/

/** Whether a header lists distinct tokens including the subprotocol's (RFC 6455, 4.1). */
const offersProtocol = (header: string): boolean => {
  const offered = header.split(",").map((item) => item.trim())
  return (
    offered.includes(webSocketProtocol) &&
    offered.every((item) => /^[\w!#$%&'*+\-.^`|~]+$/.test(item)) &&
    new Set(offered).size === offered.length
  )
}

/** Fails unless a request asks for the subprotocol by WebSocket: then no adapter has to refuse it. */
export const checkHandshake = ({ headers, method }: ApiRequest): Effect.Effect<void, ApiError> => {
  const valueOf = (name: string): string => {
    const field = singleHeader(headers, name)
    return field._tag === "Value" ? field.value : ""
  }
  if (method !== "GET") return Effect.fail({ _tag: "MethodNotAllowed", allow: ["GET"] })
  const isWebSocket =
    valueOf("upgrade").toLowerCase() === "websocket" && valueOf("sec-websocket-version") === "13"
  if (!isWebSocket) return Effect.fail({ _tag: "UpgradeRequired" })
  if (!keyPattern.test(valueOf("sec-websocket-key"))) {
    return malformed("The header Sec-WebSocket-Key must be 16 bytes in Base64.")
  }
  return offersProtocol(valueOf("sec-websocket-protocol"))
    ? Effect.void
    : malformed(`The header Sec-WebSocket-Protocol must offer ${webSocketProtocol}.`)
}

/**
 * Makes a connection's session. It ends when the signal aborts, and then no longer counts against the
 * connection limit.
 */
const sessionOf = (
  shared: SessionServices,
  connection: WebSocketConnection,
  signal: AbortSignal,
  slots: ConnectionLimit,
): RealtimeSession => {
  let conversation: WebSocketSession | undefined
  const leave = (): void => {
    // In a fiber, because an error in a listener of an event would end the process.
    shared.run(giveSlotBack(slots, shared.faults, connection.keyId, ""))
    conversation?.end(reconnectClose)
  }
  signal.addEventListener("abort", leave, { once: true })
  return {
    start: (socket) => {
      conversation = new WebSocketSession(shared, connection, socket)
      if (signal.aborted) conversation.end(reconnectClose)
      return conversation
    },
  }
}

/**
 * Admits connections, and ends them when the scope closes.
 *
 * @param renewal - returns a function that authenticates the request again
 */
export const makeRealtime = Effect.fnUntraced(function* (renewal: Authentication["renewal"]) {
  const open = new Set<WebSocketSession>()
  const shared: SessionServices = {
    listeners: yield* Listeners,
    faults: yield* ErrorReporter,
    run: yield* FiberSet.makeRuntime(),
    open,
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const conversation of open) conversation.end(reconnectClose)
    }),
  )
  const slots = makeConnectionLimit({ ...connectionLimits, perProject: Infinity })

  return {
    /**
     * Admits a connection. It counts against the connection limit until its request's signal aborts.
     * Fails with the error for the response.
     */
    admit: ({ principal, request, requestId }: Asking): Effect.Effect<RealtimeSession, ApiError> =>
      Effect.suspend(() => {
        const { digest, keyId } = principal
        const signal = request.signal?.()
        if (signal === undefined || signal.aborted || !slots.take(keyId, "")) {
          return Effect.fail(connectionLimitError)
        }
        const connection = {
          keyId,
          grant: digest,
          renew: renewal(request, principal),
          requestId: joinedText(requestId),
        }
        return Effect.succeed(sessionOf(shared, connection, signal, slots))
      }),
  }
})
