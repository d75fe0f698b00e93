/** What an operation of the HTTP API is declared to be: how it is called, what it reads, replies and fails with. */

import type { RequestInput } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import type { Role } from "../keys/api-key.ts"
import type { ApiErrorTag } from "./errors.ts"

const prefix = "/v2/"

/** A path as routers write it, without a base path. Segments that start with `:` are parameters. */
export type PathPattern = `${typeof prefix}${string}`

/** A method, a path and who may call it. */
export interface Route {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT"
  readonly pattern: PathPattern
  /** The least role that may call it; `"none"` if no key is needed. */
  readonly role: Role | "none"
  /** Whether those who may only read may call it, although it is not a GET. */
  readonly changesNothing?: boolean
  /** Whether the holder of a ticket may call it. */
  readonly takesTicket?: boolean
  /** The longest body, in bytes, where it is not that of the option. */
  readonly maxBodyBytes?: number
  /** Whether it is an endpoint of the contract, which ignores fields and parameters that it does not know. */
  readonly isContract?: boolean
}

/** How a reply is made: of data, of data that is counted, of a page of a list, or of what follows a cursor. */
type ReplyKind = "continued" | "counted" | "paged" | "plain"

/** The reply of an operation, with the type of its data and its usual message. */
export interface Reply<out Data extends object | null> {
  readonly kind: ReplyKind
  readonly message: string
  /** Never there: the type alone says what the data is. */
  readonly data?: Data
}

const replyOf =
  (kind: ReplyKind) =>
  <Data extends object | null>(message: string): Reply<Data> => ({ kind, message })

/** The reply of an operation that counts nothing. */
export const plain = replyOf("plain")

/** The reply of an operation that counts items: those that it lists, or those that it has changed. */
export const counted = replyOf("counted")

/** The reply of an operation that lists a page. */
export const paged = replyOf("paged")

/** The reply of an operation that lists what follows a cursor, which the next page has in its place. */
export const continued = replyOf("continued")

/** An operation. Its doc comment has a title, and then a description. */
export interface Declaration extends Route {
  /** Its parameters and its body. */
  readonly input: RequestInput<unknown, unknown>
  /** A body with something in each line, which the operation reads itself. The input is in the query then. */
  readonly lines?: { readonly mediaType: string; readonly json: Setting.JsonSchema }
  readonly reply: Reply<object | null>
  /** Its errors, besides those of every operation, of every project and of idempotency keys. */
  readonly errors: ReadonlyArray<ApiErrorTag>
}

/** The parameters of every paged list. */
export const pageFields = {
  /** The most items to return. */
  limit: Setting.withDefault(Setting.integer({ most: 1000 }), 100),
  /** The cursor that the page before has as `next`; without it, the first page. */
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

/** The operations of a resource, by their whole names. */
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
