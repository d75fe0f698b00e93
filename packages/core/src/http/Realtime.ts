/** Connections that follow the feed by WebSocket, without the sockets, which adapters have. */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import { Faults } from "../base/Faults.ts"
import { single } from "../base/HeaderFields.ts"
import * as Moment from "../base/Moment.ts"
import { type Listener, Listeners, type Message } from "../events/Listeners.ts"
import * as Seats from "../events/Seats.ts"
import type { Principal } from "../keys/Identity.ts"
import * as Access from "./Access.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Authentication } from "./Authentication.ts"
import type { ApiResponse, Verbatim } from "./Envelope.ts"
import * as Frames from "./Frames.ts"

/** A socket of an adapter. */
export interface Socket {
  /** Sends a text. The promise resolves once there is room for another. */
  readonly send: (text: string) => Promise<void>
  /** Closes the connection. An adapter cuts it if the client does not close it, too. */
  readonly close: (code: number, reason: string) => void
}

/** A connection that was admitted. It ends when the signal of its request aborts. */
export interface Session {
  /**
   * Starts to follow the feed. Call it once, after the handshake.
   *
   * @returns what to call with the frames of the client
   */
  readonly start: (socket: Socket) => Receiver
}

/** Takes what a client sends. The connection ends if that is too much. */
export interface Receiver {
  /** Takes a message: its text, or `undefined` for a binary one. */
  readonly receive: (text: string | undefined) => void
  /** Counts a ping or a pong of WebSocket itself. */
  readonly count: () => void
}

/** The answer to a request for a connection. */
export interface Handshake {
  /** What to answer if the connection was not admitted. */
  readonly response: ApiResponse
  readonly session: Session | undefined
}

/** How the log of requests shows a connection that was admitted. */
export const switching: Verbatim = { _tag: "Verbatim", status: 101, headers: {}, body: "" }

/** A request for a connection, and who sent it. */
interface Asking {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
}

/** What a connection that was admitted keeps of its request. */
interface Connection extends Pick<Access.Access, "renew" | "requestId"> {
  readonly keyId: ApiKeyId
}

// How long a client may take to subscribe, and to read what was sent to it.
const subscriptionTimeout = "10 seconds"
const sendTimeout = "30 seconds"

const pingMillis = 15_000

// How many frames a client may send from one ping to the next.
const mostFrames = 20

const timedOut = Frames.farewellOf({ _tag: "RequestTimeout" })
const tooManyFrames = Frames.farewellOf({ _tag: "RateLimited", retryAfter: pingMillis / 1000 })
const twice = Frames.farewellOf({
  _tag: "MalformedRequest",
  message: "This connection follows a project already.",
})

const noSeat: ApiError = { _tag: "RateLimited", retryAfter: 20 }

const malformed = (message: string): Effect.Effect<never, ApiError> =>
  Effect.fail({ _tag: "MalformedRequest", message })

// A nonce of 16 bytes in Base64.
const keyPattern = /^[A-Za-z0-9+/]{22}==$/

