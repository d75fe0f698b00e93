/**
 * Bounds how long callers wait for Redis, and how much is asked of it. The client of the host may keep
 * commands for as long as it is not connected.
 */

import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Exit from "effect/Exit"

// Each may be the script of a whole batch.
const mostUnanswered = 1000

// While Redis does not answer, it is asked again so long after it has failed to.
const pauseMillis = 1000

/** Is told the answer of Redis, or why there is none. */
export type Settle<A> = (outcome: Exit.Exit<A, StoreUnavailable>) => void

/** Guards callers against a Redis that does not answer. */
export interface Guard {
  /**
   * Asks Redis, and settles once. Fails with `StoreUnavailable` if that fails, if no answer comes in
   * time, or at once while Redis is known not to answer.
   */
  readonly ask: <A>(question: () => Promise<A>, settle: Settle<A>) => void
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Makes a guard.
 *
 * @param probe - a question that Redis can always answer
 * @param timeoutMillis - the longest that a caller waits
 */
export const make = (probe: () => Promise<unknown>, timeoutMillis: number): Guard => {
  const waiting = new Set<(cause: unknown) => void>()
  let unanswered = 0
  let unavailable: StoreUnavailable | undefined
  let isClosed = false

  /** Fails all calls, those in flight and those to come. */
  const refuse = (cause: string): void => {
    unavailable = new StoreUnavailable({ cause })
    for (const fail of waiting) fail(cause)
  }

  const recover = (): void => {
    if (!isClosed) unavailable = undefined
  }

  /** Asks again and again. An answer that comes late is none: callers would not wait for it. */
  const untilAnswered = (): void => {
    if (isClosed) return
    const began = performance.now()
    probe().then(
      () => (performance.now() - began <= timeoutMillis ? recover() : askLater()),
      askLater,
    )
  }

  const askLater = (): void => void setTimeout(untilAnswered, pauseMillis).unref()

  const timeout = (): void => {
    if (unavailable !== undefined) return
    refuse("timeout")
    untilAnswered()
  }

  return {
    ask: (question, settle) => {
      if (unavailable !== undefined) return settle(Exit.fail(unavailable))
      if (unanswered >= mostUnanswered) {
        return settle(Exit.fail(new StoreUnavailable({ cause: "crowded" })))
      }
      unanswered++
      const judge = (): void => {
        if (waiting.has(fail)) timeout()
      }
      // After a long turn of the event loop, timers come before the answers that are already there.
      const timer = setTimeout(() => setImmediate(judge), timeoutMillis)
      const stopWaiting = (): boolean => {
        clearTimeout(timer)
        return waiting.delete(fail)
      }
      const fail = (cause: unknown): void => {
        if (stopWaiting()) settle(Exit.fail(new StoreUnavailable({ cause })))
      }
      waiting.add(fail)
      question().then(
        (answer) => {
          unanswered--
          if (stopWaiting()) settle(Exit.succeed(answer))
        },
        (cause) => {
          unanswered--
          fail(cause)
        },
      )
    },

    close: () => {
      isClosed = true
      refuse("closed")
    },
  }
}
