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

/** The seconds of the window, which `increment` has rounded up by less than a microsecond a token. */
const windowSeconds = ({ increment, limit }: TokenBucket.Policy): number =>
  Math.ceil(((increment - 1) * limit + 1) / 1_000_000)

const policyItem = ([name, policy]: readonly [string, TokenBucket.Policy]): string =>
  `"${name}";q=${policy.limit};w=${windowSeconds(policy)}`

/**
 * Makes a function that returns the fields for a report.
 *
 * @param policies - the policies that hold, by name
 */
export const make = (policies: Partial<Policies>): ((report: Report) => RateLimitFields) => {
  const policy = Object.entries(policies).map(policyItem).join(", ")
  return ({ bucket, refill, remaining }) => ({
    "RateLimit-Policy": policy,
    RateLimit: `"${bucket}";r=${remaining};t=${refill}`,
  })
}
