/**
 * A token bucket kept as one number, in the form of the generic cell rate algorithm (GCRA; ITU-T
 * I.371): the instant at which the bucket is full again if nothing more is taken, its *theoretical
 * arrival time* or `tat`.
 *
 * All instants and durations here are whole microseconds, so that no rounding error gives or takes
 * a token: sums stay far below 2^53.
 */

/** How much a bucket holds and how fast it fills. */
export interface Policy {
  /** Tokens that come back in one window. */
  readonly limit: number
  /** Tokens a full bucket holds. */
  readonly capacity: number
  /** Microseconds until one token comes back. */
  readonly increment: number
}

/** What is known of a bucket: the instant it is full again; `undefined` is a full bucket. */
export type Tat = number | undefined

/**
 * Makes a policy. A window that `limit` does not divide is rounded so that the bucket fills a
 * trifle slower, never faster.
 *
 * @param options.limit - tokens a window, a whole number of at least 1
 * @param options.windowMillis - length of the window in milliseconds
 * @param options.capacity - tokens a full bucket holds; `limit` by default
 * @example
 * ```ts
 * import * as TokenBucket from "@tenure/core/TokenBucket"
 *
 * const hundredAMinute = TokenBucket.policy({ limit: 100, windowMillis: 60_000 })
 * const now = 0
 * const taken = TokenBucket.take(undefined, now, hundredAMinute)
 * TokenBucket.remaining(taken.tat, now, hundredAMinute) // 99
 * ```
 */
export const policy = (options: {
  readonly limit: number
  readonly windowMillis: number
  readonly capacity?: number | undefined
}): Policy => ({
  limit: options.limit,
  capacity: options.capacity ?? options.limit,
  increment: Math.ceil((options.windowMillis * 1000) / options.limit),
})

/** Microseconds in which an empty bucket becomes full. */
export const span = ({ capacity, increment }: Policy): number => capacity * increment

/**
 * The `tat` to reckon with at `now`. It is never before `now`, which would be more than full; and
 * never so late that the bucket would be less than empty, which only a clock set back can suggest.
 */
export const current = (tat: Tat, now: number, of: Policy): number =>
  tat === undefined || tat < now ? now : Math.min(tat, now + span(of))

/** Microseconds until a token can be taken; 0 when one can be taken now. */
export const wait = (tat: Tat, now: number, of: Policy): number =>
  Math.max(0, current(tat, now, of) + of.increment - now - span(of))

/** Whole tokens left at `now`. */
export const remaining = (tat: Tat, now: number, of: Policy): number =>
  Math.floor((span(of) - (current(tat, now, of) - now)) / of.increment)

/** The outcome of one take. A refusal leaves the bucket as it was. */
export interface Taken {
  readonly admitted: boolean
  /** The bucket after the take. */
  readonly tat: number
  /** Microseconds to wait before the next try is admitted; 0 when this one was. */
  readonly wait: number
}

/** Takes one token at `now`, or tells how long to wait for it. */
export const take = (tat: Tat, now: number, of: Policy): Taken => {
  const base = current(tat, now, of)
  const waiting = wait(tat, now, of)
  return waiting === 0
    ? { admitted: true, tat: base + of.increment, wait: 0 }
    : { admitted: false, tat: base, wait: waiting }
}
