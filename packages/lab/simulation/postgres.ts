/**
 * PostgreSQL's stores in the simulation: statements run in turn, in PGlite, by a simulated clock. There are two
 * servers, so that everything can move from one to the other.
 */

import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate as startTurn } from "node:timers/promises"
import { PgClient } from "@effect/sql-pg"
import type { StorePorts } from "@tenure/core/store"
import { client } from "@tenure/embedded"
import { postgresLayer } from "@tenure/postgres"
import { runCopyDatabase, runMigrate } from "@tenure/postgres/ops/upkeep"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import { emptyTables } from "../../embedded/test/emptying.ts"
import { makeClock } from "../timers.ts"
import { type Machine, beginning } from "./loop.ts"

/** What tells a database the time. */
type Times = Pick<Machine, "wallMillis" | "tick">

/** A database with all stores, for one run after the other. */
export interface Database {
  /** Makes its stores anew, with nothing in them. Returns them. */
  readonly begin: () => Promise<Context.Context<StorePorts>>
  /** Has it tell the time by a machine's clock. */
  readonly setClock: (times: Times) => void
  /** Moves everything to the other server, while nothing else goes on. Returns the stores there. */
  readonly move: () => Promise<Context.Context<StorePorts>>
  /** Runs an effect, while nothing else goes on. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<Exit.Exit<A, E>>
  readonly close: () => Promise<void>
}

const atBeginning: Times = { wallMillis: () => beginning, tick: () => 0 }

/** A server, with the stores' tables. */
interface Server {
  readonly sql: PgClient.PgClient
  readonly stores: Layer.Layer<StorePorts, unknown>
  readonly close: () => Promise<void>
}

/** Starts a server. */
const startServer = async (services: Context.Context<never>): Promise<Server> => {
  const path = await mkdtemp(join(tmpdir(), "tenure-simulation-"))
  const runtime = ManagedRuntime.make(
    Layer.provide(client({ path, durable: false }), Layer.succeedContext(services)),
  )
  const opened = await runtime.context()
  await runtime.runPromise(runMigrate(undefined, "all"))
  return {
    sql: Context.get(opened, PgClient.PgClient),
    stores: Layer.provide(postgresLayer(), Layer.succeedContext(opened)),
    close: async () => {
      await runtime.dispose()
      await rm(path, { recursive: true })
    },
  }
}

/**
 * Opens a database.
 *
 * @param afterMove - a statement for a server to which everything has moved, which may break it on purpose
 */
export const openDatabase = async (afterMove = "SELECT"): Promise<Database> => {
  let times = atBeginning

  // PGlite has the time from there, and so have its `now()` and `clock_timestamp()`.
  const { now } = Date
  Object.assign(Date, { now: () => times.wallMillis() })

  // What is done now and then, such as removing old rows, is not done. Nor is it in the folder: real timers would
  // run between clients' steps, and set simulated ones.
  const clock = makeClock(
    () => Effect.never,
    () => times.wallMillis(),
    () => times.tick(),
  )
  const services = Context.make(Clock.Clock, clock).pipe(
    Context.add(Logger.CurrentLoggers, new Set()),
  )
  const run = Effect.runPromiseWith(services)

  let [server, other] = [await startServer(services), await startServer(services)]
  let scope = Scope.makeUnsafe()

  const execute = ({ sql }: Server, text: string): Promise<unknown> => run(sql.unsafe(text))

  /** Waits for statements that follow others, such as a dispatcher's first report. */
  const settle = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      await startTurn()
      await execute(server, "SELECT 1")
    }
  }

  const openStores = async (): Promise<Context.Context<StorePorts>> => {
    const stores = await run(Layer.buildWithScope(server.stores, scope))
    await settle(openingRounds)
    return stores
  }

  const closeStores = async (): Promise<void> => {
    await run(Scope.close(scope, Exit.void))
    scope = Scope.makeUnsafe()
  }

  return {
    begin: async () => {
      times = atBeginning
      await closeStores()
      const stores = await openStores()
      await execute(server, emptyTables)
      await execute(server, sameCursors)
      return stores
    },
    setClock: (given) => {
      times = given
    },
    move: async () => {
      await closeStores()
      await execute(other, emptyTables)
      await run(runCopyDatabase(server.sql, other.sql, undefined, () => {}))
      ;[server, other] = [other, server]
      await execute(server, sameCursors)
      await execute(server, afterMove)
      return openStores()
    },
    run: async (effect) => {
      const exit = await Effect.runPromiseExitWith(services)(effect)
      await settle(1)
      return exit
    },
    close: async () => {
      await closeStores()
      await server.close()
      await other.close()
      Object.assign(Date, { now })
    },
  }
}

// Cursors name the database.
const sameCursors = "UPDATE tenure.feed_state SET identity = '0123456789ab'"

// The stores listen for notifications from then on.
const openingRounds = 20
