/** The part of Tenure that adapters use. */

import * as Predicate from "effect/Predicate"
import type { WebSocketHandshake } from "./realtime.ts"
import type { ApiRequest } from "./request.ts"
import type { ApiResponse } from "./response.ts"
import type { BodyLimit } from "./routes.ts"

/** The API as an adapter mounts it. */
export interface Mountable {
  /** Answers a request. Never rejects. */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  /**
   * Answers a request as `handle` does, and calls `deliver` with the response: before it returns, if
   * nothing waits. Never throws. `deliver` must not throw.
   */
  readonly answer: (request: ApiRequest, deliver: (response: ApiResponse) => void) => void
  /** Tells whether a path (without the query) is one of the API's. */
  readonly owns: (path: string) => boolean
  /** What precedes `/v2` in every path. */
  readonly basePath: string
  /** Each path's pattern for a host's router, without the base path. */
  readonly patterns: ReadonlyArray<string>
  /** Tells how to read the body of a request, by its method and its path (without the query). */
  readonly bodyLimit: (method: string, path: string) => BodyLimit
  /** How many requests in a row may be refused on one connection before it is closed. */
  readonly maxRefusals: number
}

/** The WebSocket connections of the API, for an adapter that has sockets. */
export interface Connectable {
  /** Tells whether a path (without the query) is that of WebSocket connections. */
  readonly connectsAt: (path: string) => boolean
  /**
   * Answers a request for a WebSocket connection, which needs a `signal` that aborts when the connection
   * is gone. Never rejects.
   */
  readonly connect: (request: ApiRequest) => Promise<WebSocketHandshake>
}

/** Tells whether an API has WebSocket connections. */
export const isConnectable = <Api extends Mountable>(tenure: Api): tenure is Api & Connectable =>
  Predicate.hasProperty(tenure, "connect") && Predicate.isFunction(tenure.connect)

/**
 * Checks the argument of an adapter. Throws a `TypeError` if it is not what `await createTenure(…)`
 * returns, for example because the `await` is missing.
 */
export const checkMountable = (tenure: unknown): void => {
  if (Predicate.isPromiseLike(tenure)) {
    throw new TypeError("tenure is a promise: write `await createTenure(…)`")
  }
  if (!Predicate.hasProperty(tenure, "handle") || !Predicate.isFunction(tenure.handle)) {
    throw new TypeError("tenure must be what `await createTenure(…)` returns")
  }
}
