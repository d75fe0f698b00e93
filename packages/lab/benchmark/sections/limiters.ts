/**
 * Limiters that take from three buckets: in memory, on PostgreSQL and on Redis. The table that rate-limiter-flexible makes
 * survives a crash, unless it is made unlogged like Tenure's. Its union on Redis counts the key three
 * times, because it knows one key for all its limiters.
 */

import { postgres } from "@tenure/postgres"
import { type Client, redisLimits } from "@tenure/redis"
import { Redis } from "ioredis"
import pg from "pg"
import { RateLimiterPostgres, RateLimiterRedis, RateLimiterUnion } from "rate-limiter-flexible"
import { createClient } from "redis"
import { missing, startRedis } from "../../../redis/test/redis-server.ts"
import { schema } from "../database.ts"
import {
  type Limiter,
  type LimiterClient,
  type Outcome,
  byPromise,
  clientOf,
  inSequence,
  isAdmitted,
  pointsOf,
  storeName,
  tenureService,
  tenureStore,
} from "../limiters/limiters.ts"
import type { Ready } from "../limiters/takes.ts"
import {
  type Row,
  type Section,
  type Settings,
  type Target,
  ratioRows,
  rowsOf,
} from "../measurement.ts"
import { type Child, start } from "../processes.ts"
import { type Contestant, brief, compare, inPairs, loops } from "../rounds.ts"

const flexible = "rate-limiter-flexible"

const inMemoryProfile =
  "Most of a take is two look-ups in maps of 100,000 ids, which miss the caches of the processor. For a refusal rate-limiter-flexible needs one look-up of its three, since it stops at the first empty bucket: it takes about half as long as for an admission. Tenure takes as long for both, since it tells the longest wait. Two look-ups, three instants and a clock, without any rule, reach 3.5 × for refusals; among 1,000 clients, the table alone reaches 7.6 ×. A step of a fiber adds 0.1 µs, and reading Effect's clock 0.07 µs."

const peersInMemory = ["flexible", "union", "express", "effect"] as const

const contestantIn = ({
  ask,
  greeting: { name },
}: Child & { readonly greeting: Ready }): Contestant => ({
  name,
  run: (seconds) => ask({ seconds }),
})

/** Compares limiters in memory, each in its own process, and what a client takes there. */
const measureInMemory = async (
  outcome: Outcome,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const count = String(settings.pick(100_000, 1000))
  const run = (name: string) =>
    start<Ready>("./limiters/takes.ts", { args: [name, outcome, count], flags: ["--expose-gc"] })
  const store = await run("store")
  const service = await run("service")
  const peers = await Promise.all(peersInMemory.map(run))
  const field = { tenure: contestantIn(store), peers: [service, ...peers].map(contestantIn) }
  const { peers: others, tenure } = await compare(field, brief(settings))
  for (const { stop } of [store, service, ...peers]) stop()
  const [asService = tenure, ...rest] = others
  const measured = `take of three buckets, uniform, ${outcome}`
  const target: Target = { of: "ratio", atLeast: 4, profile: inMemoryProfile }
  const rows = [
    ...rowsOf(`${measured}: ${storeName}`, "rate", { tenure, peers: rest }, { [flexible]: target }),
    ...rowsOf(`${measured}: ${asService.name}`, "rate", {
      tenure: asService,
      peers: rest.filter(({ name }) => name === flexible),
    }),
  ]
  if (outcome === "refused") return rows
  const idle = {
    measured: "an idle key and its address",
    unit: "bytes",
    figure: store.greeting.bytes,
  }
  return [
    ...rows,
    { ...idle, target: { of: "figure", atMost: 250 } },
    ...peers
      .map(({ greeting }) => greeting)
      .filter(({ name }) => !name.endsWith("union"))
      .map(({ bytes, name }) => ({ ...idle, yardstick: { name, figure: bytes } })),
  ]
}

/** Limiters in memory: their speed, and what they take. */
export const limiter: Section = {
  name: "limiter",
  measure: async (settings) => ({
    rows: [
      ...(await measureInMemory("admitted", settings)),
      ...(await measureInMemory("refused", settings)),
    ],
  }),
}

/** A situation on a server: which clients send requests, how many at a time, and to which limiters. */
interface Situation {
  readonly measured: string
  readonly client: () => LimiterClient
  readonly concurrency: number
  readonly outcome?: Outcome
  readonly target: Target
  readonly tenure: Limiter
  readonly peers: ReadonlyArray<Limiter>
  /** Returns the server's processor time in microseconds, where that can be known. */
  readonly serverCpu?: () => Promise<number>
}

const anyOf = (count: number): LimiterClient => clientOf(Math.floor(Math.random() * count))

const contestantOf =
  ({ client, concurrency, outcome = "admitted", serverCpu }: Situation) =>
  ({ name, takeAll }: Limiter): Contestant => ({
    name,
    run: async (seconds) => {
      const before = (await serverCpu?.()) ?? 0
      const admitted = outcome === "admitted" ? 1 : 0
      let takes = 0
      const { cpu, rate } = await loops(concurrency, seconds, async () => {
        takes++
        if ((await takeAll([client()])) !== admitted) throw new Error(`${name} judged wrongly`)
      })
      return { rate, cpu: cpu + (((await serverCpu?.()) ?? 0) - before) / takes }
    },
  })

