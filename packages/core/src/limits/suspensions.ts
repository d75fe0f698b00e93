/** Suspends API keys after too many refused requests. */

import { makeLruCache } from "../base/lru-cache.ts"
import * as Setting from "../base/setting.ts"
import { type Micros, addMicros, toMicros } from "../base/time.ts"
import type { ApiKeyId } from "../base/values.ts"

/** When a key is suspended, and for how long. */
export const suspensionOptions = Setting.object({
  /** Refusals before a suspension. Default: `50`. */
  refusals: Setting.withDefault(Setting.integer({ most: 10_000 }), 50),
  /** The time span in which these refusals count. Default: `"10 minutes"`. */
  within: Setting.withDefault(Setting.duration(), "10 minutes"),
  /** How long a suspension lasts. Default: `"10 minutes"`. */
  duration: Setting.withDefault(Setting.duration(), "10 minutes"),
})

/** The options as a host passes them. */
export interface SuspensionOptions extends Setting.InputOf<typeof suspensionOptions> {}

/** The options as the library uses them. */
export interface SuspensionSettings extends Setting.OutputOf<typeof suspensionOptions> {}

/** Counts refusals and suspends keys. All times are by this process's monotonic clock. */
export interface Suspensions {
  /** Returns when a key's suspension ends, if it is suspended at `now`. */
  readonly until: (keyId: ApiKeyId, now: Micros) => Micros | undefined
  /**
   * Counts a refusal. Returns when the key's suspension ends, if it is suspended now. Refusals during a
   * suspension do not count.
   */
  readonly refuse: (keyId: ApiKeyId, now: Micros) => Micros | undefined
  /** Returns the keys suspended at `now`. */
  readonly suspended: (now: Micros) => ReadonlyArray<ApiKeyId>
}

/** Never suspends a key. */
export const noSuspensions: Suspensions = {
  until: () => undefined,
  refuse: () => undefined,
  suspended: () => [],
}

/** A key with refused requests. */
interface Offender {
  /** The times of the latest refusals: a ring in which the next one overwrites the oldest. */
  readonly refusals: Array<Micros>
  next: number
  /** When its suspension ends, if it was suspended. */
  suspendedUntil: Micros | undefined
}

// Only existing keys can be offenders, so strangers cannot fill this.
const maxOffenders = 10_000

/** Adds a refusal to the ring, and tells whether it holds `limit` refusals within the time `within`. */
const addRefusal = (one: Offender, now: Micros, limit: number, within: Micros): boolean => {
  one.refusals[one.next] = now
  one.next = (one.next + 1) % limit
  const oldest = one.refusals[one.next]
  return oldest !== undefined && now - oldest <= within
}

/** Makes the counters. This process keeps them for itself. */
export const makeSuspensions = (settings: SuspensionSettings): Suspensions => {
  const { refusals: limit } = settings
  const within = toMicros(settings.within)
  const duration = toMicros(settings.duration)
  const offenders = makeLruCache<ApiKeyId, Offender>(maxOffenders)

  /** Returns a known offender. An expired suspension leaves nothing behind. */
  const find = (keyId: ApiKeyId, now: Micros): Offender | undefined => {
    const one = offenders.get(keyId)
    if (one?.suspendedUntil === undefined || now < one.suspendedUntil) return one
    offenders.delete(keyId)
    return undefined
  }

  const addOffender = (keyId: ApiKeyId): Offender => {
    const one: Offender = { refusals: [], next: 0, suspendedUntil: undefined }
    offenders.set(keyId, one)
    return one
  }

  return {
    until: (keyId, now) => find(keyId, now)?.suspendedUntil,
    refuse: (keyId, now) => {
      const one = find(keyId, now) ?? addOffender(keyId)
      if (one.suspendedUntil === undefined && addRefusal(one, now, limit, within)) {
        one.suspendedUntil = addMicros(now, duration)
      }
      return one.suspendedUntil
    },
    suspended: (now) =>
      offenders
        .entries()
        .filter(([, { suspendedUntil = 0 }]) => now < suspendedUntil)
        .map(([keyId]) => keyId),
  }
}
