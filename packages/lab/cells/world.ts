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
import type { PostgresServer } from "@tenure/testing/postgres-server"
import { childrenOf, leader, statOf } from "../faults/world/database.ts"
import type { Server } from "../faults/world/server.ts"
import type { Stage } from "../faults/world/stage.ts"

export const names = ["first", "second"] as const

/** Starts a PostgreSQL server whose cells can move. */
export const startServer = (stage: Stage): Promise<PostgresServer> =>
  stage.postgres({
    wal_level: "logical",
    max_connections: "200",
    max_slot_wal_keep_size: "2GB",
    // Costs are compared in processor time, not in waits for the disk.
    fsync: "off",
  })

const command = fileURLToPath(new URL("../../tenure/src/bin/tenure.ts", import.meta.url))

/** Starts both PostgreSQL servers, with cells. */
export const startServers = async (stage: Stage, cells: number) => {
  const all = await Promise.all([startServer(stage), startServer(stage)])
  const file = join(
    dirname(await stage.program()),
    `servers-${randomBytes(4).toString("hex")}.json`,
  )
  const options = all.map(({ url }, index): ServerOptions => ({
    name: names[index] ?? "",
    url,
    listenUrl: undefined,
    replicationUrl: undefined,
  }))
  await writeFile(file, JSON.stringify(options))
  const databaseUrl = `servers:${file}`
  const token = `tnr_${randomBytes(32).toString("base64url")}`
  const seed = { projects: [], api_keys: [{ token, role: "admin" }] }

  /** Runs the command `tenure` as a process. Returns what it prints. */
  const tenure = async (...args: ReadonlyArray<string>): Promise<string> => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["-C", "@tenure/source", command, ...args],
      { env: { PATH: process.env["PATH"], TENURE_DATABASE_URL: databaseUrl } },
    )
    return stdout
  }
  await tenure("migrate", "--cells", String(cells))

  return {
    all,
    /** The option `servers`. */
    options,
    token,
    tenure,
    /** Starts bundled servers. */
    startProcesses: async (count: number): Promise<ReadonlyArray<Server>> => {
      const started: Array<Server> = []
      for (let index = 1; index <= count; index++) {
        const environment = { WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8", LOG_REQUESTS: "none" }
        started.push(await stage.server(`process ${index}`, databaseUrl, seed, environment))
      }
      return started
    },
  }
}

/** Returns a project for each cell. */
export const projectsOf = (cells: number): ReadonlyArray<string> => {
  const found = new Map<number, string>()
  for (let n = 1; found.size < cells; n++) {
    const cell = cellNumber(ProjectId(`p${n}`), cells)
    if (!found.has(cell)) found.set(cell, `p${n}`)
  }
  return Array.from({ length: cells }, (_, cell) => found.get(cell) ?? "")
}

// Linux counts in units of 10 ms.
const tickMillis = 10

const ticksOf = async (id: number, withChildren: boolean): Promise<number> =>
  // Of the process, and of its children that have ended.
  (await statOf(id))
    .slice(11, withChildren ? 15 : 13)
    .reduce((sum, ticks) => sum + Number(ticks), 0)

/** The processor time that PostgreSQL servers have taken so far, in milliseconds. */
export const cpuOf = async (servers: ReadonlyArray<PostgresServer>): Promise<number> => {
  let ticks = 0
  for (const server of servers) {
    const first = await leader(server)
    const children = (await childrenOf(first)).map((id) => ticksOf(id, false))
    for (const some of await Promise.all([ticksOf(first, true), ...children])) ticks += some
  }
  return tickMillis * ticks
}
