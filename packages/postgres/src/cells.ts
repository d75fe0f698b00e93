/** Makes the stores for several cells: schemas on several servers, of which the first is the home. */

import { PgClient } from "@effect/sql-pg"
import { type Cell, Setting, cellNumber, makeCellStores } from "@tenure/core/internal"
import { ApiKeyStore, InvalidInput, Transactions } from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import {
  type CellPlace,
  cellSchema,
  listCells,
  makeCellDirectory,
  makeCellExecutor,
} from "./connection/cells.ts"
import { explain, fromSqlError } from "./connection/errors.ts"
import { type Server, makeExecutor, makeServer } from "./connection/executor.ts"
import { databaseUrlOption, placeOf } from "./connection/url.ts"
import type { Notifications } from "./notifications.ts"
import type { retentionOptions } from "./retention.ts"
import { applyMigrations, checkSchema } from "./schema/migrate.ts"
import { quoted } from "./sql/clauses.ts"
import {
  clientConfig,
  makeHomeStores,
  makeProjectStores,
  makeServerNotifications,
} from "./stores.ts"
import { makeCommitWatcher, makeTransactions } from "./transactions.ts"

/** Options for one of several servers. */
export const serverOptions = Setting.object({
  /** The server's name in the cell directory, in logs and in metrics. */
  name: Setting.string("1 to 48 letters, digits, - and _", (name) => /^[\w-]{1,48}$/.test(name)),
  /**
   * The URL of the database, for example `postgres://user:password@host:5432/database`. Connections to
   * other machines are encrypted, unless its parameter `sslmode` is `disable`.
   */
  url: databaseUrlOption,
  /**
   * The URL to listen for notifications at, past a pooler. By default, Tenure does not listen through a
   * pooler, and looks for deliveries once a second.
   */
  listenUrl: Setting.optional(databaseUrlOption),
  /**
   * The URL with which another server reaches this one while a cell moves there. Default: the URL past a
   * pooler, or else `url`.
   */
  replicationUrl: Setting.optional(databaseUrlOption),
})

/** A server, as the host configures it. */
export type ServerOptions = Setting.OutputOf<typeof serverOptions>

/** Options with which the stores open. */
interface CellSettings extends Setting.OutputOf<typeof retentionOptions> {
  readonly servers: ReadonlyArray<ServerOptions>
  readonly cells: number | undefined
  readonly schema: string
  readonly migrate: boolean
  readonly maxConnections: number
}

/** A configured server, which need not be up. */
interface OpenServer extends Server {
  readonly name: string
  readonly url: string
  readonly notifications: Notifications
}

const openServer = Effect.fnUntraced(function* (
  { listenUrl, name, url }: ServerOptions,
  { maxConnections, schema }: CellSettings,
) {
  const client = Context.get(
    yield* Layer.build(PgClient.layer(yield* clientConfig(url))),
    PgClient.PgClient,
  )
  const server = yield* makeServer(client, maxConnections, name)
  const opened: OpenServer = {
    ...server,
    name,
    url,
    notifications: yield* makeServerNotifications(server, quoted(schema), listenUrl),
  }
  return opened
})

/** A server with its name and a client. */
interface NamedClient {
  readonly name: string
  readonly url: string
  readonly client: PgClient.PgClient
}

/** Reads where the cells are. There are none if the schema has everything. */
export const readCells = (client: PgClient.PgClient, schema: string) =>
  client.withoutTransforms().unsafe<CellPlace>(listCells(schema))

/** Fails because the projects are in cells, which need the option `servers`. */
export const needsServers = (schema: string, places: ReadonlyArray<CellPlace>) => {
  const servers = new Set(places.map(({ server }) => server))
  return new InvalidInput({
    field: "servers",
    problem: `must be given: the projects of the schema ${schema} are in ${places.length} cells on ${[...servers].join(", ")}`,
  })
}

