/**
 * Token buckets: the rule, a table in memory, and the storage port. A bucket is kept as one number, as
 * in the generic cell rate algorithm (GCRA; ITU-T I.371): the instant at which the bucket will be full
 * if nothing more is taken, its *theoretical arrival time* or `tat`.
 *
 * Whole microseconds keep rounding errors from adding or removing tokens. Sums stay far below 2^53.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/errors.ts"
import {
  Micros,
  type Millis,
  addMicros,
  brandMicros,
  readMonotonicMillis,
  toMicros,
} from "../base/time.ts"
import type { ApiKeyId } from "../base/values.ts"

/** How much a bucket holds and how fast it fills. */
export interface BucketPolicy {
  /** Tokens restored in one window. */
  readonly limit: number
  /** Tokens in a full bucket. */
  readonly capacity: number
  /** The time to restore one token. */
  readonly increment: Micros
}

/** A bucket's state: the instant at which it will be full. `undefined` is a full bucket. */
export type TheoreticalArrivalTime = Micros | undefined

/**
 * Makes a policy. If `limit` does not divide the window, the bucket fills slightly slower, never
 * faster.
 *
 * @param options.limit - tokens restored in one window, a whole number from 1
 * @param options.window - the window's length
 * @param options.capacity - tokens in a full bucket; `limit` by default
 * @example
 * ```ts
 * import { Micros, Millis, bucketPolicy, remainingTokens, takeToken } from "tenure/store"
 *
 * const hundredAMinute = bucketPolicy({ limit: 100, window: Millis(60_000) })
 * const now = Micros(0)
 * const { tat } = takeToken(undefined, now, hundredAMinute)
 * remainingTokens(tat, now, hundredAMinute) // 99
 * ```
 */
export const bucketPolicy = (options: {
  readonly limit: number
  readonly window: Millis
  readonly capacity?: number | undefined
}): BucketPolicy => ({
  limit: options.limit,
  capacity: options.capacity ?? options.limit,
  increment: Micros(Math.ceil(toMicros(options.window) / options.limit)),
})

/** The time to fill an empty bucket. */
export const bucketSpan = brandMicros(
  ({ capacity, increment }: BucketPolicy) => capacity * increment,
)

/**
 * The `tat` to calculate with at `now`. It is at least `now`, when the bucket is full, and at most
 * `now` plus the span, when the bucket is empty: a later one was stored before the clock was set back.
 */
export const currentTat = brandMicros(
  (tat: TheoreticalArrivalTime, now: Micros, of: BucketPolicy) =>
    tat === undefined || tat < now ? now : Math.min(tat, now + bucketSpan(of)),
)

/** The time until a token can be taken; 0 if one can be taken now. */
export const waitMicros = brandMicros(
  (tat: TheoreticalArrivalTime, now: Micros, of: BucketPolicy) =>
    Math.max(0, currentTat(tat, now, of) + of.increment - now - bucketSpan(of)),
)

/** Whole tokens left at `now`. */
export const remainingTokens = (
  tat: TheoreticalArrivalTime,
  now: Micros,
  of: BucketPolicy,
): number => Math.floor((bucketSpan(of) - (currentTat(tat, now, of) - now)) / of.increment)

/** The time until one more whole token is there; 0 if the bucket is full. */
export const refillSeconds = brandMicros(
  (tat: TheoreticalArrivalTime, now: Micros, of: BucketPolicy) => {
    const missing = currentTat(tat, now, of) - now
    return missing === 0 ? 0 : missing - of.increment * (Math.ceil(missing / of.increment) - 1)
  },
)

/** The outcome after taking a token. A refusal leaves the bucket unchanged. */
export interface TokenTake {
  readonly admitted: boolean
  /** The bucket after the take. */
  readonly tat: Micros
  /** The time until a token can be taken; 0 if this one was. */
  readonly wait: Micros
}

/** Takes one token at `now`, if there is one. */
export const takeToken = (
  tat: TheoreticalArrivalTime,
  now: Micros,
  of: BucketPolicy,
): TokenTake => {
  const before = currentTat(tat, now, of)
  const waiting = waitMicros(tat, now, of)
  const admitted = waiting === 0
  return { admitted, tat: admitted ? addMicros(before, of.increment) : before, wait: waiting }
}

/**
 * A bounded table with a row for each id, and instants in its columns. A row with only past instants
 * carries no information and is removed, without a timer. A row is addressed by its number, which is
 * valid until the next `add`.
 */
