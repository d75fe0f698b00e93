/** Limits requests: by token buckets, and by suspending keys refused too often. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { encodeBase64, sha256 } from "../base/bytes.ts"
import { InvalidInput } from "../base/errors.ts"
import { ErrorReporter } from "../base/faults.ts"
import { makeLruCache } from "../base/lru-cache.ts"
import * as Setting from "../base/setting.ts"
import {
  type Micros,
  Millis,
  type Moment,
  addMicros,
  currentMoment,
  subtractMicros,
  toMicros,
  toSeconds,
  withMoment,
} from "../base/time.ts"
import type { ApiKeyId } from "../base/values.ts"
import type { RefusingLimit } from "../telemetry/observer.ts"
import {
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  RateLimitStore,
  type TakeResult,
  bucketPolicy,
  bucketSpan,
  makeInProcessRateLimits,
  refillSeconds,
  remainingTokens,
} from "./buckets.ts"
import { type EmptyBucket, makeEmptyBucketCache } from "./empty-buckets.ts"
import {
  type LimitMode,
  logOutageEnd,
  makeOutages,
  reportOutage,
  storeFailureModes,
  takeFailure,
} from "./outages.ts"
import {
  type SuspensionOptions,
  type SuspensionSettings,
  makeSuspensions,
  noSuspensions,
  suspensionOptions,
} from "./suspensions.ts"

export { type LimitedClient } from "./buckets.ts"

/** Values for the rate-limit headers. */
export interface LimitReport {
  /** The reported bucket. */
  readonly bucket: keyof BucketPolicies
  readonly limit: number
  /** Whole requests left; 0 on a refusal. */
  readonly remaining: number
  /** Unix time in seconds when the full allowance is restored. */
  readonly reset: number
  /** Seconds until one more request is allowed; 0 with the full allowance. */
  readonly refill: number
}

/** The decision on a request. */
export type LimitDecision =
  | { readonly _tag: "Admitted"; readonly report: LimitReport }
  /** A client is admitted after waiting `retryAfter` seconds, at least 1, if it sends nothing else. */
  | {
      readonly _tag: "Refused"
      readonly by: RefusingLimit
      readonly report: LimitReport
      readonly retryAfter: number
    }
  /** The store is down, and the host wants no request to be served without it. */
  | { readonly _tag: "Unavailable"; readonly report: LimitReport }

/** The Unix time in seconds after a moment and a wait. */
const unixAfter = ({ unix }: Moment, wait: Micros): number =>
  toSeconds(addMicros(toMicros(unix), wait))

/** Reports a bucket. Its `tat` and `storeNow` are by the store's clock. */
const reportOf = (
  bucket: keyof BucketPolicies,
  policy: BucketPolicy,
  tat: Micros,
  storeNow: Micros,
  now: Moment,
): LimitReport => ({
  bucket,
  limit: policy.limit,
  remaining: remainingTokens(tat, storeNow, policy),
  reset: unixAfter(now, subtractMicros(tat, storeNow)),
  refill: toSeconds(refillSeconds(tat, storeNow, policy)),
})

/**
 * Admits a request. Reports the key's bucket, or the address's if that has fewer tokens or there is no
 * key. The burst bucket is never reported.
 */
const admit = (
  policies: BucketPolicies,
  { keyId }: LimitedClient,
  { address, key, now: storeNow }: TakeResult,
  now: Moment,
): LimitDecision => {
  const ofAddress = reportOf("address", policies.address, address, storeNow, now)
  if (keyId === undefined) return { _tag: "Admitted", report: ofAddress }
  const ofKey = reportOf("key", policies.key, key, storeNow, now)
  return {
    _tag: "Admitted",
    report: ofAddress.remaining < ofKey.remaining ? ofAddress : ofKey,
  }
}

/** Refuses a request, and reports the empty bucket. */
const refuse = (
  by: RefusingLimit,
  { full, name, policy, until }: Omit<EmptyBucket, "isByKey">,
  now: Moment,
): LimitDecision => {
  const tick = toMicros(now.tick)
  const retryAfter = Math.max(1, toSeconds(subtractMicros(until, tick)))
  return {
    _tag: "Refused",
    by,
    report: {
      bucket: name,
      limit: policy.limit,
      remaining: 0,
      reset: unixAfter(now, subtractMicros(full, tick)),
      refill: retryAfter,
    },
    retryAfter,
  }
}

