import { bucketSpan } from "@tenure/core/internal"
import {
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
import { bigintParam, floatsParam, integersParam, textParam, textsParam } from "./sql/values.ts"

/**
 * An expression for when a bucket is full again, as `currentTat` of core says. Before now would be more than full,
 * and after now plus the span less than empty: it was stored before the clock was set back.
 */
export const currentFullAt = (stored: string, now: string, span: string): string =>
  `least(greatest(${stored}, ${now}), ${now} + ${span})`

/**
 * An expression for the whole tokens left in a bucket, as `remainingTokens` of core says.
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
 * Takes up to `$1` tokens for one client, the same number from each bucket. Returns one row for each
 * bucket, in order. Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * The statement has no ON CONFLICT, so that one of two statements that insert the same bucket fails
 * as a whole and runs again. Otherwise its decision would rest on a bucket that it did not see.
 *
 * @param count - the number of buckets; each has three parameters: key, increment and span
 */
const takeTokens = (schema: string, count: number): string => {
  const rows = Array.from({ length: count }, (_, index) => {
    const first = 2 + 3 * index
    return `(${index}, $${first}::text, $${first + 1}::bigint, $${first + 2}::bigint)`
  })
  const keys = Array.from({ length: count }, (_, index) => `$${2 + 3 * index}`)
  return `
    WITH clock AS MATERIALIZED (
      SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
    ),
    asked (n, id, increment, span) AS MATERIALIZED (VALUES ${rows.join(", ")}),
    kept AS MATERIALIZED (
      SELECT id, full_at FROM ${schema}.rate_limit_buckets WHERE id IN (${keys.join(", ")})
      -- All statements lock buckets in the same order, which avoids deadlocks.
      ORDER BY id
      FOR UPDATE
    ),
    state AS MATERIALIZED (
      SELECT a.n, a.id, a.increment, a.span, k.id IS NOT NULL AS is_kept, c.now,
             ${currentFullAt("coalesce(k.full_at, 0)", "c.now", "a.span")} AS full_at,
             k.full_at > c.now + a.span AS is_late
      FROM asked a CROSS JOIN clock c LEFT JOIN kept k ON k.id = a.id
    ),
    decision AS MATERIALIZED (
      SELECT least($1::bigint, min(${tokensLeft("full_at", "now", "increment", "span")}))::bigint AS taken
      FROM state
    ),
    updated AS (
      UPDATE ${schema}.rate_limit_buckets b SET full_at = s.full_at + d.taken * s.increment
      FROM state s, decision d
      -- Otherwise nobody would take from a late bucket until the clock has reached it.
      WHERE b.id = s.id AND (d.taken > 0 OR s.is_late)
    ),
    inserted AS (
      INSERT INTO ${schema}.rate_limit_buckets (id, full_at)
      SELECT s.id, s.full_at + d.taken * s.increment FROM state s, decision d
      WHERE NOT s.is_kept AND d.taken > 0
    )
    SELECT s.full_at::float8, s.now::float8, d.taken::integer FROM state s, decision d ORDER BY s.n
  `
}

/** The parameters of `take`. */
const takeParams = ({ buckets, count }: TakeRequest) => [
  bigintParam(count),
  ...buckets.flatMap(({ key, policy }) => [
    textParam(key),
    bigintParam(policy.increment),
    bigintParam(bucketSpan(policy)),
  ]),
]

/** A row of `take`. */
interface TakeRow {
  /** When the bucket was full again before. */
  readonly full_at: number
  /** The time by the clock of the database. */
  readonly now: number
  /** The number of tokens taken, the same for each bucket. */
  readonly taken: number
}

/**
 * Takes tokens for several clients, for each the same number from each of its buckets. Returns a row
 * for each client, in order. Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * `$1` has the keys of all buckets, each once. The other arrays have one element for each client: the
 * positions of its buckets in `$1`, the number of takes, and the increments and spans of the buckets.
 * A client without a key has an address only.
 *
 * A client gets what those before it can leave: `most` is what each could take without them, and
 * `…_ahead` what these could take of a bucket. That is exact unless one of them takes less, because
 * another of its buckets is short. Then `taken` is less than `most`, and the rest is undecided.
 *
 * As in `take`, of two statements that insert the same bucket one fails and runs again. Existing buckets
 * are updated by way of ON CONFLICT, which finds each by its key whatever the planner believes of the
 * size of the table. They are locked by then.
 */
export const takeMany = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT bucket, id FROM unnest($1::text[]) WITH ORDINALITY AS a (id, bucket)
    -- All statements lock buckets in the same order, which avoids deadlocks.
    ORDER BY id COLLATE "C"
  ),
  kept AS MATERIALIZED (
    SELECT a.bucket, a.id, b.full_at
    FROM asked a
    LEFT JOIN LATERAL (
      SELECT full_at FROM ${schema}.rate_limit_buckets WHERE id = a.id FOR UPDATE
    ) b ON true
  ),
  found AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now,
           array_agg(coalesce(full_at, 0)::float8 ORDER BY bucket) AS full_ats
    FROM kept
  ),
  -- Without a key, what belongs to its buckets is NULL, which both functions ignore.
  demand AS (
    SELECT d.*, f.now,
           ${currentFullAt("f.full_ats[d.address]", "f.now", "d.address_span")} AS address_full_at,
           ${currentFullAt("f.full_ats[d.key]", "f.now", "d.key_span")} AS key_full_at,
           ${currentFullAt("f.full_ats[d.burst]", "f.now", "d.burst_span")} AS burst_full_at
    FROM unnest($2::integer[], $3::integer[], $4::integer[], $5::integer[], $6::float8[],
                $7::float8[], $8::float8[], $9::float8[], $10::float8[], $11::float8[])
      WITH ORDINALITY
      AS d (address, key, burst, count, address_increment, address_span,
            key_increment, key_span, burst_increment, burst_span, n)
    CROSS JOIN found f
  ),
  -- What is missing is NULL, which least() ignores.
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
    SELECT array_agg(micros ORDER BY bucket) AS micros, array_agg(span ORDER BY bucket) AS spans
    FROM (
      SELECT s.bucket, sum(s.micros) AS micros, max(s.span) AS span
      FROM decided d
      CROSS JOIN LATERAL (VALUES (address, taken * address_increment, address_span),
                                 (key, taken * key_increment, key_span),
                                 (burst, taken * burst_increment, burst_span)) AS s (bucket, micros, span)
      WHERE s.bucket IS NOT NULL
      GROUP BY s.bucket
    ) s
  ),
  changed AS MATERIALIZED (
    SELECT k.id, k.full_at IS NOT NULL AS is_kept,
           (${currentFullAt("coalesce(k.full_at, 0)", "f.now", "s.spans[k.bucket]")}
            + s.micros[k.bucket])::bigint AS full_at
    FROM kept k CROSS JOIN found f CROSS JOIN spent s
    -- What is later than empty was stored before the clock was set back.
    WHERE s.micros[k.bucket] > 0 OR k.full_at > f.now + s.spans[k.bucket]
    ORDER BY k.id
  ),
  updated AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at) SELECT id, full_at FROM changed WHERE is_kept
    ON CONFLICT (id) DO UPDATE SET full_at = excluded.full_at
  ),
  inserted AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at) SELECT id, full_at FROM changed WHERE NOT is_kept
  )
  SELECT taken, most, now, address_full_at AS address, key_full_at AS key, burst_full_at AS burst
  FROM decided
  ORDER BY n
