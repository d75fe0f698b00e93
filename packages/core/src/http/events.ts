/** The operations on events, with the feed as a page and as Server-Sent Events (HTML, 9.2). */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Random from "effect/Random"
import { ofResource } from "../api/declaration.ts"
import type { ApiError } from "../api/errors.ts"
import { eventOperations, streamQuery } from "../api/events.ts"
import { InvalidInput } from "../base/errors.ts"
import { ErrorReporter } from "../base/faults.ts"
import { type HeaderFields, singleHeader } from "../base/headers.ts"
import { readBranded } from "../base/input.ts"
import type { Decoded } from "../base/operation-input.ts"
import { joinedText, memoizeObject } from "../base/values.ts"
import { type Event, EventId, eventData } from "../events/event.ts"
import { FeedCursor, type FeedEvent } from "../events/feed-store.ts"
import { Feed, type FeedPageQuery } from "../events/feed.ts"
import {
  type Listener,
  type ListenerEndReason,
  type ListenerMessage,
  Listeners,
} from "../events/listeners.ts"
import { parseEndDate } from "../memberships/end-date.ts"
import { UserId } from "../memberships/membership.ts"
import { EventActs } from "../webhooks/published-events.ts"
import {
  type Authentication,
  type StreamAccess,
  admit,
  connectionLimitError,
  isStillAllowed,
  recheckAccess,
} from "./authentication.ts"
import {
  type Call,
  type OperationsOn,
  isoOrNull,
  makeDisclosureAudit,
  makeReader,
  perform,
} from "./operation.ts"
import { acceptsEventStream, eventStreamType } from "./request.ts"
import type { RawReply, TextStream } from "./response.ts"
import { deliveryData } from "./webhooks.ts"

/** The part of an event's data in a response: all, its member and date, or nothing. */
type Disclosure = "true" | "summary" | "false"

const userIdOrNull = (given: unknown): UserId | null =>
  Predicate.isString(given) && UserId.is(given) ? given : null

/**
 * Summarizes event data about memberships. Lists show the same. Other events have
 * no summary.
 */
const summaryOf = (event: Event) => {
  if (!/^memberships?\./.test(event.type)) return null
  const data = eventData(event)
  if (!Predicate.isObject(data)) return null
  const endDate = parseEndDate(data["new_end_date"] ?? data["end_date"])
  return { user_id: userIdOrNull(data["user_id"]), end_date: isoOrNull(endDate) }
}

const dataBy = { true: eventData, summary: summaryOf, false: () => null }

/** Returns an event as responses have it. */
const disclosedEventData = (event: Event, disclosure: Disclosure) => ({
  id: event.id,
  type: event.type,
  timestamp: isoOrNull(event.at),
  data: dataBy[disclosure](event),
})

/** Returns an event as a response shows it. */
export const eventDataOf = (event: Event) => disclosedEventData(event, "true")

/** How long a client waits before it reconnects, in milliseconds: a random time between these. */
const shortestRetryMillis = 1000
const longestRetryMillis = 3000

const eventStreamHeaders: RawReply["headers"] = {
  "Content-Type": eventStreamType,
  // A proxy that compresses responses collects them first.
  "Cache-Control": "no-store, no-transform",
  // nginx as a proxy collects them, too.
  "X-Accel-Buffering": "no",
}

// Neither a type nor JSON has line ends, and a cursor has no NUL either.
const printEvent = memoizeObject(
  (event: FeedEvent): string =>
    `event: ${event.type}\ndata: ${JSON.stringify(eventDataOf(event))}\n\n`,
)

const heartbeat = ":\n\n"

// Clients turned away because a store does not answer wait longer than others.
const retryFactor = 5

const printRetry = (millis: number): string => `retry: ${millis}\n\n`

const reset = 'event: reset\ndata: {"reason":"cursor_expired"}\n\n'

/**
 * Prints a message. A page's last event has the cursor after the page as its id, so that a client
 * breaking off within a page gets the page again.
 */
const print = (message: Exclude<ListenerMessage, { readonly _tag: "End" }>): string => {
  if (message._tag === "Heartbeat") return heartbeat
  const { cursor, events } = message
  const last = events.at(-1)
  const id = `id: ${cursor}\n`
  // Clients record an id without data, and dispatch nothing.
  if (last === undefined) return `${id}\n`
  return `${events.slice(0, -1).map(printEvent).join("")}${id}${printEvent(last)}`
}