/** Refuses a request with a key suspended until an instant. */
const refuseSuspended = ({ key }: BucketPolicies, until: Micros, now: Moment): LimitDecision =>
  refuse("suspension", { name: "key", policy: key, until, full: until }, now)

/** The bucket to report to a client with unknown buckets. */
const bucketOf = (keyId: ApiKeyId | undefined): "address" | "key" =>
  keyId === undefined ? "address" : "key"

/** Admits a request without limits, because the store is down. */
const admitUnlimited = (
  policies: BucketPolicies,
  keyId: ApiKeyId | undefined,
  now: Moment,
): LimitDecision => {
  const bucket = bucketOf(keyId)
  const { capacity, limit } = policies[bucket]
  return {
    _tag: "Admitted",
    report: { bucket, limit, remaining: capacity, reset: toSeconds(toMicros(now.unix)), refill: 0 },
  }
}

/** Reports the limits to a client without service, whatever its buckets hold. */
const reportUnserved = (
  policies: BucketPolicies,
  keyId: ApiKeyId | undefined,
  now: Moment,
): LimitReport => {
  const bucket = bucketOf(keyId)
  const { limit } = policies[bucket]
  return { bucket, limit, remaining: 0, reset: toSeconds(toMicros(now.unix)), refill: 0 }
}

/**
 * The header fields `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10) in one
 * response.
 */
export interface DraftRateLimitHeaders {
  readonly "RateLimit-Policy": string
  readonly RateLimit: string
}

/** The window's seconds. `increment` has rounded the window up by less than a microsecond per token. */
const windowSeconds = ({ increment, limit }: BucketPolicy): number =>
  Math.ceil(((increment - 1) * limit + 1) / 1_000_000)

const policyItem = ([name, policy]: readonly [string, BucketPolicy]): string =>
  `"${name}";q=${policy.limit};w=${windowSeconds(policy)}`

const utf8 = new TextEncoder()

// Digests are kept for these many clients.
const maxPartitions = 1000

/**
 * Names a partition to its client without the key or the address, because the name may end up in the
 * client's logs.
 */
const partitionKey = (partition: string): string =>
  `:${encodeBase64(sha256(utf8.encode(partition)).subarray(0, 6))}:`

/**
 * Makes a function that returns the fields for a report.
 *
 * @param policies - the policies in effect, by name
 */
const makeDraftHeaders = (
  policies: Partial<BucketPolicies>,
): ((report: LimitReport, client: LimitedClient) => DraftRateLimitHeaders) => {
  const policy = Object.entries(policies).map(policyItem).join(", ")
  const known = makeLruCache<string, string>(maxPartitions)
  const partitionKeyOf = (partition: string): string => {
    const found = known.get(partition) ?? partitionKey(partition)
    known.set(partition, found)
    return found
  }
  return ({ bucket, refill, remaining }, { address, keyId = address }) => {
    const pk = partitionKeyOf(bucket === "address" ? address : keyId)
    return {
      "RateLimit-Policy": policy,
      RateLimit: `"${bucket}";r=${remaining};t=${refill};pk=${pk}`,
    }
  }
}

const limitOptions = Setting.object({
  /** Requests restored in one window, at most one per microsecond. */
  limit: Setting.integer(),
  /** The window's length. */
  window: Setting.duration(),
  /**
   * Requests allowed at once for an idle client; `limit` if missing. No window admits more than
   * `capacity + limit`. An empty bucket must be full again within 366 days.
   */
  capacity: Setting.optional(Setting.integer()),
})

/** A number of requests per window. */
export interface RateLimit extends Setting.InputOf<typeof limitOptions> {}

const maxSpan = toMicros(Millis(366 * 86_400_000))

const toPolicy = (
  { capacity, limit, window }: Setting.OutputOf<typeof limitOptions>,
  name: string,
): Result.Result<BucketPolicy, InvalidInput> => {
  const policy = bucketPolicy({ limit, capacity, window })
  if (bucketSpan(policy) <= maxSpan) return Result.succeed(policy)
  // Later instants are too large for whole microseconds.
  const problem = "is too large: an empty bucket must be full again within 366 days"
  return Result.fail(new InvalidInput({ field: `${name}.capacity`, problem }))
}

const limitSetting: Setting.Setting<RateLimit, BucketPolicy> = Setting.refine(
  limitOptions,
  toPolicy,
)

const limitOrFalse: Setting.Setting<RateLimit | false, BucketPolicy | false> =
  Setting.orFalse(limitSetting)