`

/** The parameters of `takeMany`. */
export const takeManyParams = (demands: ReadonlyArray<TakeRequest>) => {
  const positions = new Map<string, number>()
  const positionOf = (key: string): number => {
    const position = positions.get(key) ?? positions.size + 1
    positions.set(key, position)
    return position
  }
  const rows = demands.map(({ buckets, count }) => {
    const [address, key, burst] = buckets.map((bucket) => ({
      at: positionOf(bucket.key),
      increment: bucket.policy.increment,
      span: bucketSpan(bucket.policy),
    }))
    return { address, key, burst, count }
  })
  return [
    textsParam([...positions.keys()]),
    integersParam(rows.map(({ address }) => address?.at)),
    integersParam(rows.map(({ key }) => key?.at)),
    integersParam(rows.map(({ burst }) => burst?.at)),
    integersParam(rows.map(({ count }) => count)),
    floatsParam(rows.map(({ address }) => address?.increment)),
    floatsParam(rows.map(({ address }) => address?.span)),
    floatsParam(rows.map(({ key }) => key?.increment)),
    floatsParam(rows.map(({ key }) => key?.span)),
    floatsParam(rows.map(({ burst }) => burst?.increment)),
    floatsParam(rows.map(({ burst }) => burst?.span)),
  ]
}

/** A row of `takeMany`: the buckets of a client before the statement. */
export interface TakeManyRow {
  readonly taken: number
  /** What could have been taken without the clients before. */
  readonly most: number
  readonly now: number
  readonly address: number
  readonly key: number
  readonly burst: number
}

/**
 * Takes tokens for several clients if every bucket has enough for all of them, at about half the cost of
 * `takeMany`, which shares what is short. Otherwise it changes nothing. Returns a row for each bucket, in order.
 * Times are in microseconds: whole numbers that a float8 holds exactly.
 *
 * The arrays have one element for each bucket: its key, the price of all takes together, and its span.
 * Buckets are locked, updated and inserted as in `takeMany`. One that is fuller in the future than its span allows
 * was stored before the clock was set back: it never has enough, and `takeMany` corrects it.
 */
export const takeIfPlenty = (schema: string): string => `
  WITH kept AS MATERIALIZED (
    SELECT id, full_at FROM ${schema}.rate_limit_buckets WHERE id = ANY ($1::text[])
    -- All statements lock buckets in the same order, which avoids deadlocks.
    ORDER BY id
    FOR UPDATE
  ),
  -- Counting the locked rows reads the clock after the last lock.
  clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::float8 AS now, count(*) FROM kept
  ),
  asked AS MATERIALIZED (
    SELECT a.n, a.id, a.price, a.span, c.now, k.id IS NOT NULL AS is_kept,
           greatest(coalesce(k.full_at, 0), c.now) AS full_at
    FROM unnest($1::text[], $2::float8[], $3::float8[]) WITH ORDINALITY AS a (id, price, span, n)
    LEFT JOIN kept k ON k.id = a.id
    CROSS JOIN clock c
  ),
  decision AS MATERIALIZED (SELECT bool_and(full_at + price <= now + span) AS is_plenty FROM asked),
  updated AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at)
    SELECT id, (full_at + price)::bigint FROM asked WHERE is_kept AND (SELECT is_plenty FROM decision)
    ON CONFLICT (id) DO UPDATE SET full_at = excluded.full_at
  ),
  inserted AS (
    INSERT INTO ${schema}.rate_limit_buckets (id, full_at)
    SELECT id, (full_at + price)::bigint FROM asked
    WHERE NOT is_kept AND (SELECT is_plenty FROM decision)
    ORDER BY id COLLATE "C"
  )
  SELECT full_at, now, (SELECT is_plenty FROM decision) FROM asked ORDER BY n
