/**
 * PostgreSQL under Patroni, on loopback: etcd, two nodes with synchronous replication, and HAProxy, which
 * leads to the node that Patroni calls the primary. All programs are Debian's.
 */

import { spawn } from "node:child_process"
import { access, chown, constants, open, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { type Home, makeHome } from "@tenure/testing/postgres-server"
import { fieldOf } from "../faults/workload/http.ts"
import { childrenOf, connectTo, signal } from "../faults/world/database.ts"
import { freePort } from "../faults/world/ports.ts"
import type { Stage } from "../faults/world/stage.ts"

// Patroni 3.0 supports 15 at most.
const postgresPrograms = "/usr/lib/postgresql/15/bin"

/** A program's path, by the package that installs it. */
export const programs = {
  "etcd-server": "/usr/bin/etcd",
  haproxy: "/usr/sbin/haproxy",
  patroni: "/usr/bin/patroni",
  pgbouncer: "/usr/sbin/pgbouncer",
  "postgresql-15": `${postgresPrograms}/postgres`,
} as const

/** Returns the packages that run a cluster: `pgbouncer` is for `--pooler` alone. */
export const packagesOf = ({ hasPooler }: Pick<ClusterOptions, "hasPooler">) =>
  (["etcd-server", "haproxy", "patroni", "postgresql-15", "pgbouncer"] as const).filter(
    (name) => hasPooler || name !== "pgbouncer",
  )

/** Returns the packages whose program is not installed. */
export const findMissing = async (
  packages: ReadonlyArray<keyof typeof programs>,
): Promise<ReadonlyArray<string>> => {
  const isThere = (name: keyof typeof programs) =>
    access(programs[name], constants.X_OK).then(
      () => true,
      () => false,
    )
  const found = await Promise.all(packages.map(isThere))
  return packages.filter((_, index) => !found[index])
}

/** A program that runs until it is killed. */
interface Running {
  /** Kills it, as when its machine dies. */
  readonly kill: () => Promise<void>
  readonly signal: (name: NodeJS.Signals) => void
}

/**
 * Starts a program. The system kills it when this process ends, whatever ends it: a started Patroni would
 * start PostgreSQL again and again.
 */
const start = async (
  program: keyof typeof programs,
  options: ReadonlyArray<string>,
  logFile: string,
  { account, folder }: Home,
): Promise<Running> => {
  const log = await open(logFile, "a")
  const child = spawn("setpriv", ["--pdeathsig", "KILL", programs[program], ...options], {
    ...account,
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, LC_ALL: "C.UTF-8" },
    // Ctrl-C on a terminal reaches this process alone.
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  })
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  await log.close()
  return {
    kill: () => {
      child.kill("SIGKILL")
      return ended
    },
    signal: (name) => void child.kill(name),
  }
}

/** Writes a file for a home's account. Returns its path. */
const write = async ({ account, folder }: Home, name: string, text: string): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, text)
  if (account !== undefined) await chown(file, account.uid, account.gid)
  return file
}

/** How long Patroni waits, in seconds. It demands `loop_wait + 2 * retry_timeout <= ttl`, and 20 at least for `ttl`. */
export const patience = { ttl: 20, loop_wait: 2, retry_timeout: 5 } as const

/** How a cluster replicates, and what leads to it. */
interface ClusterOptions {
  /** Whether a commit waits for the standby. */
  readonly isSynchronous: boolean
  /** Whether a primary without a standby refuses to commit. */
  readonly isStrict: boolean
  /** Whether PgBouncer is between clients and HAProxy. */
  readonly hasPooler: boolean
}

const database = "tenure"
const password = "tenure"

interface Ports {
  readonly postgres: number
  readonly rest: number
}