/** Compares limiters on a server, at last one pair in short rounds. */
const measure = async (
  situation: Situation,
  settings: Settings,
  paired?: string,
): Promise<ReadonlyArray<Row>> => {
  const { peers, target, tenure } = situation
  const all = [tenure, ...peers]
  if (situation.outcome === "refused") {
    for (const { takeAll } of all) await takeAll([situation.client()])
  }
  const contestant = contestantOf(situation)
  const field = { tenure: contestant(tenure), peers: peers.map(contestant) }
  const scores = await compare(field, settings)
  const measured = `${situation.measured}: ${tenure.name}`
  const rows = [
    ...rowsOf(measured, "rate", scores, { [flexible]: target }),
    ...rowsOf(measured, "cpu", scores),
  ]
  const pair = field.peers.find(({ name }) => name === paired)
  if (pair !== undefined) {
    // Alone, a take waits for two processes to be scheduled: that differs more from turn to turn than the limiters do.
    const rounds = { rounds: settings.pick(50, 2), seconds: 0.1 }
    const ratio = await inPairs(field.tenure, pair, rounds)
    const title = `${measured}: rate, of that of the union`
    rows.push(...ratioRows(title, ratio, { of: "figure", atLeast: 1 }))
  }
  for (const { close } of all) await close()
  return rows
}

/** How many takes there are at the same time, and how many connections for them. */
interface Load {
  readonly concurrency: number
  readonly maxConnections: number
}

// The connections that the store has by default; and as many connections as takes.
const usual: Load = { concurrency: 64, maxConnections: 10 }
const plentiful: Load = { concurrency: 32, maxConnections: 32 }

type PostgresOptions = ConstructorParameters<typeof RateLimiterPostgres>[0]

/** Makes a rate-limiter-flexible limiter with its table. */
const makeFlexible = (options: PostgresOptions): Promise<RateLimiterPostgres> =>
  new Promise((resolve, reject) => {
    const made = new RateLimiterPostgres(options, (error?: Error) => {
      if (error === undefined) resolve(made)
      else reject(error)
    })
  })

/** Three rate-limiter-flexible limiters on PostgreSQL. */
const flexibleOn = async (
  url: string,
  { maxConnections }: Load,
  {
    isUnlogged = false,
    name = flexible,
    ...options
  }: Partial<PostgresOptions> & {
    readonly name?: string
    /** Whether its table is unlogged like Tenure's, so that both survive the same. */
    readonly isUnlogged?: boolean
  } = {},
): Promise<Limiter> => {
  const storeClient = new pg.Pool({ connectionString: url, max: maxConnections })
  const tableName = isUnlogged ? "flexible_unlogged" : "flexible"
  const limiters: Array<RateLimiterPostgres> = []
  for (const keyPrefix of ["key", "address", "burst"]) {
    const counter = { keyPrefix, points: pointsOf("admitted"), duration: 3600, ...options }
    const table = { storeClient, schemaName: schema, tableName, clearExpiredByTimeout: false }
    limiters.push(await makeFlexible({ ...table, ...counter }))
  }
  if (isUnlogged) await storeClient.query(`ALTER TABLE ${schema}.${tableName} SET UNLOGGED`)
  return inSequence(name, limiters, () => storeClient.end())
}

const someKeys = "take on PostgreSQL, 2,000 keys, 10 connections"

export const takeOf = { some: `${someKeys}: ${storeName}` } as const

