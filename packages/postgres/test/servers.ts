/** Servers for one test file, standbys and poolers, statements on any server, and the program `tenure-migrate`. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { appendFile, chmod, cp, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { accepts, freePort } from "@tenure/testing/conformance"
import {
  type PostgresServer,
  makeHome,
  programsFor,
  run,
  serverAccount,
  startPostgres,
} from "@tenure/testing/postgres-server"
import pg from "pg"
import { afterAll, beforeAll } from "vitest"

const execute = promisify(execFile)

/** Runs statements on their own connection. Returns the last one's rows. */
export const queryAt = async <Row extends pg.QueryResultRow>(
  url: string,
  ...statements: ReadonlyArray<string>
): Promise<ReadonlyArray<Row>> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let rows: ReadonlyArray<Row> = []
    for (const statement of statements) ({ rows } = await client.query<Row>(statement))
    return rows
  } finally {
    await client.end()
  }
}

/** Starts a server for a test file. */
export const ownServer = (settings: Readonly<Record<string, string>> = {}) => {
  let server: PostgresServer | undefined
  beforeAll(async () => {
    server = await startPostgres({ settings })
  })
  afterAll(() => server?.stop())
  return (): PostgresServer => {
    if (server === undefined) throw new Error("the server starts before the tests")
    return server
  }
}

const program = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
const { NODE_COMPILE_CACHE } = process.env

/** Runs `tenure-migrate` with these arguments, in an environment that has nothing else. */
export const runMigrate = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  nodeOptions: ReadonlyArray<string> = [],
) =>
  execute(process.execPath, ["-C", "@tenure/source", ...nodeOptions, program, ...args], {
    env: { NODE_COMPILE_CACHE, ...environment },
  })

/** A running standby. */
export interface Standby {
  readonly url: string
  /** Makes it a primary, and returns when it accepts changes. */
  readonly promote: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Starts a standby from a copy of a server's data. The server is down for that. */
export const follow = async (primary: PostgresServer): Promise<Standby> => {
  const home = await makeHome()
  const programs = await programsFor(home)
  const control = (...options: ReadonlyArray<string>) =>
    run(programs, "pg_ctl", [`--pgdata=${home.dataDirectory}`, ...options], home.account)

  await primary.halt()
  await cp(primary.dataDirectory, home.dataDirectory, { recursive: true })
  await primary.resume()

  const port = await freePort()
  const source = new URL(primary.url)
  const settings = [
    `port = ${port}`,
    `primary_conninfo = 'host=${source.hostname} port=${source.port} user=tenure password=tenure'`,
  ]
  await appendFile(join(home.dataDirectory, "postgresql.conf"), `${settings.join("\n")}\n`)
  await writeFile(join(home.dataDirectory, "standby.signal"), "")
  if (home.account !== undefined) {
    const { gid, uid } = home.account
    await execute("chown", ["--recursive", `${uid}:${gid}`, home.folder])
  }
  await control("start", `--log=${home.logFile}`)

  const url = new URL(primary.url)
  url.port = String(port)
  return { url: url.href, promote: () => control("promote"), stop: home.release }
}

/** The program, and its environment. */
interface Program {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
}

// Kept for the next run.
const unpacked = join(tmpdir(), "tenure-pgbouncer")

const packages = ["pgbouncer", "libc-ares2", "libevent-2.1-7"]

const triplets: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
}

/** Unpacks the packages, without installing them. */
const unpack = async (): Promise<void> => {
  const temporary = await mkdtemp(`${unpacked}-`)
  try {
    await chmod(temporary, 0o755)
    await execute("apt-get", ["download", "--quiet", ...packages], {
      cwd: temporary,
      timeout: 30_000,
    })
    for (const file of await readdir(temporary)) {
      await execute("dpkg-deb", ["--extract", join(temporary, file), temporary])
    }
    // At once, so that an interruption leaves nothing half done.
    await rename(temporary, unpacked)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** Returns the program, or why there is none. */
const find = async (): Promise<Program | string> => {
  const installed = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"]
    .map((folder) => join(folder, "pgbouncer"))
    .find((path) => existsSync(path))
  if (installed !== undefined) return { path: installed, env: {} }
  try {
    if (!existsSync(unpacked)) await unpack()
    const path = join(unpacked, "usr/sbin/pgbouncer")
    const libraries = join(unpacked, "usr/lib", triplets[process.arch] ?? process.arch)
    const env = { LD_LIBRARY_PATH: libraries }
    await execute(path, ["--version"], { env })
    return { path, env }
  } catch (error) {
    return `it is not installed, and cannot be unpacked here: ${String(error).split("\n")[0]}`
  }
}

/** The program, or why there is none. */
export const pgbouncer = await find()

/** A running PgBouncer. */
export interface Pooler {
  /** The database's URL through the pooler. */
  readonly url: string
  readonly stop: () => Promise<void>
}

/** Starts a PgBouncer with its default settings in front of a database. */
export const startPooler = async (
  { env, path }: Program,
  mode: "session" | "transaction",
  database: URL,
): Promise<Pooler> => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), "tenure-pooler-"))
  await chmod(folder, 0o755)
  const file = join(folder, "pgbouncer.ini")
  await writeFile(
    file,
    `[databases]
* = host=${database.hostname} port=${database.port} user=${database.username} password=${database.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  )
  // The program refuses root, and the current folder may be one that the account cannot enter.
  const child = spawn(path, ["--quiet", file], {
    ...(await serverAccount()),
    cwd: folder,
    env,
    stdio: "ignore",
  })
  const ended = once(child, "exit")
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error("PgBouncer does not start")
  }
  const url = new URL(database)
  url.port = String(port)
  return {
    url: url.href,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
      await rm(folder, { recursive: true })
    },
  }
}
