/** Rate limits: which buckets a request draws on, what is reported, and suspension. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as BucketTable from "./BucketTable.ts"
import { Hooks } from "./Hooks.ts"
import type { Refusal } from "./internal/refusals.ts"
import * as Refusals from "./internal/refusals.ts"
import { InvalidInput } from "./InvalidInput.ts"
import { type Client, type Policies, RateLimitStore, type Take } from "./RateLimitStore.ts"
import * as Setting from "./Setting.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import * as Suspension from "./Suspension.ts"
import * as TokenBucket from "./TokenBucket.ts"

export type { Client }

/** How many requests in which time. */
export interface Limit {
  /**
   * Requests that come back in one window: a whole number from 1 to 1,000,000,000. None comes back
   * faster than one a microsecond.
   */
  readonly limit: number
  /** The window, such as `"1 minute"`, or milliseconds; 1 ms to 366 days. */
  readonly window: Duration.Input
  /**
   * Requests that a client who has been idle may make at once; `limit` by default. In no window are
   * there more than `capacity + limit`. An empty bucket has to be full again within 366 days.
   */
  readonly capacity?: number | undefined
}

/** Options of the limiter. */
export interface Options {
  /** For each API key; 100 in a minute by default. */
  readonly perKey?: Limit | undefined
  /** For each client address; 300 in a minute by default. */
  readonly perAddress?: Limit | undefined
  /** For each API key in a short time; 20 in a second by default. */
  readonly burst?: Limit | undefined
  /** When a key that keeps running into limits is suspended, or `false` for never; after 50 refusals in 10 minutes by default. */
  readonly suspension?: Suspension.Options | false | undefined
  /**
   * What happens while the store is down: limits are kept in this process alone (`"local"`, the
   * default), or not at all (`"open"`), or every request is answered 503 (`"closed"`).
   */
  readonly onStoreFailure?: "local" | "open" | "closed" | undefined
}

/** What the rate-limit headers say. */
export interface Report {
  readonly limit: number
  /** Whole requests left; 0 on a refusal. */
  readonly remaining: number
  /** Unix time in seconds at which the full allowance is back. */
  readonly reset: number
}

/** The limiter's word on a request. */
export type Decision =
  | { readonly _tag: "Admitted"; readonly report: Report }
  /** A client that waits `retryAfter` seconds (1 at least), with no other traffic, is admitted. */
  | { readonly _tag: "Refused"; readonly report: Report; readonly retryAfter: number }
  /** The store is down, and the option is to answer no request without it. */
  | { readonly _tag: "Unavailable"; readonly report: Report }

/** Limits requests. */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Takes what a request costs, or refuses it. A refused request has cost nothing. */
    readonly take: (client: Client) => Effect.Effect<Decision>
  }
>()("@tenure/core/RateLimiter") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<RateLimiter, InvalidInput, RateLimitStore> =>
    Layer.effect(RateLimiter, make(options))
}

// From here on, instants and durations are whole microseconds.

const seconds = (micros: number): number => Math.ceil(micros / 1_000_000)

const longestSpan = 366 * 86_400_000_000

const policyOf = Effect.fnUntraced(function* (name: string, given: Limit) {
  const field = `rateLimits.${name}`
  const policy = TokenBucket.policy({
    limit: yield* Setting.count(`${field}.limit`, given.limit),
    windowMillis: yield* Setting.millis(`${field}.window`, given.window),
    capacity: yield* Setting.count(`${field}.capacity`, given.capacity ?? given.limit),
  })
  // Later instants could not be kept in whole microseconds.
  if (TokenBucket.span(policy) > longestSpan) {
    return yield* new InvalidInput({
      field: `${field}.capacity`,
      message: `${field}.capacity: an empty bucket has to be full again within 366 days`,
    })
  }
  return policy
})

const refused = ({ policy, tat, until }: Refusal, now: number): Decision => ({
  _tag: "Refused",
  report: { limit: policy.limit, remaining: 0, reset: seconds(tat) },
  retryAfter: Math.max(1, seconds(until - now)),
})

const reportOf = (policy: TokenBucket.Policy, tat: number, now: number): Report => ({
  limit: policy.limit,
  remaining: TokenBucket.remaining(tat, now, policy),
  reset: seconds(tat),
})

