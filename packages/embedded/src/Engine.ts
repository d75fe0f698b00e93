/** PostgreSQL in this process: PGlite on a folder. */

import * as Fs from "node:fs"
import { open as openFile, readdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import { NodeFS } from "@electric-sql/pglite/nodefs"
import * as Predicate from "effect/Predicate"
import type { Database } from "./Sessions.ts"

/** A database that is open. */
export interface Engine extends Database {
  readonly close: () => Promise<void>
}

/** Files whose changes are on the disk when PostgreSQL relies on it, which PGlite leaves to the system. */
class DurableFiles extends NodeFS {
  override async init(...given: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...given)
    const preRun = [...(emscriptenOpts.preRun ?? []), synchronizeFiles]
    return { emscriptenOpts: { ...emscriptenOpts, preRun } }
  }
}

/** Gives the files of a module the operation that they lack. */
const synchronizeFiles = ({ NODEFS }: Pick<PGlite["Module"], "NODEFS">): void => {
  if (!Predicate.hasProperty(NODEFS, "stream_ops") || !Predicate.isObject(NODEFS.stream_ops))
    throw new Error("This version of @electric-sql/pglite cannot be made durable")
  Object.assign(NODEFS.stream_ops, {
    fsync: ({ nfd }: { readonly nfd: number }): number => {
      Fs.fsyncSync(nfd)
      return 0
    },
  })
}

// The folder is the only thing that others may read.
const memory = ["-c", "shared_buffers=32MB"]

const turnedOff = ["-F"]

const parameters = (isDurable: boolean): Array<string> =>
  isDurable
    ? // The other methods need operations that the files do not have.
      [
        ...PGlite.defaultStartParams.filter((parameter) => !turnedOff.includes(parameter)),
        ...memory,
        "-c",
        "wal_sync_method=fsync",
      ]
    : [...PGlite.defaultStartParams, ...memory]

const synchronize = async (path: string): Promise<void> => {
  const file = await openFile(path, "r")
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Creates a database: as a whole, or not at all. */
const create = async (path: string, parent: string): Promise<void> => {
  const unfinished = `${path}.new`
  await rm(unfinished, { recursive: true, force: true })
  const database = await PGlite.create({ fs: new NodeFS(unfinished) })
  await database.close()
  const entries = await readdir(unfinished, { recursive: true })
  for (const entry of [".", ...entries]) await synchronize(join(unfinished, entry))
  await rename(unfinished, path)
  await synchronize(parent)
}

/**
 * Opens the database of a folder, or creates it.
 *
 * @param isDurable - whether what is committed survives a power cut
 */
export const open = async (folder: string, isDurable: boolean): Promise<Engine> => {
  const path = join(folder, "database")
  if (!Fs.existsSync(path)) await create(path, folder)
  const files = isDurable ? new DurableFiles(path) : new NodeFS(path)
  const database = await PGlite.create({ fs: files, startParams: parameters(isDurable) })
  return {
    run: (messages, answer) =>
      database.execProtocolRawStream(messages, { syncToFs: false, onRawData: answer }),
    isInTransaction: () => database.isInTransaction(),
    close: () => database.close(),
  }
}
