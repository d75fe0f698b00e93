/** The directory of cells, and executors that follow a cell from server to server. */

import { StoreUnavailable, WrongServer } from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { quoted } from "../sql/clauses.ts"
import { integerParam, textParam } from "../sql/values.ts"
import { isAbsent } from "./errors.ts"
import {
  type ExecuteOptions,
  type Executor,
  type Server,
  longLimitMillis,
  makeExecutor,
} from "./executor.ts"
import { HostTransaction } from "./host-transaction.ts"

/** Where a cell is. */
export interface CellPlace {
  /** Its number, counted from 0. */
  readonly number: number
  /** The name of its server. */
  readonly server: string
  /** The name of the server it is moving to, or `null`. */
  readonly moving_to: string | null
}

/** Returns where all cells are, ordered by number. */
export const listCells = (schema: string): string =>
  `SELECT number, server, moving_to FROM ${schema}.cells ORDER BY number`

/** A cell's schema name, from the home schema's name. */
export const cellSchema = (schema: string, number: number): string => `${schema}_${number}`

/** The name that a cell's schema gets at the source when it has moved. Renaming it is what decides a move. */
export const movedSchema = (schema: string): string => `${schema}_moved`

/** Returns whether a cell has left a server for good, given its schema's name. */
const isMoved = (schema: string): string =>
  `SELECT to_regnamespace('${quoted(movedSchema(schema))}') IS NOT NULL
          AND to_regnamespace('${quoted(schema)}') IS NULL AS holds`

/** Opens a cell on its new server, with a function from the migrations. */
export const openCell = (schema: string): string => `SELECT ${quoted(schema)}.open_cell()`

/** Writes the new server `$3` of cell `$1` to the directory, in place of `$2`. */
export const switchCell = (home: string): string => `
  UPDATE ${home}.cells
  SET server = $3, moved_at = clock_timestamp(), moving_to = NULL, moved_from = $2
  WHERE number = $1 AND server = $2 AND moving_to = $3
`

export const switchCellParams = (number: number, from: string, to: string) => [
  integerParam(number),
  textParam(from),
  textParam(to),
]

/** Returns whether the cell on a server is in use, from its schema name. A copy that is still being made is not. */
export const isOpen = (schema: string): string =>
  `SELECT NOT EXISTS (
     SELECT FROM pg_trigger WHERE tgrelid = to_regclass('${quoted(schema)}.cells') AND tgname = 'closed'
   ) AS holds`

interface HoldsRow {
  readonly holds: boolean
}

// How long a statement waits while its cell moves: longer than the switch takes, shorter than clients wait.
const longestSwitchMillis = 8000

// How often a waiting statement reads the directory.
const pauseMillis = 20

// After this time, a waiting statement checks whether the process that moves the cell has died.
const deadMoverMillis = 100

// How often the directory is read when no statement waits.
const readMillis = 1000

// How long a place may be used without confirmation.
const placeLifeMillis = 2500

/**
 * After this time, no process uses the cell's former place any more, even if a statement has waited for a
 * connection. Its tables can be created there again.
 */
export const forgottenMillis = placeLifeMillis + longLimitMillis + 1000

/** Where cells are, as far as this process knows. */
export interface CellDirectory {
  /** A cell's server, by name. */
  readonly serverOf: (number: number) => string
  /** Reads the places. Concurrent callers share one read. */
  readonly refresh: Effect.Effect<void, StoreUnavailable>
  /** Confirms a cell's place if the last confirmation is too old. */
  readonly confirm: (number: number) => Effect.Effect<void, StoreUnavailable>
  /** Waits until a cell has left `server`. Fails if that takes too long. */
  readonly left: (number: number, server: string) => Effect.Effect<void, StoreUnavailable>
}

/**
 * Makes the directory, and keeps it up to date for as long as the scope is open.
 *
 * @param home - runs statements in the home schema
 * @param homeName - the name of that schema
 * @param servers - all servers, by name
 * @param first - the places that are known
 */
