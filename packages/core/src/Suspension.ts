/** Suspension of API keys that keep running into limits. All instants are microseconds. */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ApiKeyId } from "./ApiKey.ts"
import * as Generations from "./internal/generations.ts"
import * as Setting from "./Setting.ts"

/** When a key is suspended, and for how long. */
export interface Options {
  /** Refusals that lead to a suspension; 50 by default. */
  readonly refusals?: number | undefined
  /** The time within which they have to fall; `"10 minutes"` by default. */
  readonly within?: Duration.Input | undefined
  /** How long the suspension lasts; `"10 minutes"` by default. */
  readonly duration?: Duration.Input | undefined
}

/** Counts refusals and suspends. */
export interface Suspensions {
  /** When the suspension of a key ends, if it is suspended at `now`. */
  readonly until: (keyId: ApiKeyId, now: number) => number | undefined
  /**
   * Counts a refusal; gives the end of the suspension if that was one too many. Those during a
   * suspension do not count.
   */
  readonly refuse: (keyId: ApiKeyId, now: number) => number | undefined
}

/** Suspends nobody. */
export const never: Suspensions = { until: () => undefined, refuse: () => undefined }

interface Offender {
  /** The last refusals, as a ring: the next one overwrites the oldest. */
  readonly refusals: Array<number>
  next: number
  suspended: { readonly from: number; readonly until: number } | undefined
}

// Only keys that exist can offend, so this is reached by no stranger. Beyond it those are forgotten
// who have been quiet for longest.
const maxOffenders = 10_000

const field = "rateLimits.suspension"

/** Makes the counters, which live in this process. */
export const make = Effect.fnUntraced(function* (options: Options) {
  const limit = yield* Setting.count(`${field}.refusals`, options.refusals ?? 50, {
    least: 1,
    most: 10_000,
  })
  const within = 1000 * (yield* Setting.millis(`${field}.within`, options.within ?? "10 minutes"))
  const duration =
    1000 * (yield* Setting.millis(`${field}.duration`, options.duration ?? "10 minutes"))
  const offenders = Generations.make<ApiKeyId, Offender>(maxOffenders)

  /** The end of a suspension, if it holds at `now`. */
  const endOf = (one: Offender, now: number): number | undefined => {
    const { suspended } = one
    // Before `from` the clock has been set back, and an end by the old clock means nothing.
    return suspended && now >= suspended.from && now < suspended.until ? suspended.until : undefined
  }

  /** What is known of a key; after a suspension, which leaves a clean slate, nothing. */
  const offender = (keyId: ApiKeyId, now: number): Offender => {
    const known = offenders.get(keyId)
    if (known && (known.suspended === undefined || endOf(known, now) !== undefined)) return known
    const fresh: Offender = { refusals: [], next: 0, suspended: undefined }
    offenders.set(keyId, fresh)
    return fresh
  }

  const suspensions: Suspensions = {
    until: (keyId, now) => {
      const one = offenders.get(keyId)
      const end = one && endOf(one, now)
      if (one?.suspended && end === undefined) offenders.delete(keyId)
      return end
    },
    refuse: (keyId, now) => {
      const one = offender(keyId, now)
      const end = endOf(one, now)
      if (end !== undefined) return end
      one.refusals[one.next] = now
      one.next = (one.next + 1) % limit
      const oldest = one.refusals[one.next] ?? -Infinity
      if (now < oldest || now - oldest > within) return undefined
      one.suspended = { from: now, until: now + duration }
      return one.suspended.until
    },
  }
  return suspensions
})
