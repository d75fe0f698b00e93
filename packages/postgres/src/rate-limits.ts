/** Token buckets on PostgreSQL, from which one statement takes for several clients. */

import { bucketSpan } from "@tenure/core/internal"
import {
  type BucketPolicy,
  Micros,
  type RateLimitStore,
  type StoreUnavailable,
  type TakeResult,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import {
  type QueueLimits,
  type QueuedTake,
  type TakeRequest,
  makeClientQueues,
} from "./client-queues.ts"
import { makeBatchRunner } from "./connection/batch.ts"
import { waitedForLock } from "./connection/errors.ts"
import type { ExecuteOptions, Executor } from "./connection/executor.ts"
import { deleteSome } from "./sql/clauses.ts"
import { floatsParam, integersParam, textsParam } from "./sql/values.ts"

/**
 * An expression for when a bucket is full again. Same rule as `currentTat` in core. A time before now would
 * be more than full, and a time after now plus the span less than empty: it was stored before the clock was
 * set back.
 */
export const currentFullAt = (stored: string, now: string, span: string): string =>
  `least(greatest(${stored}, ${now}), ${now} + ${span})`

/**
 * An expression for the whole tokens left in a bucket. Same rule as `remainingTokens` in core.
 *
 * @param ahead - an expression for what others take first, in microseconds
 */
export const tokensLeft = (
  fullAt: string,
  now: string,
  increment: string,
  span: string,
  ahead = "0",
): string => `floor((${span} - (${fullAt} - ${now}) - ${ahead}) / ${increment})`

/**
 * Takes tokens for clients, the same number from each bucket that a client has. Returns a row for each
 * client, in order. Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * `$1` has the ids of all rows, each once. The other arrays have one element for each client: the positions
 * of its rows in `$1`, the number of takes, and the buckets' increments and spans. A client without a key
 * only has an address.
 *
 * A client gets what those before it leave: `most` is how many takes it could get without them, and `…_ahead`
 * what they could take from a bucket. That is exact unless one of them takes less, because another of its
 * buckets is short. Then `taken` is less than `most`, and the rest is undecided.
 *
 * Only existing rows are updated by way of ON CONFLICT, which finds each by its id, whatever the planner
 * assumes about the table's size. They are locked by then. If two statements insert the same row, one fails
 * as a whole and runs again. Otherwise its decision would rest on a bucket that it did not see.
 */
export const takeMany = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT place, id FROM unnest($1::text[]) WITH ORDINALITY AS a (id, place)
    -- All statements lock buckets in the same order, which avoids deadlocks.
    ORDER BY id COLLATE "C"
  ),
  kept AS MATERIALIZED (
    SELECT a.place, a.id, b.full_at, b.burst_full_at
    FROM asked a
    LEFT JOIN LATERAL (
      SELECT full_at, burst_full_at FROM ${schema}.rate_limit_buckets WHERE id = a.id FOR UPDATE
    ) b ON true
  ),
  found AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now,
           array_agg(coalesce(full_at, 0)::float8 ORDER BY place) AS full_ats,
           array_agg(coalesce(burst_full_at, 0)::float8 ORDER BY place) AS burst_full_ats
    FROM kept
  ),
  -- Without a key, the values for its buckets are NULL, which both functions ignore.
  demand AS (
    SELECT d.*, f.now,
           ${currentFullAt("f.full_ats[d.address]", "f.now", "d.address_span")} AS address_full_at,
           ${currentFullAt("f.full_ats[d.key]", "f.now", "d.key_span")} AS key_full_at,
           ${currentFullAt("f.burst_full_ats[d.key]", "f.now", "d.burst_span")} AS burst_full_at
    FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::float8[],
                $6::float8[], $7::float8[], $8::float8[], $9::float8[], $10::float8[])
      WITH ORDINALITY
      AS d (address, key, count, address_increment, address_span,
            key_increment, key_span, burst_increment, burst_span, n)
    CROSS JOIN found f
  ),
  -- Missing values are NULL, which least() ignores.
  bounded AS (
    SELECT *, greatest(0, least(count, ${tokensLeft("address_full_at", "now", "address_increment", "address_span")},
                                ${tokensLeft("key_full_at", "now", "key_increment", "key_span")},
                                ${tokensLeft("burst_full_at", "now", "burst_increment", "burst_span")})) AS most
    FROM demand
  ),
  queued AS (
    SELECT *, coalesce(sum(most * address_increment) OVER of_address, 0) AS address_ahead,
           coalesce(sum(most * key_increment) OVER of_key, 0) AS key_ahead,
           coalesce(sum(most * burst_increment) OVER of_key, 0) AS burst_ahead
    FROM bounded
    WINDOW
      of_address AS (PARTITION BY address ORDER BY n
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
      of_key AS (PARTITION BY key ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  ),
  decided AS MATERIALIZED (
    SELECT *, greatest(0, least(
      most,
      ${tokensLeft("address_full_at", "now", "address_increment", "address_span", "address_ahead")},
      ${tokensLeft("key_full_at", "now", "key_increment", "key_span", "key_ahead")},
      ${tokensLeft("burst_full_at", "now", "burst_increment", "burst_span", "burst_ahead")}
    )) AS taken
    FROM queued
  ),
  spent AS MATERIALIZED (
    SELECT place, sum(micros) AS micros, max(span) AS span, sum(burst_micros) AS burst_micros,
           max(burst_span) AS burst_span
    FROM (
      SELECT address AS place, taken * address_increment AS micros, address_span AS span,
             NULL::float8 AS burst_micros, NULL::float8 AS burst_span
      FROM decided
      UNION ALL
      SELECT key, taken * key_increment, key_span, taken * burst_increment, burst_span FROM decided WHERE key IS NOT NULL
    ) of_each
    GROUP BY place
  ),
  changed AS MATERIALIZED (
    SELECT k.id, k.full_at IS NOT NULL AS is_kept,
           (${currentFullAt("coalesce(k.full_at, 0)", "f.now", "s.span")} + s.micros)::bigint AS full_at,
           (${currentFullAt("coalesce(k.burst_full_at, 0)", "f.now", "s.burst_span")} + s.burst_micros)::bigint AS burst_full_at
    FROM kept k JOIN spent s ON s.place = k.place CROSS JOIN found f
    -- A time later than empty was stored before the clock was set back.
    WHERE s.micros > 0 OR k.full_at > f.now + s.span OR k.burst_full_at > f.now + s.burst_span
    ORDER BY k.id
  ),
  updated AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
    SELECT id, full_at, burst_full_at FROM changed WHERE is_kept
    ON CONFLICT (id) DO UPDATE SET full_at = excluded.full_at, burst_full_at = excluded.burst_full_at
  ),
  inserted AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
    SELECT id, full_at, burst_full_at FROM changed WHERE NOT is_kept
  )
  SELECT taken, most, now, address_full_at AS address, key_full_at AS key, burst_full_at AS burst
  FROM decided
  ORDER BY n
