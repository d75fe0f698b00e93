/** Follows the feed by Server-Sent Events (HTML, 9.2), over as many connections as it takes. */

import type { WebhookEvent } from "./calls.ts"
import { checkNames } from "./field-names.ts"
import type { sleep } from "./request.ts"
import {
  type Connection,
  type Deadline,
  type OutgoingRequest,
  authorization,
  bodyChunks,
  deadline,
  isTransient,
  makeRequest,
  readBody,
  reconnectDelay,
} from "./request.ts"
import { TenureError, invalidResponse, parseObject, refusalError } from "./response.ts"

/** A frame: the fields before a blank line. */
export interface Frame {
  readonly event: string
  /** `undefined` if the frame has none. */
  readonly data: string | undefined
  /** The most recent id in the stream so far. */
  readonly id: string | undefined
  /** How long to wait before coming again, in milliseconds, if the frame says it. */
  readonly retry: number | undefined
}

const lineEnd = /\r\n|\r|\n/

// A line without a colon is a name alone. Without a name, it is a comment.
const field = /^([^:]*):? ?([^]*)$/

/** Collects fields and returns a frame at a blank line. */
const collector = () => {
  let id: string | undefined
  let event = ""
  let data: Array<string> = []
  let retry: number | undefined

  const finish = (): Frame => {
    const text = data.length === 0 ? undefined : data.join("\n")
    const frame = { event: event || "message", data: text, id, retry }
    event = ""
    data = []
    retry = undefined
    return frame
  }

  return (line: string): ReadonlyArray<Frame> => {
    if (line === "") return [finish()]
    const [, name, value = ""] = field.exec(line) ?? []
    if (name === "data") data.push(value)
    if (name === "event") event = value
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "retry" && /^\d+$/.test(value)) retry = Number(value)
    return []
  }
}

/**
 * Creates a parser. It takes text in pieces of any size and returns the frames completed by each piece.
 */
export const makeParser = (): ((text: string) => ReadonlyArray<Frame>) => {
  const collect = collector()
  let begun = ""
  let endsWithReturn = false
  return (text) => {
    // The line feed belongs to the previous piece's carriage return.
    const isSecondHalf = endsWithReturn && text.startsWith("\n")
    if (text !== "") endsWithReturn = text.endsWith("\r")
    const [first = "", ...lines] = (isSecondHalf ? text.slice(1) : text).split(lineEnd)
    lines.unshift(begun + first)
    begun = lines.pop() ?? ""
    return lines.flatMap(collect)
  }
}

/** A connection to the feed. */
interface FeedStream {
  /** The frames, until the server ends them or the connection fails. */
  readonly frames: AsyncIterable<Frame>
  /** Why the connection has failed, if it has. */
  readonly failure: () => TenureError | undefined
  /** Closes the connection. */
  readonly close: () => void
}

const mediaType = "text/event-stream"

// The server sends something every 15 seconds.
const longestSilence = 45_000

/** Why nothing arrives. A runtime may name the URL in its error, and so a ticket. */
const failureOf = (limit: Deadline, secret: string | undefined, cause: unknown): TenureError => {
  if (limit.isOver())
    return new TenureError({ code: "TIMEOUT", message: "Nothing arrived in time." })
  const isSecret = secret !== undefined && String(cause).includes(secret)
  return new TenureError({
    code: "NETWORK_ERROR",
    message: "The connection broke.",
    cause: isSecret ? undefined : cause,
  })
}

/** Parses chunks of bytes into frames. */
async function* framesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Frame> {
  const decoder = new TextDecoder()
  const parse = makeParser()
  let length = 0
  for await (const chunk of chunks) {
    const frames = parse(decoder.decode(chunk, { stream: true }))
    length = frames.length === 0 ? length + chunk.length : 0
    if (length > maxBytes)
      throw invalidResponse(200, `has an event that is longer than ${maxBytes} bytes`)
    yield* frames
  }
}

/** Iterates over a body's chunks. Aborts after 45 seconds without a chunk. */
const watched = (body: ReadableStream<Uint8Array>, limit: Deadline): AsyncIterable<Uint8Array> => {
  const chunks = bodyChunks(body)[Symbol.asyncIterator]()
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        limit.start(longestSilence)
        return chunks.next().finally(limit.stop)
      },
    }),
  }
}

