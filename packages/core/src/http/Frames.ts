/** The frames of the WebSocket subprotocol `tenure.v1`: texts, each a JSON object with a `type`. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"
import type { Cursor, FeedEvent } from "../events/FeedStore.ts"
import * as ApiError from "./ApiError.ts"
import * as EventData from "./EventData.ts"

/** The name of the subprotocol. */
export const protocol = "tenure.v1"

/** The longest frame of a client, in characters: a cursor may have half of them. */
const maxLength = 16_384

const subscription = Setting.struct({
  type: Setting.oneOf(["subscribe"]),
  project: Setting.checked<string>("text", Predicate.isString),
  types: Setting.optional(Setting.checked<ReadonlyArray<string>>("an array", Array.isArray)),
  after: Setting.optional(Setting.checked<string>("text", Predicate.isString)),
})

/** What a client asks to follow. */
export interface Subscription extends Setting.Output<typeof subscription> {}

/** A frame of a client. */
export type ClientFrame =
  | { readonly _tag: "Subscribe"; readonly subscription: Subscription }
  | { readonly _tag: "Pong" }

const malformed = (message: string): ApiError.ApiError => ({ _tag: "MalformedRequest", message })

const notAFrame = malformed('A frame must be a JSON object of the type "subscribe" or "pong".')

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads a frame of a client. Fails with the error that the client is told. */
export const parse = (
  text: string,
): Result.Result<ClientFrame, ApiError.ApiError | InvalidInput> => {
  if (text.length > maxLength) return Result.fail({ _tag: "PayloadTooLarge", limit: maxLength })
  const frame = jsonOf(text)
  if (!Predicate.hasProperty(frame, "type")) return Result.fail(notAFrame)
  if (frame.type === "pong") return Result.succeed({ _tag: "Pong" })
  if (frame.type !== "subscribe") return Result.fail(notAFrame)
  return Result.map(subscription.read(frame, ""), (asked) => ({
    _tag: "Subscribe",
    subscription: asked,
  }))
}

export const printEvent = (event: FeedEvent): string =>
  JSON.stringify({ type: "event", event: EventData.of(event) })

export const printCursor = (cursor: Cursor): string => JSON.stringify({ type: "cursor", cursor })

export const ping = JSON.stringify({ type: "ping" })

export const reset = JSON.stringify({ type: "reset", reason: "cursor_expired" })

/** How a connection ends: the last frame, if there is one, and the code and the reason of the close frame. */
export interface Closing {
  readonly frame?: string
  readonly code: number
  readonly reason: string
}

/** The client is to connect again, and go on from its cursor. */
export const reconnect: Closing = { code: 1001, reason: "Connect again." }

/** The protocol has no binary frames. */
export const textOnly: Closing = { code: 1003, reason: "Frames must be text." }

/** How a connection ends that fails: by a code of 4000 and the status that a request would have. */
export const closingOf = (error: ApiError.ApiError): Closing => {
  const { code, messages, status } = ApiError.describe(error)
  const retry = error._tag === "RateLimited" ? { retry_after: error.retryAfter } : {}
  return {
    frame: JSON.stringify({ type: "error", error_code: code, message: messages[0], ...retry }),
    code: 4000 + status,
    reason: code,
  }
}