`

/** The parameters for `takeMany`. */
export const takeManyParams = (demands: ReadonlyArray<TakeRequest>) => {
  const positions = new Map<string, number>()
  const positionOf = (id: string): number => {
    const position = positions.get(id) ?? positions.size + 1
    positions.set(id, position)
    return position
  }
  const placed = demands.map(({ count, rows: [address, key] }) => ({
    count,
    address: { at: positionOf(address.id), ...bucketPrice(address.policy) },
    key: key && { at: positionOf(key.id), ...bucketPrice(key.policy) },
    burst: key?.burst && bucketPrice(key.burst),
  }))
  return [
    textsParam([...positions.keys()]),
    integersParam(placed.map(({ address }) => address.at)),
    integersParam(placed.map(({ key }) => key?.at)),
    integersParam(placed.map(({ count }) => count)),
    floatsParam(placed.map(({ address }) => address.price)),
    floatsParam(placed.map(({ address }) => address.span)),
    floatsParam(placed.map(({ key }) => key?.price)),
    floatsParam(placed.map(({ key }) => key?.span)),
    floatsParam(placed.map(({ burst }) => burst?.price)),
    floatsParam(placed.map(({ burst }) => burst?.span)),
  ]
}

/**
 * When each of a client's buckets would have been full again before a statement. Without a key, only the
 * address counts.
 */
interface FullAt {
  readonly address: number
  readonly key: number | null
  readonly burst: number | null
}

/** A row from `takeMany`. */
export interface TakeManyRow extends FullAt {
  readonly taken: number
  /** How many takes there could have been without the clients before. */
  readonly most: number
  readonly now: number
}

/**
 * Takes tokens for clients if every bucket has enough for all, at about half the cost of `takeMany`, which
 * shares what is short. Otherwise it changes nothing. Returns a row for each table row, in order. Times are
 * in microseconds: whole numbers that a float8 holds exactly.
 *
 * The arrays have one element for each row: its id, and for both buckets the price of all takes together, and
 * the span. Rows are locked, updated and inserted as in `takeMany`. If a bucket is full later than its span
 * allows, it was stored before the clock was set back: it never has enough, and `takeMany` corrects it.
 */
export const takeIfPlenty = (schema: string): string => `
  WITH kept AS MATERIALIZED (
    SELECT id, full_at, burst_full_at FROM ${schema}.rate_limit_buckets WHERE id = ANY ($1::text[])
    -- All statements lock buckets in the same order, which avoids deadlocks.
    ORDER BY id
    FOR UPDATE
  ),
  asked AS MATERIALIZED (
    SELECT *, bool_and(
             full_at + price <= now + span AND (burst_full_at + burst_price > now + burst_span) IS NOT TRUE
           ) OVER () AS is_plenty
    FROM (
      SELECT a.*, c.now, k.id IS NOT NULL AS is_kept, greatest(coalesce(k.full_at, 0), c.now) AS full_at,
             greatest(coalesce(k.burst_full_at, 0), c.now) AS burst_full_at
      -- Counting the locked rows reads the clock after the last lock.
      FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now, count(*) FROM kept) c
      CROSS JOIN unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::float8[]) WITH ORDINALITY
      AS a (id, price, span, burst_price, burst_span, n)
      LEFT JOIN kept k ON k.id = a.id
    ) found
  ),
  updated AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
    SELECT id, (full_at + price)::bigint, (burst_full_at + burst_price)::bigint FROM asked WHERE is_kept AND is_plenty
    ON CONFLICT (id) DO UPDATE SET full_at = excluded.full_at, burst_full_at = excluded.burst_full_at
  ),
  inserted AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
    SELECT id, (full_at + price)::bigint, (burst_full_at + burst_price)::bigint FROM asked
    WHERE NOT is_kept AND is_plenty
    ORDER BY id COLLATE "C"
  )
  SELECT full_at, burst_full_at, now, is_plenty FROM asked ORDER BY n