const suspension: Setting.Setting<SuspensionOptions | false, SuspensionSettings | false> =
  Setting.orFalse(suspensionOptions)

/** Options for rate limits. */
export const rateLimiterOptions = Setting.object({
  /** The limit for each API key. Default: `{ limit: 100, window: "1 minute" }`. */
  perKey: Setting.withDefault(limitSetting, { limit: 100, window: "1 minute" }),
  /**
   * The limit for each client address. `false` is for hosts that do not know client addresses: then
   * nothing limits requests without a valid key. Default: `{ limit: 300, window: "1 minute" }`.
   */
  perAddress: Setting.withDefault(limitOrFalse, { limit: 300, window: "1 minute" }),
  /** The limit for each API key in a short time. Default: `{ limit: 20, window: "1 second" }`. */
  burst: Setting.withDefault(limitSetting, { limit: 20, window: "1 second" }),
  /** When a key is suspended because its requests are refused too often, or `false` for never. */
  suspension: Setting.withDefault(suspension, {}),
  /**
   * The behavior while the store is down: limits are kept in this process alone (`"local"`), or not at
   * all (`"open"`), or every request is answered 503 (`"closed"`). Default: `"local"`.
   */
  onStoreFailure: Setting.withDefault(Setting.oneOf(storeFailureModes), "local"),
  /**
   * Whether responses have the fields `RateLimit-Policy` and `RateLimit`
   * (draft-ietf-httpapi-ratelimit-headers-10), besides `X-RateLimit-*`. Default: `false`.
   */
  draftFields: Setting.withDefault(Setting.boolean, false),
})

/** The options as a host passes them. */
export interface RateLimiterOptions extends Setting.InputOf<typeof rateLimiterOptions> {}

/** The options as the library uses them. */
export interface RateLimiterSettings extends Setting.OutputOf<typeof rateLimiterOptions> {}

/** A request from an address, before anything is taken for it. */
export interface Admission {
  /**
   * The refusal for the address, for any key, if its bucket is known to be empty. It is known without
   * the store, and counts against no key.
   */
  readonly refusal: LimitDecision | undefined
  /**
   * Takes a token from the address's bucket and from each key bucket, or refuses the request. A refused
   * request takes nothing. If the store does not answer, the option `onStoreFailure` decides; an
   * outage's beginning is logged and reported as a fault, its end is logged.
   *
   * @param keyId - the API key, if the request has a valid one
   */
  readonly take: (keyId: ApiKeyId | undefined) => Effect.Effect<LimitDecision>
}

/** Limits requests. */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Begins to decide on a request, before its sender is known. */
    readonly begin: (address: string, now: Moment) => Admission

    /** Decides on a request with a known principal. */
    readonly take: (client: LimitedClient) => Effect.Effect<LimitDecision>

    /** Reports limits to a client without a decision, such as after closing: nothing is served then. */
    readonly unserved: (now: Moment) => LimitReport

    /** Returns further header fields for a report to a client. */
    readonly fieldsOf?:
      | ((report: LimitReport, client: LimitedClient) => DraftRateLimitHeaders)
      | undefined

    /**
     * How requests are limited: not by the store if it does not answer, or has failed in the last 10 seconds.
     *
     * @param answers - whether the store answers its ping
     */
    readonly mode: (answers: boolean) => Effect.Effect<LimitMode>

    /** The ids of keys suspended by this process, at most 10,000. */
    readonly suspended: Effect.Effect<ReadonlyArray<ApiKeyId>>
  }
>()("@tenure/core/RateLimiter") {
  static readonly layer = (
    settings: RateLimiterSettings = Setting.parse(rateLimiterOptions),
  ): Layer.Layer<RateLimiter, never, RateLimitStore> =>
    Layer.effect(RateLimiter, makeRateLimiter(settings))
}

/** The buckets' policies. Without a limit for addresses, the key limit stands in for it. */
const policiesOf = ({ burst, perAddress, perKey }: RateLimiterSettings): BucketPolicies => ({
  key: perKey,
  address: perAddress === false ? perKey : perAddress,
  burst,
})