export interface ExpiryTable {
  /** Returns an id's row. */
  readonly find: (id: string) => number | undefined
  /** Adds a row with all instants 0, and removes some rows with only past instants at `now`. */
  readonly add: (id: string, now: Micros) => number
  readonly get: (row: number, column: number) => Micros
  readonly set: (row: number, column: number, instant: Micros) => void
  /** The row count. */
  readonly size: () => number
}

// Each `add` examines so many rows for removal. With one, the table would grow faster than it is
// swept.
const sweepWidth = 4

// In a full table, `add` evicts the best among this many rows.
const evictionWidth = 8

const initialRows = 256

/**
 * Makes an empty table. In a full one, `add` examines a few rows and evicts the first to expire.
 *
 * @param columns - instants in a row
 * @param limit - the greatest row count
 */
export const makeExpiryTable = (columns: number, limit: number): ExpiryTable => {
  // Rows are dense: when one is removed, the last one takes its place.
  const rows = new Map<string, number>()
  const ids: Array<string> = []
  let instants = new Float64Array(columns * Math.min(initialRows, limit))
  let hand = 0

  const at = brandMicros((index: number) => instants[index] ?? 0)

  /** A row's latest instant. */
  const end = (row: number): number => {
    let latest = 0
    for (let column = 0; column < columns; column++) {
      latest = Math.max(latest, at(row * columns + column))
    }
    return latest
  }

  const remove = (row: number): void => {
    const last = ids.length - 1
    const id = ids[row]
    const lastId = ids[last]
    if (id === undefined || lastId === undefined) return
    ids[row] = lastId
    instants.copyWithin(row * columns, last * columns, ids.length * columns)
    rows.set(lastId, row)
    rows.delete(id)
    ids.pop()
  }

  /** Moves the hand around the rows as on a clock, and returns the row under it. */
  const nextRow = (): number => {
    hand = hand + 1 < ids.length ? hand + 1 : 0
    return hand
  }

  const sweep = (now: Micros): void => {
    for (let count = 0; count < sweepWidth && ids.length > 0; count++) {
      const row = nextRow()
      if (end(row) <= now) remove(row)
    }
  }

  const evict = (): void => {
    let soonest = nextRow()
    for (let count = 1; count < evictionWidth; count++) {
      const row = nextRow()
      if (end(row) < end(soonest)) soonest = row
    }
    remove(soonest)
  }

  const grow = (): void => {
    const larger = new Float64Array(Math.min(2 * instants.length, columns * limit))
    larger.set(instants)
    instants = larger
  }

  return {
    size: () => ids.length,
    find: (id) => rows.get(id),
    add: (id, now) => {
      sweep(now)
      if (ids.length >= limit) evict()
      const row = ids.length
      if (row * columns === instants.length) grow()
      instants.fill(0, row * columns, (row + 1) * columns)
      ids.push(id)
      rows.set(id, row)
      return row
    },
    get: (row, column) => at(row * columns + column),
    set: (row, column, instant) => {
      instants[row * columns + column] = instant
    },
  }
}

/** A table with token buckets. */
export interface BucketTable {
  /** Takes a token from every bucket for a client at `now`, or from none if any is empty. */
  readonly take: (client: LimitedClient, policies: BucketPolicies, now: Micros) => TakeResult
  /** The number of addresses and keys in the table. */
  readonly size: () => number
}

// The columns in an address's row, and in a key's.
const addressColumn = 0
const keyColumn = 0
const burstColumn = 1

/** A bucket's current `tat`. A bucket without a row is full. */
const bucketTableCurrentTat = (
  table: ExpiryTable,
  row: number | undefined,
  column: number,
  now: Micros,
  policy: BucketPolicy,
): Micros => currentTat(row === undefined ? undefined : table.get(row, column), now, policy)

/** Decides on a take, by each bucket's current `tat`. */
const decide = (
  policies: BucketPolicies,
  hasKey: boolean,
  now: Micros,
  address: Micros,
  key: Micros,
  burst: Micros,
): TakeResult => {
  const admitted =
    waitMicros(address, now, policies.address) === 0 &&
    waitMicros(key, now, policies.key) === 0 &&
    waitMicros(burst, now, policies.burst) === 0
  return {
    admitted,
    now,
    address: admitted ? addMicros(address, policies.address.increment) : address,
    key: admitted && hasKey ? addMicros(key, policies.key.increment) : key,
    burst: admitted && hasKey ? addMicros(burst, policies.burst.increment) : burst,
  }
}

