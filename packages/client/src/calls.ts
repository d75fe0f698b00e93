/** How operations are called. */

import type { List } from "./pages.ts"
import type { Method, Template, WithLines } from "./request.ts"

/** The options of a call. */
export interface CallOptions {
  /** Aborts the call, also while it waits: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /**
   * Calls with the same key are made once, as long as the server keeps it: for what is called again
   * after a restart. By default, every call has its own.
   */
  readonly idempotencyKey?: string | undefined
}

/** Performs the operation of a method and a path. */
export interface Calls {
  readonly call: <Result extends object>(
    method: Method,
    template: Template,
    input: object,
    options?: CallOptions,
  ) => Promise<Result>
  /** Performs one whose body has a line of JSON for each of `lines`. */
  readonly callWithLines: <Result extends object>(
    method: Method,
    template: Template,
    input: WithLines,
    options?: CallOptions,
  ) => Promise<Result>
  /** Performs one that returns a list in pages. */
  readonly list: <Item>(
    method: Method,
    template: Template,
    input: object,
    options?: CallOptions,
  ) => List<Item>
}
