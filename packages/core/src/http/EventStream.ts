/** The feed as Server-Sent Events (HTML, 9.2). */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { FeedEvent } from "../events/FeedStore.ts"
import type { Listener, Message } from "../events/Listeners.ts"
import { eventStream } from "./Accept.ts"
import type { Verbatim } from "./Envelope.ts"
import * as EventData from "./EventData.ts"

/** How long a client waits before it comes again, in milliseconds: not all at the same time. */
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

/** What a stream is made of. */
interface Source {
  readonly listener: Listener
  /** Closes the listener when it aborts. */
  readonly signal: AbortSignal | undefined
  readonly retryMillis: number
  /** Runs an effect that cannot fail as a promise. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
  /** Reports a defect, which ends the stream. */
  readonly report: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

const done = { done: true, value: undefined } as const

/** Prints what a listener gets. While it waits, it is no more than this object and a promise. */
class Texts implements AsyncIterator<string> {
  private readonly source: Source
  private isFirst = true
  private isOver = false

  constructor(source: Source) {
    this.source = source
  }

  next(): Promise<IteratorResult<string>> {
    return this.isOver
      ? Promise.resolve(done)
      : new Promise((resolve) => {
          this.source.listener.receive((message) => resolve(this.resultOf(message)))
        })
  }

  return(): Promise<IteratorResult<string>> {
    return this.source.run(this.end)
  }

  private get end(): Effect.Effect<IteratorResult<string>> {
    this.isOver = true
    return Effect.as(this.source.listener.close, done)
  }

  private resultOf(message: Message): IteratorResult<string> | Promise<IteratorResult<string>> {
    const { report, retryMillis, run } = this.source
    try {
      if (message._tag !== "End") {
        const before = this.isFirst ? `retry: ${retryMillis}\n\n` : ""
        this.isFirst = false
        return { value: before + print(message) }
      }
      const ended = run(this.end)
      return message.reason === "reset" ? ended.then(() => ({ value: reset })) : ended
    } catch (defect) {
      return run(Effect.andThen(report(Cause.die(defect)), this.end))
    }
  }
}

/** Makes the response that hands on what a listener gets. */
export const respond = (source: Source): Verbatim => {
  const { listener, run, signal } = source
  const close = (): void => void run(listener.close)
  if (signal?.aborted === true) close()
  signal?.addEventListener("abort", close, { once: true })
  return {
    _tag: "Verbatim",
    headers,
    body: { [Symbol.asyncIterator]: () => new Texts(source) },
  }
}