`

/** The price of several takes from a bucket, in microseconds, and its span. */
interface Price {
  readonly price: number
  readonly span: number
}

/** Returns the price of one take or several. */
const bucketPrice = (policy: BucketPolicy, count = 1): Price => ({
  price: count * policy.increment,
  span: bucketSpan(policy),
})

/** If clients have different policies for a bucket, the shortest span counts. */
const addPrices = (one: Price | undefined, other: Price): Price =>
  one === undefined
    ? other
    : { price: one.price + other.price, span: Math.min(one.span, other.span) }

/** The sum that clients take from a row's buckets. */
interface Charge extends Price {
  readonly burst: Price | undefined
}

/** Adds takes to the sums for their rows. */
const charge = (charges: Map<string, Charge>, { count, rows }: TakeRequest): void => {
  for (const { burst, id, policy } of rows) {
    const known = charges.get(id)
    charges.set(id, {
      ...addPrices(known, bucketPrice(policy, count)),
      burst: burst && addPrices(known?.burst, bucketPrice(burst, count)),
    })
  }
}

/** The sums that clients take from each row. */
export const chargesOf = (demands: ReadonlyArray<TakeRequest>): ReadonlyMap<string, Charge> => {
  const charges = new Map<string, Charge>()
  for (const demand of demands) charge(charges, demand)
  return charges
}

/** The parameters for `takeIfPlenty`. */
export const takeIfPlentyParams = (charges: ReadonlyMap<string, Charge>) => {
  const each = [...charges.values()]
  return [
    textsParam([...charges.keys()]),
    floatsParam(each.map(({ price }) => price)),
    floatsParam(each.map(({ span }) => span)),
    floatsParam(each.map(({ burst }) => burst?.price)),
    floatsParam(each.map(({ burst }) => burst?.span)),
  ]
}

/** A row from `takeIfPlenty`: a row of the table before the statement. */
export interface PlentyRow {
  readonly full_at: number
  readonly burst_full_at: number
  readonly now: number
  readonly is_plenty: boolean
}

/** Returns the ids of locked rows. */
export const findLocked = (schema: string): string => `
  SELECT a.id
  FROM unnest($1::text[]) AS a (id)
  CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.rate_limit_buckets WHERE id = a.id) b
  LEFT JOIN LATERAL (
    SELECT true AS is_free FROM ${schema}.rate_limit_buckets WHERE id = a.id FOR UPDATE SKIP LOCKED
  ) f ON true
  WHERE f.is_free IS NULL
