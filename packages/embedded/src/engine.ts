/** PostgreSQL in this process: PGlite on a folder. */

import fs from "node:fs"
import { join } from "node:path"
import type { PgClient } from "@effect/sql-pg/PgClient"
import type { PGlite } from "@electric-sql/pglite"
import type { NodeFS } from "@electric-sql/pglite/nodefs"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import {
  type Folder,
  createDatabase,
  damageOf,
  databaseIn,
  hasDatabase,
  identityOf,
  lost,
} from "./folder.ts"
import type { Database } from "./protocol.ts"

/** An open database. */
export interface Engine extends Database {
  /** Throws `FolderUnusable` if the folder or its database were replaced, and stops. */
  readonly checkFiles: () => void
  readonly close: () => Promise<void>
}

/** Adds `fsync`, missing in PGlite, to its file operations. */
const addSync = ({ NODEFS }: Pick<PGlite["Module"], "NODEFS">, onSync: () => void): void => {
  // PGlite does not promise this internal. Its version is therefore pinned, and `checkSync` tests
  // whether this works.
  if (!Predicate.hasProperty(NODEFS, "stream_ops") || !Predicate.isObject(NODEFS.stream_ops)) return
  Object.assign(NODEFS.stream_ops, {
    fsync: ({ nfd }: { readonly nfd: number }): number => {
      fs.fsyncSync(nfd)
      onSync()
      return 0
    },
  })
}

