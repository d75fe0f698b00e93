/** A request as adapters hand it to the core. */

import type { MalformedRequest, RequestHeadersTooLarge, RequestTimeout } from "./ApiError.ts"
import type { HeaderFields } from "./HeaderFields.ts"
import type { Authenticate } from "./Identity.ts"

/** The body, or why there is none. */
export type Body =
  /** The bytes as they arrived; none for a request without a body. */
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  /** A value that the host has parsed already. */
  | { readonly _tag: "Parsed"; readonly value: unknown }
  /** Longer than the limit; the adapter has read no further. */
  | { readonly _tag: "TooLarge" }
  /** Read by another before it came to the adapter, who has kept nothing of it. */
  | { readonly _tag: "Consumed" }
  /** The request as a whole could not be read, so that its fields are not to be relied on. */
  | {
      readonly _tag: "Unreadable"
      readonly error: MalformedRequest | RequestTimeout | RequestHeadersTooLarge
    }

/** A request. */
export interface ApiRequest {
  /** In capitals, as on the wire. */
  readonly method: string
  /**
   * The path as on the wire, percent-encoded, without the query. Where the host has mounted the API
   * under a path, it is without that.
   */
  readonly path: string
  /** The whole path as the client has sent it, where `path` is not. */
  readonly originalPath?: string | undefined
  readonly headers: HeaderFields
  readonly body: Body
  /** The address of the socket's other end; `undefined` where it has none. */
  readonly remoteAddress: string | undefined
  /** Tells whose the request is in place of API keys, by what the host knows of it. */
  readonly authenticate?: Authenticate<void> | undefined
}

/** A body of no bytes. */
export const emptyBody: Body = { _tag: "Bytes", bytes: new Uint8Array(0) }

/** A body that is longer than the limit. */
export const tooLarge: Body = { _tag: "TooLarge" }

/** A body that another has read, who has kept nothing of it: to wait for it would be for ever. */
export const consumed: Body = { _tag: "Consumed" }

/** A body that has not come to its end. */
export const brokenOff: Body = {
  _tag: "Unreadable",
  error: { _tag: "MalformedRequest", message: "The body could not be read to its end." },
}

// Nothing else is taken for an authority: what one reader takes for the end of a host is a part of
// the path to another, and with it goes what that other guards.
const authority = /^https?:\/\/([\w.-]+|\[[\da-f:.]+\])(:\d*)?(?=[/?#]|$)/i

/**
 * The path of a request target: without the query, and without scheme and host where the target
 * has them (RFC 9112, 3.2.2).
 */
export const pathOf = (target: string): string => {
  const local = target.startsWith("/") ? target : target.replace(authority, "")
  const query = local.search(/[?#]/)
  const path = query === -1 ? local : local.slice(0, query)
  return path === "" ? "/" : path
}

/** The paths of the API in the notation of most routers, each after the base path. */
export const pathPatterns = [
  "/v2/projects/:projectId/memberships/extend",
  "/v2/projects/:projectId/memberships/:id/extend",
  "/v2/projects/:projectId/integrations/webhooks",
  "/v2/projects/:projectId/integrations/webhooks/:id",
] as const
