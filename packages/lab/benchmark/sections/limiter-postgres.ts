/**
 * Limiters that share their counters through PostgreSQL. The table of rate-limiter-flexible survives a
 * crash of the server, unless it is made unlogged like Tenure's.
 */

import { RateLimiter } from "@tenure/core/effect"
import { Setting, rateLimiterOptions as limiterOptions } from "@tenure/core/internal"
import { Millis, RateLimitStore, bucketPolicy } from "@tenure/core/store"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import pg from "pg"
import { RateLimiterPostgres } from "rate-limiter-flexible"
import { type Database, schema } from "../database.ts"
import { type LimiterClient, clientOf } from "../limiters/clients.ts"
import { type Row, type Section, type Settings, rowsOf } from "../measurement.ts"
import { compare, loops } from "../rounds.ts"
import type { Target } from "../target.ts"

/** How many takes there are at the same time, and how many connections for them. */
interface Load {
  readonly concurrency: number
  readonly maxConnections: number
}

/** The connections that the store has by default. */
const usual: Load = { concurrency: 64, maxConnections: 10 }

/** As many connections as takes. */
const plentiful: Load = { concurrency: 32, maxConnections: 32 }

/** A limiter on the database; the promise of a take tells whether it was admitted. */
interface Limiter {
  readonly name: string
  readonly take: (client: LimiterClient) => Promise<boolean>
  readonly close: () => Promise<void>
}

const plenty = 1_000_000_000

const policy = bucketPolicy({ limit: 10_000_000, window: Millis(300 * 86_400_000) })

const policies = { address: policy, key: policy, burst: policy }

/** The store alone. */
const tenureStore = (url: string, { maxConnections }: Load): Limiter => {
  const runtime = ManagedRuntime.make(postgres({ url, schema, maxConnections }))
  return {
    name: storeName,
    close: () => runtime.dispose(),
    take: ({ address, key }) =>
      runtime.runPromise(
        Effect.flatMap(RateLimitStore, (store) =>
          store.take({ address, keyId: key }, policies),
        ).pipe(Effect.map(({ admitted }) => admitted)),
      ),
  }
}

/** The service, which remembers refusals; one request an hour for each client. */
const tenureService = (url: string, { maxConnections }: Load): Limiter => {
  const limit = { limit: 1, window: "1 hour" } as const
  const service = RateLimiter.layer(
    Setting.parse(limiterOptions, { perKey: limit, perAddress: limit, burst: limit }),
  )
  const runtime = ManagedRuntime.make(
    Layer.provide(service, postgres({ url, schema, maxConnections })),
  )
  return {
    name: "Tenure's RateLimiter",
    close: () => runtime.dispose(),
    take: ({ address, key }) =>
      runtime.runPromise(
        Effect.flatMap(RateLimiter, (limiter) => limiter.take({ address, keyId: key })).pipe(
          Effect.map(({ _tag }) => _tag === "Admitted"),
        ),
      ),
  }
}

type Options = ConstructorParameters<typeof RateLimiterPostgres>[0]

/** A limiter of rate-limiter-flexible, once it has made its table. */
const makeFlexible = (options: Options): Promise<RateLimiterPostgres> =>
  new Promise((resolve, reject) => {
    const limiter = new RateLimiterPostgres(options, (error?: Error) => {
      if (error === undefined) resolve(limiter)
      else reject(error)
    })
  })

interface Peer {
  readonly name: string
  readonly options: Partial<Options>
  /** Whether its table is unlogged like Tenure's, so that both survive the same. */
  readonly isUnlogged?: boolean
}

/** Three limiters of rate-limiter-flexible, in sequence; the first that refuses is the last asked. */
const flexible = async (
  url: string,
  { maxConnections }: Load,
  { isUnlogged = false, name, options }: Peer,
): Promise<Limiter> => {
  const storeClient = new pg.Pool({ connectionString: url, max: maxConnections })
  const tableName = isUnlogged ? "flexible_unlogged" : "flexible"
  const make = (keyPrefix: string) =>
    makeFlexible({
      storeClient,
      schemaName: schema,
      tableName,
      clearExpiredByTimeout: false,
      keyPrefix,
      points: plenty,
      duration: 3600,
      ...options,
    })
  const key = await make("key")
  const address = await make("address")
  const burst = await make("burst")
  if (isUnlogged) await storeClient.query(`ALTER TABLE ${schema}.${tableName} SET UNLOGGED`)
  return {
    name,
    close: () => storeClient.end(),
    take: async (client) => {
      try {
        await key.consume(client.key)
        await address.consume(client.address)
        await burst.consume(client.key)
        return true
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal
        return false
      }
    },
  }
}

