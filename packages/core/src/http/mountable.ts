/** Tenure's interface for adapters. */

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
  /** Tells whether a path (without the query) belongs to the API. */
  readonly owns: (path: string) => boolean
  /** The prefix before `/v2` in every path. */
  readonly basePath: string
  /** Each path's pattern for a host's router, without the base path. */
  readonly patterns: ReadonlyArray<string>
  /** Tells how to read a request's body, by its method and its path (without the query). */
  readonly bodyLimit: (method: string, path: string) => BodyLimit
  /** How many requests in a row may be refused on one connection before it is closed. */
  readonly maxRefusals: number
}

/** The API's WebSocket connections, for an adapter with sockets. */
export interface Connectable {
  /** Tells whether a path (without the query) is for WebSocket connections. */
  readonly connectsAt: (path: string) => boolean
  /**
   * Answers a request for a WebSocket connection. The request needs a `signal` that aborts when the
   * connection is gone. Never rejects.
   */
  readonly connect: (request: ApiRequest) => Promise<WebSocketHandshake>
}

/** Tells whether an API has WebSocket connections. */
export const isConnectable = <Api extends Mountable>(tenure: Api): tenure is Api & Connectable =>
  Predicate.hasProperty(tenure, "connect") && Predicate.isFunction(tenure.connect)

/**
 * Checks an adapter's argument. Throws a `TypeError` if it is not the result of `await
 * createTenure(…)`, for example because the `await` is missing.
 */
export const checkMountable = (tenure: unknown): void => {
  if (Predicate.isPromiseLike(tenure)) {
    throw new TypeError("tenure is a promise: write `await createTenure(…)`")
  }
  if (!Predicate.hasProperty(tenure, "handle") || !Predicate.isFunction(tenure.handle)) {
    throw new TypeError("tenure must be what `await createTenure(…)` returns")
  }
}
