/** The decision on a request, and what the response says about the limits. */

import type { Moment } from "../base/Moment.ts"
import { add, type Micros, subtract, toMicros, toSeconds } from "../base/Units.ts"
import type { Refuser } from "../telemetry/Observer.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import type { Refusal } from "./RefusalCache.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** The values of the rate-limit headers. */
export interface Report {
  readonly limit: number
  /** Whole requests left; 0 on a refusal. */
  readonly remaining: number
  /** Unix time in seconds at which the full allowance is back. */
  readonly reset: number
}

/** The decision on a request. */
export type Decision =
  | { readonly _tag: "Admitted"; readonly report: Report }
  /** A client that waits `retryAfter` seconds, at least 1, and sends nothing else is then admitted. */
  | {
      readonly _tag: "Refused"
      readonly by: Refuser
      readonly report: Report
      readonly retryAfter: number
    }
  /** The store is down, and the host wants no request to be served without it. */
  | { readonly _tag: "Unavailable"; readonly report: Report }

/** The Unix time in seconds that is so long after a moment. */
const unixAfter = ({ unix }: Moment, wait: Micros): number => toSeconds(add(toMicros(unix), wait))

/** Reports a bucket, whose `tat` and `storeNow` are by the store's clock. */
const reportOf = (
  policy: TokenBucket.Policy,
  tat: Micros,
  storeNow: Micros,
  now: Moment,
): Report => ({
  limit: policy.limit,
  remaining: TokenBucket.remaining(tat, storeNow, policy),
  reset: unixAfter(now, subtract(tat, storeNow)),
})

/**
 * Admits a request. Reports the key's bucket, or the address's if that has fewer tokens or there is no
 * key. The bucket that limits bursts is never reported.
 */
export const admitted = (
  policies: Policies,
  { keyId }: Client,
  { address, key, now: storeNow }: Take,
  now: Moment,
): Decision => {
  const ofAddress = reportOf(policies.address, address, storeNow, now)
  if (keyId === undefined) return { _tag: "Admitted", report: ofAddress }
  const ofKey = reportOf(policies.key, key, storeNow, now)
  return {
    _tag: "Admitted",
    report: ofAddress.remaining < ofKey.remaining ? ofAddress : ofKey,
  }
}

/** Refuses a request, and reports the empty bucket. */
export const refused = (
  by: Refuser,
  { full, policy, until }: Pick<Refusal, "full" | "policy" | "until">,
  now: Moment,
): Decision => {
  const tick = toMicros(now.tick)
  return {
    _tag: "Refused",
    by,
    report: {
      limit: policy.limit,
      remaining: 0,
      reset: unixAfter(now, subtract(full, tick)),
    },
    retryAfter: Math.max(1, toSeconds(subtract(until, tick))),
  }
}

/** Refuses a request whose key is suspended until an instant. */
export const suspended = ({ key }: Policies, until: Micros, now: Moment): Decision =>
  refused("suspension", { policy: key, until, full: until }, now)

/** The policy to report of a client whose buckets are unknown. */
const policyOf = (policies: Policies, { keyId }: Client): TokenBucket.Policy =>
  keyId === undefined ? policies.address : policies.key

/** Admits a request without limits, because the store is down. */
export const unlimited = (policies: Policies, client: Client, now: Moment): Decision => {
  const { capacity, limit } = policyOf(policies, client)
  return {
    _tag: "Admitted",
    report: { limit, remaining: capacity, reset: toSeconds(toMicros(now.unix)) },
  }
}

/** Serves no request, because the store is down. */
export const unavailable = (policies: Policies, client: Client, now: Moment): Decision => {
  const { limit } = policyOf(policies, client)
  return {
    _tag: "Unavailable",
    report: { limit, remaining: 0, reset: toSeconds(toMicros(now.unix)) },
  }
}
