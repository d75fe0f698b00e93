/**
 * PostgreSQL under Patroni, on loopback: etcd, two nodes with synchronous replication, and HAProxy, which
 * leads to the node that Patroni calls the primary.
 */

import { chown, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { type Home, makeHome } from "@tenure/testing/postgres-server"
import * as Predicate from "effect/Predicate"
import pg from "pg"
import { childrenOf, signal } from "../faults/world/database.ts"
import { freePort } from "../faults/world/ports.ts"
import { type Running, postgresPrograms, programs, start } from "./programs.ts"

/** How long Patroni waits, in seconds. It demands `loop_wait + 2 * retry_timeout <= ttl`, and 20 at least for `ttl`. */
export const patience = { ttl: 20, loop_wait: 2, retry_timeout: 5 } as const

/** How a cluster replicates, and what leads to it. */
export interface ClusterOptions {
  /** Whether a commit waits for the standby. */
  readonly isSynchronous: boolean
  /** Whether a primary without a standby refuses to commit. */
  readonly isStrict: boolean
  /** Whether PgBouncer is between clients and HAProxy. */
  readonly hasPooler: boolean
}

/** A machine with Patroni and its PostgreSQL. */
interface Node {
  readonly name: string
  /** Kills Patroni and PostgreSQL. Their connections are reset, as the system of a machine that goes on does. */
  readonly crash: () => Promise<void>
  /** Stops them for good, as a machine does that falls silent. */
  readonly hang: () => Promise<void>
  /** Starts Patroni on what is left. */
  readonly start: () => Promise<void>
}

/** A running cluster. */
export interface Cluster {
  /** The URL through all that is in between. */
  readonly url: string
  /** The URL past the pooler. */
  readonly listenUrl: string
  /** The node that holds the leader's lock. Waits until one does. */
  readonly leader: () => Promise<Node>
  /** The other node. */
  readonly standby: () => Promise<Node>
  /** Waits until one node leads and the other one can take its place without a loss. */
  readonly untilHealthy: () => Promise<void>
  /** Asks Patroni to have the nodes change places, and waits for its answer. */
  readonly switchOver: () => Promise<void>
  readonly stop: () => Promise<void>
}

const database = "tenure"
const password = "tenure"

interface Ports {
  readonly postgres: number
  readonly rest: number
}

/** The configuration of a Patroni, which reads JSON as YAML. */
const patroniConfiguration = (
  name: string,
  { dataDirectory, folder }: Home,
  { postgres, rest }: Ports,
  etcd: number,
  { isStrict, isSynchronous }: ClusterOptions,
) => ({
  scope: "tenure",
  name,
  restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
  etcd3: { host: `127.0.0.1:${etcd}` },
  bootstrap: {
    dcs: {
      ...patience,
      maximum_lag_on_failover: 1_048_576,
      synchronous_mode: isSynchronous,
      synchronous_mode_strict: isStrict,
      postgresql: { use_pg_rewind: true, parameters: { max_connections: 100 } },
    },
    initdb: [{ encoding: "UTF8" }, "data-checksums"],
  },
  postgresql: {
    listen: `127.0.0.1:${postgres}`,
    connect_address: `127.0.0.1:${postgres}`,
    bin_dir: postgresPrograms,
    data_dir: dataDirectory,
    pgpass: join(folder, "pgpass"),
    authentication: {
      superuser: { username: "postgres", password },
      replication: { username: "replicator", password },
      rewind: { username: "rewinder", password },
    },
    parameters: { unix_socket_directories: folder },
    pg_hba: [
      "host replication replicator 127.0.0.1/32 scram-sha-256",
      "host all all 127.0.0.1/32 scram-sha-256",
    ],
    basebackup: [{ checkpoint: "fast" }],
    remove_data_directory_on_rewind_failure: true,
    remove_data_directory_on_diverged_timelines: true,
  },
})

/** The configuration in Patroni's documentation, with a check every second instead of every three. */
const haproxyConfiguration = (port: number, nodes: ReadonlyArray<readonly [string, Ports]>) => `
global
  maxconn 1000
defaults
  mode tcp
  retries 2
  option redispatch 1
  timeout client 30m
  timeout connect 4s
  timeout server 30m
  timeout check 1s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
${nodes
  .map(
    ([name, { postgres, rest }]) =>
      `  server ${name} 127.0.0.1:${postgres} maxconn 100 check port ${rest}\n`,
  )
  .join("")}`

/** After a refusal by the server, PgBouncer refuses clients until its next attempt: one second later, not 15. */
const pgbouncerConfiguration = (port: number, haproxy: number, users: string) => `
[databases]
${database} = host=127.0.0.1 port=${haproxy}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
max_client_conn = 200
default_pool_size = 30
server_login_retry = 1
`

const urlAt = (port: number, user: string, name: string): string =>
  `postgres://${user}:${password}@127.0.0.1:${port}/${name}`

const withClient = async <A>(url: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 })
  client.on("error", () => {})
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const restTimeoutMillis = 1000

