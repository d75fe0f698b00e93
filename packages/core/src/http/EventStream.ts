/** The feed as Server-Sent Events (HTML, 9.2). */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Faults } from "../base/Faults.ts"
import type { FeedEvent } from "../events/FeedStore.ts"
import type { EndReason, Listener, Message } from "../events/Listeners.ts"
import { eventStream } from "./Accept.ts"
import type { Verbatim } from "./Envelope.ts"
import * as EventData from "./EventData.ts"

/** How long a client waits before it reconnects, in milliseconds: a random time between these. */
export const shortestRetryMillis = 1000
export const longestRetryMillis = 3000

const headers: Verbatim["headers"] = {
  "Content-Type": eventStream,
  // Who compresses responses collects them first.
  "Cache-Control": "no-store, no-transform",
  // The proxy of nginx collects them, too.
  "X-Accel-Buffering": "no",
}

// Neither a type nor JSON has line ends, and a cursor has no NUL either.
const printEvent = (event: FeedEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(EventData.of(event))}\n\n`

const heartbeat = ":\n\n"

// Whoever was sent away because a store does not answer waits longer than others.
const retryFactor = 5

const printRetry = (millis: number): string => `retry: ${millis}\n\n`

const reset = 'event: reset\ndata: {"reason":"cursor_expired"}\n\n'

/**
 * Prints a message. The last event of a page has the id of the place after the page, so that a client that
 * breaks off within a page gets it again.
 */
const print = (message: Exclude<Message, { readonly _tag: "End" }>): string => {
  if (message._tag === "Heartbeat") return heartbeat
  const { cursor, events } = message
  const last = events.at(-1)
  const id = `id: ${cursor}\n`
  // Clients take note of an id without data, and dispatch nothing.
  if (last === undefined) return `${id}\n`
  return `${events.slice(0, -1).map(printEvent).join("")}${id}${printEvent(last)}`
}

/** What all streams share. */
interface Shared {
  readonly faults: Faults
  /** Runs an effect that cannot fail as a promise. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
}

/** A stream to make. */
interface Source {
  readonly listener: Listener
  /** Closes the listener when it aborts. */
  readonly signal: AbortSignal | undefined
  readonly retryMillis: number
  /** The request that it answers. */
  readonly requestId: string
}

const done = { done: true, value: undefined } as const

/** Prints what a listener gets. While it waits, it is no more than this object and a promise. */
class Texts implements AsyncIterator<string> {
  private readonly shared: Shared
  private readonly listener: Listener
  private readonly requestId: string
  private readonly retryMillis: number
  /** What precedes the next text. */
  private head: string
  private isOver = false

  constructor(shared: Shared, { listener, requestId, retryMillis }: Source) {
    this.shared = shared
    this.listener = listener
    this.requestId = requestId
    this.retryMillis = retryMillis
    this.head = printRetry(retryMillis)
  }

  next(): Promise<IteratorResult<string>> {
    return this.isOver
      ? Promise.resolve(done)
      : new Promise((resolve) => {
          this.listener.receive((message) => resolve(this.resultOf(message)))
        })
  }

  return(): Promise<IteratorResult<string>> {
    return this.shared.run(this.end)
  }

  private get end(): Effect.Effect<IteratorResult<string>> {
    this.isOver = true
    return Effect.as(this.listener.close, done)
  }

  /** What a client is told at the end. */
  private lastOf(reason: EndReason): string | undefined {
    if (reason === "reset") return reset
    return reason === "unavailable" ? printRetry(retryFactor * this.retryMillis) : undefined
  }

  private resultOf(message: Message): IteratorResult<string> | Promise<IteratorResult<string>> {
    const { faults, run } = this.shared
    try {
      if (message._tag !== "End") {
        const value = this.head + print(message)
        this.head = ""
        return { value }
      }
      const ended = run(this.end)
      const last = this.lastOf(message.reason)
      return last === undefined ? ended : ended.then(() => ({ value: last }))
    } catch (defect) {
      const cause = Cause.die(defect)
      const reported = faults.defect("A stream ended in a defect", cause, this.requestId)
      return run(Effect.andThen(reported, this.end))
    }
  }
}

/** Makes the function that makes responses, each of which hands on what a listener gets. */
export const make =
  (shared: Shared) =>
  (source: Source): Verbatim => {
    const { listener, signal } = source
    const close = (): void => void shared.run(listener.close)
    if (signal?.aborted === true) close()
    signal?.addEventListener("abort", close, { once: true })
    return {
      _tag: "Verbatim",
      headers,
      body: { [Symbol.asyncIterator]: () => new Texts(shared, source) },
    }
  }