const make = Effect.fnUntraced(function* (options: Options) {
  const store = yield* RateLimitStore
  const hooks = yield* Hooks
  const onStoreFailure = yield* Setting.oneOf(
    "rateLimits.onStoreFailure",
    options.onStoreFailure ?? "local",
    ["local", "open", "closed"],
  )
  const policies: Policies = {
    key: yield* policyOf("perKey", options.perKey ?? { limit: 100, window: "1 minute" }),
    address: yield* policyOf(
      "perAddress",
      options.perAddress ?? { limit: 300, window: "1 minute" },
    ),
    burst: yield* policyOf("burst", options.burst ?? { limit: 20, window: "1 second" }),
  }
  const suspensions =
    options.suspension === false
      ? Suspension.never
      : yield* Suspension.make(options.suspension ?? {})
  const refusedKeys = Refusals.make([policies.key, policies.burst])
  const refusedAddresses = Refusals.make([policies.address])
  const local = BucketTable.make()

  /** Reports the key's bucket, or the address's where that has fewer left or there is no key; the burst never. */
  const report = ({ keyId }: Client, { address, key, now }: Take): Report => {
    const ofAddress = reportOf(policies.address, address, now)
    if (keyId === undefined) return ofAddress
    const ofKey = reportOf(policies.key, key, now)
    return ofAddress.remaining < ofKey.remaining ? ofAddress : ofKey
  }

  /** Remembers the buckets that refuse after a take; gives the one that does so longest. */
  const learn = ({ address, keyId }: Client, taken: Take, now: number): Refusal | undefined => {
    const ofAddress = refusedAddresses.learn(address, 0, taken.address, taken.now, now)
    if (keyId === undefined) return ofAddress
    const ofKey = refusedKeys.learn(keyId, 0, taken.key, taken.now, now)
    const ofBurst = refusedKeys.learn(keyId, 1, taken.burst, taken.now, now)
    return Refusals.longer(Refusals.longer(ofKey, ofBurst), ofAddress)
  }

  /** The bucket that is known to refuse longest. */
  const find = ({ address, keyId }: Client, now: number): Refusal | undefined =>
    Refusals.longer(
      keyId === undefined ? undefined : refusedKeys.find(keyId, now),
      refusedAddresses.find(address, now),
    )

  const suspended = (until: number, now: number): Decision =>
    refused({ policy: policies.key, until, tat: until }, now)

  /** Counts a refusal against the key, which may suspend it. */
  const count = ({ keyId }: Client, now: number, refusal: Refusal): Decision => {
    const until = keyId === undefined ? undefined : suspensions.refuse(keyId, now)
    return until === undefined ? refused(refusal, now) : suspended(until, now)
  }

  /** Refuses a client of whom it is known beforehand that he is to be refused. */
  const recall = (client: Client, now: number): Decision | undefined => {
    const { keyId } = client
    const until = keyId === undefined ? undefined : suspensions.until(keyId, now)
    if (until !== undefined) return suspended(until, now)
    const refusal = find(client, now)
    return refusal === undefined ? undefined : count(client, now, refusal)
  }

  const judge = (client: Client, taken: Take, now: number): Decision => {
    const refusal = learn(client, taken, now)
    return taken.admitted || refusal === undefined
      ? { _tag: "Admitted", report: report(client, taken) }
      : count(client, now, refusal)
  }

  const withoutStore = (client: Client, now: number): Decision => {
    const { capacity, limit } = client.keyId === undefined ? policies.address : policies.key
    const reset = seconds(now)
    switch (onStoreFailure) {
      case "local":
        return judge(client, local.take(client, policies, now), now)
      case "open":
        return { _tag: "Admitted", report: { limit, reset, remaining: capacity } }
      case "closed":
        return { _tag: "Unavailable", report: { limit, reset, remaining: 0 } }
    }
  }

  const tell = (reason: unknown) => hooks.failure("The limits' store does not answer", reason)

  /** Tells of a store that does not answer, or is broken, which is taken for the same. */
  const outage = (cause: Cause.Cause<StoreUnavailable>): Effect.Effect<void> => {
    const defect = Cause.findDefect(cause)
    if (Result.isSuccess(defect)) {
      const told = hooks.defect("The limits' store has a defect", Cause.die(defect.success))
      return Effect.andThen(told, tell(defect.success))
    }
    const error = Cause.findError(cause)
    return Result.isSuccess(error) ? tell(error.success.cause) : Effect.failCause(error.failure)
  }

  const ask = (client: Client, now: number): Effect.Effect<Decision> =>
    Effect.matchCauseEffect(store.take(client, policies), {
      onSuccess: (taken) => Effect.succeed(judge(client, taken, now)),
      onFailure: (cause) => Effect.map(outage(cause), () => withoutStore(client, now)),
    })

  return {
    take: (client: Client): Effect.Effect<Decision> =>
      Clock.clockWith((clock) => {
        const now = clock.currentTimeMillisUnsafe() * 1000
        const known = recall(client, now)
        return known === undefined ? ask(client, now) : Effect.succeed(known)
      }),
  }
})