/** Shared by all streams. */
interface Shared {
  readonly faults: ErrorReporter
  /** Runs an infallible effect as a promise. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
}

/** A stream to make. */
interface Source {
  readonly listener: Listener
  /** Closes the listener when it aborts. */
  readonly signal: AbortSignal | undefined
  readonly retryMillis: number
  /** The answered request's id. */
  readonly requestId: string
}

const done = { done: true, value: undefined } as const

/** Prints a listener's messages. While it waits, it is little more than this object: there may be thousands. */
class Texts implements TextStream {
  private readonly shared: Shared
  private readonly listener: Listener
  private readonly requestId: string
  private readonly retryMillis: number
  private readonly take: (message: ListenerMessage) => void
  /** The callback for the next text. */
  private receiver: ((text: string | undefined) => void) | undefined
  private isFirst = true
  private isOver = false

  constructor(shared: Shared, { listener, requestId, retryMillis }: Source) {
    this.shared = shared
    this.listener = listener
    this.requestId = requestId
    this.retryMillis = retryMillis
    this.take = (message) => this.hand(message)
  }

  receive(receiver: (text: string | undefined) => void): void {
    if (this.isOver) return receiver(undefined)
    this.receiver = receiver
    this.listener.receive(this.take)
  }

  close(): void {
    void this.end()
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    return {
      next: () =>
        new Promise((resolve) => {
          this.receive((text) => resolve(text === undefined ? done : { value: text }))
        }),
      return: () => this.end().then(() => done),
    }
  }

  private end(): Promise<void> {
    this.isOver = true
    return this.shared.run(this.listener.close)
  }

  /** The last text for a client. */
  private lastOf(reason: ListenerEndReason): string | undefined {
    if (reason === "reset") return reset
    return reason === "unavailable" ? printRetry(retryFactor * this.retryMillis) : undefined
  }

  private hand(message: ListenerMessage): void {
    const { receiver } = this
    this.receiver = undefined
    if (message._tag === "End") {
      return void this.end().then(() => receiver?.(this.lastOf(message.reason)))
    }
    const text = this.print(message)
    if (text === undefined) void this.end().then(() => receiver?.(undefined))
    else receiver?.(text)
  }

