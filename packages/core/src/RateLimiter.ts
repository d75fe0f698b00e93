/** Rate limits: which buckets a request draws on, what is reported, and suspension. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApiKeyId } from "./ApiKey.ts"
import * as BucketTable from "./BucketTable.ts"
import { Hooks } from "./Hooks.ts"
import * as ExhaustedBuckets from "./internal/exhaustedBuckets.ts"
import { InvalidInput } from "./InvalidInput.ts"
import { type Bucket, RateLimitStore, type Take } from "./RateLimitStore.ts"
import * as Setting from "./Setting.ts"
import { StoreUnavailable } from "./StoreUnavailable.ts"
import * as Suspension from "./Suspension.ts"
import * as TokenBucket from "./TokenBucket.ts"

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

/** Who a request is counted for. */
export interface Client {
  /** An address or a group of addresses, as `ClientAddress` gives it. */
  readonly address: string
  /** The key, if the request came with a valid one. */
  readonly keyId: ApiKeyId | undefined
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

/** A bucket that refuses: for how long yet, and when it is full again. */
interface Refusal {
  readonly policy: TokenBucket.Policy
  readonly wait: number
  readonly tat: number
}

const refused = ({ policy, tat, wait }: Refusal): Decision => ({
  _tag: "Refused",
  report: { limit: policy.limit, remaining: 0, reset: seconds(tat) },
  retryAfter: Math.max(1, seconds(wait)),
})

const longest = (refusals: ReadonlyArray<Refusal>): Refusal | undefined => {
  let most: Refusal | undefined
  for (const one of refusals) if (most === undefined || one.wait > most.wait) most = one
  return most
}

const reportOf = ({ policy }: Bucket, tat: number, now: number): Report => ({
  limit: policy.limit,
  remaining: TokenBucket.remaining(tat, now, policy),
  reset: seconds(tat),
})

/** The buckets of one request. */
interface Draw {
  /** The one whose numbers are reported, if the other has no fewer left. */
  readonly primary: Bucket
  readonly secondary: Bucket | undefined
  readonly all: ReadonlyArray<Bucket>
}

/** Reports the primary bucket, or the secondary where that has fewer left. */
const report = ({ primary, secondary }: Draw, { now, tats }: Take): Report => {
  const first = reportOf(primary, tats[0] ?? now, now)
  if (secondary === undefined) return first
  const second = reportOf(secondary, tats[1] ?? now, now)
  return second.remaining < first.remaining ? second : first
}

const make = Effect.fnUntraced(function* (options: Options) {
  const store = yield* RateLimitStore
  const hooks = yield* Hooks
  const onStoreFailure = yield* Setting.oneOf(
    "rateLimits.onStoreFailure",
    options.onStoreFailure ?? "local",
    ["local", "open", "closed"],
  )
  const perKey = yield* policyOf("perKey", options.perKey ?? { limit: 100, window: "1 minute" })
  const perAddress = yield* policyOf(
    "perAddress",
    options.perAddress ?? { limit: 300, window: "1 minute" },
  )
  const burst = yield* policyOf("burst", options.burst ?? { limit: 20, window: "1 second" })
  const suspensions =
    options.suspension === false
      ? Suspension.never
      : yield* Suspension.make(options.suspension ?? {})
  const exhausted = ExhaustedBuckets.make()
  const local = BucketTable.make()

  const drawOf = ({ address, keyId }: Client): Draw => {
    const ofAddress = { key: `address:${address}`, policy: perAddress }
    if (keyId === undefined) return { primary: ofAddress, secondary: undefined, all: [ofAddress] }
    const ofKey = { key: `key:${keyId}`, policy: perKey }
    const ofBurst = { key: `burst:${keyId}`, policy: burst }
    return { primary: ofKey, secondary: ofAddress, all: [ofKey, ofAddress, ofBurst] }
  }

  /** The buckets that are known to refuse, without asking the store. */
  const recall = ({ all }: Draw, now: number): ReadonlyArray<Refusal> =>
    all.flatMap(({ key, policy }) => {
      const known = exhausted.find(key, now)
      return known === undefined ? [] : [{ policy, wait: known.until - now, tat: known.tat }]
    })

  /** The buckets that refuse after a take, which are remembered as such. */
  const learn = ({ all }: Draw, take: Take, now: number): ReadonlyArray<Refusal> =>
    all.flatMap(({ key, policy }, index) => {
      const tat = take.tats[index] ?? take.now
      const wait = TokenBucket.wait(tat, take.now, policy)
      if (wait === 0) return []
      exhausted.remember(key, { since: now, until: now + wait, tat })
      return [{ policy, wait, tat }]
    })

  const suspended = (until: number, now: number): Decision =>
    refused({ policy: perKey, wait: until - now, tat: until })

  /** Counts a refusal against the key, which may suspend it. */
  const count = (keyId: ApiKeyId | undefined, now: number, refusal: Refusal): Decision => {
    const until = keyId === undefined ? undefined : suspensions.refuse(keyId, now)
    return until === undefined ? refused(refusal) : suspended(until, now)
  }

  const judge = (draw: Draw, taken: Take, keyId: ApiKeyId | undefined, now: number): Decision => {
    const refusal = longest(learn(draw, taken, now))
    return taken.admitted || refusal === undefined
      ? { _tag: "Admitted", report: report(draw, taken) }
      : count(keyId, now, refusal)
  }

  const withoutStore = (draw: Draw, keyId: ApiKeyId | undefined, now: number): Decision => {
    const { capacity, limit } = draw.primary.policy
    const reset = seconds(now)
    switch (onStoreFailure) {
      case "local":
        return judge(draw, local.take(draw.all, now), keyId, now)
      case "open":
        return { _tag: "Admitted", report: { limit, reset, remaining: capacity } }
      case "closed":
        return { _tag: "Unavailable", report: { limit, reset, remaining: 0 } }
    }
  }

  const take = Effect.fnUntraced(function* (client: Client) {
    const { keyId } = client
    const now = (yield* Clock.currentTimeMillis) * 1000
    const until = keyId === undefined ? undefined : suspensions.until(keyId, now)
    if (until !== undefined) return suspended(until, now)
    const draw = drawOf(client)
    const known = longest(recall(draw, now))
    if (known !== undefined) return count(keyId, now, known)
    return yield* store.take(draw.all).pipe(
      Effect.catchDefect((defect) =>
        Effect.andThen(
          hooks.defect("The limits' store has a defect", Cause.die(defect)),
          Effect.fail(new StoreUnavailable({ cause: defect })),
        ),
      ),
      Effect.matchEffect({
        onSuccess: (taken) => Effect.succeed(judge(draw, taken, keyId, now)),
        onFailure: ({ cause }) =>
          Effect.as(
            hooks.failure("The limits' store does not answer", cause),
            withoutStore(draw, keyId, now),
          ),
      }),
    )
  })

  return { take }
})
