/**
 * Requests as adapters hand them to the core: their address, their id, and the response types the
 * client accepts.
 */

import type * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Predicate from "effect/Predicate"
import type { UnreadableRequest } from "../api/errors.ts"
import { networksInclude, parseAddress, untranslate } from "../base/address.ts"
import { type HeaderFields, readHeaderFields, singleHeader } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"
import { getOwn } from "../base/values.ts"
import type { Authenticate } from "../keys/identity.ts"

/** An arrived body, or the reason it cannot be read. */
export type ArrivedBody =
  /** The bytes as received; empty for a request without a body. */
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  /** A value already parsed by the host. */
  | { readonly _tag: "Parsed"; readonly value: unknown }
  /** Longer than the limit. The adapter stopped reading there. */
  | { readonly _tag: "TooLarge" }
  /** Read before the adapter saw it, and not kept. */
  | { readonly _tag: "Consumed" }
  /** The request could not be read as a whole, so its header fields are not reliable. */
  | { readonly _tag: "Unreadable"; readonly error: UnreadableRequest }

/** A request's body. */
export type Body =
  | ArrivedBody
  /**
   * A long body, or one sent only after 100 Continue: reading it tells the client to send. It is read
   * at most once, after authentication and limits, and only by operations that need it. `read` never
   * rejects.
   */
  | { readonly _tag: "Deferred"; readonly read: () => Promise<ArrivedBody> }

/** The protocol in a request's URL. */
export type Scheme = "http" | "https"

/** A request. Only its own properties are read. */
export interface ApiRequest {
  /** As on the wire, in capitals. */
  readonly method: string
  /**
   * The path as on the wire: percent-encoded, without the query. If the host mounts the API under a
   * path, only the rest after that path.
   */
  readonly path: string
  /** The query as on the wire, without the question mark. Missing if there is no query. */
  readonly query?: string | undefined
  /** The whole path as the client sent it, if it differs from `path`. */
  readonly originalPath?: string | undefined
  /** The header fields by name. The core reads them by lower-case name, so adapters may pass any case. */
  readonly headers: HeaderFields
  /** The body, or how to read it. */
  readonly body: Body
  /** The socket peer's IP address; `undefined` or any other text if it is unknown. */
  readonly remoteAddress: string | undefined
  /** Whether the connection is encrypted. By default, it is not. */
  readonly scheme?: Scheme | undefined
  /**
   * Returns a signal that aborts when no client waits for the response any more, or when its connection
   * is to close. Called by operations that wait or answer with a stream.
   */
  readonly signal?: (() => AbortSignal) | undefined
  /** Authenticates the client in place of API keys, by the host's knowledge about the request. */
  readonly authenticate?: Authenticate<void> | undefined
}

/** The body for a request without one. */
export const emptyBody: ArrivedBody = { _tag: "Bytes", bytes: new Uint8Array(0) }

/** A body longer than the limit. */
export const tooLargeBody: ArrivedBody = { _tag: "TooLarge" }

/** A body read before and not kept. Waiting for it would never end. */
export const consumedBody: ArrivedBody = { _tag: "Consumed" }

/** An incomplete body. */
export const abortedBody: ArrivedBody = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The body could not be read to its end." },
}

/** A body in a transfer coding unknown to hosts. */
export const unknownCodingBody: ArrivedBody = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The transfer coding must be chunked." },
}

/** Whether a body has a transfer coding other than `chunked`, the only one decoded by hosts. */
export const hasUnknownCoding = (headers: HeaderFields): boolean => {
  const coding = singleHeader(headers, "transfer-encoding")
  return coding._tag === "Value" && !/^chunked$/i.test(coding.value)
}

