/**
 * Bounds how long callers wait for Redis, and how much is asked of it. The client of the host may keep
 * commands for as long as it is not connected.
 */

import { StoreUnavailable } from "@tenure/core/store"
import * as Exit from "effect/Exit"

// Each may be the script of a whole batch.
const mostUnanswered = 1000

// While Redis does not answer, it is asked again so long after it has failed to.
const pauseMillis = 1000

/** Is told the answer of Redis, or why there is none. */
export type SettleCall<A> = (outcome: Exit.Exit<A, StoreUnavailable>) => void

/** Guards callers against a Redis that does not answer. */
interface CircuitBreaker {
  /**
   * Asks Redis, and settles once. Fails with `StoreUnavailable` if that fails, if no answer comes in
   * time, or at once while Redis is known not to answer.
   */
  readonly ask: <A>(question: () => Promise<A>, settle: SettleCall<A>) => void
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Makes a guard.
 *
 * @param probe - a question that Redis can always answer
 * @param timeoutMillis - the longest that a caller waits
 */
const makeCircuitBreaker = (
  probe: () => Promise<unknown>,
  timeoutMillis: number,
): CircuitBreaker => {
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

/** The slot of a key in a cluster, as the specification of Redis Cluster defines it. */

const slots = 16_384

/** CRC-16/XMODEM. */
const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    }
    crc &= 0xffff
  }
  return crc
}

/** The part of a key that decides: what is between its first braces, if that is not empty. */
const tagOf = (key: string): string => /\{(.*?)\}/s.exec(key)?.[1] || key

const encoder = new TextEncoder()

/** Returns the slot of a key. */
export const slotOf = (key: string): number => crc16(encoder.encode(tagOf(key))) % slots

/** Guards for the servers of a Redis, so that one that fails holds up only requests for its buckets. */

/** Tells in which part of a Redis a bucket is. */
type PartOf = (bucket: string) => number

/** One server has all buckets. */
export const serverBreaker: PartOf = () => 0

// A server of a cluster has slots in long ranges: what is true of one is true of most in its part.
const slotsInPart = 256

/** The servers of a cluster have some parts each. */
export const clusterBreakers: PartOf = (bucket) => Math.floor(slotOf(bucket) / slotsInPart)

/** Guards by part. */
export interface CircuitBreakers {
  /** Returns the guard for a bucket. */
  readonly of: (bucket: string) => CircuitBreaker
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Makes the guards.
 *
 * @param probe - a question about a bucket that its server can always answer
 * @param timeoutMillis - the longest that a caller waits
 */
export const makeCircuitBreakers = (
  partOf: PartOf,
  probe: (bucket: string) => Promise<unknown>,
  timeoutMillis: number,
): CircuitBreakers => {
  const guards = new Map<number, CircuitBreaker>()
  let isClosed = false

  const add = (bucket: string): CircuitBreaker => {
    const guard = makeCircuitBreaker(() => probe(bucket), timeoutMillis)
    guards.set(partOf(bucket), guard)
    if (isClosed) guard.close()
    return guard
  }

  return {
    of: (bucket) => guards.get(partOf(bucket)) ?? add(bucket),
    close: () => {
      isClosed = true
      for (const { close } of guards.values()) close()
    },
  }
}
