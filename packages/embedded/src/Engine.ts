/** PostgreSQL in this process: PGlite on a folder. */

import fs from "node:fs"
import { join } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import * as Predicate from "effect/Predicate"
import type { Database } from "./Sessions.ts"

/** A database that is open. */
export interface Engine extends Database {
  readonly close: () => Promise<void>
}

/** Gives the files of PGlite the operation that they lack: to wait until they are on the disk. */
const addSync = ({ NODEFS }: Pick<PGlite["Module"], "NODEFS">): void => {
  if (!Predicate.hasProperty(NODEFS, "stream_ops") || !Predicate.isObject(NODEFS.stream_ops))
    throw new Error("This version of @electric-sql/pglite cannot be made durable")
  Object.assign(NODEFS.stream_ops, {
    fsync: ({ nfd }: { readonly nfd: number }): number => {
      fs.fsyncSync(nfd)
      return 0
    },
  })
}

/** Files that wait for the disk when PostgreSQL tells them to. */
class DurableFiles extends NodeFS {
  override async init(...given: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...given)
    const preRun = [...(emscriptenOpts.preRun ?? []), addSync]
    return { emscriptenOpts: { ...emscriptenOpts, preRun } }
  }
}

const withoutFsync = "-F"

// A quarter of the default: the system caches the files, too.
const parameters = [...PGlite.defaultStartParams, "-c", "shared_buffers=32MB"]

const durableParameters = [
  ...parameters.filter((parameter) => parameter !== withoutFsync),
  "-c",
  // The other methods need operations that the files do not have, either.
  "wal_sync_method=fsync",
]

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

/** Creates a database: as a whole, or not at all. */
const create = async (path: string): Promise<void> => {
  const unfinished = `${path}.new`
  fs.rmSync(unfinished, { recursive: true, force: true })
  const database = await PGlite.create({ fs: new NodeFS(unfinished) })
  await database.close()
  syncFolder(unfinished)
  fs.renameSync(unfinished, path)
  syncFile(join(path, ".."))
}

/**
 * Opens the database of a folder, or creates it.
 *
 * @param isDurable - whether what is committed outlives a power cut
 */
export const open = async (folder: string, isDurable: boolean): Promise<Engine> => {
  const path = join(folder, "database")
  if (!fs.existsSync(path)) await create(path)
  const database = await PGlite.create(
    isDurable
      ? { fs: new DurableFiles(path), startParams: durableParameters }
      : { fs: new NodeFS(path), startParams: parameters },
  )
  return {
    run: (messages, answer) =>
      database.execProtocolRawStream(messages, { syncToFs: false, onRawData: answer }),
    isInTransaction: () => database.isInTransaction(),
    close: () => database.close(),
  }
}