const makeRateLimiter = Effect.fnUntraced(function* (settings: RateLimiterSettings) {
  const { burst, draftFields, onStoreFailure, perAddress, perKey } = settings
  const store = yield* RateLimitStore
  const faults = yield* ErrorReporter
  const outages = makeOutages()
  const policies = policiesOf(settings)
  const ofAddress = perAddress === false ? undefined : { address: perAddress }
  const held: Partial<BucketPolicies> = { key: perKey, burst, ...ofAddress }
  const suspensions =
    settings.suspension === false ? noSuspensions : makeSuspensions(settings.suspension)
  const emptyBuckets = makeEmptyBucketCache(policies)
  const inProcess = makeInProcessRateLimits()

  /**
   * Refuses a request. The refusal counts against the key, and may suspend it, if one of its own
   * buckets is empty: other clients may have emptied the address's bucket.
   */
  const refuseClient = (
    { keyId }: LimitedClient,
    empty: EmptyBucket,
    now: Moment,
  ): LimitDecision => {
    const until =
      keyId !== undefined && empty.isByKey
        ? suspensions.refuse(keyId, toMicros(now.tick))
        : undefined
    return until === undefined
      ? refuse(empty.name, empty, now)
      : refuseSuspended(policies, until, now)
  }

  /** Refuses a request without the store, if the key is suspended or a bucket is known to be empty. */
  const refuseEarly = (client: LimitedClient, now: Moment): LimitDecision | undefined => {
    const { keyId } = client
    const tick = toMicros(now.tick)
    const until = keyId === undefined ? undefined : suspensions.until(keyId, tick)
    if (until !== undefined) return refuseSuspended(policies, until, now)
    const empty = emptyBuckets.find(client, tick)
    return empty === undefined ? undefined : refuseClient(client, empty, now)
  }

  /** Decides on a request by the store's take. */
  const decide = (client: LimitedClient, take: TakeResult, now: Moment): LimitDecision => {
    const empty = emptyBuckets.record(client, take, toMicros(now.tick))
    return take.admitted || empty === undefined
      ? admit(policies, client, take, now)
      : refuseClient(client, empty, now)
  }

  const decideWithoutStore = (client: LimitedClient, now: Moment): Effect.Effect<LimitDecision> => {
    switch (onStoreFailure) {
      case "local":
        return Effect.map(inProcess.take(client, policies), (take) => decide(client, take, now))
      case "open":
        return Effect.succeed(admitUnlimited(policies, client.keyId, now))
      case "closed":
        return Effect.succeed({
          _tag: "Unavailable",
          report: reportUnserved(policies, client.keyId, now),
        })
    }
  }

  const take = (client: LimitedClient): Effect.Effect<LimitDecision> =>
    withMoment((now) => {
      const refusal = refuseEarly(client, now)
      if (refusal !== undefined) return Effect.succeed(refusal)
      return Effect.matchCauseEffect(store.take(client, policies), {
        onSuccess: (taken) => {
          const decided = Effect.succeed(decide(client, taken, now))
          return outages.succeeded(now.tick) === "ends"
            ? Effect.andThen(logOutageEnd, decided)
            : decided
        },
        onFailure: (cause) => {
          const failure = takeFailure(cause)
          if (Result.isFailure(failure)) return Effect.failCause(failure.failure)
          const decided = decideWithoutStore(client, now)
          return outages.failed(now.tick) === "begins"
            ? Effect.andThen(reportOutage(faults, onStoreFailure, failure.success), decided)
            : decided
        },
      })
    })

  /**
   * Counts a request for its key alone. Under the key's policy and name, the address's bucket is always
   * as full as the key's.
   */
  const takeOfKey = (keyId: ApiKeyId | undefined): Effect.Effect<LimitDecision> =>
    keyId === undefined
      ? Effect.map(currentMoment, (now) => admitUnlimited(policies, keyId, now))
      : take({ address: keyId, keyId })

  const begin = (address: string, now: Moment): Admission => {
    const empty = emptyBuckets.findAddress(address, toMicros(now.tick))
    return {
      refusal: empty && refuse(empty.name, empty, now),
      take: (keyId) => take({ address, keyId }),
    }
  }

  const unlimited: Admission = { refusal: undefined, take: takeOfKey }

  return RateLimiter.of({
    begin: perAddress === false ? () => unlimited : begin,

    take: perAddress === false ? ({ keyId }) => takeOfKey(keyId) : take,

    unserved: (now) => reportUnserved(policies, undefined, now),

    fieldsOf: draftFields ? makeDraftHeaders(held) : undefined,

    mode: (answers) =>
      Effect.map(currentMoment, ({ tick }) =>
        answers && !outages.isRecent(tick) ? "store" : onStoreFailure,
      ),

    suspended: Effect.map(currentMoment, ({ tick }) => suspensions.suspended(toMicros(tick))),
  })
})