/** Takes a second on PostgreSQL. Only this process's processor time is counted. */
export const limiterPostgres: Section = {
  name: "limiter-postgres",
  measure: async (settings) => {
    const { sql, url } = await settings.database()
    await sql(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    const [keys, some] = [settings.pick(100_000, 1000), settings.pick(2000, 200)]
    const storesOf = ({ maxConnections }: Load) => postgres({ url, schema, maxConnections })
    const rows: Array<Row> = []
    const store = async (
      measured: string,
      client: () => LimiterClient,
      load: Load,
      atLeast: number,
      more: ReadonlyArray<Limiter> = [],
    ): Promise<void> => {
      const tenure = await tenureStore(storesOf(load))
      const peers = [await flexibleOn(url, load), ...more]
      const target = { of: "ratio", atLeast } as const
      const { concurrency } = load
      const situation = { measured, client, concurrency, target, tenure, peers }
      rows.push(...(await measure(situation, settings)))
    }
    await store(someKeys, () => anyOf(some), usual, 4, [
      await flexibleOn(url, usual, { name: `${flexible}, unlogged`, isUnlogged: true }),
    ])
    const ofOneAddress = () => ({ ...anyOf(some), address: "192.0.2.1" })
    await store(
      "take on PostgreSQL, 2,000 keys of one address, 10 connections",
      ofOneAddress,
      usual,
      4,
    )
    await store("take on PostgreSQL, 100,000 keys", () => anyOf(keys), plentiful, 1.8)
    await store("take on PostgreSQL, one hot key", () => clientOf(keys + 1), plentiful, 2)
    // It remembers refusals too, where it is asked to.
    const blocking = { points: 1, inMemoryBlockOnConsumed: 1 }
    const exhausted: Situation = {
      measured: "take on PostgreSQL, one exhausted key",
      client: () => clientOf(keys + 2),
      outcome: "refused",
      concurrency: plentiful.concurrency,
      target: { of: "ratio", atLeast: 5 },
      tenure: await tenureService(storesOf(plentiful), "refused"),
      peers: [
        await flexibleOn(url, plentiful, { points: 1 }),
        await flexibleOn(url, plentiful, { name: `${flexible}, blocking in memory`, ...blocking }),
      ],
    }
    rows.push(...(await measure(exhausted, settings)))
    return { rows }
  },
}

/** A Redis client. Each limiter has its own. */
interface Opened {
  readonly client: Client
  /** Makes a rate-limiter-flexible limiter. */
  readonly flexible: (keyPrefix: string) => RateLimiterRedis
  readonly close: () => void
}

const counter = { points: pointsOf("admitted"), duration: 3600 }

const ioredis = async (port: number): Promise<Opened> => {
  const client = new Redis(port, "127.0.0.1")
  return {
    client,
    flexible: (keyPrefix) => new RateLimiterRedis({ storeClient: client, keyPrefix, ...counter }),
    close: () => client.disconnect(),
  }
}

const nodeRedis = async (port: number): Promise<Opened> => {
  const client = createClient({ socket: { host: "127.0.0.1", port } })
  await client.connect()
  const options = { storeClient: client, useRedisPackage: true, ...counter }
  return {
    client,
    flexible: (keyPrefix) => new RateLimiterRedis({ ...options, keyPrefix }),
    close: () => client.destroy(),
  }
}

const tenureOn = async ({ client, close }: Opened): Promise<Limiter> => {
  const store = await tenureStore(redisLimits({ client }))
  return { ...store, close: async () => [await store.close(), close()] }
}

const sequenceOn = ({ close, flexible: make }: Opened): Limiter =>
  inSequence(flexible, [make("key"), make("address"), make("burst")], close)

const unionOn = ({ close, flexible: make }: Opened): Limiter => {
  const all = new RateLimiterUnion(make("union"), make("of"), make("three"))
  const take = ({ keyId }: LimiterClient) => isAdmitted(() => all.consume(keyId))
  return byPromise(`${flexible}, union`, take, close)
}

const redisProfile =
  "For a take among others, Redis works for 7 µs: 3 to find two of 200,000 keys, most of it waiting for memory, 1 to change them, 2 for the arithmetic and the reply, and 1 to receive it. The three scripts of rate-limiter-flexible take 22. A take that is alone costs client and server 47 µs on processors that are awake, three scripts in sequence 80, and the three of the union, sent together, 64. A script that does nothing would cost 18: so three times the rate of a sequence is out of reach there."

/** The processor time that a server has used, in microseconds. */
const usedBy = async (server: Redis): Promise<number> => {
  const info = await server.info("cpu")
  const [user = 0, system = 0] = ["user", "sys"].map((kind) =>
    Number(new RegExp(`^used_cpu_${kind}:(.*)`, "m").exec(info)?.[1]),
  )
  return 1_000_000 * (user + system)
}

/** Takes a second on Redis. The server's processor time is counted, too. */
export const limiterRedis: Section = {
  name: "limiter-redis",
  measure: async (settings) => {
    if (missing !== undefined) {
      console.warn(`limiter-redis is skipped because there is no Redis: ${missing}`)
      return { rows: [] }
    }
    const server = await startRedis()
    const observer = new Redis(server.port, "127.0.0.1")
    const rows: Array<Row> = []
    const many = settings.pick(100_000, 1000)
    for (const [measured, open, clients, concurrency] of [
      ["100,000 keys, ioredis", ioredis, many, 64],
      ["100,000 keys, node-redis", nodeRedis, many, 64],
      ["one hot key, ioredis", ioredis, 1, 64],
      ["100,000 keys, one request at a time, ioredis", ioredis, many, 1],
    ] as const) {
      const situation: Situation = {
        measured: `take on Redis, ${measured}`,
        client: () => anyOf(clients),
        concurrency,
        target: { of: "ratio", atLeast: 3, profile: redisProfile },
        tenure: await tenureOn(await open(server.port)),
        peers: [sequenceOn(await open(server.port)), unionOn(await open(server.port))],
        serverCpu: () => usedBy(observer),
      }
      // Four situations, so half as long as usual.
      const shorter = { ...settings, seconds: settings.seconds / 2 }
      rows.push(...(await measure(situation, shorter, `${flexible}, union`)))
    }
    observer.disconnect()
    await server.stop()
    return { rows }
  },
}
