/** What `tenure migrate`, `export` and `import` do. */

import { resolve } from "node:path"
import { PgClient } from "@effect/sql-pg/PgClient"
import { migrate as migrateAll } from "@tenure/postgres"
import * as Databases from "@tenure/postgres/bin/databases"
import * as Secrets from "@tenure/postgres/bin/secrets"
import * as Upkeep from "@tenure/postgres/bin/upkeep"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { pathOf } from "../connection/folder.ts"
import { type Failure, usage } from "../Failure.ts"
import * as Progress from "../output/Progress.ts"
import { connect, connectOrCreate, explain } from "./database.ts"

/** What to do beside the migrations. */
interface Given {
  readonly dryRun: boolean
  readonly encrypt: boolean
  readonly decrypt: boolean
}

/** What has become of a database, or would become of it. */
export interface Migrated {
  readonly applied: boolean
  /** The numbers of the migrations. */
  readonly migrations: ReadonlyArray<number>
  readonly rewritten_secrets?: number
}

/** Applies migrations, or tells which ones would be applied, and rewrites secrets. */
export const migrate = Effect.fnUntraced(function* (
  url: string,
  schema: string | undefined,
  { decrypt, dryRun, encrypt }: Given,
) {
  const client = yield* (dryRun ? connect : connectOrCreate)(url)
  return yield* Effect.gen(function* (): Effect.fn.Return<Migrated, unknown, PgClient> {
    if (dryRun) return { applied: false, migrations: yield* Upkeep.pending(schema) }
    const migrations = yield* migrateAll({ schema })
    if (!encrypt && !decrypt) return { applied: true, migrations }
    const rewritten_secrets = yield* Secrets.rewrite(schema, encrypt ? "encrypt" : "decrypt")
    return { applied: true, migrations, rewritten_secrets }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explain))
}, Effect.scoped)

/** One of several databases. */
interface Named {
  readonly name: string
  readonly url: string
}

/** The several databases that a URL names, if it is that of a file. */
export const severalOf = (
  url: string,
): Effect.Effect<ReadonlyArray<Named> | undefined, Failure> => {
  const path = Databases.pathOf(url)
  return path === undefined
    ? Effect.succeed(undefined)
    : Effect.mapError(Databases.read(path), explain)
}

/**
 * Looks at a database.
 *
 * @returns the migrations that are not applied, and how much later it is there, in milliseconds
 */
export const inspect = Effect.fnUntraced(function* (url: string, schema: string | undefined) {
  const client = yield* connect(url)
  return yield* Effect.gen(function* () {
    const pending = yield* Upkeep.pending(schema)
    const skew = (yield* Upkeep.now) - (yield* Clock.currentTimeMillis)
    return { pending, skew }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explain))
}, Effect.scoped)

/** Names a database: the same folder has several paths. */
const nameOf = (url: string): string => {
  const path = pathOf(url)
  return path === undefined ? url : resolve(path)
}

const requireOther = (from: string, to: string) =>
  nameOf(from) === nameOf(to)
    ? Effect.fail(usage("The source and the target are the same database."))
    : Effect.void

/** Copies everything from one database to another, and returns the number of rows of each table. */
export const move = Effect.fnUntraced(function* (
  from: string,
  to: string,
  schema: string | undefined,
) {
  yield* requireOther(from, to)
  const source = yield* connect(from)
  const target = yield* connectOrCreate(to)
  const display = Progress.make(process.stderr, "rows")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  const rows = yield* Upkeep.move(source, target, schema, ({ of, rows: done }) =>
    display.show({ done, of, items: done, millis: clock.currentTimeMillisUnsafe() - start }),
  ).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explain))
  return Object.fromEntries(rows)
}, Effect.scoped)

/** A move of a project. */
interface ProjectMove {
  readonly from: string
  readonly to: string
  readonly schema: string | undefined
  readonly project: string
  readonly isCancelled: boolean
}

/** Moves a project from one database to another, or cancels a move that has stopped. */
export const moveProject = Effect.fnUntraced(function* ({
  from,
  isCancelled,
  project: projectId,
  schema,
  to,
}: ProjectMove) {
  yield* requireOther(from, to)
  const source = yield* connect(from)
  const target = yield* connect(to)
  const display = Progress.make(process.stderr, "rows")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  const run = isCancelled ? Upkeep.cancelMove : Upkeep.moveProject
  yield* run({
    source,
    target,
    schema,
    projectId,
    onProgress: ({ of, rows: done }) =>
      display.show({ done, of, items: done, millis: clock.currentTimeMillisUnsafe() - start }),
  }).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explain))
}, Effect.scoped)
