/** The service that limits requests: by token buckets, and by suspending keys. */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import { Faults } from "../base/Faults.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Moment from "../base/Moment.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import { Millis, toMicros } from "../base/Units.ts"
import * as BucketTable from "./BucketTable.ts"
import * as Decider from "./Decider.ts"
import * as Decision from "./Decision.ts"
import * as outages from "./outages.ts"
import * as RateLimitFields from "./RateLimitFields.ts"
import { type Client, type Policies, RateLimitStore } from "./RateLimitStore.ts"
import * as Suspension from "./Suspension.ts"
import * as TokenBucket from "./TokenBucket.ts"

export type { Decision, Report } from "./Decision.ts"
export type { Client }

const limitOptions = Setting.struct({
  /** Requests that come back in one window, at most one a microsecond. */
  limit: Setting.count(),
  /** The length of the window. */
  window: Setting.millis(),
  /**
   * Requests that an idle client may make at once; `limit` if missing. No window admits more than
   * `capacity + limit`. An empty bucket must be full again within 366 days.
   */
  capacity: Setting.optional(Setting.count()),
})

/** How many requests in which time. */
export interface Limit extends Setting.Input<typeof limitOptions> {}

const maxSpan = toMicros(Millis(366 * 86_400_000))

const toPolicy = (
  { capacity, limit, window }: Setting.Output<typeof limitOptions>,
  name: string,
): Result.Result<TokenBucket.Policy, InvalidInput> => {
  const policy = TokenBucket.policy({ limit, capacity, window })
  if (TokenBucket.span(policy) <= maxSpan) return Result.succeed(policy)
  // Later instants are too large for whole microseconds.
  const problem = "is too large: an empty bucket must be full again within 366 days"
  return Result.fail(new InvalidInput({ field: `${name}.capacity`, problem }))
}

const limitSetting: Setting.Setting<Limit, TokenBucket.Policy> = Setting.andThen(
  limitOptions,
  toPolicy,
)

const limitOrFalse: Setting.Setting<Limit | false, TokenBucket.Policy | false> =
  Setting.orFalse(limitSetting)

const suspension: Setting.Setting<Suspension.Options | false, Suspension.Settings | false> =
  Setting.orFalse(Suspension.options)

/** The options of rate limits. */
export const options = Setting.struct({
  /** The limit for each API key. Default: `{ limit: 100, window: "1 minute" }`. */
  perKey: Setting.withDefault(limitSetting, { limit: 100, window: "1 minute" }),
  /**
   * The limit for each client address. `false` stands for none, in a host that does not know the
   * addresses of its clients: all of them would share one limit. Nothing then limits requests without
   * a valid key, such as guesses of tokens. Default: `{ limit: 300, window: "1 minute" }`.
   */
  perAddress: Setting.withDefault(limitOrFalse, { limit: 300, window: "1 minute" }),
  /** The limit for each API key in a short time. Default: `{ limit: 20, window: "1 second" }`. */
  burst: Setting.withDefault(limitSetting, { limit: 20, window: "1 second" }),
  /** When a key is suspended because its requests are refused too often, or `false` for never. */
  suspension: Setting.withDefault(suspension, {}),
  /**
   * What happens while the store is down: limits are kept in this process alone (`"local"`), or not
   * at all (`"open"`), or every request is answered 503 (`"closed"`). Default: `"local"`.
   */
  onStoreFailure: Setting.withDefault(Setting.oneOf(["local", "open", "closed"]), "local"),
  /**
   * Whether responses have the fields `RateLimit-Policy` and `RateLimit` of the IETF draft, beside
   * `X-RateLimit-*`. Default: `false`.
   */
  draftFields: Setting.withDefault(Setting.flag, false),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Limits requests. */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /**
     * Takes a token from each of the client's buckets, or refuses the request. A refused request
     * takes nothing. A store that does not answer is reported as a fault, once a second at most, and
     * the option `onStoreFailure` decides.
     */
    readonly take: (client: Client) => Effect.Effect<Decision.Decision>

    /**
     * Returns the refusal of an address that is known to be refused now, whoever sends the request.
     * Asks no store, and counts nothing.
     */
    readonly refusalOf: (address: string, now: Moment.Moment) => Decision.Decision | undefined

    /** Returns further header fields for a report. */
    readonly fieldsOf?: ((report: Decision.Report) => RateLimitFields.RateLimitFields) | undefined

    /** The ids of the keys that this process has suspended, at most 10,000. */
    readonly suspended: Effect.Effect<ReadonlyArray<ApiKeyId>>
  }
>()("@tenure/core/RateLimiter") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<RateLimiter, never, RateLimitStore> => Layer.effect(RateLimiter, make(settings))
}

/** The policies of the buckets. Without a limit for addresses, that of keys stands in for it. */
const policiesOf = ({ burst, perAddress, perKey }: Settings): Policies => ({
  key: perKey,
  address: perAddress === false ? perKey : perAddress,
  burst,
})

/**
 * Returns for whom a request is counted if addresses are not: for its key alone. Under the policy of
 * the key, and named like it, the bucket of the address is always as full as that of the key.
 */
const withoutAddress = ({ keyId }: Client): Client | undefined =>
  keyId === undefined ? undefined : { address: keyId, keyId }

const make = Effect.fnUntraced(function* (settings: Settings) {
  const { burst, draftFields, onStoreFailure, perAddress, perKey } = settings
  const store = yield* RateLimitStore
  const reportOutage = outages.reporter(yield* Faults)
  const policies = policiesOf(settings)
  const ofAddress = perAddress === false ? undefined : { address: perAddress }
  const held: Partial<Policies> = { key: perKey, burst, ...ofAddress }
  const suspensions =
    settings.suspension === false ? Suspension.never : Suspension.make(settings.suspension)
  const decider = Decider.make(policies, suspensions)
  const local = BucketTable.make()

  const decideWithoutStore = (client: Client, now: Moment.Moment): Decision.Decision => {
    switch (onStoreFailure) {
      case "local":
        return decider.after(client, local.take(client, policies, toMicros(now.tick)), now)
      case "open":
        return Decision.unlimited(policies, client, now)
      case "closed":
        return Decision.unavailable(policies, client, now)
    }
  }

  const askStore = (
    client: Client,
    now: Moment.Moment,
    clock: Clock.Clock,
  ): Effect.Effect<Decision.Decision> =>
    Effect.matchCauseEffectEager(Step.begin(store.take(client, policies), clock), {
      onSuccess: (take) => Effect.succeed(decider.after(client, take, now)),
      onFailure: (cause) =>
        Effect.map(reportOutage(cause, now.tick), () => decideWithoutStore(client, now)),
    })

  const take = (client: Client): Effect.Effect<Decision.Decision> =>
    Step.make((clock) => {
      const now = Moment.read(clock)
      const refusal = decider.before(client, now)
      return refusal === undefined ? askStore(client, now, clock) : Effect.succeed(refusal)
    })

  const takeWithoutAddress = (client: Client): Effect.Effect<Decision.Decision> => {
    const counted = withoutAddress(client)
    return counted === undefined
      ? Effect.map(Moment.now, (now) => Decision.unlimited(policies, client, now))
      : take(counted)
  }

  return RateLimiter.of({
    take: perAddress === false ? takeWithoutAddress : take,

    refusalOf: decider.ofAddress,

    fieldsOf: draftFields ? RateLimitFields.make(held) : undefined,

    suspended: Effect.map(Moment.now, ({ tick }) => suspensions.suspended(toMicros(tick))),
  })
})
