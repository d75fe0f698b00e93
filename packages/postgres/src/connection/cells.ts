/** Where cells are, and executors that follow them from server to server. */

import { StoreUnavailable, WrongServer } from "@tenure/core/store"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isAbsent } from "./errors.ts"
import { type ExecuteOptions, type Executor, type Server, makeExecutor } from "./executor.ts"
import { HostTransaction } from "./host-transaction.ts"

/** Where a cell is. */
export interface CellPlace {
  /** Its number, counted from 0. */
  readonly number: number
  /** The name of the server that has it. */
  readonly server: string
  /** The name of the server that it moves to; `null` if it does not. */
  readonly moving_to: string | null
}

/** Returns the places of all cells, in the order of their numbers. */
export const listCells = (schema: string): string =>
  `SELECT number, server, moving_to FROM ${schema}.cells ORDER BY number`

/** The name of the schema of a cell, given that of the home. */
export const cellSchema = (schema: string, number: number): string => `${schema}_${number}`

// How long a statement waits for a cell that moves: longer than the switch takes, shorter than clients wait.
const longestSwitchMillis = 8000

// How often the directory is read meanwhile.
const pauseMillis = 20

/** The places of the cells, as this process knows them. */
export interface CellDirectory {
  /** The name of the server that has a cell. */
  readonly serverOf: (number: number) => string
  /** Reads the places. Callers at the same time share one reading. */
  readonly refresh: Effect.Effect<void, StoreUnavailable>
  /** Waits until a cell is on another server than `server`. Fails if that takes too long. */
  readonly left: (number: number, server: string) => Effect.Effect<void, StoreUnavailable>
}

/**
 * Makes the directory.
 *
 * @param home - runs statements in the schema of the home
 * @param first - the places that are known
 */
export const makeCellDirectory = Effect.fnUntraced(function* (
  home: Executor,
  first: ReadonlyArray<CellPlace>,
) {
  let servers = new Map(first.map(({ number, server }) => [number, server]))
  const serverOf = (number: number): string => servers.get(number) ?? ""
  const read = Effect.map(home.executeApart<CellPlace>(listCells(home.schema), []), (places) => {
    servers = new Map(places.map(({ number, server }) => [number, server]))
  })
  // What is read before a caller asks may be old, but then the caller asks again.
  const refresh = yield* Effect.cachedWithTTL(read, pauseMillis)

  const directory: CellDirectory = {
    serverOf,
    refresh,
    left: Effect.fnUntraced(function* (number, server) {
      const until = (yield* Clock.currentTimeMillis) + longestSwitchMillis
      for (;;) {
        yield* refresh
        if (serverOf(number) !== server) return
        if ((yield* Clock.currentTimeMillis) > until)
          return yield* new StoreUnavailable({
            cause: `The cell ${number} is not on the server ${server}, where the directory has it`,
          })
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
    Effect.suspend((): Effect.Effect<A, E | StoreUnavailable> => {
      const server = directory.serverOf(number)
      const executor = executors.get(server)
      const cause = `The cell ${number} is on ${server}, which is none of the servers of this process`
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
        return Effect.andThen(
          directory.refresh,
          directory.serverOf(number) === server ? Effect.fail(error) : work(executor),
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