/**
 * Opens a connection.
 *
 * @param ticket - identifies the caller instead of the token
 * @param signal - closes the connection
 * @returns the connection, or the error
 */
const openFeedStream = async (
  { baseUrl, fetch, maxResponseBytes, timeout, token }: Connection,
  { target }: OutgoingRequest,
  ticket: string | undefined,
  signal: AbortSignal | undefined,
): Promise<FeedStream | TenureError> => {
  const limit = deadline(signal)
  const secret = ticket ?? token
  const errorOf = (cause: unknown): TenureError =>
    cause instanceof TenureError ? cause : failureOf(limit, secret, cause)

  const close = () => {
    limit.abort()
    limit.clear()
  }

  const receive = (body: ReadableStream<Uint8Array>): FeedStream => {
    let failure: TenureError | undefined
    async function* frames() {
      try {
        yield* framesOf(watched(body, limit), maxResponseBytes)
      } catch (cause) {
        failure = errorOf(cause)
      }
    }
    return { frames: frames(), failure: () => failure, close }
  }

  try {
    limit.start(timeout)
    const response = await fetch(baseUrl + target, {
      headers: { accept: mediaType, ...(ticket === undefined && authorization(token)) },
      // Another server must not see the token.
      redirect: "manual",
      signal: limit.signal,
    })
    const { body, headers, status } = response
    const isStream = headers.get("content-type")?.startsWith(mediaType) === true
    if (status === 200 && isStream && body !== null) return receive(body)
    const text = (await readBody(response, maxResponseBytes)) ?? ""
    limit.clear()
    return status === 200
      ? invalidResponse(status, "is not an event stream")
      : refusalError({ status, retryAfter: headers.get("retry-after"), text }, secret, Date.now())
  } catch (cause) {
    limit.clear()
    return errorOf(cause)
  }
}

/**
 * A subscription to a project's events. Callbacks may return promises: the subscription waits for them
 * before it continues. If one throws or rejects, the subscription rejects with the same error.
 *
 * @typeParam Own - the data in your own events, by type
 */
