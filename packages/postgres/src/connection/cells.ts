/** Where cells are, and executors that follow them from server to server. */

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
  /** The name of the server that has it. */
  readonly server: string
  /** The name of the server that it is moving to, or `null`. */
  readonly moving_to: string | null
}

/** Returns the places of all cells, in the order of their numbers. */
export const listCells = (schema: string): string =>
  `SELECT number, server, moving_to FROM ${schema}.cells ORDER BY number`

/** The name of the schema of a cell, given that of the home. */
export const cellSchema = (schema: string, number: number): string => `${schema}_${number}`

/** The name of the former schema of a cell, given that of the cell. To rename it is the decision of a move. */
export const movedSchema = (schema: string): string => `${schema}_moved`

/** Tells whether a cell has left a server for good, given the name of its schema. */
const isMoved = (schema: string): string =>
  `SELECT to_regnamespace('${quoted(movedSchema(schema))}') IS NOT NULL
          AND to_regnamespace('${quoted(schema)}') IS NULL AS holds`

/** Opens a cell on the server that it has moved to, by calling the function of the migrations. */
export const openCell = (schema: string): string => `SELECT ${quoted(schema)}.open_cell()`

/** Names the new server of a cell `$1` in the directory: `$3` in place of `$2`. */
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

/** Tells whether a server may have a cell, given the name of its schema: not if it is a copy that is being made. */
export const isOpen = (schema: string): string =>
  `SELECT NOT EXISTS (
     SELECT FROM pg_trigger WHERE tgrelid = to_regclass('${quoted(schema)}.cells') AND tgname = 'closed'
   ) AS holds`

interface HoldsRow {
  readonly holds: boolean
}

// How long a statement waits for a cell that moves: longer than the switch takes, shorter than clients wait.
const longestSwitchMillis = 8000

// How often a waiting statement reads the directory.
const pauseMillis = 20

// After which time a waiting statement asks whether the process that moves the cell has died.
const deadMoverMillis = 100

// How often the directory is read otherwise.
const readMillis = 1000

// How long a place may be used without being confirmed.
const placeLifeMillis = 2500

/**
 * After which time no process looks for a cell any more where it was, also if a statement has waited for a connection.
 * Then its tables can be made there again.
 */
export const forgottenMillis = placeLifeMillis + longLimitMillis + 1000

/** The places of the cells, as this process knows them. */
export interface CellDirectory {
  /** The name of the server that has a cell. */
  readonly serverOf: (number: number) => string
  /** Reads the places. Callers at the same time share one reading. */
  readonly refresh: Effect.Effect<void, StoreUnavailable>
  /** Confirms the place of a cell if that was long ago. */
  readonly confirm: (number: number) => Effect.Effect<void, StoreUnavailable>
  /** Waits until a cell is on another server than `server`. Fails if that takes too long. */
  readonly left: (number: number, server: string) => Effect.Effect<void, StoreUnavailable>
}

/**
 * Makes the directory, and keeps it up to date for as long as the scope is open.
 *
 * @param home - runs statements in the schema of the home
 * @param homeName - the name of that schema
 * @param servers - all servers, by their names
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
    // The answer may take a while.
    const now = yield* Clock.currentTimeMillis
    const found = yield* home.executeApart<CellPlace>(listCells(home.schema), [])
    places = new Map(found.map((place) => [place.number, place]))
    for (const number of places.keys()) confirmed.set(number, now)
  })
  // What is read before a caller asks may be old, but then the caller asks again.
  const refresh = yield* Effect.cachedWithTTL(read, pauseMillis)

  const holds = (server: string, sql: string) =>
    Effect.map(
      executors.get(server)?.executeApart<HoldsRow>(sql, []) ?? Effect.succeed([]),
      ([row]) => row?.holds === true,
    )

  /** Asks the server of a cell, because the home does not answer. */
  const askServer = Effect.fnUntraced(function* (number: number, cause: StoreUnavailable) {
    const now = yield* Clock.currentTimeMillis
    if (!(yield* holds(serverOf(number), isOpen(cellSchema(homeName, number))))) return yield* cause
    confirmed.set(number, now)
  })

  const oneAtATime = Semaphore.makeUnsafe(1)

  /** Completes the move of a cell if it is decided, in place of a process that has died. */
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
 * Makes the executor of a cell. A statement that comes too late for the server that has had the cell has changed
 * nothing: it waits until the directory names the new one, and runs there.
 *
 * @param schema - the name of the schema of the cell, quoted
 * @param servers - all servers, by their names
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

  /** Runs work where the cell is now. */
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

  /** Runs work where the cell is, and again where it went if it has left meanwhile. */
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

  /** Fails unless a transaction of the host is where the cell is. Statements there would end it. */
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
    manner?: ExecuteOptions,
  ) => follow((executor) => executor.executeApart<Row>(sql, params, manner), manner?.failsInMove)

  return {
    schema,
    executeApart,

    execute: <Row extends object>(
      sql: string,
      params: ReadonlyArray<unknown>,
      manner?: ExecuteOptions,
    ) =>
      Effect.flatMap(HostTransaction, (transaction) =>
        transaction === undefined
          ? executeApart<Row>(sql, params, manner)
          : Effect.andThen(
              checkServer(transaction),
              here((executor) => executor.execute<Row>(sql, params, manner)),
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
