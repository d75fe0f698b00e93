/** Two PostgreSQL servers with cells, and bundled servers on them. */

import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readFile, readdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import type { ServerOptions } from "@tenure/postgres/ops/upkeep"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { freePort } from "../faults/world/ports.ts"
import { type Server, makeServer } from "../faults/world/server.ts"

/** The names of the servers. */
export const names = ["first", "second"] as const

const settings = {
  wal_level: "logical",
  max_connections: "200",
  max_slot_wal_keep_size: "2GB",
  // The machine's, not the disk's, are the costs to be compared.
  fsync: "off",
}

/** Both PostgreSQL servers. */
export interface Servers {
  readonly all: readonly [PostgresServer, PostgresServer]
  /** As the option `servers` takes them. */
  readonly options: ReadonlyArray<ServerOptions>
  /** What `DATABASE_URL` has to be. */
  readonly databaseUrl: string
  readonly token: string
}

/** Starts both. The file with their URLs is in a folder that somebody removes. */
export const startServers = async (program: string): Promise<Servers> => {
  const all = await Promise.all([startPostgres({ settings }), startPostgres({ settings })] as const)
  const file = join(dirname(program), `servers-${randomBytes(4).toString("hex")}.json`)
  const options = all.map(({ url }, index) => ({
    name: names[index] ?? "",
    url,
    listenUrl: undefined,
    replicationUrl: undefined,
  }))
  await writeFile(file, JSON.stringify(options))
  return {
    all,
    options,
    databaseUrl: `servers:${file}`,
    token: `tnr_${randomBytes(32).toString("base64url")}`,
  }
}

const command = fileURLToPath(new URL("../../tenure/src/bin/tenure.ts", import.meta.url))

/** Runs the command `tenure` as a process. Returns what it prints. */
export const tenure = async (databaseUrl: string, ...args: ReadonlyArray<string>) => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["-C", "@tenure/source", command, ...args],
    { env: { PATH: process.env["PATH"], TENURE_DATABASE_URL: databaseUrl } },
  )
  return stdout
}

/** Returns a project of each cell. */
export const projectsOf = (cells: number): ReadonlyArray<string> => {
  const found = new Map<number, string>()
  for (let n = 1; found.size < cells; n++) {
    const cell = cellNumber(ProjectId(`p${n}`), cells)
    if (!found.has(cell)) found.set(cell, `p${n}`)
  }
  return Array.from({ length: cells }, (_, cell) => found.get(cell) ?? "")
}

/** Starts bundled servers. */
export const startProcesses = async (
  program: string,
  { databaseUrl, token }: Servers,
  count: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<ReadonlyArray<Server>> => {
  const seedFile = join(dirname(program), "seed.json")
  await writeFile(seedFile, JSON.stringify({ projects: [], api_keys: [{ token, role: "admin" }] }))
  const servers: Array<Server> = []
  for (let index = 0; index < count; index++) {
    const server = makeServer(`process ${index + 1}`, program, await freePort(), {
      DATABASE_URL: databaseUrl,
      SEED_FILE: seedFile,
      RATE_LIMIT_PER_KEY: "1000000",
      RATE_LIMIT_PER_IP: "1000000",
      RATE_LIMIT_BURST: "1000000",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      LOG_REQUESTS: "none",
      ...environment,
    })
    await server.start()
    servers.push(server)
  }
  return servers
}

const ticksOf = async (pid: string, withChildren: boolean): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  // What comes before is the name of the program, which may contain spaces.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number)
  // Of the process, and of its children that have ended.
  return fields.slice(11, withChildren ? 15 : 13).reduce((sum, ticks) => sum + ticks, 0)
}

/** The processor time that a PostgreSQL server has taken so far, in milliseconds. */
export const cpuOf = async ({ dataDirectory }: PostgresServer): Promise<number> => {
  const [postmaster = ""] = (await readFile(join(dataDirectory, "postmaster.pid"), "utf8")).split(
    "\n",
  )
  const parents = await Promise.all(
    (await readdir("/proc"))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => {
        const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
        return { pid, parent: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] }
      }),
  )
  const children = parents.filter(({ parent }) => parent === postmaster)
  const ticks = await Promise.all([
    ticksOf(postmaster, true),
    ...children.map(({ pid }) => ticksOf(pid, false)),
  ])
  return 10 * ticks.reduce((sum, one) => sum + one, 0)
}