/**
 * Makes an empty table for at most `limit` addresses and as many keys, 100,000 by default.
 *
 * A full bucket need not be stored, so adding a bucket removes a few full ones. A table at its limit
 * examines a few buckets and evicts the first to be full. A flood of new addresses therefore evicts its
 * own buckets, rarely an exhausted address's, and never a key's.
 */
export const makeBucketTable = (limit = 100_000): BucketTable => {
  const addresses = makeExpiryTable(1, limit)
  const keys = makeExpiryTable(2, limit)

  return {
    size: () => addresses.size() + keys.size(),
    // Every request runs this: it looks each row up once, and allocates only the outcome.
    take: ({ address, keyId }, policies, now) => {
      const addressRow = addresses.find(address)
      const keyRow = keyId === undefined ? undefined : keys.find(keyId)
      const take = decide(
        policies,
        keyId !== undefined,
        now,
        bucketTableCurrentTat(addresses, addressRow, addressColumn, now, policies.address),
        bucketTableCurrentTat(keys, keyRow, keyColumn, now, policies.key),
        bucketTableCurrentTat(keys, keyRow, burstColumn, now, policies.burst),
      )
      // A refusal adds no row. It changes an existing one only after the clock was set back.
      if (take.admitted || addressRow !== undefined) {
        addresses.set(addressRow ?? addresses.add(address, now), addressColumn, take.address)
      }
      if (keyId !== undefined && (take.admitted || keyRow !== undefined)) {
        const row = keyRow ?? keys.add(keyId, now)
        keys.set(row, keyColumn, take.key)
        keys.set(row, burstColumn, take.burst)
      }
      return take
    },
  }
}

/** The client a request is counted for. An address has one bucket, a key has two. */
export interface LimitedClient {
  /** The client's IP address, or an address group such as an IPv6 network. */
  readonly address: string
  /** The API key, if the request has a valid one. */
  readonly keyId: ApiKeyId | undefined
}

/** The buckets' policies. */
export interface BucketPolicies {
  /** For an address's bucket. */
  readonly address: BucketPolicy
  /** For a key's bucket. */
  readonly key: BucketPolicy
  /** For a key's burst bucket. */
  readonly burst: BucketPolicy
}

/**
 * A take's outcome. `address`, `key` and `burst` are the instants at which the client's buckets will be
 * full. A client without a key has full buckets `key` and `burst`.
 *
 * All instants are by one clock in the store. It need not count from the epoch, because only
 * differences matter.
 */
export interface TakeResult {
  /** Whether every bucket had a token. If one had none, no bucket has lost any. */
  readonly admitted: boolean
  /** The time by the store's clock, as the other instants. */
  readonly now: Micros
  readonly address: Micros
  readonly key: Micros
  readonly burst: Micros
}

/**
 * Stores token buckets, each as one number as in `TokenBucket`. A bucket not in the store is full, so
 * full ones can be deleted.
 */
export class RateLimitStore extends Context.Service<
  RateLimitStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Takes a token from every bucket for a client, or from none if any is empty. The take is atomic:
     * concurrent takes admit exactly as many requests as there are tokens.
     *
     * A bucket full later than its span from now was stored before the clock was set back. It counts as
     * empty and is stored as such, even if the take is refused.
     */
    readonly take: (
      client: LimitedClient,
      policies: BucketPolicies,
    ) => Effect.Effect<TakeResult, StoreUnavailable>
  }
>()("@tenure/core/RateLimitStore") {}

/** A store that always answers. */
export interface InProcessRateLimits {
  readonly ping: Effect.Effect<void>
  readonly take: (client: LimitedClient, policies: BucketPolicies) => Effect.Effect<TakeResult>
}

/**
 * Makes a store in this process.
 *
 * @param maxBuckets - the most addresses, and the most keys; 100,000 by default
 */
export const makeInProcessRateLimits = (maxBuckets?: number): InProcessRateLimits => {
  const table = makeBucketTable(maxBuckets)
  return {
    ping: Effect.void,
    // One fiber step and one clock: further ones would cost half as much as the take itself.
    take: (client, policies) =>
      Effect.withFiberSucceed((fiber) => {
        const tick = readMonotonicMillis(fiber.getRef(Clock.Clock))
        return table.take(client, policies, toMicros(tick))
      }),
  }
}
