/** A run's world: servers, a host in this process, and receivers, on one database. */

import { randomBytes } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { format } from "node:util"
import { type Tenure, createTenure } from "@tenure/core"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { redisLimits } from "@tenure/redis"
import type { PostgresServer } from "@tenure/testing/postgres-server"
import { Redis } from "ioredis"
import { missing, startRedis } from "../../../redis/test/redis-server.ts"
import type { Limit } from "../history.ts"
import type { Random } from "../random.ts"
import type { Places, Schedule } from "../schedule.ts"
import { drainMillis } from "../trouble.ts"
import { makeDatabase } from "./database.ts"
import { openDoors } from "./doors.ts"
import { freePort } from "./ports.ts"
import { openLink } from "./proxy.ts"
import { type Server, makeServer, patienceMillis } from "./server.ts"
import { makeStage } from "./stage.ts"

/** The host's name among the processes. */
export const host = "host"

/** What there is in every run. */
export const places: Places = {
  servers: ["s1", "s2"],
  restarted: ["s1", "s2"],
  processes: ["s1", "s2", host],
  projects: ["p1", "p2", "p3"],
  hasRedis: missing === undefined,
}

/** The project in which members end before anybody changes their dates again. */
export const endingProject = "ending"

/** Projects with one member each, which all end at the same time. */
export const rushProjects: ReadonlyArray<string> = Array.from(
  { length: 48 },
  (_, index) => `rush${index}`,
)

/** The projects for clients and readers. */
export const projects = [endingProject, ...places.projects] as const

const [first, ...others] = [1001, 1002, 1003, 1004, 1005].map(String)

/** The members that every project has from the beginning. */
export const userIds = [first ?? "", ...others] as const

/** Users who come and are erased, again and again. */
export const personIds = ["1101", "1102"] as const

export const operatorKeys: ReadonlyArray<string> = ["c3", "c4"]

/** Each key's limits at the servers. */
export const limits: ReadonlyArray<Limit> = [
  { capacity: 1200, perSecond: 20 },
  { capacity: 20, perSecond: 20 },
]

/** Seconds between a delivery's attempts. */
export const retrySchedule: ReadonlyArray<number> = [0.2, 0.5, 1, 2]

/** Seconds before a membership's end at which it is announced. */
const reminders: ReadonlyArray<number> = [4, 1]

/** How long before the end it is announced, in milliseconds: longest first, and then 0. */
export const leads: ReadonlyArray<number> = [...reminders, 0].map((seconds) => 1000 * seconds)

const secret = (): string => randomBytes(18).toString("base64url")

const allowedNetworks = "127.0.0.0/8"

// Servers start often, and sooner if Node does not compile them anew.
const compileCache = fileURLToPath(new URL("../../../../node_modules/.cache/node", import.meta.url))

const environmentOf = (url: string, redisUrl: string | undefined, seedFile: string) => ({
  DATABASE_URL: url,
  ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  SEED_FILE: seedFile,
  RATE_LIMIT_PER_KEY: "1200",
  RATE_LIMIT_BURST: "20",
  // All clients have the same address.
  RATE_LIMIT_PER_IP: "1000000",
  // Refusals are what limits are tested with.
  SUSPENSION: "false",
  WEBHOOK_ALLOWED_NETWORKS: allowedNetworks,
  WEBHOOK_RETRY_SCHEDULE: retrySchedule.join(","),
  EXPIRY_REMINDERS: reminders.join(","),
  // Everything is announced in time. The simulation judges what is held.
  EXPIRY_HOLD_AFTER_BULK: "0",
  DRAIN_DELAY: String((drainMillis + 200) / 1000),
  NODE_COMPILE_CACHE: compileCache,
})

const fill = async (
  { apiKeys, memberships }: Tenure,
  tokens: Readonly<Record<string, string>>,
): Promise<void> => {
  const begin = async (projectId: string, members: ReadonlyArray<string>): Promise<void> => {
    await memberships.createProject(projectId)
    for (const userId of members) {
      await memberships.grant({ projectId, userId, endDate: "2099-01-01T00:00:00.000Z" })
    }
  }
  for (const projectId of projects) await begin(projectId, userIds)
  await Promise.all(rushProjects.map((projectId) => begin(projectId, [first ?? ""])))
  for (const [name, token] of Object.entries(tokens)) {
    const role = operatorKeys.includes(name) ? "operator" : "client"
    await apiKeys.issue({ projects, token, role })
  }
}

/** Starts the Redis that keeps the rate limits in some runs, which faults can kill and silence. */
const startLimiter = async () => {
  let server = await startRedis()
  const { port } = server
  const link = await openLink(port)
  const url = `redis://127.0.0.1:${link.port}`
  // What fails is told to who asks for limits.
  const client = new Redis(url).on("error", () => {})
  return {
    url,
    link,
    client,
    /** Kills it, and its data with it. */
    kill: (): Promise<void> => server.stop(),
    start: async (): Promise<void> => {
      server = await startRedis([], port)
    },
    close: async (): Promise<void> => {
      client.disconnect()
      await link.close()
      await server.stop()
    },
  }
}