/** A situation: which clients send requests, and whether these are admitted. */
interface Situation {
  readonly measured: string
  readonly client: () => LimiterClient
  readonly isAdmitted: boolean
  readonly load: Load
  readonly target: Target
  readonly tenure: (url: string, load: Load) => Limiter
  readonly peers: ReadonlyArray<Peer>
}

const name = "rate-limiter-flexible"

const storeName = "Tenure's RateLimitStore"
const someKeys = "take on PostgreSQL, 2,000 keys, 10 connections"

/** Names of rows. */
export const takeOf = { some: `${someKeys}: ${storeName}` } as const

/** Any of so many clients. */
const anyOf = (count: number): LimiterClient => clientOf(Math.floor(Math.random() * count))

const situations = ({ pick }: Settings): ReadonlyArray<Situation> => {
  const keys = pick(100_000, 1000)
  const some = pick(2000, 200)
  return [
    {
      measured: someKeys,
      client: () => anyOf(some),
      isAdmitted: true,
      load: usual,
      target: { of: "ratio", atLeast: 4 },
      tenure: tenureStore,
      peers: [
        { name, options: {} },
        { name: `${name}, unlogged`, options: {}, isUnlogged: true },
      ],
    },
    {
      measured: "take on PostgreSQL, 2,000 keys of one address, 10 connections",
      client: () => ({ ...anyOf(some), address: "192.0.2.1" }),
      isAdmitted: true,
      load: usual,
      target: { of: "ratio", atLeast: 4 },
      tenure: tenureStore,
      peers: [{ name, options: {} }],
    },
    {
      measured: "take on PostgreSQL, 100,000 keys",
      client: () => anyOf(keys),
      isAdmitted: true,
      load: plentiful,
      target: { of: "ratio", atLeast: 1.8 },
      tenure: tenureStore,
      peers: [{ name, options: {} }],
    },
    {
      measured: "take on PostgreSQL, one hot key",
      client: () => clientOf(keys + 1),
      isAdmitted: true,
      load: plentiful,
      target: { of: "ratio", atLeast: 2 },
      tenure: tenureStore,
      peers: [{ name, options: {} }],
    },
    {
      measured: "take on PostgreSQL, one exhausted key",
      client: () => clientOf(keys + 2),
      isAdmitted: false,
      load: plentiful,
      target: { of: "ratio", atLeast: 5 },
      tenure: tenureService,
      peers: [
        { name, options: { points: 1 } },
        // It remembers refusals too, where it is asked to.
        { name: `${name}, blocking in memory`, options: { points: 1, inMemoryBlockOnConsumed: 1 } },
      ],
    },
  ]
}

const contestant = ({ name: of, take }: Limiter, { client, isAdmitted, load }: Situation) => ({
  name: of,
  run: (seconds: number) =>
    loops(load.concurrency, seconds, async () => {
      if ((await take(client())) !== isAdmitted) throw new Error(`${of} judged wrongly`)
    }),
})

const measure = async (
  { url }: Database,
  situation: Situation,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const { load } = situation
  const tenure = situation.tenure(url, load)
  const peers: Array<Limiter> = []
  for (const peer of situation.peers) peers.push(await flexible(url, load, peer))
  const all = [tenure, ...peers]
  if (!situation.isAdmitted) for (const { take } of all) await take(situation.client())
  const field = {
    tenure: contestant(tenure, situation),
    peers: peers.map((peer) => contestant(peer, situation)),
  }
  const scores = await compare(field, settings)
  for (const { close } of all) await close()
  const measured = `${situation.measured}: ${tenure.name}`
  // The processor time is that of this process; the database's is not counted.
  return [
    ...rowsOf(measured, "rate", scores, { [name]: situation.target }),
    ...rowsOf(measured, "cpu", scores),
  ]
}

/** Takes a second, each on three buckets. */
export const limiterPostgres: Section = {
  name: "limiter-postgres",
  measure: async (settings) => {
    const database = await settings.database()
    await database.sql(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    const rows: Array<Row> = []
    for (const situation of situations(settings)) {
      rows.push(...(await measure(database, situation, settings)))
    }
    return { rows }
  },
}