export interface Subscription<Own extends object = {}> {
  /** The project id. */
  readonly project_id: string
  /** The cursor to begin after, or `"start"` for the oldest kept event. Default: now. */
  readonly after?: string | undefined
  /** Only events with these types. Default: all. */
  readonly types?: ReadonlyArray<string> | undefined
  /**
   * Gets a ticket to use instead of the token, because a browser must not know the token. Called for
   * each connection: a ticket is valid once. If it rejects, it is called again later, unless it rejects
   * with a permanent `TenureError`.
   */
  readonly ticket?: (() => Promise<string>) | undefined
  /** Processes an event. */
  readonly onEvent: (event: WebhookEvent<Own>) => unknown
  /** Receives the cursor after all processed events. Begin after it next time. */
  readonly onCursor?: ((cursor: string) => unknown) | undefined
  /**
   * Called when events are missing: either the server deleted those after the cursor, or it was
   * restored from a backup. Read the project's current state here. Return a cursor to continue after
   * it; otherwise, the events since just before the call follow. Without this callback, the
   * subscription rejects with the code `CURSOR_EXPIRED`.
   */
  readonly onReset?: (() => unknown) | undefined
  /**
   * Called when a connection has failed and another one follows.
   *
   * @param wait - how long until then, in milliseconds
   */
  readonly onRetry?: ((error: TenureError, wait: number) => unknown) | undefined
  /** Ends the subscription. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Follows a project's events until the signal aborts. Reconnects when a connection ends or fails,
 * without missing an event. Events arrive in order and once, unless you start again from an earlier
 * cursor.
 *
 * @returns a promise, fulfilled when the signal aborts. It rejects with a `TenureError` if the server
 *   refuses the connection permanently, for example with the code `PROJECT_NOT_FOUND`.
 * @example
 * ```ts
 * import { createClient } from "tenure/client"
 *
 * const client = createClient({ baseUrl: "http://127.0.0.1:3000", token: "a token" })
 * await client.events.subscribe({
 *   project_id: "p1",
 *   onEvent: (event) => {
 *     if (event.type === "membership.extended") console.log(event.data.user_id)
 *   },
 * })
 * ```
 */
export type Subscribe = <Own extends object = {}>(subscription: Subscription<Own>) => Promise<void>

// The wait before a connection if the server does not say it, in milliseconds.
const defaultWait = 1000

// More than a page holds: after a broken connection, part of a page arrives again.
const maxKnown = 2000

/** Remembers the latest event ids. */
const memory = () => {
  const known = new Set<string>()
  return {
    has: (id: string) => known.has(id),
    clear: () => known.clear(),
    add: (id: string): void => {
      known.add(id)
      const [oldest] = known
      if (known.size > maxKnown && oldest !== undefined) known.delete(oldest)
    },
  }
}

/** Tells whether a body is an event. The OpenAPI document describes its data; nothing checks it here. */
const isEvent = <Event extends object>(body: object | undefined): body is Event =>
  body !== undefined &&
  "id" in body &&
  "type" in body &&
  typeof body.id === "string" &&
  typeof body.type === "string"

const ticketBy = async (get: () => Promise<string>): Promise<string | TenureError> => {
  try {
    return await get()
  } catch (cause) {
    return cause instanceof TenureError
      ? cause
      : new TenureError({ code: "NETWORK_ERROR", message: "There is no ticket.", cause })
  }
}

interface Settings extends Connection {
  readonly sleep: typeof sleep
}

const subscriptionNames = [
  "project_id",
  "after",
  "types",
  "ticket",
  "onEvent",
  "onCursor",
  "onReset",
  "onRetry",
  "signal",
]

export const makeSubscribe =
  (settings: Settings): Subscribe =>
  async <Own extends object = {}>(subscription: Subscription<Own>) => {
    checkNames(subscription, subscriptionNames)
    const { onCursor, onEvent, onReset, onRetry, project_id, signal, ticket, types } = subscription
    let { after } = subscription
    let isReset = false
    let wait = defaultWait
    let failures = 0
    const known = memory()

    const isOver = () => signal?.aborted === true

    /** Begins anew, from now on. */
    const reset = (error: TenureError): void => {
      if (onReset === undefined) throw error
      isReset = true
      after = undefined
      known.clear()
    }

    /** Moves to a cursor. After a reset, the first cursor precedes the project's new state. */
    const goTo = async (cursor: string): Promise<void> => {
      const chosen = isReset ? await onReset?.() : undefined
      isReset = false
      after = typeof chosen === "string" ? chosen : cursor
      await onCursor?.(after)
    }

    /** Processes a frame. Returns whether the connection can go on. */
    const take = async ({ data, event, id, retry }: Frame): Promise<boolean> => {
      wait = retry ?? wait
      // The connection works, also if no event comes for long.
      failures = 0
      const body = data === undefined ? undefined : parseObject(data)
      if (isEvent<WebhookEvent<Own>>(body)) {
        if (!known.has(body.id)) await onEvent(body)
        known.add(body.id)
      } else if (event === "reset") {
        reset(new TenureError({ code: "CURSOR_EXPIRED", message: "Events are missing." }))
        return false
      }
      if (id !== undefined && id !== after) await goTo(id)
      return id === undefined || id === after
    }

    /** Follows the feed over one connection. Returns the error if the connection failed. */
    const follow = async (): Promise<TenureError | undefined> => {
      const given = ticket && (await ticketBy(ticket))
      if (given instanceof TenureError) return given
      const query = { project_id, after, types: types?.join(), ticket: given }
      const outgoing = makeRequest("GET", "/v2/projects/{project_id}/events", query)
      const stream = await openFeedStream(settings, outgoing, given, signal)
      if (stream instanceof TenureError) return stream
      try {
        for await (const frame of stream.frames) {
          if (isOver() || !(await take(frame))) break
        }
        return stream.failure()
      } finally {
        stream.close()
      }
    }

    const pause = async (error: TenureError | undefined): Promise<void> => {
      const millis = reconnectDelay(error, failures, wait, Math.random())
      failures = error === undefined ? 0 : failures + 1
      if (error !== undefined) await onRetry?.(error, millis)
      await settings.sleep(millis, signal).catch((reason: unknown) => {
        if (!isOver()) throw reason
      })
    }

    while (!isOver()) {
      const error = await follow()
      if (isOver()) return
      if (error?.code === "CURSOR_EXPIRED") reset(error)
      else if (error !== undefined && !isTransient(error)) throw error
      await pause(error)
    }
  }