/** Fails if a cell is on a server that is not configured. */
export const requireServers = (
  places: ReadonlyArray<CellPlace>,
  servers: ReadonlyMap<string, unknown>,
): Effect.Effect<void, InvalidInput> => {
  const unknown = places.find(({ server }) => !servers.has(server))
  return unknown === undefined
    ? Effect.void
    : Effect.fail(
        new InvalidInput({
          field: "servers",
          problem: `must have ${unknown.server}, which has the cell ${unknown.number}`,
        }),
      )
}

const hasProjects = (schema: string): string => `SELECT FROM ${schema}.projects LIMIT 1`

const addCells = (schema: string): string => `
  INSERT INTO ${schema}.cells (number, server)
  SELECT * FROM unnest($1::integer[], $2::text[]) ON CONFLICT DO NOTHING
`

/**
 * Makes the schemas of the cells, on the servers in turn, and then the directory, so that it only names
 * existing cells. Several processes may do this at the same time.
 */
const makeCells = Effect.fnUntraced(function* (
  servers: ReadonlyArray<NamedClient>,
  schema: string,
  count: number,
) {
  const [home] = servers
  if (home === undefined) return
  const sql = home.client.withoutTransforms()
  if ((yield* sql.unsafe(hasProjects(quoted(schema)))).length > 0)
    return yield* new InvalidInput({
      field: "cells",
      problem: `must be absent: the schema ${schema} has projects already, and cells are made before these`,
    })
  const places = Array.from({ length: count }, (_, number) => ({
    number,
    server: servers[number % servers.length] ?? home,
  }))
  for (const { number, server } of places)
    yield* Effect.catchTag(
      applyMigrations(server.client, quoted(cellSchema(schema, number))),
      "SqlError",
      (error) => fromSqlError(error, placeOf(server.url)),
    )
  yield* sql.unsafe(addCells(quoted(schema)), [
    places.map(({ number }) => number),
    places.map(({ server }) => server.name),
  ])
})

const otherCount = (found: number) =>
  new InvalidInput({
    field: "cells",
    problem: `must be ${found} or absent: so many there are, and projects stay in theirs`,
  })

const noCells = new InvalidInput({
  field: "cells",
  problem: "must say how many to make: there are none yet. Sixteen leave room to grow",
})

/** The error for an empty list of servers: there is no home. */
export const noServers = new InvalidInput({
  field: "servers",
  problem: "must have at least one server",
})

/** Prepares the home, makes the cells if there are none, and returns their places. */
export const prepareHome = Effect.fnUntraced(function* (
  servers: ReadonlyArray<NamedClient>,
  { cells, migrate, schema }: Pick<CellSettings, "cells" | "migrate" | "schema">,
) {
  const [home] = servers
  if (home === undefined) return yield* noServers
  const { client } = home
  yield* (migrate ? applyMigrations : checkSchema)(client, quoted(schema))
  const found = yield* readCells(client, quoted(schema))
  if (found.length > 0) {
    if (cells !== undefined && cells !== found.length) return yield* otherCount(found.length)
    return found
  }
  if (cells === undefined || !migrate) return yield* noCells
  yield* makeCells(servers, schema, cells)
  return yield* readCells(client, quoted(schema))
})

