/** Connections that follow the feed by WebSocket, without the sockets, which adapters have. */

import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import { Faults } from "../base/Faults.ts"
import { single } from "../base/HeaderFields.ts"
import { Listeners } from "../events/Listeners.ts"
import * as Slots from "../events/Slots.ts"
import type { Principal } from "../keys/Identity.ts"
import * as Access from "./Access.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import type { Authentication } from "./Authentication.ts"
import {
  type Connection,
  Conversation,
  type Receiver,
  type Shared,
  type Socket,
} from "./Conversation.ts"
import type { ApiResponse } from "./Envelope.ts"
import * as Frames from "./Frames.ts"

/** A connection that was admitted. It ends when the signal of its request aborts. */
export interface Session {
  /**
   * Starts to follow the feed. Call it once, after the handshake.
   *
   * @returns what to call with the frames of the client
   */
  readonly start: (socket: Socket) => Receiver
}

/** The answer to a request for a connection. */
export interface Handshake {
  /** What to answer if the connection was not admitted. */
  readonly response: ApiResponse
  readonly session: Session | undefined
}

/** A request for a connection, and who sent it. */
interface Asking {
  readonly request: ApiRequest
  readonly requestId: string
  readonly principal: Principal
}

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

/** Makes the session of a connection, which ends when the signal aborts, and gives back its slot. */
const sessionOf = (
  shared: Shared,
  connection: Connection,
  signal: AbortSignal,
  slots: Slots.Slots,
): Session => {
  let conversation: Conversation | undefined
  const leave = (): void => {
    slots.giveBack(connection.keyId, "")
    conversation?.end(Frames.reconnect)
  }
  signal.addEventListener("abort", leave, { once: true })
  return {
    start: (socket) => {
      conversation = new Conversation(shared, connection, socket)
      if (signal.aborted) conversation.end(Frames.reconnect)
      return conversation
    },
  }
}

/**
 * Makes what admits connections, and ends them when the scope closes.
 *
 * @param renewal - returns what finds out again who sent a request
 */
export const make = Effect.fnUntraced(function* (renewal: Authentication["renewal"]) {
  const open = new Set<Conversation>()
  const shared: Shared = {
    listeners: yield* Listeners,
    faults: yield* Faults,
    run: yield* FiberSet.makeRuntime(),
    open,
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const conversation of open) conversation.end(Frames.reconnect)
    }),
  )
  const slots = Slots.make({ ...Slots.most, perProject: Infinity })

  return {
    /**
     * Admits a connection, which takes a slot until the signal of its request aborts. Fails with the
     * error that the request is answered.
     */
    admit: ({ principal, request, requestId }: Asking): Effect.Effect<Session, ApiError> =>
      Effect.suspend(() => {
        const { keyId } = principal
        const signal = request.signal?.()
        if (signal === undefined || signal.aborted || !slots.take(keyId, "")) {
          return Effect.fail(Access.noSlot)
        }
        const connection = { keyId, renew: renewal(request, principal), requestId }
        return Effect.succeed(sessionOf(shared, connection, signal, slots))
      }),
  }
})
