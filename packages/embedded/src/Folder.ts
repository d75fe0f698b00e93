/** A folder that one process at a time may use. */

import fs from "node:fs"
import { join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { inspect } from "node:util"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import { hasDatabase } from "./Files.ts"

/** The folder cannot be used. The message names it, and says why. */
export class FolderUnusable extends Data.TaggedError("FolderUnusable")<{
  readonly message: string
  readonly cause?: unknown
}> {}

const reasonOf = (cause: unknown): string => {
  if (Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message))
    return cause.message
  return typeof cause === "object" ? inspect(cause, { breakLength: Infinity }) : String(cause)
}

/** Says why a folder cannot be used, unless the reason does so itself. */
export const unusable = (path: string, cause: unknown): FolderUnusable =>
  cause instanceof FolderUnusable
    ? cause
    : new FolderUnusable({
        message: `The folder ${path} cannot be used: ${reasonOf(cause)}`,
        cause,
      })

/** A folder that is this process's. */
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

/** Names the process that has a folder. */
const holderOf = (path: string): string => {
  try {
    return `process ${Number.parseInt(fs.readFileSync(join(path, "pid"), "utf8"), 10)}`
  } catch {
    return "another process"
  }
}

/**
 * Identifies what a path leads to, in whatever way it is replaced. Returns `undefined` if there is nothing.
 */
export const identityOf = (path: string): string | undefined => {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev}:${stats.ino}`
}

/** The lock on a file. */
interface Lock {
  readonly identity: string | undefined
  readonly release: () => void
}

/** Creates a file, unless there is one. To open and close that one would release this process's locks on it. */
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
  // Somebody has replaced it, or it was copied to another layer of the file system when it was opened.
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

/** Says that the folder was this process's, and is not any more. */
export const lost = (path: string, cause?: unknown): FolderUnusable =>
  new FolderUnusable({
    message: `The folder ${path} is not this process's any more: it was moved, or its file "lock" was replaced, and another process may use it. This process writes no more to it. Start it again when no other one uses the folder.`,
    cause,
  })

/**
 * Locks a folder, and creates it if it is missing. The system releases the lock when the process ends,
 * in whatever way. Rejects with `FolderUnusable` if another one has it, or may have it, because the
 * lock file of a database is missing, and with what the system says otherwise.
 */
export const acquire = async (given: string): Promise<Folder> => {
  // Other runtimes, and Node before version 24, do without it or print a warning.
  const { DatabaseSync: Sqlite } = await import("node:sqlite")
  fs.mkdirSync(given, { recursive: true, mode: 0o700 })
  const path = fs.realpathSync(given)
  const file = join(path, "lock")
  // Whoever has the folder locks the file again, at the latest a second after somebody has removed it.
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