`

/** The parameters for `findLocked`. */
export const findLockedParams = (ids: ReadonlyArray<string>) => [textsParam(ids)]

/** A row from `findLocked`. */
interface LockedRow {
  readonly id: string
}

/** A statement's decision for a client. Times are in microseconds. */
interface TakeAnswer {
  /** The number of admitted takes. */
  readonly taken: number
  /**
   * Whether the others are refused. If not, they are undecided, because clients before in the statement may
   * have left tokens that were reserved for them.
   */
  readonly isFinal: boolean
  /** The time by the database's clock. */
  readonly now: number
  /** When each bucket was full again before these takes. */
  readonly fullAt: FullAt
}

/** The results of the takes that are decided, in order. */
const decideTakes = (
  { count, rows: [address, key] }: TakeRequest,
  { fullAt, isFinal, now: given, taken }: TakeAnswer,
): ReadonlyArray<TakeResult> => {
  const now = Micros(given)
  return Array.from({ length: isFinal ? count : taken }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const after = (before: number | null, policy: BucketPolicy | undefined): Micros =>
      policy === undefined ? now : Micros((before ?? given) + spent * policy.increment)
    return {
      admitted: index < taken,
      now,
      address: after(fullAt.address, address.policy),
      key: after(fullAt.key, key?.policy),
      burst: after(fullAt.burst, key?.burst),
    }
  })
}

/** The decisions for the clients in one statement, each after the takes of those before it. */
const takeAnswers = (
  demands: ReadonlyArray<TakeRequest>,
  found: ReadonlyArray<TakeManyRow>,
): ReadonlyArray<TakeAnswer> => {
  const spent = new Map<string, Charge>()
  return demands.flatMap(({ rows }, index) => {
    const row = found[index]
    if (row === undefined) return []
    const { most, now, taken } = row
    const [address, key] = rows.map(({ id }) => spent.get(id))
    charge(spent, { rows, count: taken })
    const fullAt = {
      address: row.address + (address?.price ?? 0),
      key: (row.key ?? now) + (key?.price ?? 0),
      burst: (row.burst ?? now) + (key?.burst?.price ?? 0),
    }
    return [{ taken, isFinal: taken === most, now, fullAt }]
  })
}

/** The result of `takeIfPlenty` for each client, or `undefined` if it took nothing. */
const foundPlenty = (
  demands: ReadonlyArray<TakeRequest>,
  charges: ReadonlyMap<string, Charge>,
  found: ReadonlyArray<PlentyRow>,
): ReadonlyArray<TakeManyRow> | undefined => {
  const [first] = found
  if (first?.is_plenty !== true) return undefined
  const { now } = first
  const byId = new Map([...charges.keys()].map((id, index) => [id, found[index]]))
  return demands.map(({ count, rows }) => {
    const [address, key] = rows.map(({ id }) => byId.get(id))
    return {
      taken: count,
      most: count,
      now,
      address: address?.full_at ?? now,
      key: key?.full_at ?? now,
      burst: key?.burst_full_at ?? now,
    }
  })
}

// If a bucket is short, the first statement is in vain. This keeps such statements to one in 17, however many
// clients are short.
const sharesAfterShortage = 16

/** The statements that take tokens. */
export interface TakeStatements {
  /** Takes for clients, in one statement. Returns a decision for each. */
  readonly take: (
    demands: ReadonlyArray<TakeRequest>,
  ) => Effect.Effect<ReadonlyArray<TakeAnswer>, StoreUnavailable>
  /** Returns for each client whether all its buckets are unlocked. */
  readonly areUnlocked: (
    demands: ReadonlyArray<TakeRequest>,
  ) => Effect.Effect<ReadonlyArray<boolean>, StoreUnavailable>
}

// A request does not wait for locks on buckets: it is limited without the store.
const options: ExecuteOptions = { owner: "limits", isBrief: true }

/** Makes the statements for one schema. */
const makeTakeStatements = ({ executeApart, schema }: Executor): TakeStatements => {
  const sql = {
    ifPlenty: takeIfPlenty(schema),
    many: takeMany(schema),
    findLocked: findLocked(schema),
  }

  const share = (demands: ReadonlyArray<TakeRequest>) =>
    Effect.map(executeApart<TakeManyRow>(sql.many, takeManyParams(demands), options), (rows) =>
      takeAnswers(demands, rows),
    )

  // How many of the next statements skip the check whether there are plenty.
  let toShare = 0

  return {
    take: (demands) => {
      if (toShare > 0) {
        toShare--
        return share(demands)
      }
      const charges = chargesOf(demands)
      return Effect.flatMap(
        executeApart<PlentyRow>(sql.ifPlenty, takeIfPlentyParams(charges), options),
        (rows) => {
          const found = foundPlenty(demands, charges, rows)
          if (found !== undefined) return Effect.succeed(takeAnswers(demands, found))
          toShare = sharesAfterShortage
          return share(demands)
        },
      )
    },

    areUnlocked: (demands) => {
      const ids = demands.flatMap(({ rows }) => rows.map(({ id }) => id))
      return Effect.map(
        executeApart<LockedRow>(sql.findLocked, findLockedParams(ids), options),
        (found) => {
          const locked = new Set(found.map(({ id }) => id))
          return demands.map(({ rows }) => rows.every(({ id }) => !locked.has(id)))
        },
      )
    },
  }
}

/** Deletes up to 1000 full buckets; a missing bucket is full. Returns one row for each. */
export const deleteFullBuckets = (schema: string): string =>
  deleteSome(
    schema,
    "rate_limit_buckets",
    "greatest(full_at, burst_full_at) < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
  )

const maxInFlight = 2

const rateLimitStoreBounds: QueueLimits = {
  clients: 256,
  examined: 2048,
  takes: 1000,
  waitingOfClient: 1000,
  waiting: 10_000,
  millis: 10_000,
  rounds: 3,
}

/**
 * Makes the rate limit store. Takes that arrive while statements are in flight share the next one: takes from
 * one client are counted together, different clients are side by side.
 */
export const makePostgresRateLimitStore = Effect.fnUntraced(function* (executor: Executor) {
  const takes = makeTakeStatements(executor)
  const queues = makeClientQueues(rateLimitStoreBounds)
  let inFlight = 0
  let isScheduled = false

  const start = yield* makeBatchRunner<QueuedTake, TakeAnswer, StoreUnavailable>({
    run: takes.take,
    findRetryable: takes.areUnlocked,
    isItemError: waitedForLock,
  })

  /** Ends a turn. Undecided takes wait for another. */
  const settle = (turn: QueuedTake, exit: Exit.Exit<TakeAnswer, StoreUnavailable>): void => {
    const outcomes = Exit.isSuccess(exit)
      ? decideTakes(turn, exit.value).map(Exit.succeed)
      : turn.takes.map(() => Exit.failCause(exit.cause))
    queues.settle(turn, turn.takes.slice(outcomes.length))
    for (const [index, outcome] of outcomes.entries()) turn.takes[index]?.resume(outcome)
    schedule()
  }

  const flush = (): void => {
    isScheduled = false
    while (inFlight < maxInFlight) {
      const turns = queues.next(performance.now())
      if (turns.length === 0) return
      inFlight++
      start(
        turns.map((turn) => ({ item: turn, resume: (exit) => settle(turn, exit) })),
        () => {
          inFlight--
          schedule()
        },
      )
    }
  }

  // Takes that arrive in the same turn of the event loop share a statement.
  const schedule = (): void => {
    if (isScheduled || inFlight >= maxInFlight) return
    isScheduled = true
    queueMicrotask(flush)
  }

  const store: RateLimitStore["Service"] = {
    ping: executor.ping,

    take: (client, policies) =>
      Effect.callback((resume) => {
        const remove = queues.add(client, policies, { resume, since: performance.now() })
        schedule()
        return Effect.sync(remove)
      }),
  }
  return store
})
