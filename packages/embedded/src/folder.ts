/** A database's files: created all at once, checked before opening, and locked by one process. */

import fs from "node:fs"
import { join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { inspect } from "node:util"
import { TaggedError } from "@tenure/core/internal"
import * as Predicate from "effect/Predicate"

const databaseName = "database"

/** Returns the path to a folder's database. */
export const databaseIn = (folder: string): string => join(folder, databaseName)

/**
 * Tells whether a folder has a database, even a damaged one. Opening a folder without one creates it.
 *
 * @param folder - the folder's path; it may not exist
 * @example
 * ```ts
 * import { hasDatabase } from "tenure/embedded"
 *
 * if (!hasDatabase("./data")) throw new Error("There is nothing to back up in ./data")
 * ```
 */
export const hasDatabase = (folder: string): boolean => {
  try {
    // A dangling link is no reason to create a database.
    fs.lstatSync(databaseIn(folder))
    return true
  } catch {
    return false
  }
}

const syncFile = (path: string): void => {
  const file = fs.openSync(path, "r")
  try {
    fs.fsyncSync(file)
  } finally {
    fs.closeSync(file)
  }
}

const syncFolder = (path: string): void => {
  for (const entry of [".", ...fs.readdirSync(path, { encoding: "utf8", recursive: true })])
    syncFile(join(path, entry))
}

/**
 * Creates a folder's database: as a whole, or not at all.
 *
 * @param write - writes the files to an unused path
 */
export const createDatabase = async (
  folder: Folder,
  write: (path: string) => Promise<void>,
): Promise<void> => {
  if (fs.existsSync(join(folder.path, "PG_VERSION")))
    throw new Error("it is a database itself. Name the folder around it.")
  const unfinished = join(folder.path, `${databaseName}.new`)
  fs.rmSync(unfinished, { recursive: true, force: true })
  await write(unfinished)
  syncFolder(unfinished)
  folder.check()
  fs.renameSync(unfinished, databaseIn(folder.path))
  syncFile(folder.path)
}

// Every PostgreSQL 18 database has these, and PGlite does not survive without them. PostgreSQL itself
// would notice some only after writing to the rest.
const folders = [
  "base",
  "global",
  "pg_commit_ts",
  "pg_dynshmem",
  "pg_logical",
  "pg_multixact",
  "pg_notify",
  "pg_replslot",
  "pg_serial",
  "pg_snapshots",
  "pg_stat",
  "pg_stat_tmp",
  "pg_subtrans",
  "pg_tblspc",
  "pg_twophase",
  "pg_wal",
  "pg_xact",
]
const filledFolders = new Set(["pg_wal", "pg_xact"])
const files = [
  "PG_VERSION",
  "base/5/PG_VERSION",
  "global/pg_control",
  "global/pg_filenode.map",
  "postgresql.conf",
]

const damageOfFolder = (path: string, name: string, isFilled: boolean): string | undefined => {
  const stats = fs.statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return `the folder ${name} is missing`
  if (!stats.isDirectory()) return `${name} is not a folder`
  const hasFiles = (): boolean =>
    fs.readdirSync(path, { withFileTypes: true }).some((entry) => entry.isFile())
  return isFilled && !hasFiles() ? `the folder ${name} has no files` : undefined
}

const damageOfFile = (path: string, name: string): string | undefined => {
  const stats = fs.statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return `the file ${name} is missing`
  if (!stats.isFile()) return `${name} is not a file`
  return stats.size === 0 ? `the file ${name} is empty` : undefined
}

/** Names a database's missing parts, without writing to it. Returns `undefined` if it is complete. */
export const damageOf = (folder: string): string | undefined => {
  const path = databaseIn(folder)
  const own = damageOfFolder(path, databaseName, false)
  if (own !== undefined) return own
  if (fs.readdirSync(path).length === 0) return `the folder ${databaseName} is empty`
  for (const name of folders) {
    const damage = damageOfFolder(join(path, name), name, filledFolders.has(name))
    if (damage !== undefined) return damage
  }
  for (const name of files) {
    const damage = damageOfFile(join(path, name), name)
    if (damage !== undefined) return damage
  }
  return undefined
}

/** The folder cannot be used. The message names it, and says why. */
export class FolderUnusable extends TaggedError("FolderUnusable")<{
  readonly message: string
  readonly cause?: unknown
}> {}

const reasonOf = (cause: unknown): string => {
  if (Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message))
    return cause.message
  return typeof cause === "object" ? inspect(cause, { breakLength: Infinity }) : String(cause)
}

// PGlite looks for these beside its modules, by their URLs.
const ownFile = /(pglite|initdb)\.(data|wasm)$/

const urlFaults: ReadonlySet<unknown> = new Set([
  "ERR_INVALID_ARG_TYPE",
  "ERR_INVALID_URL",
  "ERR_INVALID_URL_SCHEME",
])

/** Tells whether PGlite does not find its own files, because its modules are in a bundle. */
const isBundled = (cause: unknown): boolean => {
  if (!Predicate.hasProperty(cause, "code")) return false
  const path = Predicate.hasProperty(cause, "path") ? String(cause.path) : ""
  return urlFaults.has(cause.code) || (cause.code === "ENOENT" && ownFile.test(path))
}

