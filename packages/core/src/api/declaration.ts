/** Declares an HTTP API operation: how it is called, its input, its reply and its errors. */

import type { RequestInput } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import type { Role } from "../keys/api-key.ts"
import type { ApiErrorTag } from "./errors.ts"

const prefix = "/v2/"

/** A path as routers write it, without a base path. Segments starting with `:` are parameters. */
export type PathPattern = `${typeof prefix}${string}`

/** A method, a path and the required role. */
export interface Route {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
  readonly pattern: PathPattern
  /** The least role allowed to call it; `"none"` if no key is needed. */
  readonly role: Role | "none"
  /** Whether read-only keys may call it, although it is not a GET. */
  readonly changesNothing?: boolean
  /** Whether a ticket is enough to call it. */
  readonly takesTicket?: boolean
  /** The longest body, in bytes, unless the option decides it. */
  readonly maxBodyBytes?: number
  /** Whether it is an endpoint in the contract. These ignore unknown fields and parameters. */
  readonly isContract?: boolean
}

/** A reply's kind: plain data, counted data, a list page, or the items after a cursor. */
type ReplyKind = "continued" | "counted" | "paged" | "plain"

/** An operation's reply, with its data's type and its usual message. */
export interface Reply<out Data extends object | null> {
  readonly kind: ReplyKind
  readonly message: string
  /** Never present: the data exists only as a type. */
  readonly data?: Data
}

const replyOf =
  (kind: ReplyKind) =>
  <Data extends object | null>(message: string): Reply<Data> => ({ kind, message })

/** The reply for data without a count. */
export const plain = replyOf("plain")

/** The reply for counted items: listed or changed ones. */
export const counted = replyOf("counted")

/** The reply for a list page. */
export const paged = replyOf("paged")

/** The reply for items after a cursor. The next page starts at its `next`. */
export const continued = replyOf("continued")

/** An operation. Its doc comment has a title, and then a description. */
export interface Declaration extends Route {
  /** Its parameters and its body. */
  readonly input: RequestInput<unknown, unknown>
  /** A body with one item per line, read by the operation itself. The input is in the query then. */
  readonly lines?: { readonly mediaType: string; readonly json: Setting.JsonSchema }
  readonly reply: Reply<object | null>
  /** Its errors, besides those common to all operations, to all projects and to idempotency keys. */
  readonly errors: ReadonlyArray<ApiErrorTag>
}

/** The parameters for every paged list. */
export const pageFields = {
  /** The most items to return. */
  limit: Setting.withDefault(Setting.integer({ most: 1000 }), 100),
  /** The previous page's `next`; without it, the first page. */
  after: Setting.optional(
    Setting.inJson(
      Setting.string("a cursor, as `next` of the page before", () => true),
      { type: "string" },
    ),
  ),
}

/** Declares operations by their names. */
export const declareOperations = <const D extends Readonly<Record<string, Declaration>>>(
  declared: D,
): D => declared

/** A resource's operations, by full name. */
export type Named<Resource extends string, D> = {
  readonly [Name in keyof D & string as `${Resource}.${Name}`]: D[Name]
}

/** Names operations by their resource, too. */
export function ofResource<Resource extends string, D extends object>(
  resource: Resource,
  declared: D,
): Named<Resource, D>
export function ofResource(resource: string, declared: object): object {
  return Object.fromEntries(
    Object.entries(declared).map(([name, one]) => [`${resource}.${name}`, one]),
  )
}
