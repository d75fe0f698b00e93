/** Operations for commands about cells: list them, move them, and plan a rebalance. */

import { PgClient } from "@effect/sql-pg"
import { Setting } from "@tenure/core/internal"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type ServerOptions, noServers } from "../cells.ts"
import { type CellPlace, cellSchema } from "../connection/cells.ts"
import { parseUrl, toClientConfig } from "../connection/url.ts"
import { postgresOptions } from "../index.ts"
import { quoted } from "../sql/clauses.ts"
import { type MoveObserver, type MoveSurroundings, cancelMove, moveCell } from "./move-cell.ts"
import type { MoveServer } from "./move-checks.ts"
import { findName } from "./replication.ts"

// Parameters from other drivers, which the server that reads the URL would refuse.
const driverParameters = ["pgbouncer", "sslaccept"]

/** Returns the URL by which another server reaches this one, with the encryption that Tenure itself would use. */
const replicationUrlOf = (given: string, ssl: unknown): string => {
  const url = parseUrl(given)
  if (url === undefined) return given
  for (const name of driverParameters) url.searchParams.delete(name)
  if (ssl !== false && !url.searchParams.has("sslmode"))
    url.searchParams.set("sslmode", url.searchParams.has("sslrootcert") ? "verify-full" : "require")
  return url.href
}

/** Opens a server until the scope closes. Its sessions have no timeouts, because copying a cell may take hours. */
const openServer = Effect.fnUntraced(function* (server: ServerOptions) {
  const url = server.listenUrl ?? server.url
  const config = yield* toClientConfig(url, `the URL of ${server.name}`)
  const built = yield* Layer.build(
    PgClient.layer({
      ...config,
      prepare: false,
      maxConnections: 2,
      startupParameters: {
        default_transaction_isolation: "read committed",
        idle_in_transaction_session_timeout: "0",
        lock_timeout: "0",
        statement_timeout: "0",
        tcp_keepalives_idle: "10",
      },
    }),
  )
  const opened: MoveServer = {
    name: server.name,
    client: Context.get(built, PgClient.PgClient),
    replicationUrl: server.replicationUrl ?? replicationUrlOf(url, config.ssl),
  }
  return opened
})

/** Opens all servers until the scope closes. */
const openAll = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
) {
  const { schema: homeSchema } = yield* Setting.decode(postgresOptions, { schema })
  const servers = yield* Effect.forEach(all, openServer)
  const [home] = servers
  if (home === undefined) return yield* noServers
  const surroundings: MoveSurroundings = {
    home: home.client,
    homeSchema,
    servers: new Map(servers.map((server) => [server.name, server])),
  }
  return surroundings
})

/**
 * Moves a cell. If that fails or is interrupted before it is decided, undoes it (see `moveCell`).
 *
 * @returns whether there was anything to do
 */
export const runMoveCell = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  number: number,
  to: string,
  observer: MoveObserver,
) {
  const surroundings = yield* openAll(all, schema)
  let canBeUndone = false
  const onStep: MoveObserver["onStep"] = (step) => {
    if (step === "announced") canBeUndone = true
    if (step === "decided") canBeUndone = false
    return observer.onStep(step)
  }
  return yield* Effect.onError(moveCell(surroundings, number, to, { ...observer, onStep }), () =>
    Effect.ignoreCause(
      Effect.when(
        cancelMove(surroundings, number, to),
        Effect.sync(() => canBeUndone),
      ),
    ),
  )
}, Effect.scoped)

/**
 * Undoes a move that is not decided.
 *
 * @returns whether there was anything to undo
 */
export const runCancelMove = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
  number: number,
  to: string,
) {
  return yield* cancelMove(yield* openAll(all, schema), number, to)
}, Effect.scoped)

interface PlaceRow extends CellPlace {
  /** The server with the cell's former tables, which a repeated move removes. */
  readonly moved_from: string | null
}

/** A cell. Sizes are `null` while its server does not respond. */
export interface CellState extends PlaceRow {
  readonly projects: number | null
  readonly bytes: number | null
  /** The bytes at the move's target. */
  readonly copied_bytes: number | null
  /** How many bytes in the source's log the target has not confirmed yet. */
  readonly lag_bytes: number | null
}