// Only a plain authority is removed. URL parsers disagree on any other authority's end, and a guard
// that reads another path guards nothing.
const authority = /^https?:\/\/([\w.-]+|\[[\da-f:.]+\])(:\d*)?(?=[/?#]|$)/i

/** Returns a request target's path, without the query, scheme and host (RFC 9112, 3.2.2). */
export const pathOf = (target: string): string => {
  const local = target.startsWith("/") ? target : target.replace(authority, "")
  const query = local.search(/[?#]/)
  const path = query === -1 ? local : local.slice(0, query)
  return path === "" ? "/" : path
}

/** Returns a request target's query, without the question mark; empty for none. */
export const queryOf = (target: string): string => {
  const start = target.indexOf("?")
  if (start === -1) return ""
  const fragment = target.indexOf("#")
  if (fragment === -1) return target.slice(start + 1)
  return fragment < start ? "" : target.slice(start + 1, fragment)
}

const isHeaders = (value: unknown): value is HeaderFields => Predicate.isObject(value)

const isBody = (value: unknown): value is Body =>
  Predicate.isObject(value) && typeof getOwn(value, "_tag") === "string"

const isAuthenticate = (value: unknown): value is Authenticate<void> => Predicate.isFunction(value)

const isSignal = (value: unknown): value is () => AbortSignal => Predicate.isFunction(value)

const stringOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

const schemeOf = (value: unknown): Scheme | undefined => (value === "https" ? value : undefined)

/** A request with nothing readable. */
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
  const method = getOwn(given, "method")
  const path = getOwn(given, "path")
  const headers = getOwn(given, "headers")
  const body = getOwn(given, "body")
  const signal = getOwn(given, "signal")
  const authenticate = getOwn(given, "authenticate")
  return typeof method === "string" &&
    typeof path === "string" &&
    isHeaders(headers) &&
    isBody(body)
    ? {
        method,
        path,
        query: stringOf(getOwn(given, "query")),
        originalPath: stringOf(getOwn(given, "originalPath")),
        headers: readHeaderFields(headers),
        body,
        remoteAddress: stringOf(getOwn(given, "remoteAddress")),
        scheme: schemeOf(getOwn(given, "scheme")),
        signal: isSignal(signal) ? signal : undefined,
        authenticate: isAuthenticate(authenticate) ? authenticate : undefined,
      }
    : invalid
}

/** Copies a request as an adapter passes it. Any other value becomes unreadable. */
export const readApiRequest = (given: unknown): ApiRequest => {
  try {
    return Predicate.isObject(given) ? readObject(given) : invalid
  } catch {
    return invalid
  }
}

// Real proxy chains are shorter; a client may send a longer header.
const maxHops = 32

const mappedPrefix = "::ffff:"

/** Returns an IPv4 address itself, and an IPv6 address's /64: a client has a whole one. */
const group = (given: NetAddress.IpAddress): string => {
  const address = untranslate(given)
  return NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : `${NetAddress.ipv6ToSegments(address)
        .slice(0, 4)
        .map((segment) => segment.toString(16))
        .join(":")}::/64`
}

// All clients with unknown addresses count as one.
const unknown = "local"

const octet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
const dottedQuad = new RegExp(`^${octet}(\\.${octet}){3}$`)

/** Groups a socket's address. On a dual-stack socket, Node writes IPv4 as mapped IPv6. */
const groupSocket = (remote: string): string => {
  const bare = remote.startsWith(mappedPrefix) ? remote.slice(mappedPrefix.length) : remote
  if (dottedQuad.test(bare)) return bare
  const address = parseAddress(remote)
  return address === undefined ? unknown : group(address)
}

/**
 * Walks a proxy chain from the server outwards and returns the first address outside the trusted
 * proxies. An entry that is not an address ends the walk: nothing vouches for entries beyond it.
 */
const walk = (
  nearest: NetAddress.IpAddress,
  forwardedFor: string,
  trusted: ReadonlyArray<IpNetwork.IpNetwork>,
): NetAddress.IpAddress => {
  let client = nearest
  let end = forwardedFor.length
  for (let hop = 0; hop < maxHops && end > 0 && networksInclude(trusted, client); hop++) {
    const start = forwardedFor.lastIndexOf(",", end - 1)
    const next = parseAddress(forwardedFor.slice(start + 1, end).trim())
    if (next === undefined) return client
    client = next
    end = start
  }
  return client
}

const chainOf = (forwardedFor: string | ReadonlyArray<string>): string =>
  typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")

/**
 * Makes the function that returns a request's address for the limits: the socket's, or one from
 * `X-Forwarded-For` as far as trusted proxies vouch for it. Text other than an address counts as no
 * address.
 *
 * @param trusted - the trusted proxies' networks
 */
export const makeClientAddress =
  (trusted: ReadonlyArray<IpNetwork.IpNetwork>) =>
  ({ headers, remoteAddress }: ApiRequest): string => {
    if (typeof remoteAddress !== "string") return unknown
    const forwardedFor = getOwn(headers, "x-forwarded-for")
    if (trusted.length === 0 || forwardedFor === undefined) return groupSocket(remoteAddress)
    const nearest = parseAddress(remoteAddress)
    if (nearest === undefined) return unknown
    return group(walk(nearest, chainOf(forwardedFor), trusted))
  }

/** Tells whether an address is in a chain: then the host has read the chain itself. */
const isInChain = (address: NetAddress.IpAddress, forwardedFor: string): boolean => {
  const own = NetAddress.formatIp(address)
  return forwardedFor.split(",", maxHops).some((text) => {
    const one = parseAddress(text.trim())
    return one !== undefined && NetAddress.formatIp(one) === own
  })
}

/**
 * Makes a function that returns the peer's address for the first request with an `X-Forwarded-For` to
 * ignore, and for no other. After a request from a trusted proxy, all others with the field are
 * clients.
 *
 * @param trusted - the trusted proxies' networks
 */
export const makeUntrustedPeer = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  let isDecided = false
  return ({ headers, remoteAddress }: ApiRequest): string | undefined => {
    if (isDecided || typeof remoteAddress !== "string") return undefined
    const forwardedFor = getOwn(headers, "x-forwarded-for")
    if (forwardedFor === undefined) return undefined
    const peer = parseAddress(remoteAddress)
    if (peer === undefined || isInChain(peer, chainOf(forwardedFor))) return undefined
    isDecided = true
    return networksInclude(trusted, peer) ? undefined : NetAddress.formatIp(peer)
  }
}

/** The client's scheme, as proxies send it. The nearest proxy's value is the last one. */
const forwardedScheme = /(?:^|,)[ \t]*(https?)[ \t]*$/i

/**
 * Makes a function to return the client's scheme: the connection's, or `X-Forwarded-Proto` from a
 * trusted proxy.
 *
 * @param trusted - the trusted proxies' networks
 */
export const makeScheme =
  (trusted: ReadonlyArray<IpNetwork.IpNetwork>) =>
  ({ headers, remoteAddress, scheme = "http" }: ApiRequest): Scheme => {
    const field = getOwn(headers, "x-forwarded-proto")
    if (trusted.length === 0 || field === undefined || remoteAddress === undefined) return scheme
    const [, forwarded] = forwardedScheme.exec(String(field)) ?? []
    const nearest = parseAddress(remoteAddress)
    if (forwarded === undefined || nearest === undefined) return scheme
    if (!networksInclude(trusted, nearest)) return scheme
    return forwarded.toLowerCase() === "https" ? "https" : "http"
  }

/** The longest id accepted from a request, in characters. */
export const maxRequestIdLength = 128

// Visible ASCII: an id goes into logs, the audit trail and events as it is.
const pattern = new RegExp(`^[\\x21-\\x7e]{1,${maxRequestIdLength}}$`)

const namePattern = /^[!#$%&'*+.^`|~\w-]+$/

/** The option's definition for the header field's name. */
export const requestIdOption: Setting.Setting<string, string> = Setting.custom(
  'the name of a header field, such as "x-request-id"',
  (given) =>
    typeof given === "string" && namePattern.test(given) ? given.toLowerCase() : undefined,
)

/**
 * Makes the function that returns a request's id: from its header field, if that has a valid one, or
 * else a fresh one.
 *
 * @param header - the field's name in lower case; if `undefined`, every id is fresh
 */
export const makeRequestId = (
  header: string | undefined,
  fresh: () => string,
): ((request: Pick<ApiRequest, "headers">) => string) => {
  if (header === undefined) return fresh
  return ({ headers }) => {
    const field = singleHeader(headers, header)
    return field._tag === "Value" && pattern.test(field.value) ? field.value : fresh()
  }
}

/** An event stream's media type. */
export const eventStreamType = "text/event-stream"

/** A range in `Accept`, and its weight: 0 for unacceptable, up to 1. */
interface Range {
  readonly type: string
  readonly weight: number
}

const rangeOf = (element: string): Range => {
  const [type = "", ...parameters] = element.split(";").map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith("q="))
  return { type, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
}

const rangesOf = (headers: HeaderFields): ReadonlyArray<Range> => {
  const field = Object.hasOwn(headers, "accept") ? headers["accept"] : undefined
  const values = typeof field === "string" ? [field] : (field ?? [])
  return values.flatMap((value) => value.split(",")).map(rangeOf)
}

/** Returns the weight from the most specific range among the given types, ordered from specific to general. */
const weightOf = (ranges: ReadonlyArray<Range>, ...types: ReadonlyArray<string>): number =>
  types.flatMap((type) => ranges.find((range) => range.type === type) ?? [])[0]?.weight ?? 0

/**
 * Tells whether a client asks for an event stream rather than for JSON. It has to name the media type:
 * with only wildcards, it gets JSON.
 */
export const acceptsEventStream = (headers: HeaderFields): boolean => {
  const ranges = rangesOf(headers)
  const names = (type: string): boolean => ranges.some((range) => range.type === type)
  if (!names(eventStreamType)) return false
  const events = weightOf(ranges, eventStreamType)
  const json = weightOf(ranges, "application/json", "application/*", "*/*")
  return events > json || (events > 0 && events === json && !names("application/json"))
}
