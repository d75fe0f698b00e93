/** Types of calls, and lists that are read page by page. */

import type { Events } from "./operations.ts"
import type { Method, RequestTemplate, WithLines } from "./request.ts"
import type { Page } from "./response.ts"

/** Options for a single call. */
export interface CallOptions {
  /** Aborts the call, even while it waits: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /**
   * Calls with the same key are made once, for as long as the server keeps the key. Use it to repeat a
   * call after a restart. By default, each call has a new key.
   */
  readonly idempotencyKey?: string | undefined
}

/** Sends a request and returns its result. */
export interface Calls {
  readonly call: <Result extends object>(
    method: Method,
    template: RequestTemplate,
    input: object,
    options?: CallOptions,
  ) => Promise<Result>
  /** Sends a body with one line of JSON per entry in `lines`. */
  readonly callWithLines: <Result extends object>(
    method: Method,
    template: RequestTemplate,
    input: WithLines,
    options?: CallOptions,
  ) => Promise<Result>
  /** Requests a list, page by page. */
  readonly list: <Item>(
    method: Method,
    template: RequestTemplate,
    input: object,
    options?: CallOptions,
  ) => PageList<Item>
}

/** One line in an import: a user's membership. */
export interface ImportLine {
  /** The user id. */
  readonly user_id: string
  /**
   * The end date, possibly in the past: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Null for life. Needed
   * without `through`.
   */
  readonly end_date?: number | string | null | undefined
  /** In place of `end_date`: the last whole day, such as `"2099-01-31"`. */
  readonly through?: string | undefined
  /** The IANA time zone for `through`; by default, the project's. */
  readonly time_zone?: string | undefined
  /** The day that months count with, as the membership returned it: 1 to 31. */
  readonly kept_day?: number | undefined
  /** Replaces the membership's metadata. Without it, the metadata stays. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
}

/**
 * A list: a promise for its first page, and an iterable over all items. It requests a page when you
 * reach the page's first item.
 */
export interface PageList<Item> extends Promise<Page<Item>>, AsyncIterable<Item> {}

/**
 * Makes a list.
 *
 * @param first - the first page, on its way
 * @param follow - requests the page after a cursor
 */
export const makePages = <Item>(
  first: Promise<Page<Item>>,
  follow: (after: string) => Promise<Page<Item>>,
): PageList<Item> =>
  Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      let page = await first
      yield* page.data
      while (typeof page.next === "string") {
        page = await follow(page.next)
        yield* page.data
      }
    },
  })

type OwnEvents<Data extends object> = {
  readonly [Type in keyof Data]: {
    /** The type of the event. */
    readonly type: Type
    /** A time in UTC, with milliseconds. */
    readonly timestamp: string
    /** What happened, by its type. */
    readonly data: Data[Type]
  }
}

/**
 * An event for a webhook, discriminated by `type`. Expect other types too: your own events unless you
 * declare them here, and events from newer servers.
 *
 * @typeParam Own - the data in your own events, by type
 */
export type WebhookEvent<Own extends object = {}> = (
  | Events[keyof Events]
  | OwnEvents<Own>[keyof Own]
) & {
  /** The event id, identical in every attempt. */
  readonly id: string
}
