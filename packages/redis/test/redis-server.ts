/** Redis, if it is installed or can be had from Debian's or Ubuntu's packages. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { accepts, freePort } from "@tenure/testing/conformance"
import { Redis } from "ioredis"

const run = promisify(execFile)

/** The program, and its environment. */
interface Program {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
}

// Kept for the next run.
const unpacked = join(tmpdir(), "tenure-redis")

/** Unpacks the packages that are missing, without installing them: that would start a service. */
const unpack = async (): Promise<void> => {
  const temporary = await mkdtemp(`${unpacked}-`)
  try {
    const options = ["--yes", "--quiet", "--download-only", "--no-install-recommends"]
    // Without a lock, which only root has.
    const into = [
      "--option",
      `Dir::Cache::archives=${temporary}`,
      "--option",
      "Debug::NoLocking=true",
    ]
    await run("apt-get", ["install", ...options, ...into, "redis-server"], { timeout: 60_000 })
    const files = (await readdir(temporary)).filter((name) => name.endsWith(".deb"))
    for (const file of files) {
      await run("dpkg-deb", ["--extract", join(temporary, file), temporary])
    }
    // At once, so that an interruption leaves nothing half done. Another process may have been quicker.
    await rename(temporary, unpacked).catch((error: unknown) => {
      if (!existsSync(unpacked)) throw error
    })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

const triplets: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
}

/** Returns the program, or why there is none. */
const find = async (): Promise<Program | string> => {
  const installed = (process.env["PATH"] ?? "")
    .split(":")
    .flatMap((folder) => ["redis-server", "valkey-server"].map((name) => join(folder, name)))
    .find((path) => existsSync(path))
  if (installed !== undefined) return { path: installed, env: process.env }
  try {
    if (!existsSync(unpacked)) await unpack()
    const path = join(unpacked, "usr/bin/redis-server")
    const libraries = join(unpacked, "usr/lib", triplets[process.arch] ?? process.arch)
    const env = { ...process.env, LD_LIBRARY_PATH: libraries }
    await run(path, ["--version"], { env })
    return { path, env }
  } catch (error) {
    return `it is not installed, and cannot be unpacked here: ${String(error).split("\n")[0]}`
  }
}

const program = await find()

/** Why there is no Redis here, if there is none. */
export const missing = typeof program === "string" ? program : undefined

/** A group's name, which says why its tests are skipped. */
export const titled = (name: string): string =>
  missing === undefined ? name : `${name}, skipped because there is no Redis: ${missing}`

/** A running server. */
export interface RedisServer {
  readonly port: number
  /** Kills the server. Its data is lost. */
  readonly stop: () => Promise<void>
}

// Outlives neither `stop` nor this process, however that ends: both close the shell's input.
const supervise = `"$@" >/dev/null & read -r _; kill -9 $!; rm -r "$PWD"`

const launch = async (
  port: number,
  optionsIn: (folder: string) => Promise<ReadonlyArray<string>>,
): Promise<RedisServer> => {
  if (typeof program === "string") throw new Error(program)
  const cwd = await mkdtemp(join(tmpdir(), "tenure-redis-server-"))
  const options = await optionsIn(cwd)
  const shell = spawn("sh", ["-c", supervise, "sh", program.path, ...options], {
    cwd,
    env: program.env,
    stdio: ["pipe", "ignore", "inherit"],
  })
  const ended = once(shell, "exit")
  while (!(await accepts(port))) {
    if (shell.exitCode !== null) throw new Error("Redis does not start")
  }
  return {
    port,
    stop: async () => {
      shell.stdin?.end()
      await ended
    },
  }
}

/** Starts a server that keeps its data in memory alone, with more settings if given. */
export const startRedis = async (
  settings: ReadonlyArray<string> = [],
  given?: number,
): Promise<RedisServer> => {
  const port = given ?? (await freePort())
  const fixed = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--appendonly", "no"]
  return launch(port, async () => [...fixed, ...settings])
}

/** Starts a Sentinel that watches a server by the name `limits`. */
export const startSentinel = async (watched: RedisServer): Promise<RedisServer> => {
  const port = await freePort()
  return launch(port, async (folder) => {
    const file = join(folder, "sentinel.conf")
    const lines = [
      "bind 127.0.0.1",
      `port ${port}`,
      `sentinel monitor limits 127.0.0.1 ${watched.port} 1`,
      // A busy machine is no outage.
      "sentinel down-after-milliseconds limits 60000",
    ]
    await writeFile(file, `${lines.join("\n")}\n`)
    return [file, "--sentinel"]
  })
}

/** Sends a command to a server. */
export const tell = async (
  { port }: RedisServer,
  command: string,
  ...args: ReadonlyArray<string | number>
): Promise<unknown> => {
  const redis = new Redis(port, "127.0.0.1", { enableReadyCheck: false })
  try {
    return await redis.call(command, ...args)
  } finally {
    redis.disconnect()
  }
}

/** Asks a server until it answers as wanted. */
export const until = async (
  server: RedisServer,
  command: ReadonlyArray<string>,
  wanted: RegExp,
): Promise<void> => {
  const [name = "", ...args] = command
  while (!wanted.test(String(await tell(server, name, ...args)))) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A running cluster. */
export interface RedisCluster {
  /** The servers that have slots. Each has a third. */
  readonly servers: readonly [RedisServer, RedisServer, RedisServer]
  /** Adds a server that copies another. */
  readonly addReplica: (of: RedisServer) => Promise<RedisServer>
  readonly stop: () => Promise<void>
}

const startNode = async (): Promise<RedisServer> =>
  startRedis([
    "--cluster-enabled",
    "yes",
    "--cluster-port",
    String(await freePort()),
    // A busy machine is no outage.
    "--cluster-node-timeout",
    "60000",
    "--repl-diskless-sync-delay",
    "0",
    // A server that is lost is replaced by hand, and the others go on.
    "--cluster-require-full-coverage",
    "no",
  ])

const busPort = async (server: RedisServer): Promise<number> => {
  const reply = await tell(server, "CONFIG", "GET", "cluster-port")
  return Number(Array.isArray(reply) ? reply[1] : NaN)
}

const meet = async (one: RedisServer, other: RedisServer): Promise<unknown> =>
  tell(one, "CLUSTER", "MEET", "127.0.0.1", other.port, await busPort(other))

const startThird = async (index: 0 | 1 | 2): Promise<RedisServer> => {
  const server = await startNode()
  const [from, to] = [Math.ceil((index * 16_384) / 3), Math.ceil(((index + 1) * 16_384) / 3) - 1]
  await tell(server, "CLUSTER", "ADDSLOTSRANGE", from, to)
  await tell(server, "CLUSTER", "SET-CONFIG-EPOCH", index + 1)
  return server
}

const isReplicaOf = (id: string): RegExp => new RegExp(`slave ${id}`)

/** Starts a cluster. */
export const startCluster = async (): Promise<RedisCluster> => {
  const servers = await Promise.all([startThird(0), startThird(1), startThird(2)])
  const all: Array<RedisServer> = [...servers]
  const [first, second, third] = servers
  await meet(first, second)
  await meet(first, third)
  for (const server of servers) {
    await until(server, ["CLUSTER", "INFO"], /cluster_state:ok[^]*cluster_slots_assigned:16384/)
  }

  return {
    servers,
    addReplica: async (of) => {
      const id = String(await tell(of, "CLUSTER", "MYID"))
      const replica = await startNode()
      all.push(replica)
      await meet(of, replica)
      await until(replica, ["CLUSTER", "NODES"], new RegExp(id))
      await tell(replica, "CLUSTER", "REPLICATE", id)
      await until(replica, ["INFO", "replication"], /master_link_status:up/)
      // They hear about it from each other.
      for (const server of servers) await until(server, ["CLUSTER", "NODES"], isReplicaOf(id))
      return replica
    },
    stop: async () => {
      await Promise.all(all.map(({ stop }) => stop()))
    },
  }
}
