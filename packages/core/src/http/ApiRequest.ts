/** Requests, as adapters hand them to the core. */

import * as Predicate from "effect/Predicate"
import { type HeaderFields, single } from "../base/HeaderFields.ts"
import { own } from "../base/Own.ts"
import type { Authenticate } from "../keys/Identity.ts"
import type { UnreadableRequest } from "./ApiError.ts"

/** The body of a request that has arrived, or why it cannot be read. */
export type ArrivedBody =
  /** The bytes as received; empty for a request without a body. */
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  /** A value that the host has already parsed. */
  | { readonly _tag: "Parsed"; readonly value: unknown }
  /** Longer than the limit. The adapter stopped reading there. */
  | { readonly _tag: "TooLarge" }
  /** Read before the adapter saw it, and not kept. */
  | { readonly _tag: "Consumed" }
  /** The request could not be read as a whole, so its header fields are not reliable. */
  | { readonly _tag: "Unreadable"; readonly error: UnreadableRequest }

/** The body of a request. */
export type Body =
  | ArrivedBody
  /**
   * A body that may be long, or that the client sends only when it is told to, with 100 Continue:
   * reading it tells the client. It is read at most once, after authentication and limits, and only by operations that
   * need it. `read` never rejects.
   */
  | { readonly _tag: "Deferred"; readonly read: () => Promise<ArrivedBody> }

/** A request. Only its own properties are read. */
export interface ApiRequest {
  /** As on the wire, in capitals. */
  readonly method: string
  /**
   * The path as on the wire: percent-encoded, without the query. If the host mounts the API under a
   * path, only what follows that path.
   */
  readonly path: string
  /** The query as on the wire, without the question mark. Missing if there is no query. */
  readonly query?: string | undefined
  /** The whole path as the client sent it, if it differs from `path`. */
  readonly originalPath?: string | undefined
  readonly headers: HeaderFields
  readonly body: Body
  /** The IP address of the peer of the socket; `undefined` or any other text if it is unknown. */
  readonly remoteAddress: string | undefined
  /**
   * Returns a signal that aborts when nobody waits for the response any more, or nobody should: when the
   * client has gone, or its connection is to close. Called by operations that wait or answer with a
   * stream.
   */
  readonly signal?: (() => AbortSignal) | undefined
  /** Authenticates the client in place of API keys, by what the host knows of the request. */
  readonly authenticate?: Authenticate<void> | undefined
}

/** The body of a request without one. */
export const emptyBody: ArrivedBody = { _tag: "Bytes", bytes: new Uint8Array(0) }

/** A body longer than the limit. */
export const tooLarge: ArrivedBody = { _tag: "TooLarge" }

/** A body that was read before and not kept. Waiting for it would never end. */
export const consumed: ArrivedBody = { _tag: "Consumed" }

/** A body that did not arrive completely. */
export const brokenOff: ArrivedBody = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The body could not be read to its end." },
}

/** A body in a transfer coding that hosts do not decode. */
export const unknownCoding: ArrivedBody = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The transfer coding must be chunked." },
}

/** Whether a body has a transfer coding other than chunks, the only one that hosts decode. */
export const hasUnknownCoding = (headers: HeaderFields): boolean => {
  const coding = single(headers, "transfer-encoding")
  return coding._tag === "Value" && !/^chunked$/i.test(coding.value)
}

// Only a plain authority is removed. Readers of URLs disagree on where any other ends, and a path
// that a guard reads differently is not guarded.
const authority = /^https?:\/\/([\w.-]+|\[[\da-f:.]+\])(:\d*)?(?=[/?#]|$)/i

/** Returns the path of a request target, without the query, scheme and host (RFC 9112, 3.2.2). */
export const pathOf = (target: string): string => {
  const local = target.startsWith("/") ? target : target.replace(authority, "")
  const query = local.search(/[?#]/)
  const path = query === -1 ? local : local.slice(0, query)
  return path === "" ? "/" : path
}

/** Returns the query of a request target, without the question mark; empty for none. */
export const queryOf = (target: string): string => {
  const start = target.indexOf("?")
  if (start === -1) return ""
  const fragment = target.indexOf("#")
  if (fragment === -1) return target.slice(start + 1)
  return fragment < start ? "" : target.slice(start + 1, fragment)
}

const isHeaders = (value: unknown): value is HeaderFields => Predicate.isObject(value)

const isBody = (value: unknown): value is Body =>
  Predicate.isObject(value) && typeof own(value, "_tag") === "string"

const isAuthenticate = (value: unknown): value is Authenticate<void> => Predicate.isFunction(value)

const isSignal = (value: unknown): value is () => AbortSignal => Predicate.isFunction(value)

const stringOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

/** A request of which nothing can be told. */
const invalid: ApiRequest = {
  method: "",
  path: "",
  headers: {},
  body: {
    _tag: "Unreadable",
    error: { _tag: "MalformedRequest", message: "The request is invalid." },
  },
  remoteAddress: undefined,
}

const readObject = (given: object & { readonly [Name in keyof ApiRequest]?: unknown }) => {
  const method = own(given, "method")
  const path = own(given, "path")
  const headers = own(given, "headers")
  const body = own(given, "body")
  const signal = own(given, "signal")
  const authenticate = own(given, "authenticate")
  return typeof method === "string" &&
    typeof path === "string" &&
    isHeaders(headers) &&
    isBody(body)
    ? {
        method,
        path,
        query: stringOf(own(given, "query")),
        originalPath: stringOf(own(given, "originalPath")),
        headers,
        body,
        remoteAddress: stringOf(own(given, "remoteAddress")),
        signal: isSignal(signal) ? signal : undefined,
        authenticate: isAuthenticate(authenticate) ? authenticate : undefined,
      }
    : invalid
}

/** Copies a request as an adapter passes it. One that is not a request at all becomes unreadable. */
export const read = (given: unknown): ApiRequest => {
  try {
    return Predicate.isObject(given) ? readObject(given) : invalid
  } catch {
    return invalid
  }
}