const longestMillis = 120_000
const retryMillis = 200
const linesToTell = 20

/** The text of a file; empty without a file. */
const textOf = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "")

/** The first process of a node's PostgreSQL, if it runs. The file with its id outlives it, when others may have it. */
const firstProcessOf = async ({ dataDirectory }: Home): Promise<number | undefined> => {
  const id = Number.parseInt(await textOf(join(dataDirectory, "postmaster.pid")), 10)
  return (await textOf(`/proc/${id}/cmdline`)).includes(dataDirectory) ? id : undefined
}

/** Sends a signal to all processes of a node's PostgreSQL. */
const signalAll = async (home: Home, name: NodeJS.Signals): Promise<void> => {
  const first = await firstProcessOf(home)
  if (first === undefined) return
  // It stops first, so that it starts no further ones.
  signal(first, "SIGSTOP")
  for (const id of [first, ...(await childrenOf(first))]) signal(id, name)
}

/** What Patroni tells of a member of its cluster. */
interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
}

/** A node, and how to reach its Patroni. */
interface Place extends Node {
  readonly home: Home
  readonly ports: Ports
  readonly logFile: string
}

const makeNode = async (name: string, etcd: number, options: ClusterOptions): Promise<Place> => {
  const home = await makeHome()
  const { account, folder } = home
  const ports = { postgres: await freePort(), rest: await freePort() }
  const configuration = patroniConfiguration(name, home, ports, etcd, options)
  const file = join(folder, "patroni.json")
  const logFile = join(folder, "patroni.log")
  await writeFile(file, JSON.stringify(configuration))
  if (account !== undefined) await chown(file, account.uid, account.gid)
  let patroni: Running | undefined
  return {
    name,
    home,
    ports,
    logFile,
    start: async () => {
      await patroni?.kill()
      // Of a machine that fell silent.
      await signalAll(home, "SIGKILL")
      patroni = await start(programs.patroni, [file], logFile, folder, account)
    },
    crash: async () => {
      const killed = patroni?.kill()
      await signalAll(home, "SIGKILL")
      await killed
    },
    hang: async () => {
      patroni?.signal("SIGSTOP")
      await signalAll(home, "SIGSTOP")
    },
  }
}