`

/** What clients together take from a bucket, in microseconds, and its shortest span among their policies. */
interface Charge {
  readonly price: number
  readonly span: number
}

/** What clients together take from each bucket. */
export const chargesOf = (demands: ReadonlyArray<TakeRequest>): ReadonlyMap<string, Charge> => {
  const charges = new Map<string, Charge>()
  for (const { buckets, count } of demands) {
    for (const { key, policy } of buckets) {
      const known = charges.get(key)
      const price = count * policy.increment
      const span = bucketSpan(policy)
      charges.set(
        key,
        known === undefined
          ? { price, span }
          : { price: known.price + price, span: Math.min(known.span, span) },
      )
    }
  }
  return charges
}

/** The parameters of `takeIfPlenty`. */
export const takeIfPlentyParams = (charges: ReadonlyMap<string, Charge>) => {
  const each = [...charges.values()]
  return [
    textsParam([...charges.keys()]),
    floatsParam(each.map(({ price }) => price)),
    floatsParam(each.map(({ span }) => span)),
  ]
}

/** A row of `takeIfPlenty`: a bucket before the statement. */
export interface PlentyRow {
  readonly full_at: number
  readonly now: number
  readonly is_plenty: boolean
}

/** Returns the keys of buckets that somebody has locked. */
export const findLocked = (schema: string): string => `
  SELECT a.key
  FROM unnest($1::text[]) AS a (key)
  CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.rate_limit_buckets WHERE id = a.key) b
  LEFT JOIN LATERAL (
    SELECT true AS is_free FROM ${schema}.rate_limit_buckets WHERE id = a.key FOR UPDATE SKIP LOCKED
  ) f ON true
  WHERE f.is_free IS NULL