/** Makes the stores. They work for as long as the scope is open. */
export const openCells = Effect.fnUntraced(function* (settings: CellSettings) {
  const { migrate, schema } = settings
  const names = settings.servers.map(({ name }) => name)
  const repeated = names.findIndex((name, index) => names.indexOf(name) !== index)
  if (repeated !== -1)
    return yield* new InvalidInput({
      field: `servers[${repeated}].name`,
      problem: `is ${names[repeated]}, as that of an earlier server`,
    })
  const [home, ...others] = yield* Effect.forEach(settings.servers, (server) =>
    openServer(server, settings),
  )
  if (home === undefined) return yield* noServers
  const servers = new Map([home, ...others].map((server) => [server.name, server]))

  const first = yield* prepareHome([home, ...others], settings).pipe(
    Effect.catchTag("SqlError", (error) => fromSqlError(error, placeOf(home.url))),
    Effect.withTracerEnabled(false),
  )
  yield* requireServers(first, servers)
  const homeExecutor = makeExecutor(home, quoted(schema))
  const directory = yield* makeCellDirectory(homeExecutor, schema, servers, first)
  const serverOf = (number: number): OpenServer => servers.get(directory.serverOf(number)) ?? home

  /** Brings a cell's tables up to date, or checks them while it moves. */
  const prepareCell = ({ moving_to, number }: CellPlace) => {
    const own = quoted(cellSchema(schema, number))
    const prepare = Effect.suspend(() => {
      const { client } = serverOf(number)
      return migrate && moving_to === null
        ? Effect.asVoid(applyMigrations(client, own, "existing"))
        : checkSchema(client, own)
    })
    // The cell may have moved since the directory was read.
    const prepared = Effect.catchTag(prepare, "SchemaMismatch", () =>
      Effect.andThen(Effect.ignore(directory.refresh), prepare),
    )
    return Effect.withTracerEnabled(prepared, false)
  }

  /** Prepares a cell now or, if its server is down, when that is up again, so that the other cells can start. */
  const prepareOrRetry = (place: CellPlace) =>
    Effect.catchTag(prepareCell(place), "SqlError", (error) =>
      Effect.logWarning(`The cell ${place.number} cannot be prepared yet: ${explain(error)}`).pipe(
        Effect.andThen(
          Effect.retry(Effect.delay(prepareCell(place), "1 second"), {
            while: (later) => later._tag === "SqlError",
            schedule: Schedule.forever,
          }).pipe(
            Effect.catchCause((cause) =>
              Effect.logError(`The cell ${place.number} cannot be used`, cause),
            ),
            Effect.forkScoped,
          ),
        ),
      ),
    )
  yield* Effect.forEach(first, prepareOrRetry, { concurrency: "unbounded" })

  const openCell = Effect.fnUntraced(function* (number: number) {
    const name = cellSchema(schema, number)
    const executor = makeCellExecutor(number, quoted(name), directory, servers)
    const { memberships, webhooks, outbox, feed } = yield* makeProjectStores(
      executor,
      {
        channel: home.notifications.channel,
        notify: Effect.suspend(() => serverOf(number).notifications.notify),
        stopped: (webhookIds) => serverOf(number).notifications.stopped(webhookIds),
        // Each server sends the notifications for all its cells.
        next: Effect.never,
        opened: Effect.suspend(() => serverOf(number).notifications.opened),
        session: () => serverOf(number).notifications.session(),
      },
      settings,
    )
    const cell: Cell = { name, memberships, webhooks, outbox, feed }
    return { cell, watcher: yield* makeCommitWatcher(executor) }
  })

  const { idempotencyStore, memberships } = yield* makeProjectStores(
    homeExecutor,
    home.notifications,
    settings,
  )
  const homeStores = yield* makeHomeStores(homeExecutor, idempotencyStore)
  const [one, ...more] = yield* Effect.forEach(first, ({ number }) => openCell(number))
  if (one === undefined) return yield* noCells
  const opened = [one, ...more] as const
  const stores = yield* makeCellStores({
    home: { memberships, apiKeys: Context.get(homeStores, ApiKeyStore) },
    cells: [one.cell, ...more.map(({ cell }) => cell)],
    changes: [...servers.values()].map(({ name, notifications: { next } }) => ({ name, next })),
  })
  const transactions = makeTransactions(
    [home.client, ...others.map(({ client }) => client)],
    (projectId) => (opened[cellNumber(projectId, opened.length)] ?? one).watcher,
  )
  return Context.merge(homeStores, Context.add(stores, Transactions, transactions))
})
