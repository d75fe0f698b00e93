/** How operations are called. */

import type { Events } from "./operations.ts"
import type { Method, RequestTemplate, WithLines } from "./request.ts"
import type { Page } from "./response.ts"

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
    template: RequestTemplate,
    input: object,
    options?: CallOptions,
  ) => Promise<Result>
  /** Performs one whose body has a line of JSON for each of `lines`. */
  readonly callWithLines: <Result extends object>(
    method: Method,
    template: RequestTemplate,
    input: WithLines,
    options?: CallOptions,
  ) => Promise<Result>
  /** Performs one that returns a list in pages. */
  readonly list: <Item>(
    method: Method,
    template: RequestTemplate,
    input: object,
    options?: CallOptions,
  ) => PageList<Item>
}

/** A line of an import: a membership of a user. */
export interface ImportLine {
  /** The id of the user. */
  readonly user_id: string
  /** A date, which may be over: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. */
  readonly end_date: number | string
}

/** Paged lists. */

/**
 * A list: a promise of its first page, and an iterable of the items of all pages. A page is requested
 * when its first item is.
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

/** The events that webhooks receive. */

type OwnEvents<Data extends object> = {
  readonly [Type in keyof Data]: {
    readonly type: Type
    readonly timestamp: string
    readonly data: Data[Type]
  }
}

/**
 * An event that a webhook received, discriminated by `type`. Other types than these may arrive: those
 * that the host publishes, unless they are given here, and those of newer servers.
 *
 * @typeParam Own - the data of the events that the host publishes, by type
 */
export type WebhookEvent<Own extends object = {}> = (
  | Events[keyof Events]
  | OwnEvents<Own>[keyof Own]
) & {
  /** The id of the event, the same in every attempt to deliver it. */
  readonly id: string
}