/** Whether a header is a list of different tokens with that of the subprotocol (RFC 6455, 4.1). */
const offersProtocol = (header: string): boolean => {
  const offered = header.split(",").map((item) => item.trim())
  return (
    offered.includes(Frames.protocol) &&
    offered.every((item) => /^[\w!#$%&'*+\-.^`|~]+$/.test(item)) &&
    new Set(offered).size === offered.length
  )
}

/** Fails unless a request asks for the subprotocol by WebSocket: then no adapter has to refuse it. */
export const checkHandshake = ({ headers, method }: ApiRequest): Effect.Effect<void, ApiError> => {
  const valueOf = (name: string): string => {
    const field = single(headers, name)
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
    : malformed(`The header Sec-WebSocket-Protocol must offer ${Frames.protocol}.`)
}

const framesOf = (message: Message): ReadonlyArray<string> =>
  message._tag === "Events"
    ? [...message.events.map(Frames.printEvent), Frames.printCursor(message.cursor)]
    : []

/**
 * Makes what admits connections, and ends them when the scope closes.
 *
 * @param renewal - returns what finds out again who sent a request
 */
export const make = Effect.fnUntraced(function* (renewal: Authentication["renewal"]) {
  const listeners = yield* Listeners
  const faults = yield* Faults
  const run = yield* FiberSet.makeRuntime()
  const seats = Seats.make({ ...Seats.most, perProject: Infinity })

  const open = (connection: Connection, { after, project, types }: Frames.Subscription) =>
    Effect.suspend(() => {
      const access = { ...connection, projectId: project }
      return Effect.andThen(
        Access.check(access),
        listeners.open({
          client: connection.keyId,
          projectId: project,
          after,
          types,
          isAllowed: Access.isGiven(access, faults),
        }),
      )
    }).pipe(Effect.catchTag("NoSeat", () => Effect.fail(noSeat)))

  /** Talks with a client until the connection is to end. Fails with how it ends. */
  const converse = Effect.fnUntraced(function* (
    connection: Connection,
    socket: Socket,
    inbox: Inbox,
  ): Effect.fn.Return<never, Frames.Farewell> {
    let pingedAt = (yield* Moment.now).tick

    const send = (...frames: ReadonlyArray<string>) =>
      Effect.tryPromise(() => Promise.all(frames.map(socket.send))).pipe(
        // The client has gone, and the signal will tell.
        Effect.catch(() => Effect.never),
        Effect.timeoutOrElse({ duration: sendTimeout, orElse: () => Effect.fail(timedOut) }),
      )

    const pingIfDue = Effect.gen(function* () {
      const { tick } = yield* Moment.now
      if (tick - pingedAt < pingMillis) return
      if (inbox.owesPong()) return yield* Effect.fail(timedOut)
      pingedAt = tick
      inbox.pinged()
      yield* send(Frames.ping)
    })

    /** Hands on what a listener gets, until the feed cannot go on without a gap. */
    const follow = ({ next }: Listener, project: string): Effect.Effect<void, Frames.Farewell> =>
      Effect.gen(function* () {
        while (true) {
          const message = yield* next
          if (message._tag !== "End") {
            yield* send(...framesOf(message))
            yield* pingIfDue
          } else if (message.reason === "reset") return
          else if (message.reason !== "refused") return yield* Effect.fail(Frames.comeAgain)
          else {
            // If the client may follow the project, it is gone.
            const access = { ...connection, projectId: project }
            yield* Effect.mapError(Access.check(access), Frames.farewellOf)
            return yield* Effect.fail(Frames.farewellOf({ _tag: "ProjectNotFound" }))
          }
        }
      })

    while (true) {
      const asked = yield* inbox.next.pipe(
        Effect.timeoutOrElse({
          duration: subscriptionTimeout,
          orElse: () => Effect.fail(timedOut),
        }),
      )
      yield* open(connection, asked).pipe(
        Effect.catchTag("CursorExpired", () => Effect.undefined),
        Effect.mapError(Frames.farewellOf),
        Effect.flatMap((listener) =>
          listener === undefined
            ? Effect.void
            : Effect.ensuring(follow(listener, asked.project), listener.close),
        ),
      )
      inbox.ended()
      yield* send(Frames.reset)
    }
  })

  /** Runs a connection until it ends, the client has gone or it has sent what ends the connection. */
  const serve = (connection: Connection, socket: Socket, inbox: Inbox): Effect.Effect<void> => {
    const bid = ({ code, frame, reason }: Frames.Farewell) =>
      Effect.sync(() => {
        if (frame !== undefined) void socket.send(frame).catch(() => {})
        socket.close(code, reason)
      })
    return converse(connection, socket, inbox).pipe(
      Effect.catch(bid),
      Effect.onInterrupt(() => bid(inbox.failure() ?? Frames.comeAgain)),
      Effect.catchCause((cause) =>
        Cause.hasInterrupts(cause)
          ? Effect.void
          : Effect.andThen(
              faults.defect("A connection ended in a defect", cause, connection.requestId),
              bid(Frames.farewellOf({ _tag: "InternalError" })),
            ),
      ),
    )
  }

  return {
    /**
     * Admits a connection, which takes a seat until the signal of its request aborts. Fails with the
     * error that the request is answered.
     */
    admit: ({ principal, request, requestId }: Asking): Effect.Effect<Session, ApiError> =>
      Effect.suspend(() => {
        const { keyId } = principal
        const connection = { keyId, renew: renewal(request, principal), requestId }
        const signal = request.signal?.()
        if (signal === undefined || !seats.take(keyId, "")) return Effect.fail(noSeat)
        const giveBack = (): void => seats.giveBack(keyId, "")
        if (signal.aborted) giveBack()
        signal.addEventListener("abort", giveBack, { once: true })
        return Effect.succeed<Session>({
          start: (socket) => {
            const inbox = makeInbox(() => leave())
            const fiber = run(serve(connection, socket, inbox))
            const leave = (): void => fiber.interruptUnsafe()
            if (signal.aborted) leave()
            signal.addEventListener("abort", leave, { once: true })
            return inbox
          },
        })
      }),
  }
})

/** What a client has sent. */
interface Inbox extends Receiver {
  /** Waits for a subscription. */
  readonly next: Effect.Effect<Frames.Subscription>
  /** Tells that the subscription has ended, so that another one may come. */
  readonly ended: () => void
  /** What the client has sent ends the connection like this, if it does. */
  readonly failure: () => Frames.Farewell | undefined
  readonly owesPong: () => boolean
  readonly pinged: () => void
}

/** @param onFailure - called when the client has sent what ends the connection */
const makeInbox = (onFailure: () => void): Inbox => {
  let failure: Frames.Farewell | undefined
  let asked = Deferred.makeUnsafe<Frames.Subscription>()
  let isSubscribed = false
  let owesPong = false
  let frames = 0
  const fail = (farewell: Frames.Farewell): void => {
    if (failure !== undefined) return
    failure = farewell
    onFailure()
  }
  const count = (): void => {
    frames++
    if (frames > mostFrames) fail(tooManyFrames)
  }

  return {
    count,
    receive: (text) => {
      count()
      if (failure !== undefined) return
      if (text === undefined) return fail(Frames.textOnly)
      const parsed = Frames.parse(text)
      if (Result.isFailure(parsed)) return fail(Frames.farewellOf(parsed.failure))
      const frame = parsed.success
      if (frame._tag === "Pong") owesPong = false
      else if (isSubscribed) fail(twice)
      else {
        isSubscribed = true
        Deferred.doneUnsafe(asked, Effect.succeed(frame.subscription))
      }
    },
    next: Effect.suspend(() => Deferred.await(asked)),
    ended: () => {
      isSubscribed = false
      asked = Deferred.makeUnsafe()
    },
    failure: () => failure,
    owesPong: () => owesPong,
    pinged: () => {
      owesPong = true
      frames = 0
    },
  }
}
