/**
 * A token bucket kept as one number, in the form of the generic cell rate algorithm (GCRA; ITU-T
 * I.371): the instant at which the bucket will be full if nothing more is taken, its *theoretical
 * arrival time* or `tat`.
 *
 * Whole microseconds keep rounding errors from adding or removing tokens. Sums stay far below 2^53.
 */

import { add, inMicros, Micros, type Millis, toMicros } from "../base/Units.ts"

/** How much a bucket holds and how fast it fills. */
export interface Policy {
  /** Tokens that come back in one window. */
  readonly limit: number
  /** Tokens that a full bucket holds. */
  readonly capacity: number
  /** The time in which one token comes back. */
  readonly increment: Micros
}

/** The state of a bucket: the instant at which it will be full. `undefined` is a full bucket. */
export type Tat = Micros | undefined

/**
 * Makes a policy. If `limit` does not divide the window, the bucket fills slightly slower, never
 * faster.
 *
 * @param options.limit - tokens that come back in one window, a whole number of at least 1
 * @param options.window - length of the window
 * @param options.capacity - tokens that a full bucket holds; `limit` by default
 * @example
 * ```ts
 * import * as TokenBucket from "tenure/TokenBucket"
 * import { Micros, Millis } from "tenure/Units"
 *
 * const hundredAMinute = TokenBucket.policy({ limit: 100, window: Millis(60_000) })
 * const now = Micros(0)
 * const { tat } = TokenBucket.take(undefined, now, hundredAMinute)
 * TokenBucket.remaining(tat, now, hundredAMinute) // 99
 * ```
 */
export const policy = (options: {
  readonly limit: number
  readonly window: Millis
  readonly capacity?: number | undefined
}): Policy => ({
  limit: options.limit,
  capacity: options.capacity ?? options.limit,
  increment: Micros(Math.ceil(toMicros(options.window) / options.limit)),
})

/** The time in which an empty bucket becomes full. */
export const span = inMicros(({ capacity, increment }: Policy) => capacity * increment)

/**
 * The `tat` to calculate with at `now`. It is at least `now`, when the bucket is full, and at most
 * `now` plus the span, when the bucket is empty: a later one was stored before the clock was set back.
 */
export const current = inMicros((tat: Tat, now: Micros, of: Policy) =>
  tat === undefined || tat < now ? now : Math.min(tat, now + span(of)),
)

/** The time until a token can be taken; 0 if one can be taken now. */
export const wait = inMicros((tat: Tat, now: Micros, of: Policy) =>
  Math.max(0, current(tat, now, of) + of.increment - now - span(of)),
)

/** Whole tokens left at `now`. */
export const remaining = (tat: Tat, now: Micros, of: Policy): number =>
  Math.floor((span(of) - (current(tat, now, of) - now)) / of.increment)

/** The time until one more whole token is there; 0 if the bucket is full. */
export const refill = inMicros((tat: Tat, now: Micros, of: Policy) => {
  const missing = current(tat, now, of) - now
  return missing === 0 ? 0 : missing - of.increment * (Math.ceil(missing / of.increment) - 1)
})

/** The outcome of taking a token. A refusal leaves the bucket unchanged. */
export interface Take {
  readonly admitted: boolean
  /** The bucket after the take. */
  readonly tat: Micros
  /** The time until a token can be taken; 0 if this one was. */
  readonly wait: Micros
}

/** Takes one token at `now`, if there is one. */
export const take = (tat: Tat, now: Micros, of: Policy): Take => {
  const before = current(tat, now, of)
  const waiting = wait(tat, now, of)
  const admitted = waiting === 0
  return { admitted, tat: admitted ? add(before, of.increment) : before, wait: waiting }
}
