/** The decision on a request, and what the response says about the limits. */

import type { Moment } from "../base/Moment.ts"
import { add, type Micros, subtract, toMicros, toSeconds } from "../base/Units.ts"
import type { Refuser } from "../telemetry/Observer.ts"
import type { Client, Policies, Take } from "./RateLimitStore.ts"
import type { Refusal } from "./RefusalCache.ts"
import * as TokenBucket from "./TokenBucket.ts"

/** The values of the rate-limit headers. */
export interface Report {
  /** The bucket that is reported. */
  readonly bucket: keyof Policies
  readonly limit: number
  /** Whole requests left; 0 on a refusal. */
  readonly remaining: number
  /** Unix time in seconds at which the full allowance is back. */
  readonly reset: number
  /** Seconds until one more request is allowed; 0 with the full allowance. */
  readonly refill: number
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
  bucket: keyof Policies,
  policy: TokenBucket.Policy,
  tat: Micros,
  storeNow: Micros,
  now: Moment,
): Report => ({
  bucket,
  limit: policy.limit,
  remaining: TokenBucket.remaining(tat, storeNow, policy),
  reset: unixAfter(now, subtract(tat, storeNow)),
  refill: toSeconds(TokenBucket.refill(tat, storeNow, policy)),
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
  const ofAddress = reportOf("address", policies.address, address, storeNow, now)
  if (keyId === undefined) return { _tag: "Admitted", report: ofAddress }
  const ofKey = reportOf("key", policies.key, key, storeNow, now)
  return {
    _tag: "Admitted",
    report: ofAddress.remaining < ofKey.remaining ? ofAddress : ofKey,
  }
}

/** Refuses a request, and reports the empty bucket. */
export const refused = (
  by: Refuser,
  { full, name, policy, until }: Omit<Refusal, "isByKey">,
  now: Moment,
): Decision => {
  const tick = toMicros(now.tick)
  const retryAfter = Math.max(1, toSeconds(subtract(until, tick)))
  return {
    _tag: "Refused",
    by,
    report: {
      bucket: name,
      limit: policy.limit,
      remaining: 0,
      reset: unixAfter(now, subtract(full, tick)),
      refill: retryAfter,
    },
    retryAfter,
  }
}

/** Refuses a request whose key is suspended until an instant. */
export const suspended = ({ key }: Policies, until: Micros, now: Moment): Decision =>
  refused("suspension", { name: "key", policy: key, until, full: until }, now)

/** The bucket to report of a client whose buckets are unknown. */
const bucketOf = ({ keyId }: Client): "address" | "key" => (keyId === undefined ? "address" : "key")

/** Admits a request without limits, because the store is down. */
export const unlimited = (policies: Policies, client: Client, now: Moment): Decision => {
  const bucket = bucketOf(client)
  const { capacity, limit } = policies[bucket]
  return {
    _tag: "Admitted",
    report: { bucket, limit, remaining: capacity, reset: toSeconds(toMicros(now.unix)), refill: 0 },
  }
}

/** Serves no request, because the store is down. */
export const unavailable = (policies: Policies, client: Client, now: Moment): Decision => {
  const bucket = bucketOf(client)
  const { limit } = policies[bucket]
  return {
    _tag: "Unavailable",
    report: { bucket, limit, remaining: 0, reset: toSeconds(toMicros(now.unix)), refill: 0 },
  }
}