const listPlaces = (schema: string): string =>
  `SELECT number, server, moving_to, moved_from FROM ${schema}.cells ORDER BY number`

const sizeOf = (schema: string): string => `
  SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::float8 AS bytes
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${schema}' AND c.relkind = 'r'
`

const countProjects = (schema: string): string =>
  `SELECT count(*)::integer AS projects FROM ${quoted(schema)}.projects`

const lagOf = (schema: string): string => `
  SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::float8 AS lag
  FROM pg_replication_slots s JOIN (${findName(schema)}) n ON s.slot_name = n.name
`

const stateOf = Effect.fnUntraced(function* (
  { homeSchema, servers }: MoveSurroundings,
  place: PlaceRow,
) {
  const schema = cellSchema(homeSchema, place.number)
  const ask = <Row extends object>(server: string | null, sql: string) =>
    Effect.suspend(() => {
      const client = servers.get(server ?? "")?.client
      return client === undefined ? Effect.succeed([]) : client.unsafe<Row>(sql)
    }).pipe(
      Effect.map(([row]) => row),
      Effect.orElseSucceed(() => undefined),
    )
  const { moving_to: target, server } = place
  const size = yield* ask<{ readonly bytes: number }>(server, sizeOf(schema))
  const counted = yield* ask<{ readonly projects: number }>(server, countProjects(schema))
  const copied = yield* ask<{ readonly bytes: number }>(target, sizeOf(schema))
  const lag =
    target === null ? undefined : yield* ask<{ readonly lag: number }>(server, lagOf(schema))
  const state: CellState = {
    ...place,
    projects: counted?.projects ?? null,
    bytes: size?.bytes ?? null,
    copied_bytes: copied?.bytes ?? null,
    lag_bytes: lag?.lag ?? null,
  }
  return state
})

/** Returns all cells, ordered by number. */
export const runListCells = Effect.fnUntraced(function* (
  all: ReadonlyArray<ServerOptions>,
  schema: string | undefined,
) {
  const surroundings = yield* openAll(all, schema)
  const { home, homeSchema } = surroundings
  const places = yield* home.unsafe<PlaceRow>(listPlaces(quoted(homeSchema)))
  return yield* Effect.forEach(places, (place) => stateOf(surroundings, place))
}, Effect.scoped)

/** One move in a plan. */
export interface PlannedMove {
  readonly number: number
  readonly from: string
  readonly to: string
}

/**
 * Plans as few moves as possible, after which the cell counts on any two servers differ by at most one. From
 * a server with too many, the smallest cells move. Moves that have begun come first.
 *
 * @param servers - the names of all servers
 */
export const planRebalance = (
  cells: ReadonlyArray<Pick<CellState, "number" | "server" | "bytes" | "moving_to">>,
  servers: ReadonlyArray<string>,
): ReadonlyArray<PlannedMove> => {
  const begun = cells.flatMap(({ moving_to: to, number, server: from }) =>
    to === null ? [] : [{ number, from, to }],
  )
  const cellsOn = new Map<string, ReadonlyArray<number>>(servers.map((name) => [name, []]))
  const bySize = cells.toSorted((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0) || a.number - b.number)
  for (const { moving_to, number, server } of bySize) {
    const on = moving_to ?? server
    cellsOn.set(on, [...(cellsOn.get(on) ?? []), number])
  }
  const least = Math.floor(cells.length / servers.length)
  // The servers with the most cells keep one more than the others.
  const larger = new Set(
    servers
      .toSorted((a, b) => (cellsOn.get(b)?.length ?? 0) - (cellsOn.get(a)?.length ?? 0))
      .slice(0, cells.length % servers.length),
  )
  const shareOf = (name: string): number => {
    if (!servers.includes(name)) return 0
    return larger.has(name) ? least + 1 : least
  }
  const surplus = [...cellsOn].flatMap(([from, numbers]) =>
    numbers.slice(shareOf(from)).map((number) => ({ number, from })),
  )
  const room = servers.flatMap((to) =>
    Array.from({ length: Math.max(0, shareOf(to) - (cellsOn.get(to)?.length ?? 0)) }, () => to),
  )
  return [
    ...begun,
    ...surplus.flatMap((cell, index) => {
      const to = room[index]
      return to === undefined ? [] : [{ ...cell, to }]
    }),
  ]
}
