/** Two PostgreSQL servers with cells, and bundled servers on them. */

import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import type { ServerOptions } from "@tenure/postgres/ops/upkeep"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { childrenOf, leader, statOf } from "../faults/world/database.ts"
import { freePort } from "../faults/world/ports.ts"
import { writeSeed } from "../faults/world/program.ts"
import { type Server, makeServer, unlimited } from "../faults/world/server.ts"

/** The names of the servers. */
export const names = ["first", "second"] as const

/** The settings of a PostgreSQL server whose cells can move. */
export const settings = {
  wal_level: "logical",
  max_connections: "200",
  max_slot_wal_keep_size: "2GB",
  // Costs are compared in processor time, not in waits for the disk.
  fsync: "off",
}

/** Both PostgreSQL servers. */
export interface Servers {
  readonly all: readonly [PostgresServer, PostgresServer]
  /** The value of the option `servers`. */
  readonly options: ReadonlyArray<ServerOptions>
  /** The value of `DATABASE_URL`. */
  readonly databaseUrl: string
  readonly token: string
}

/** Starts both, and writes their URLs into a file beside the program. */
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
  const seedFile = await writeSeed(program, {
    projects: [],
    api_keys: [{ token, role: "admin" }],
  })
  const servers: Array<Server> = []
  for (let index = 0; index < count; index++) {
    const server = makeServer(`process ${index + 1}`, program, await freePort(), {
      DATABASE_URL: databaseUrl,
      SEED_FILE: seedFile,
      ...unlimited,
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      LOG_REQUESTS: "none",
      ...environment,
    })
    await server.start()
    servers.push(server)
  }
  return servers
}

// Linux counts in hundredths of a second.
const tickMillis = 10

const ticksOf = async (id: number, withChildren: boolean): Promise<number> =>
  // Of the process, and of its children that have ended.
  (await statOf(id))
    .slice(11, withChildren ? 15 : 13)
    .reduce((sum, ticks) => sum + Number(ticks), 0)

/** The processor time that a PostgreSQL server has taken so far, in milliseconds. */
export const cpuOf = async (server: PostgresServer): Promise<number> => {
  const first = await leader(server)
  const ticks = await Promise.all([
    ticksOf(first, true),
    ...(await childrenOf(first)).map((id) => ticksOf(id, false)),
  ])
  return tickMillis * ticks.reduce((sum, one) => sum + one, 0)
}