/** Starts a cluster with an empty database. */
export const startCluster = async (options: ClusterOptions): Promise<Cluster> => {
  const home = await makeHome()
  const { account, folder } = home
  const etcd = { client: await freePort(), peer: await freePort() }
  const nodes = [
    await makeNode("one", etcd.client, options),
    await makeNode("two", etcd.client, options),
  ] as const
  const haproxy = await freePort()
  const pooler = await freePort()

  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name)
    await writeFile(file, text)
    if (account !== undefined) await chown(file, account.uid, account.gid)
    return file
  }
  const run = (program: string, ...args: ReadonlyArray<string>): Promise<Running> =>
    start(program, args, home.logFile, folder, account)

  /** Asks the Patronis until one answers. */
  const members = async (): Promise<ReadonlyArray<Member>> => {
    const answer = await Promise.any(
      nodes.map(async ({ ports }) => {
        const limit = { signal: AbortSignal.timeout(restTimeoutMillis) }
        return (await fetch(`http://127.0.0.1:${ports.rest}/cluster`, limit)).json()
      }),
    )
    return Predicate.hasProperty(answer, "members") && Array.isArray(answer.members)
      ? answer.members
      : []
  }

  const lastLines = async (): Promise<string> => {
    const files = [home.logFile, ...nodes.map(({ logFile }) => logFile)]
    const texts = await Promise.all(files.map(textOf))
    return texts.map((text) => text.split("\n").slice(-linesToTell).join("\n")).join("\n\n")
  }

  /** Attempts something until it succeeds, for two minutes at most. */
  const untilDone = async <A>(what: string, attempt: () => Promise<A | undefined>): Promise<A> => {
    const deadline = performance.now() + longestMillis
    let last: unknown
    while (performance.now() < deadline) {
      try {
        const done = await attempt()
        if (done !== undefined) return done
      } catch (fault) {
        last = fault
      }
      await sleep(retryMillis)
    }
    throw new Error(`${what} takes longer than two minutes\n${await lastLines()}`, { cause: last })
  }

  const leader = (): Promise<Place> =>
    untilDone("a leader", async () => {
      const found = (await members()).find(
        ({ role, state }) => role === "leader" && state === "running",
      )
      return nodes.find(({ name }) => name === found?.name)
    })

  const standby = async (): Promise<Place> => {
    const { name } = await leader()
    const [first, second] = nodes
    return first.name === name ? second : first
  }

  const standbyRole = options.isSynchronous ? "sync_standby" : "replica"
  const isStandbyReady = `
    SELECT FROM pg_stat_replication
    WHERE state = 'streaming' AND (sync_state = 'sync' OR NOT ${options.isSynchronous})`

  const through = urlAt(haproxy, "postgres", "postgres")
  const untilHealthy = async (): Promise<void> => {
    await untilDone("a healthy cluster", async () => {
      const roles = (await members()).map(({ role }) => role).toSorted()
      if (roles.join() !== ["leader", standbyRole].join()) return undefined
      const { rowCount } = await withClient(through, (client) => client.query(isStandbyReady))
      return rowCount === 1 ? true : undefined
    })
  }

  const started: Array<Running> = []
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.crash()))
    await Promise.all(started.map((running) => running.kill()))
    await Promise.all([home, ...nodes.map((node) => node.home)].map(({ release }) => release()))
  }

  try {
    const address = `http://127.0.0.1:${etcd.client}`
    const peers = `http://127.0.0.1:${etcd.peer}`
    started.push(
      await run(
        programs["etcd-server"],
        `--data-dir=${join(folder, "etcd")}`,
        "--log-level=warn",
        `--listen-client-urls=${address}`,
        `--advertise-client-urls=${address}`,
        `--listen-peer-urls=${peers}`,
        `--initial-advertise-peer-urls=${peers}`,
        `--initial-cluster=default=${peers}`,
      ),
    )
    for (const node of nodes) await node.start()
    const configuration = haproxyConfiguration(
      haproxy,
      nodes.map(({ name, ports }) => [name, ports]),
    )
    started.push(
      await run(programs.haproxy, "-db", "-f", await write("haproxy.cfg", configuration)),
    )
    await untilHealthy()
    await withClient(through, async (client) => {
      await client.query(`CREATE ROLE ${database} LOGIN PASSWORD '${password}'`)
      await client.query(`CREATE DATABASE ${database} OWNER ${database}`)
    })
    if (options.hasPooler) {
      const users = await write("users.txt", `"${database}" "${password}"\n`)
      const file = await write("pgbouncer.ini", pgbouncerConfiguration(pooler, haproxy, users))
      started.push(await run(programs.pgbouncer, file))
    }
  } catch (fault) {
    await stop()
    throw fault
  }

  return {
    url: urlAt(options.hasPooler ? pooler : haproxy, database, database),
    listenUrl: urlAt(haproxy, database, database),
    leader,
    standby,
    untilHealthy,
    switchOver: async () => {
      const { name, ports } = await leader()
      const { name: candidate } = await standby()
      const response = await fetch(`http://127.0.0.1:${ports.rest}/switchover`, {
        method: "POST",
        body: JSON.stringify({ leader: name, candidate }),
      })
      if (!response.ok) throw new Error(`Patroni refuses to switch over: ${await response.text()}`)
    },
    stop,
  }
}
