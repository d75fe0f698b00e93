/** A folder that one process at a time may use. */

import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"

/** The folder cannot be used. The message names it, and says why. */
export class FolderUnusable extends Data.TaggedError("FolderUnusable")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** Says why a folder cannot be used, unless the reason does so itself. */
export const unusable = (path: string, cause: unknown): FolderUnusable => {
  if (cause instanceof FolderUnusable) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new FolderUnusable({ message: `The folder ${path} cannot be used: ${reason}`, cause })
}

/** A folder that is this process's. */
export interface Folder {
  readonly path: string
  readonly release: () => void
}

// https://www.sqlite.org/rescode.html#busy
const busy = 5

const isBusy = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "errcode") && fault.errcode === busy

/** Names the process that has a folder. */
const holderOf = (path: string): string => {
  try {
    return `process ${Number.parseInt(readFileSync(join(path, "pid"), "utf8"), 10)}`
  } catch {
    return "another process"
  }
}

/**
 * Locks a folder, and creates it if it is missing. The system releases the lock when the process ends,
 * in whatever way. Rejects with `FolderUnusable` if another one has it, and what the system says otherwise.
 */
export const acquire = async (given: string): Promise<Folder> => {
  // Other runtimes, and Node before version 24, do without it or print a warning.
  const { DatabaseSync } = await import("node:sqlite")
  mkdirSync(given, { recursive: true, mode: 0o700 })
  const path = realpathSync(given)
  // Node itself locks no files. SQLite does, on every system, and in containers that share a volume.
  const lock = new DatabaseSync(join(path, "lock"))
  try {
    lock.exec("BEGIN EXCLUSIVE")
  } catch (fault) {
    lock.close()
    if (!isBusy(fault)) throw fault
    const message = `The folder ${path} is in use by ${holderOf(path)}. One process at a time can use it.`
    throw new FolderUnusable({ message, cause: fault })
  }
  writeFileSync(join(path, "pid"), `${process.pid}\n`)
  return { path, release: () => lock.close() }
}