/** A Patroni's configuration, which reads JSON as YAML. */
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
const haproxyConfiguration = (port: number, nodes: ReadonlyArray<Node>) => `
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
    ({ name, ports: { postgres, rest } }) =>
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

/** A file's text; empty without a file. */
const textOf = (file: string): Promise<string> => readFile(file, "utf8").catch(() => "")

/** Sends a signal to all processes of a node's PostgreSQL. */
const signalAll = async ({ dataDirectory }: Home, name: NodeJS.Signals): Promise<void> => {
  const first = Number.parseInt(await textOf(join(dataDirectory, "postmaster.pid")), 10)
  // The file with its id outlives it, when others may have it.
  if (!(await textOf(`/proc/${first}/cmdline`)).includes(dataDirectory)) return
  // It stops first, so that it starts no further ones.
  signal(first, "SIGSTOP")
  for (const id of [first, ...(await childrenOf(first))]) signal(id, name)
}

const makeNode = async ({ own }: Stage, name: string, etcd: number, options: ClusterOptions) => {
  const home = own(await makeHome(), ({ release }) => release())
  const ports: Ports = { postgres: await freePort(), rest: await freePort() }
  const configuration = patroniConfiguration(name, home, ports, etcd, options)
  const file = await write(home, "patroni.json", JSON.stringify(configuration))
  const logFile = join(home.folder, "patroni.log")
  let patroni: Running | undefined
  const node = {
    name,
    ports,
    logFile,
    /** Starts Patroni on what is left. */
    start: async (): Promise<void> => {
      await patroni?.kill()
      // Of a machine that fell silent.
      await signalAll(home, "SIGKILL")
      patroni = await start("patroni", [file], logFile, home)
    },
    /** Kills Patroni and PostgreSQL. Their connections are reset, as by the system when a machine goes on. */
    crash: async (): Promise<void> => {
      const killed = patroni?.kill()
      await signalAll(home, "SIGKILL")
      await killed
    },
    /** Stops them for good, as a machine does that falls silent. */
    hang: async (): Promise<void> => {
      patroni?.signal("SIGSTOP")
      await signalAll(home, "SIGSTOP")
    },
  }
  return own(node, ({ crash }) => crash())
}

/** A machine with Patroni and its PostgreSQL. */
type Node = Awaited<ReturnType<typeof makeNode>>

const restTimeoutMillis = 1000
const connectTimeoutMillis = 2000

const longestMillis = 120_000
const retryMillis = 200
const linesToTell = 20

/** What Patroni tells about a member. */
interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
}

/** Starts a cluster with an empty database. */
export const startCluster = async (stage: Stage, options: ClusterOptions) => {
  const home = stage.own(await makeHome(), ({ release }) => release())
  const etcd = { client: await freePort(), peer: await freePort() }
  const nodes = [
    await makeNode(stage, "one", etcd.client, options),
    await makeNode(stage, "two", etcd.client, options),
  ] as const
  const haproxy = await freePort()
  const pooler = await freePort()

  const run = async (program: keyof typeof programs, ...args: ReadonlyArray<string>) =>
    stage.own(await start(program, args, home.logFile, home), ({ kill }) => kill())

  /** Asks the Patronis until one answers. */
  const members = async (): Promise<ReadonlyArray<Member>> => {
    const answer = await Promise.any(
      nodes.map(async ({ ports }) => {
        const limit = { signal: AbortSignal.timeout(restTimeoutMillis) }
        return (await fetch(`http://127.0.0.1:${ports.rest}/cluster`, limit)).json()
      }),
    )
    const found = fieldOf(answer, "members")
    return Array.isArray(found) ? found : []
  }

  const lastLines = async (): Promise<string> => {
    const texts = await Promise.all([home, ...nodes].map(({ logFile }) => textOf(logFile)))
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

  /** The node that holds the leader's lock. Waits until one does. */
  const leader = (): Promise<Node> =>
    untilDone("a leader", async () => {
      const found = (await members()).find(
        ({ role, state }) => role === "leader" && state === "running",
      )
      return nodes.find(({ name }) => name === found?.name)
    })

  /** The other node. */
  const standby = async (): Promise<Node> => {
    const { name } = await leader()
    const [first, second] = nodes
    return first.name === name ? second : first
  }

  const standbyRole = options.isSynchronous ? "sync_standby" : "replica"
  const isStandbyReady = `
    SELECT FROM pg_stat_replication
    WHERE state = 'streaming' AND (sync_state = 'sync' OR NOT ${options.isSynchronous})`

  const query = async (...statements: ReadonlyArray<string>): Promise<number> => {
    const session = await connectTo(urlAt(haproxy, "postgres", "postgres"), connectTimeoutMillis)
    try {
      let count = 0
      for (const statement of statements) count = (await session.query(statement)).length
      return count
    } finally {
      await session.close()
    }
  }

  /** Waits until one node leads and the other one can take its place without a loss. */
  const untilHealthy = async (): Promise<void> => {
    await untilDone("a healthy cluster", async () => {
      const roles = (await members()).map(({ role }) => role).toSorted()
      if (roles.join() !== ["leader", standbyRole].join()) return undefined
      return (await query(isStandbyReady)) === 1 ? true : undefined
    })
  }

  const address = `http://127.0.0.1:${etcd.client}`
  const peers = `http://127.0.0.1:${etcd.peer}`
  await run(
    "etcd-server",
    `--data-dir=${join(home.folder, "etcd")}`,
    "--log-level=warn",
    `--listen-client-urls=${address}`,
    `--advertise-client-urls=${address}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=default=${peers}`,
  )
  for (const node of nodes) await node.start()
  const configuration = haproxyConfiguration(haproxy, nodes)
  await run("haproxy", "-db", "-f", await write(home, "haproxy.cfg", configuration))
  await untilHealthy()
  await query(
    `CREATE ROLE ${database} LOGIN PASSWORD '${password}'`,
    `CREATE DATABASE ${database} OWNER ${database}`,
  )
  if (options.hasPooler) {
    const users = await write(home, "users.txt", `"${database}" "${password}"\n`)
    const text = pgbouncerConfiguration(pooler, haproxy, users)
    await run("pgbouncer", await write(home, "pgbouncer.ini", text))
  }

  return {
    /** The URL through all that is in between. */
    url: urlAt(options.hasPooler ? pooler : haproxy, database, database),
    /** The URL past the pooler. */
    listenUrl: urlAt(haproxy, database, database),
    leader,
    standby,
    untilHealthy,
    /** Asks Patroni to have the nodes change places, and waits for its answer. */
    switchOver: async (): Promise<void> => {
      const { name, ports } = await leader()
      const { name: candidate } = await standby()
      const response = await fetch(`http://127.0.0.1:${ports.rest}/switchover`, {
        method: "POST",
        body: JSON.stringify({ leader: name, candidate }),
      })
      if (!response.ok) throw new Error(`Patroni refuses to switch over: ${await response.text()}`)
    },
  }
}