`

/** The parameters of `findLocked`. */
export const findLockedParams = (keys: ReadonlyArray<string>) => [textsParam(keys)]

/** A row of `findLocked`. */
interface LockedRow {
  readonly key: string
}

/** What a statement has decided. Times are in microseconds. */
interface TakeAnswer {
  /** The number of takes that are admitted. */
  readonly taken: number
  /**
   * Whether the others are refused. If not, they are undecided: clients before in the statement may
   * have left tokens that they had asked for.
   */
  readonly isFinal: boolean
  /** The time by the clock of the database. */
  readonly now: number
  /** When each bucket was full again before these takes. */
  readonly tats: ReadonlyArray<number>
}

/** The outcomes of the takes, in order, as many as are decided. */
const decideTakes = (
  { buckets, count }: TakeRequest,
  { isFinal, now: given, taken, tats }: TakeAnswer,
): ReadonlyArray<TakeResult> => {
  const now = Micros(given)
  return Array.from({ length: isFinal ? count : taken }, (_, index) => {
    const spent = Math.min(index + 1, taken)
    const [address = now, key = now, burst = now] = buckets.map(({ policy }, bucket) =>
      Micros((tats[bucket] ?? now) + spent * policy.increment),
    )
    return { admitted: index < taken, now, address, key, burst }
  })
}

/** What a statement for several clients has found for one of them. */
interface Found {
  readonly taken: number
  /** What it could have taken without those before. */
  readonly most: number
  readonly now: number
  /** When each bucket was full again before the statement. */
  readonly tats: ReadonlyArray<number>
}

/** The answers to clients in one statement, each after the takes of those before it. */
const takeAnswers = (
  demands: ReadonlyArray<TakeRequest>,
  found: ReadonlyArray<Found>,
): ReadonlyArray<TakeAnswer> => {
  const spent = new Map<string, number>()
  return found.map(({ most, now, taken, tats }, index) => {
    const after = (demands[index]?.buckets ?? []).map(({ key, policy }, bucket) => {
      const ahead = spent.get(key) ?? 0
      spent.set(key, ahead + taken * policy.increment)
      return (tats[bucket] ?? now) + ahead
    })
    return { taken, isFinal: taken === most, now, tats: after }
  })
}

/** What `takeIfPlenty` has found for each client, or `undefined` if it has taken nothing. */
const foundPlenty = (
  demands: ReadonlyArray<TakeRequest>,
  charges: ReadonlyMap<string, Charge>,
  rows: ReadonlyArray<PlentyRow>,
): ReadonlyArray<Found> | undefined => {
  const [first] = rows
  if (first?.is_plenty !== true) return undefined
  const { now } = first
  const tats = new Map([...charges.keys()].map((key, index) => [key, rows[index]?.full_at ?? now]))
  return demands.map(({ buckets, count }) => ({
    taken: count,
    most: count,
    now,
    tats: buckets.map(({ key }) => tats.get(key) ?? now),
  }))
}

// A client whose bucket is short makes a statement in vain. So at most one in 17 is, however many such clients
// there are.
const sharesAfterShortage = 16

/** Takes from the buckets in the database: for one client, or for several in one statement. */

/** Asks the database. */
export interface TakeStatements {
  /** Takes for clients, all in one statement. Returns an answer for each. */
  readonly take: (
    demands: ReadonlyArray<TakeRequest>,
  ) => Effect.Effect<ReadonlyArray<TakeAnswer>, StoreUnavailable>
  /** Returns for each client whether none of its buckets is locked. */
  readonly areUnlocked: (
    demands: ReadonlyArray<TakeRequest>,
  ) => Effect.Effect<ReadonlyArray<boolean>, StoreUnavailable>
}

// A request does not wait for locks of buckets: it is limited without the store.
const manner: ExecuteOptions = { owner: "limits", isBrief: true }

const answerOf = (rows: ReadonlyArray<TakeRow>): TakeAnswer => ({
  taken: rows[0]?.taken ?? 0,
  isFinal: true,
  now: rows[0]?.now ?? 0,
  tats: rows.map(({ full_at }) => full_at),
})

/** Makes the functions for one schema. */
const makeTakeStatements = ({ executeApart, schema }: Executor): TakeStatements => {
  const sql = {
    ofAddress: takeTokens(schema, 1),
    ofKey: takeTokens(schema, 3),
    ifPlenty: takeIfPlenty(schema),
    many: takeMany(schema),
    findLocked: findLocked(schema),
  }

  const takeOne = (demand: TakeRequest) =>
    executeApart<TakeRow>(
      demand.buckets.length === 1 ? sql.ofAddress : sql.ofKey,
      takeParams(demand),
      manner,
    ).pipe(Effect.map((rows) => [answerOf(rows)]))

  const share = (demands: ReadonlyArray<TakeRequest>) =>
    executeApart<TakeManyRow>(sql.many, takeManyParams(demands), manner).pipe(
      Effect.map((rows) =>
        takeAnswers(
          demands,
          rows.map(({ address, burst, key, ...row }) => ({ ...row, tats: [address, key, burst] })),
        ),
      ),
    )

  // How many of the next statements share tokens without a try whether there are plenty.
  let toShare = 0

  const takeAll = (demands: ReadonlyArray<TakeRequest>) => {
    if (toShare > 0) {
      toShare--
      return share(demands)
    }
    const charges = chargesOf(demands)
    return Effect.flatMap(
      executeApart<PlentyRow>(sql.ifPlenty, takeIfPlentyParams(charges), manner),
      (rows) => {
        const found = foundPlenty(demands, charges, rows)
        if (found !== undefined) return Effect.succeed(takeAnswers(demands, found))
        toShare = sharesAfterShortage
        return share(demands)
      },
    )
  }

  return {
    take: (demands) => {
      const [first, ...others] = demands
      // Cheaper for a single client.
      return first !== undefined && others.length === 0 ? takeOne(first) : takeAll(demands)
    },

    areUnlocked: (demands) => {
      const keys = demands.flatMap(({ buckets }) => buckets.map(({ key }) => key))
      return Effect.map(
        executeApart<LockedRow>(sql.findLocked, findLockedParams(keys), manner),
        (rows) => {
          const locked = new Set(rows.map(({ key }) => key))
          return demands.map(({ buckets }) => buckets.every(({ key }) => !locked.has(key)))
        },
      )
    },
  }
}

/** Deletes up to 1000 full buckets; a missing bucket is full. Returns one row for each. */
export const deleteFullBuckets = (schema: string): string => `
  DELETE FROM ${schema}.rate_limit_buckets WHERE id IN (
    SELECT id FROM ${schema}.rate_limit_buckets
    WHERE full_at < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
  )
  RETURNING 1 AS swept
