/** Limits calls to Redis in time and number: a disconnected client may queue commands without limit. */

import { StoreUnavailable } from "@tenure/core/store"
import * as Exit from "effect/Exit"

// Each may be a whole batch's script.
const maxUnanswered = 1000

// While Redis does not answer, it is asked again so long after it has failed to.
const pauseMillis = 1000

/** Receives the reply from Redis, or the failure. */
export type SettleCall<A> = (outcome: Exit.Exit<A, StoreUnavailable>) => void

/** Protects callers from an unresponsive Redis. */
interface CircuitBreaker {
  /**
   * Calls Redis and settles once. Fails with `StoreUnavailable` if the call fails or times out, or at
   * once during an outage.
   */
  readonly ask: <A>(question: () => Promise<A>, settle: SettleCall<A>) => void
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Creates a circuit breaker.
 *
 * @param probe - a call Redis can always answer
 * @param timeoutMillis - how long a caller waits at most
 */
const makeCircuitBreaker = (
  probe: () => Promise<unknown>,
  timeoutMillis: number,
): CircuitBreaker => {
  const waiting = new Set<(cause: unknown) => void>()
  let unanswered = 0
  let unavailable: StoreUnavailable | undefined
  let isClosed = false

  /** Fails all calls, current and future. */
  const refuse = (cause: string): void => {
    unavailable = new StoreUnavailable({ cause })
    for (const fail of waiting) fail(cause)
  }

  const recover = (): void => {
    if (!isClosed) unavailable = undefined
  }

  /** Repeats the probe. A late reply does not count: callers would not wait for it. */
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
      if (unanswered >= maxUnanswered) {
        return settle(Exit.fail(new StoreUnavailable({ cause: "crowded" })))
      }
      unanswered++
      const judge = (): void => {
        if (waiting.has(fail)) timeout()
      }
      // After a long turn in the event loop, timers run before replies already received.
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

/**
 * Returns the hashed part of a key: the text in its first braces unless empty, otherwise the whole key.
 */
const tagOf = (key: string): string => /\{(.*?)\}/s.exec(key)?.[1] || key

const encoder = new TextEncoder()

/** Returns a key's slot. */
export const slotOf = (key: string): number => crc16(encoder.encode(tagOf(key))) % slots

/** Returns the index for a bucket's circuit breaker. */
type PartOf = (bucket: string) => number

/** One server has all buckets. */
export const serverBreaker: PartOf = () => 0

// Servers in a cluster own long ranges of slots, so neighbours usually fail together.
const slotsInPart = 256

/** A circuit breaker for each range of slots in a cluster. */
export const clusterBreakers: PartOf = (bucket) => Math.floor(slotOf(bucket) / slotsInPart)

/** Guards by part. */
export interface CircuitBreakers {
  /** Returns the guard for a bucket. */
  readonly of: (bucket: string) => CircuitBreaker
  /** From now on, every call fails. */
  readonly close: () => void
}

/**
 * Creates the circuit breakers. A failing server delays only requests for its own buckets.
 *
 * @param probe - a call about a bucket its server can always answer
 * @param timeoutMillis - how long a caller waits at most
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
