/** PostgreSQL in this process: PGlite on a folder. */

import fs from "node:fs"
import { join } from "node:path"
import type { PGlite } from "@electric-sql/pglite"
import type { NodeFS } from "@electric-sql/pglite/nodefs"
import * as Predicate from "effect/Predicate"
import type { Database } from "./Sessions.ts"

/** A database that is open. */
export interface Engine extends Database {
  readonly close: () => Promise<void>
}

/** Adds `fsync`, which PGlite lacks, to its file operations. */
const addSync = ({ NODEFS }: Pick<PGlite["Module"], "NODEFS">, onSync: () => void): void => {
  // Not a part of what PGlite promises, so its version is pinned, and `checkSync` asks whether it works.
  if (!Predicate.hasProperty(NODEFS, "stream_ops") || !Predicate.isObject(NODEFS.stream_ops)) return
  Object.assign(NODEFS.stream_ops, {
    fsync: ({ nfd }: { readonly nfd: number }): number => {
      fs.fsyncSync(nfd)
      onSync()
      return 0
    },
  })
}

/** Makes files wait for the disk when PostgreSQL tells them to. */
const durable = (files: NodeFS, onSync: () => void): NodeFS => {
  const init = files.init.bind(files)
  const add = (module: PGlite["Module"]): void => addSync(module, onSync)
  files.init = async (database, options) => {
    const { emscriptenOpts } = await init(database, options)
    const preRun = [...(emscriptenOpts.preRun ?? []), add]
    return { emscriptenOpts: { ...emscriptenOpts, preRun } }
  }
  return files
}

// Commits, and changes nothing.
const commit = "SELECT pg_logical_emit_message(true, 'tenure', '')"

/** Throws unless a commit waits for the disk. */
const checkSync = async (database: PGlite, syncs: () => number): Promise<void> => {
  const before = syncs()
  await database.exec(commit)
  if (syncs() === before)
    throw new Error(
      "this version of @electric-sql/pglite does not wait for the disk. Install the one that Tenure names, or pass durable: false",
    )
}

/** Makes the statement fail in which PostgreSQL gives up: PGlite would go on with it forever. */
const endLoop = (module: PGlite["Module"]): void => {
  Object.assign(module, {
    // What PGlite asks before it goes on.
    _pq_buffer_remaining_data: () => {
      throw new Error("The database has stopped")
    },
  })
}

const withoutFsync = "-F"

// A quarter of the default: the system caches the files, too.
const always = ["-c", "shared_buffers=32MB"]

// The other methods need operations that the files do not have, either.
const whenDurable = ["-c", "wal_sync_method=fsync"]

const parametersOf = (standard: ReadonlyArray<string>, isDurable: boolean): Array<string> =>
  isDurable
    ? [...standard.filter((one) => one !== withoutFsync), ...always, ...whenDurable]
    : [...standard, ...always]

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

const isMissing = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") && fault.code === "ERR_MODULE_NOT_FOUND"

/** Loads PostgreSQL, which whoever keeps data elsewhere does without. */
const load = async () => {
  try {
    const { PGlite } = await import("@electric-sql/pglite")
    const { NodeFS } = await import("@electric-sql/pglite/nodefs")
    return { PGlite, NodeFS }
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new Error("@electric-sql/pglite is not installed here", { cause })
  }
}

type Loaded = Awaited<ReturnType<typeof load>>

/** Creates a database: as a whole, or not at all. */
const create = async ({ NodeFS, PGlite }: Loaded, path: string): Promise<void> => {
  const unfinished = `${path}.new`
  fs.rmSync(unfinished, { recursive: true, force: true })
  const database = await PGlite.create({ fs: new NodeFS(unfinished) })
  await database.close()
  syncFolder(unfinished)
  fs.renameSync(unfinished, path)
  syncFile(join(path, ".."))
}

const databaseIn = (folder: string): string => join(folder, "database")

/**
 * Tells whether a folder has a database, which would be created if it were opened otherwise.
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
export const hasDatabase = (folder: string): boolean => fs.existsSync(databaseIn(folder))

/**
 * Opens the database of a folder, or creates it.
 *
 * @param isDurable - whether what is committed outlives a power cut
 */
export const open = async (folder: string, isDurable: boolean): Promise<Engine> => {
  const path = databaseIn(folder)
  const loaded = await load()
  const { NodeFS, PGlite } = loaded
  if (!fs.existsSync(path)) await create(loaded, path)
  const files = new NodeFS(path)
  let isStopped = false
  let syncs = 0
  const database: PGlite = await PGlite.create({
    fs: isDurable ? durable(files, () => syncs++) : files,
    startParams: parametersOf(PGlite.defaultStartParams, isDurable),
    onStderr: (text) => {
      // For example because the disk is full.
      if (text.startsWith("Aborted(")) {
        isStopped = true
        endLoop(database.Module)
      }
      return false
    },
  })
  if (isDurable) {
    await checkSync(database, () => syncs).catch(async (fault: unknown) => {
      await database.close()
      throw fault
    })
  }
  return {
    run: async (messages, answer) => {
      if (isStopped) throw new Error("The database has stopped")
      await database.execProtocolRawStream(messages, { syncToFs: false, onRawData: answer })
    },
    isInTransaction: () => !isStopped && database.isInTransaction(),
    isStopped: () => isStopped,
    close: async () => {
      if (!isStopped) await database.close()
    },
  }
}
