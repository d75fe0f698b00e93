/**
 * The header fields `RateLimit-Policy` and `RateLimit` of the IETF draft
 * (draft-ietf-httpapi-ratelimit-headers-10).
 */

import type { Report } from "./Decision.ts"
import type { Policies } from "./RateLimitStore.ts"
import type * as TokenBucket from "./TokenBucket.ts"

/** The fields of one response. */
export interface RateLimitFields {
  readonly "RateLimit-Policy": string
  readonly RateLimit: string
}

const windowSeconds = ({ increment, limit }: TokenBucket.Policy): number =>
  Math.ceil((increment * limit) / 1_000_000)

const policyItem = ([name, policy]: readonly [string, TokenBucket.Policy]): string =>
  `"${name}";q=${policy.limit};w=${windowSeconds(policy)}`

/**
 * Makes a function that returns the fields for a report.
 *
 * @param policies - the policies that hold, by name
 * @returns a function of a report and the time, in milliseconds since the epoch
 */
export const make = (
  policies: Partial<Policies>,
): ((report: Report, now: number) => RateLimitFields) => {
  const policy = Object.entries(policies).map(policyItem).join(", ")
  return ({ bucket, remaining, reset }, now) => ({
    "RateLimit-Policy": policy,
    RateLimit: `"${bucket}";r=${remaining};t=${Math.max(0, reset - Math.floor(now / 1000))}`,
  })
}