export const makeCellDirectory = Effect.fnUntraced(function* (
  home: Executor,
  homeName: string,
  servers: ReadonlyMap<string, Server>,
  first: ReadonlyArray<CellPlace>,
) {
  const executors = new Map(
    [...servers].map(([name, server]) => [name, makeExecutor(server, home.schema)]),
  )
  let places = new Map(first.map((place) => [place.number, place]))
  const confirmed = new Map<number, number>()
  const serverOf = (number: number): string => places.get(number)?.server ?? ""
  const read = Effect.gen(function* () {
    // Taken before the read, because the response may be slow.
    const now = yield* Clock.currentTimeMillis
    const found = yield* home.executeApart<CellPlace>(listCells(home.schema), [])
    places = new Map(found.map((place) => [place.number, place]))
    for (const number of places.keys()) confirmed.set(number, now)
  })
  // A caller may get a read from shortly before; it then repeats the call.
  const refresh = yield* Effect.cachedWithTTL(read, pauseMillis)

  const holds = (server: string, sql: string) =>
    Effect.map(
      executors.get(server)?.executeApart<HoldsRow>(sql, []) ?? Effect.succeed([]),
      ([row]) => row?.holds === true,
    )

  /** Asks the cell's server, because the home does not respond. */
  const askServer = Effect.fnUntraced(function* (number: number, cause: StoreUnavailable) {
    const now = yield* Clock.currentTimeMillis
    if (!(yield* holds(serverOf(number), isOpen(cellSchema(homeName, number))))) return yield* cause
    confirmed.set(number, now)
  })

  const oneAtATime = Semaphore.makeUnsafe(1)

  /** Completes a cell's move if it is decided, in place of a process that has died. */
  const complete = ({ moving_to: to, number, server }: CellPlace) => {
    const target = executors.get(to ?? "")
    if (to === null || target === undefined) return Effect.void
    const schema = cellSchema(homeName, number)
    const steps = Effect.andThen(
      target.executeApart(openCell(schema), []),
      home.executeApart(switchCell(home.schema), switchCellParams(number, server, to)),
    )
    return Effect.when(steps, holds(server, isMoved(schema))).pipe(
      oneAtATime.withPermitsIfAvailable(1),
      Effect.ignoreCause,
    )
  }

  yield* Effect.ignoreCause(refresh).pipe(
    Effect.delay(readMillis),
    Effect.forever,
    Effect.withTracerEnabled(false),
    Effect.forkScoped,
  )

  const directory: CellDirectory = {
    serverOf,
    refresh,
    confirm: (number) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        now - (confirmed.get(number) ?? 0) < placeLifeMillis
          ? Effect.void
          : Effect.catchTag(refresh, "StoreUnavailable", (cause) => askServer(number, cause)),
      ),
    left: Effect.fnUntraced(function* (number, server) {
      const since = yield* Clock.currentTimeMillis
      for (;;) {
        yield* refresh
        const place = places.get(number)
        if (place?.server !== server) return
        const waited = (yield* Clock.currentTimeMillis) - since
        if (waited > longestSwitchMillis)
          return yield* new StoreUnavailable({
            cause: `The cell ${number} is not on the server ${server}, where the directory has it`,
          })
        if (waited > deadMoverMillis) yield* complete(place)
        yield* Effect.sleep(pauseMillis)
      }
    }),
  }
  return directory
})

/**
 * Makes the executor for a cell. A statement that arrives at the former server after a move has changed
 * nothing: it waits until the directory names the new server, and runs there.
 *
 * @param schema - the name of the cell's schema, quoted
 * @param servers - all servers, by name
 */
export const makeCellExecutor = (
  number: number,
  schema: string,
  directory: CellDirectory,
  servers: ReadonlyMap<string, Server>,
): Executor => {
  const executors = new Map(
    [...servers].map(([name, server]) => [name, makeExecutor(server, schema, true)]),
  )

  /** Runs work on the cell's current server. */
  const here = <A, E>(
    work: (executor: Executor, server: string) => Effect.Effect<A, E>,
  ): Effect.Effect<A, E | StoreUnavailable> =>
    Effect.flatMap(directory.confirm(number), (): Effect.Effect<A, E | StoreUnavailable> => {
      const server = directory.serverOf(number)
      const executor = executors.get(server)
      const cause = `Cell ${number} is on server ${server}, which this process does not know: add it to the servers`
      return executor === undefined
        ? Effect.fail(new StoreUnavailable({ cause }))
        : work(executor, server)
    })

  /** Runs work on the cell's server, and again on the new one if the cell has left meanwhile. */
  const follow = <A, E>(
    work: (executor: Executor) => Effect.Effect<A, E>,
    failsInMove = false,
  ): Effect.Effect<A, E | StoreUnavailable> =>
    here((executor, server) =>
      Effect.catchIf(work(executor), isAbsent, (error) => {
        if (!failsInMove) return Effect.andThen(directory.left(number, server), follow(work))
        return Effect.flatMap(directory.refresh, () =>
          directory.serverOf(number) === server ? Effect.fail(error) : follow(work, true),
        )
      }),
    )

  /**
   * Fails unless the host's transaction is on the cell's server. A statement on the wrong one would abort the
   * transaction.
   */
  const checkServer = (transaction: HostTransaction) =>
    here((_executor, name) =>
      Effect.gen(function* () {
        const server = servers.get(name)
        if (server === undefined) return
        const database = yield* Effect.mapError(
          transaction.database,
          (cause) => new StoreUnavailable({ cause }),
        )
        if ((yield* server.identity) !== database)
          return yield* Effect.die(new WrongServer({ server: name }))
      }),
    )

  const executeApart: Executor["executeApart"] = <Row extends object>(
    sql: string,
    params: ReadonlyArray<unknown>,
    options?: ExecuteOptions,
  ) => follow((executor) => executor.executeApart<Row>(sql, params, options), options?.failsInMove)

  return {
    schema,
    executeApart,

    execute: <Row extends object>(
      sql: string,
      params: ReadonlyArray<unknown>,
      options?: ExecuteOptions,
    ) =>
      Effect.flatMap(HostTransaction, (transaction) =>
        transaction === undefined
          ? executeApart<Row>(sql, params, options)
          : Effect.andThen(
              checkServer(transaction),
              here((executor) => executor.execute<Row>(sql, params, options)),
            ),
      ),

    ping: here(({ ping }) => ping),
    isInTransaction: Effect.map(HostTransaction, (transaction) => transaction !== undefined),
    afterCommit: (effect) =>
      Effect.flatMap(HostTransaction, (transaction) =>
        transaction === undefined ? effect : Effect.void,
      ),
    recoverably: (work) => here(({ recoverably }) => recoverably(work)),
  }
}
