/** The files of a database: they are created all at once, and checked before they are opened. */

import fs from "node:fs"
import { join } from "node:path"
import type { Folder } from "./Folder.ts"

const databaseName = "database"

/** Returns the path of the database in a folder. */
export const databaseIn = (folder: string): string => join(folder, databaseName)

/**
 * Tells whether a folder has a database, which would be created if it were opened otherwise. A damaged one
 * counts, too.
 *
 * @param folder - the path of the folder, which need not exist
 *
 * @example
 * ```ts
 * import { hasDatabase } from "tenure/embedded"
 *
 * if (!hasDatabase("./data")) throw new Error("There is nothing to back up in ./data")
 * ```
 */
export const hasDatabase = (folder: string): boolean => {
  try {
    // A link that leads nowhere is no reason to create a database.
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
 * Creates the database of a folder: as a whole, or not at all.
 *
 * @param write - writes the files to a path where nothing is yet
 */
export const create = async (
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

// What every database of PostgreSQL 18 has, and what PGlite does not survive without. PostgreSQL itself
// would notice some of it only after it has written to the rest.
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

/** Says what a database lacks, without writing to it. Returns `undefined` if nothing is missing. */
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