const bundled = (reason: string): string =>
  `@electric-sql/pglite does not find its own files (${reason}), because a bundler has put it into its output. Keep the package out of the bundle and install it beside that: in Next.js with serverExternalPackages: ["@electric-sql/pglite"], with esbuild by --external:@electric-sql/pglite, in Vite and Rollup by their external`

const problemOf = (cause: unknown): string =>
  isBundled(cause) ? bundled(reasonOf(cause)) : reasonOf(cause)

/** Says why a folder cannot be used, unless the reason does so itself. */
export const folderUnusable = (path: string, cause: unknown): FolderUnusable =>
  cause instanceof FolderUnusable
    ? cause
    : new FolderUnusable({
        message: `The folder ${path} cannot be used: ${problemOf(cause)}`,
        cause,
      })

/** A folder locked by this process. */
export interface Folder {
  readonly path: string
  /**
   * Throws `FolderUnusable` if the folder is not this process's any more. Locks it again if the lock file
   * was removed, and nobody has made another one.
   */
  readonly check: () => void
  readonly release: () => void
}

// https://www.sqlite.org/rescode.html#busy
const busy = 5

const isBusy = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "errcode") && fault.errcode === busy

const isPresent = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") && fault.code === "EEXIST"

/** Names the process holding a folder. */
const holderOf = (path: string): string => {
  try {
    return `process ${Number.parseInt(fs.readFileSync(join(path, "pid"), "utf8"), 10)}`
  } catch {
    return "another process"
  }
}

/** Returns the device and inode of the file at a path, or `undefined` without a file. A replacement has others. */
export const identityOf = (path: string): string | undefined => {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

/** The lock on a file. */
interface Lock {
  readonly identity: string | undefined
  readonly release: () => void
}

/**
 * Creates a file if it is missing. Opening and closing an existing one would release this process's
 * locks on it.
 */
const createFile = (path: string): void => {
  try {
    fs.closeSync(fs.openSync(path, "wx", 0o600))
  } catch (fault) {
    if (!isPresent(fault)) throw fault
  }
}

/** Locks a file, and creates it if it is missing. Node itself locks no files; SQLite does, on every system. */
const lockFile = (Sqlite: typeof DatabaseSync, path: string, attempts = 3): Lock => {
  createFile(path)
  const identity = identityOf(path)
  const lock = new Sqlite(path)
  try {
    lock.exec("BEGIN EXCLUSIVE")
  } catch (fault) {
    lock.close()
    throw fault
  }
  if (identityOf(path) === identity) return { identity, release: () => lock.close() }
  // Somebody has replaced the file, or opening it copied it to another file-system layer.
  lock.close()
  if (attempts === 1) throw new Error('its file "lock" is being replaced again and again')
  return lockFile(Sqlite, path, attempts - 1)
}

const inUse = (path: string, cause: unknown): FolderUnusable =>
  new FolderUnusable({
    message: `The folder ${path} is in use by ${holderOf(path)}. One process at a time can use it.`,
    cause,
  })

const withoutLock = (path: string): FolderUnusable =>
  new FolderUnusable({
    message: `The folder ${path} cannot be used: its file "lock" is missing, so that another process may use the folder unnoticed. Stop every process that does, and create the file, which is empty.`,
  })

/** Creates the error for a folder this process has lost. */
export const lost = (path: string, cause?: unknown): FolderUnusable =>
  new FolderUnusable({
    message: `The folder ${path} is not this process's any more: it was moved, or its file "lock" was replaced, and another process may use it. This process writes no more to it. Start it again when no other one uses the folder.`,
    cause,
  })

/**
 * Locks a folder, and creates it if it is missing. The system releases the lock however the process
 * ends. Rejects with `FolderUnusable` if another process has it, or may have it because a database's
 * lock file is missing, and otherwise with the system's error.
 */
export const lockFolder = async (given: string): Promise<Folder> => {
  // Other runtimes, and Node before version 24, do without it or print a warning.
  const { DatabaseSync: Sqlite } = await import("node:sqlite")
  fs.mkdirSync(given, { recursive: true, mode: 0o700 })
  const path = fs.realpathSync(given)
  const file = join(path, "lock")
  // If somebody removes the file, the folder's holder locks it again within a second.
  if (hasDatabase(path) && identityOf(file) === undefined) throw withoutLock(path)

  const hold = (): Lock => {
    try {
      return lockFile(Sqlite, file)
    } catch (fault) {
      throw isBusy(fault) ? inUse(path, fault) : fault
    }
  }

  let lock = hold()
  let loss: FolderUnusable | undefined
  fs.writeFileSync(join(path, "pid"), `${process.pid}\n`)

  const lockAgain = (): void => {
    try {
      const before = lock
      lock = hold()
      before.release()
    } catch (fault) {
      loss = lost(path, fault)
    }
  }

  return {
    path,
    check: () => {
      const identity = loss === undefined ? identityOf(file) : undefined
      if (loss === undefined && identity === undefined) lockAgain()
      else if (identity !== lock.identity) loss ??= lost(path)
      if (loss !== undefined) throw loss
    },
    release: () => lock.release(),
  }
}
