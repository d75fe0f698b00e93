/** Provides a PostgreSQL to the tests, from `DATABASE_URL` or a new one, and the run's seed. */

import { statfs } from "node:fs/promises"
import { freemem } from "node:os"
import type { TestProject } from "vitest/node"
// By path: Vitest resolves a global setup without the projects' conditions.
import { type PostgresServer, startPostgres } from "../../testing/src/support/postgres-server.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const start = (): Promise<PostgresServer> =>
  startPostgres({ settings: { fsync: "off", full_page_writes: "off", max_connections: "200" } })

const memory = "/dev/shm"

// Several times what the tests write.
const enough = 6 * 1024 ** 3

/**
 * Starts the server with its data in memory, if that has room: the tests make and remove thousands of tables and
 * indexes, and a disk takes as long for their files as PostgreSQL for the rest.
 */
const startInMemory = async (): Promise<PostgresServer> => {
  const { bavail, bsize } = await statfs(memory)
  if (Math.min(bavail * bsize, freemem()) <= enough) throw new Error("there is too little memory")
  const before = process.env["TMPDIR"]
  process.env["TMPDIR"] = memory
  try {
    return await start()
  } finally {
    if (before === undefined) delete process.env["TMPDIR"]
    else process.env["TMPDIR"] = before
  }
}

export default async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  project.provide("seed", project.vitest.config.sequence.seed)
  const given = process.env["DATABASE_URL"]
  if (given !== undefined) {
    project.provide("databaseUrl", given)
    return undefined
  }
  // For example, no program may run from there.
  const { stop, url } = await startInMemory().catch(start)
  project.provide("databaseUrl", url)
  return stop
}
