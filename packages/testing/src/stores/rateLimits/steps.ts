/** Values and steps that tests of a `RateLimitStore` share. */

import { ApiKeyId } from "@tenure/core/ApiKey"
import { type Client, type Policies, RateLimitStore, type Take } from "@tenure/core/RateLimitStore"
import * as TokenBucket from "@tenure/core/TokenBucket"
import { Millis } from "@tenure/core/Units"
import * as Effect from "effect/Effect"

const hour = 3_600_000
export const five = TokenBucket.policy({ limit: 5, window: Millis(hour) })
/** Whose tokens return after a time that is no whole number of milliseconds. */
export const seven = TokenBucket.policy({ limit: 7, window: Millis(hour) })
export const twenty = TokenBucket.policy({ limit: 20, window: Millis(hour) })
export const hundred = TokenBucket.policy({ limit: 100, window: Millis(hour) })

export const policies: Policies = { address: hundred, key: hundred, burst: hundred }

/** A client without a valid API key. */
export const stranger = (address: string): Client => ({ address, keyId: undefined })

export const client = (address: string, keyId: string): Client => ({
  address,
  keyId: ApiKeyId(keyId),
})

export const take = Effect.fnUntraced(function* (of: Client, by: Policies = policies) {
  const store = yield* RateLimitStore
  return yield* store.take(of, by)
})

/** Returns the tokens that remain in each bucket after a take. */
export const remainders = (
  taken: Take,
  by: Policies = policies,
): Record<keyof Policies, number> => ({
  address: TokenBucket.remaining(taken.address, taken.now, by.address),
  key: TokenBucket.remaining(taken.key, taken.now, by.key),
  burst: TokenBucket.remaining(taken.burst, taken.now, by.burst),
})