`

/** Token buckets on PostgreSQL. */

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
 * Makes the store. Takes that arrive while statements are in flight share the next one: those of the
 * same client are counted together, those of different clients stand side by side.
 */
export const makePostgresRateLimitStore = Effect.fnUntraced(function* (executor: Executor) {
  const takes = makeTakeStatements(executor)
  const lines = makeClientQueues(rateLimitStoreBounds)
  let inFlight = 0
  let isScheduled = false

  const start = yield* makeBatchRunner<QueuedTake, TakeAnswer, StoreUnavailable>({
    run: takes.take,
    findSound: takes.areUnlocked,
    isOwn: waitedForLock,
  })

  /** Ends a turn. Takes that are undecided wait for another. */
  const settle = (turn: QueuedTake, exit: Exit.Exit<TakeAnswer, StoreUnavailable>): void => {
    const outcomes = Exit.isSuccess(exit)
      ? decideTakes(turn, exit.value).map(Exit.succeed)
      : turn.takes.map(() => Exit.failCause(exit.cause))
    lines.settle(turn, turn.takes.slice(outcomes.length))
    for (const [index, outcome] of outcomes.entries()) turn.takes[index]?.resume(outcome)
    schedule()
  }

  const flush = (): void => {
    isScheduled = false
    while (inFlight < maxInFlight) {
      const turns = lines.next(performance.now())
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
        const remove = lines.add(client, policies, { resume, since: performance.now() })
        schedule()
        return Effect.sync(remove)
      }),
  }
  return store
})