/** Calls a function with PostgreSQL's module before PostgreSQL starts. */
const beforeStart = (files: NodeFS, use: (module: PGlite["Module"]) => void): NodeFS => {
  const init = files.init.bind(files)
  files.init = async (database, options) => {
    const { emscriptenOpts } = await init(database, options)
    const preRun = [...(emscriptenOpts.preRun ?? []), use]
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

/** Fails the statement in which PostgreSQL gives up: PGlite would loop forever. */
const endLoop = (module: PGlite["Module"]): void => {
  Object.assign(module, {
    // PGlite calls this before it continues.
    _pq_buffer_remaining_data: () => {
      throw new Error("The database has stopped")
    },
  })
}

const withoutFsync = "-F"

// A quarter of the default, because the system caches the files too.
const always = ["-c", "shared_buffers=32MB"]

// The other methods also need missing file operations.
const whenDurable = ["-c", "wal_sync_method=fsync"]

const parametersOf = (standard: ReadonlyArray<string>, isDurable: boolean): Array<string> =>
  isDurable
    ? [...standard.filter((one) => one !== withoutFsync), ...always, ...whenDurable]
    : [...standard, ...always]

const isMissing = (fault: unknown): boolean =>
  Predicate.hasProperty(fault, "code") && fault.code === "ERR_MODULE_NOT_FOUND"

/**
 * Loads PostgreSQL only when needed. It looks for files beside its own modules: Turbopack takes them along, and webpack
 * would not.
 */
const load = async () => {
  try {
    const { PGlite } = await import(
      /* webpackIgnore: true */ /* turbopackIgnore: false */ "@electric-sql/pglite"
    )
    const { NodeFS } = await import(
      /* webpackIgnore: true */ /* turbopackIgnore: false */ "@electric-sql/pglite/nodefs"
    )
    return { PGlite, NodeFS }
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new Error("@electric-sql/pglite is not installed here", { cause })
  }
}

/** Refuses a folder without a Tenure database, before writing to it. */
const check = (folder: string): void => {
  const damage = damageOf(folder)
  if (damage !== undefined)
    throw new Error(
      `its database is damaged: ${damage}. Nothing was changed. Restore the folder from a copy.`,
    )
}

// PostgreSQL's last log lines. Its hints are omitted: they apply to servers.
const complaint = /(?:FATAL|PANIC|DETAIL): +(.*)/

/** Says why PostgreSQL does not start, in its own words if it has said something. */
const startFault = (log: ReadonlyArray<string>, cause: unknown): unknown => {
  const reasons = log.flatMap((line) => complaint.exec(line)?.[1] ?? [])
  if (reasons.length === 0) return cause
  const problem = reasons.join(": ").replace(/\.$/, "")
  return new Error(
    `its database does not open: ${problem}. Unless the disk is full, or the version of @electric-sql/pglite has changed, the database is damaged. Restore the folder from a copy.`,
    { cause },
  )
}

/**
 * Opens a folder's database, or creates one.
 *
 * @param isDurable - whether commits survive a power cut
 */
export const openEngine = async (folder: Folder, isDurable: boolean): Promise<Engine> => {
  const { NodeFS, PGlite } = await load()
  if (!hasDatabase(folder.path)) {
    await createDatabase(folder, async (path) => {
      const database = await PGlite.create({ fs: new NodeFS(path) })
      await database.close()
    })
  }
  check(folder.path)
  const path = databaseIn(folder.path)
  const log: Array<string> = []
  let module: PGlite["Module"] | undefined
  let isStarting = true
  let isStopped = false
  let syncs = 0
  const files = beforeStart(new NodeFS(path), (started) => {
    module = started
    if (isDurable) addSync(started, () => syncs++)
  })
  const database = await PGlite.create({
    fs: files,
    startParams: parametersOf(PGlite.defaultStartParams, isDurable),
    onStderr: (text) => {
      if (isStarting) log.push(text)
      // For example because the disk is full.
      if (text.startsWith("Aborted(")) {
        isStopped = true
        if (module !== undefined) endLoop(module)
      }
      return false
    },
  }).catch((cause: unknown) => {
    // PostgreSQL may have left it behind when it gave up.
    fs.rmSync(join(path, "postmaster.pid"), { force: true })
    throw startFault(log, cause)
  })
  isStarting = false
  if (isDurable) {
    await checkSync(database, () => syncs).catch(async (fault: unknown) => {
      await database.close()
      throw fault
    })
  }
  const identity = identityOf(path)

  /** Throws once the files are another's: this process must not write to them any more. */
  const checkFiles = (): void => {
    try {
      folder.check()
      if (identityOf(path) !== identity) throw lost(folder.path)
    } catch (fault) {
      isStopped = true
      throw fault
    }
  }

  const isOurs = (): boolean => {
    try {
      checkFiles()
    } catch {
      // The folder's watcher reports the error.
    }
    return !isStopped
  }

  return {
    run: async (messages, answer) => {
      if (isStopped) throw new Error("The database has stopped")
      checkFiles()
      await database.execProtocolRawStream(messages, { syncToFs: false, onRawData: answer })
    },
    isInTransaction: () => !isStopped && database.isInTransaction(),
    isStopped: () => isStopped,
    checkFiles,
    close: async () => {
      // To close a database is to write to it.
      if (!isOurs()) return
      // A session that ends later has something to roll back, and a closed PGlite would loop forever.
      isStopped = true
      await database.close()
    },
  }
}

const intervalMillis = 60_000

// The maximum log to replay after a crash, in bytes.
const maxLog = 64 * 1024 * 1024

const logSize = `
  SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::float8 AS bytes
  FROM pg_control_checkpoint()
`

// By autovacuum's rules.
const untidy = `
  SELECT c.oid::regclass::text AS name
  FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
  WHERE c.relkind IN ('r', 'm')
    AND (s.n_dead_tup > 50 + 0.1 * greatest(c.reltuples, 0)
         OR s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
         OR age(c.relfrozenxid) > current_setting('autovacuum_freeze_max_age')::integer)
`

/** Shortens a long log, and reclaims space from deleted rows. */
export const vacuumAndAnalyze = Effect.fnUntraced(function* (client: PgClient) {
  const sql = client.withoutTransforms()
  const tables = yield* sql.unsafe<{ readonly name: string }>(untidy)
  // Each by itself, to let other statements run in between.
  for (const { name } of tables) yield* sql.unsafe(`VACUUM (ANALYZE) ${name}`)
  const [log] = yield* sql.unsafe<{ readonly bytes: number }>(logSize)
  if (log !== undefined && log.bytes > maxLog) yield* sql.unsafe("CHECKPOINT")
})

/** Tidies now and then, until the scope closes. */
export const startMaintenance = (client: PgClient) =>
  vacuumAndAnalyze(client).pipe(
    Effect.catchCause((cause) => Effect.logWarning("Upkeep failed and will be retried", cause)),
    Effect.delay(intervalMillis),
    Effect.forever,
    Effect.forkScoped,
  )