const consoleMethods = ["debug", "error", "info", "log", "warn"] as const

/** Keeps what is written to the console, where the host logs, until it is restored. */
const captureConsole = (): { readonly text: () => string; readonly restore: () => void } => {
  const originals = consoleMethods.map((name) => [name, console[name]] as const)
  let text = ""
  for (const name of consoleMethods) {
    console[name] = (...args: ReadonlyArray<unknown>) => {
      text += `${format(...args)}\n`
    }
  }
  return {
    text: () => text,
    restore: () => {
      for (const [name, original] of originals) console[name] = original
    },
  }
}

export interface Ground {
  readonly server: PostgresServer
  /** The bundled server's program. */
  readonly program: string
}

export const makeWorld = async (
  { program, server }: Ground,
  seed: number,
  keyNames: ReadonlyArray<string>,
  { clockOffsets, hasLimiter, pace }: Schedule,
) => {
  const { end, own, receivers: startReceivers } = makeStage()
  const tokens = Object.fromEntries(keyNames.map((name) => [name, secret()]))
  const account = { user: `role_${seed}`, password: secret() }
  const folder = own(await mkdtemp(join(tmpdir(), "tenure-faults-")), (path) =>
    rm(path, { recursive: true }),
  )
  const database = own(await makeDatabase(server, `seed_${seed}`, account), ({ drop }) => drop())
  const receivers = await startReceivers()
  const limiter = hasLimiter ? own(await startLimiter(), ({ close }) => close()) : undefined
  const opened = places.processes.map(async (name) => {
    return [name, own(await openLink(database.port), ({ close }) => close())] as const
  })
  const links = new Map(await Promise.all(opened))
  const seedFile = join(folder, "seed.json")
  const [seededToken = ""] = Object.values(tokens)
  const seeds = projects.map((id) => ({ id, api_keys: [seededToken] }))
  await writeFile(seedFile, JSON.stringify({ projects: seeds }))
  const urlOf = (name: string): string => database.urlThrough(links.get(name)?.port ?? 0)
  const output = own(captureConsole(), ({ restore }) => restore())
  const store = postgres({ url: urlOf(host) })
  const tenure = await createTenure({
    stores: limiter === undefined ? store : [store, redisLimits({ client: limiter.client })],
    transport: nodeTransport,
    rateLimits: {
      perKey: { limit: 1200, window: "1 minute" },
      burst: { limit: 20, window: "1 second" },
      // As at the servers.
      perAddress: { limit: 1_000_000, window: "1 minute" },
      suspension: false,
    },
    expiry: { reminders: reminders.map((seconds) => 1000 * seconds), holdAfterBulk: 0 },
    webhooks: {
      allowedNetworks: [allowedNetworks],
      retrySchedule: retrySchedule.map((seconds) => 1000 * seconds),
    },
  })
  const doors = await openDoors(tenure)
  const close = () => doors.close().then(tenure.close)
  /** Closes the host, and tells whether it has closed in time. */
  const closeHost = (): Promise<boolean> => {
    const closed = close().then(
      () => true,
      () => false,
    )
    return Promise.race([closed, sleep(patienceMillis, false)])
  }
  own(undefined, closeHost)
  await fill(tenure, tokens)
  const servers = new Map<string, Server>()
  for (const name of places.servers) {
    const environment = environmentOf(urlOf(name), limiter?.url, seedFile)
    const clock = { offset: clockOffsets[name] ?? 0, file: join(folder, name) }
    await writeFile(clock.file, String(clock.offset))
    const heapFile = join(folder, `${name}.heap`)
    const one = makeServer(name, program, await freePort(), environment, clock, heapFile)
    servers.set(
      name,
      own(one, ({ kill }) => kill()),
    )
  }
  await Promise.all([...servers.values()].map((one) => one.start()))
  const keySecrets = Object.entries(tokens).map(([name, token]) => [`the API key ${name}`, token])
  return {
    servers,
    /** Each process's link to the database. */
    links,
    database,
    receivers,
    /** The Redis that keeps the rate limits, if this run has one. */
    limiter,
    tenure,
    closeHost,
    /** Everything that the host has logged. */
    hostLog: output.text,
    /** The API keys by name: one for each client, and some to exceed limits with. */
    tokens,
    /** What no log may contain, by name. */
    secrets: {
      "the password of the database": account.password,
      ...Object.fromEntries(keySecrets),
    },
    /** Chooses where to ask: at a server, or at any host in this process. */
    door: (choose: Random): { readonly process: string; readonly url: string } => {
      const name = choose.pick(places.processes)
      return { process: name, url: servers.get(name)?.url ?? choose.pick(doors.urls) }
    },
    /** Rests for a time between two in milliseconds: longer in a long run. */
    rest: (choose: Random, least: number, most: number): Promise<void> =>
      sleep(pace * choose.between(least, most)),
    /** Ends what is still running and removes everything. */
    close: end,
  }
}

export type World = Awaited<ReturnType<typeof makeWorld>>
