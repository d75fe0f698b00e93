/** A pool of connections with the same session timeouts, opened on demand and shared fairly. */

import { observeGauge } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import type { Connection, SessionTimeouts } from "./connection.ts"
import type { Connections } from "./connections.ts"
import { makeFairSemaphore } from "./fair-semaphore.ts"
import { openTimeoutMillis } from "./round-trip.ts"

// How long a connection is kept without use.
const idleMillis = 60_000

/** Runs statements on its connections. */
export interface ConnectionPool {
  readonly run: <Row extends object>(
    owner: string,
    sql: string,
    params: ReadonlyArray<unknown>,
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError | "crowded">
  readonly use: () => PoolUse
}

/** How a lane is used at the moment. */
export interface PoolUse {
  /** The connections without a statement. */
  readonly idle: number
  /** The connections with a statement, or that open for one. */
  readonly used: number
  /** The statements that wait for a connection. */
  readonly waiting: number
}

interface Idle {
  readonly connection: Connection
  readonly since: number
}

/** Makes a lane that has up to `size` connections. */
export const makeConnectionPool = Effect.fnUntraced(function* (
  connections: Connections,
  terms: SessionTimeouts,
  size: number,
): Effect.fn.Return<ConnectionPool, never, Scope.Scope> {
  const turns = makeFairSemaphore(size)
  // The last one used is the first one taken, so that those without use can close.
  let idle: Array<Idle> = []

  const open = Effect.suspend(
    () => connections.open(terms, openTimeoutMillis(connections.latency())),
    // A connection can fall silent before it is open. The next one has more time.
  ).pipe(Effect.retry({ times: 1 }))

  const acquire = Effect.suspend(() => {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.connection.isOpen()) return Effect.succeed(last.connection)
    }
    return open
  })

  const release = (connection: Connection, exit: Exit.Exit<unknown, unknown>): void => {
    // A statement that was interrupted may still be cancelled, and the next one in its place.
    if (Exit.hasInterrupts(exit)) connection.close()
    else if (connection.isOpen()) idle.push({ connection, since: performance.now() })
  }

  const onConnection = <A, E>(work: (connection: Connection) => Effect.Effect<A, E>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(acquire), (connection) =>
        Effect.onExit(restore(connections.send(connection, work(connection))), (exit) =>
          Effect.sync(() => release(connection, exit)),
        ),
      ),
    )

  const closeUnused = (): void => {
    const now = performance.now()
    const unused = idle.filter(({ since }) => now - since > idleMillis)
    idle = idle.filter(({ since }) => now - since <= idleMillis)
    for (const { connection } of unused) connection.close()
  }

  yield* Effect.sync(closeUnused).pipe(
    Effect.delay(idleMillis / 4),
    Effect.forever,
    Effect.forkScoped,
  )

  return {
    run: (owner, sql, params) =>
      turns.take(
        owner,
        onConnection((connection) => connection.run(sql, params)),
      ),
    use: () => ({ idle: idle.length, used: turns.taken(), waiting: turns.waiting() }),
  }
})

/**
 * Shows how lanes are used until the scope is closed.
 *
 * @param most - how many connections they may have together
 * @param pool - what tells them from those to other databases; `undefined` if there are none
 */
export const observePool = Effect.fnUntraced(function* (
  lanes: ReadonlyArray<ConnectionPool>,
  most: number,
  pool: string | undefined,
) {
  const sum = (name: keyof PoolUse) => () =>
    lanes.reduce((total, lane) => total + lane.use()[name], 0)
  yield* observeGauge("db.client.connection.count", sum("idle"), "idle", pool)
  yield* observeGauge("db.client.connection.count", sum("used"), "used", pool)
  yield* observeGauge("db.client.connection.pending_requests", sum("waiting"), pool)
  yield* observeGauge("db.client.connection.max", () => most, pool)
})