  /** Prints a message. Returns `undefined` after a defect. */
  private print(message: Exclude<ListenerMessage, { readonly _tag: "End" }>): string | undefined {
    try {
      const head = this.isFirst ? printRetry(this.retryMillis) : ""
      this.isFirst = false
      return head + print(message)
    } catch (defect) {
      const { faults, run } = this.shared
      void run(faults.defect("A stream ended in a defect", Cause.die(defect), this.requestId))
      return undefined
    }
  }
}

/** Makes the function that builds responses, each passing on a listener's messages. */
export const makeEventStream =
  (shared: Shared) =>
  (source: Source): RawReply => {
    const { listener, signal } = source
    const close = (): void => void shared.run(listener.close)
    if (signal?.aborted === true) close()
    signal?.addEventListener("abort", close, { once: true })
    return { _tag: "Verbatim", headers: eventStreamHeaders, body: new Texts(shared, source) }
  }

// The place before the oldest event, in either order.
const firstPlace = "start"

const lastEventIdOf = (headers: HeaderFields): Effect.Effect<string | undefined, ApiError> => {
  const field = singleHeader(headers, "last-event-id")
  if (field._tag === "Absent" || (field._tag === "Value" && field.value === "")) {
    return Effect.undefined
  }
  return field._tag === "Value" && FeedCursor.is(field.value)
    ? Effect.succeed(field.value)
    : Effect.fail({ _tag: "MalformedRequest", message: "The header Last-Event-ID is invalid." })
}

/**
 * @param maxBodyBytes - the longest request body, in bytes
 * @param renewal - returns a function that authenticates the request again
 */
export const makeEventOperations = Effect.fnUntraced(function* (
  maxBodyBytes: number,
  renewal: Authentication["renewal"],
) {
  const acts = yield* EventActs
  const recordShown = yield* makeDisclosureAudit
  const feed = yield* Feed
  const listeners = yield* Listeners
  const faults = yield* ErrorReporter
  const respond = makeEventStream({ faults, run: Effect.runPromiseWith(yield* Effect.context()) })

  const accessOf = (
    { principal, request, requestId }: Call<"project_id">,
    projectId: string,
  ): StreamAccess => ({
    projectId,
    renew: renewal(request, principal),
    requestId: joinedText(requestId),
  })

  /**
   * Reads a feed page. A waiting request counts as an open connection, and its key has to be valid at
   * the end, too.
   */
  const readFeed = (call: Call<"project_id">, query: FeedPageQuery) =>
    query.waitMillis === 0
      ? feed.read(query)
      : Effect.andThen(
          listeners.slot(call.principal.keyId, query.projectId),
          feed.read({ ...query, signal: call.request.signal?.() }),
        ).pipe(
          Effect.scoped,
          Effect.catchTag("NoSlot", () => Effect.fail(connectionLimitError)),
          Effect.tap(() => recheckAccess(accessOf(call, query.projectId))),
        )

  const { get, list, publish } = eventOperations

  /** Reads a page with the latest events. Its cursor is its oldest event's id. */
  const listLatest = Effect.fnUntraced(function* (query: Decoded<typeof list.input>) {
    const { projectId } = query
    if (query.types !== undefined || query.wait !== 0) {
      return yield* new InvalidInput({
        field: "order",
        problem: "must be oldest with types or wait",
      })
    }
    // The oldest event has nothing before it.
    const isStart = query.after === firstPlace
    const before =
      isStart || query.after === undefined
        ? undefined
        : yield* readBranded("after", EventId, query.after.toLowerCase())
    const page = yield* feed.latest({
      projectId,
      // Before the oldest is nothing: only the project has to exist.
      limit: isStart ? 1 : query.limit,
      before,
    })
    const found = isStart ? [] : page.events
    return {
      message: "The latest events, newest first.",
      total: found.length,
      next: (isStart || page.isLast ? undefined : found.at(-1)?.id) ?? firstPlace,
      data: found.map((event) => disclosedEventData(event, query.data)),
    }
  })

  const listNext = Effect.fnUntraced(function* (
    { after, data, limit, projectId, types, wait }: Decoded<typeof list.input>,
    call: Call,
  ) {
    const page = yield* readFeed(call, { projectId, after, types, limit, waitMillis: 1000 * wait })
    return {
      total: page.events.length,
      next: page.cursor,
      data: page.events.map((event) => disclosedEventData(event, data)),
    }
  })

  const listPage = perform(list, maxBodyBytes, (query, _context, call) =>
    query.order === "newest" ? listLatest(query) : listNext(query, call),
  )

  const readStream = makeReader(list, streamQuery, maxBodyBytes)

  const stream = Effect.fnUntraced(function* (call: Call) {
    const { projectId, ...query } = yield* readStream(call)
    const lastEventId = yield* lastEventIdOf(call.request.headers)
    const access = accessOf(call, projectId)
    yield* admit(access)
    const listener = yield* listeners
      .open({
        client: call.principal.keyId,
        projectId,
        after: lastEventId ?? query.after,
        types: query.types,
        isAllowed: isStillAllowed(access, faults),
        grant: call.principal.digest,
      })
      .pipe(Effect.catchTag("NoSlot", () => Effect.fail(connectionLimitError)))
    return respond({
      listener,
      signal: call.request.signal?.(),
      retryMillis: yield* Random.nextIntBetween(shortestRetryMillis, longestRetryMillis),
      requestId: access.requestId,
    })
  })

  return ofResource("events", {
    list: (call: Call) =>
      acceptsEventStream(call.request.headers) ? stream(call) : listPage(call),

    publish: perform(publish, maxBodyBytes, (input, context) =>
      Effect.map(acts.publish(input, context), (id) => ({ data: { id } })),
    ),

    get: perform(get, maxBodyBytes, ({ data, ...ids }, _context, call) =>
      Effect.gen(function* () {
        const event = yield* acts.find(ids)
        const deliveries = event.deliveries.map((delivery) => ({
          webhook_id: delivery.webhookId,
          ...deliveryData(delivery),
        }))
        if (data) yield* recordShown(call, "data_shown", event.id)
        return { data: { ...disclosedEventData(event, data ? "true" : "false"), deliveries } }
      }),
    ),
  }) satisfies OperationsOn<"events">
})
