/** A pool of connections with the same session timeouts, opened on demand and shared fairly. */

import { invariant, observeGauge } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import type { Connection, SessionTimeouts } from "./connection.ts"
import type { Connections } from "./connections.ts"
import { makeFairSemaphore } from "./fair-semaphore.ts"
import { openTimeoutMillis } from "./round-trip.ts"

// How long an unused connection is kept.
const idleMillis = 60_000

/** Runs statements on shared connections. */
export interface ConnectionPool {
  readonly run: <Row extends object>(
    owner: string,
    sql: string,
    params: ReadonlyArray<unknown>,
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError | "crowded">
  readonly use: () => PoolUse
}

/** How a pool is used at the moment. */
export interface PoolUse {
  /** Connections without a statement. */
  readonly idle: number
  /** Connections with a statement, or opening for one. */
  readonly used: number
  /** Statements that wait for a connection. */
  readonly waiting: number
}

interface Idle {
  readonly connection: Connection
  readonly since: number
}

/** Makes a pool with up to `size` connections. */
export const makeConnectionPool = Effect.fnUntraced(function* (
  connections: Connections,
  terms: SessionTimeouts,
  size: number,
): Effect.fn.Return<ConnectionPool, never, Scope.Scope> {
  const semaphore = makeFairSemaphore(size)
  // Last in, first out, so that surplus connections become unused and close.
  let idle: Array<Idle> = []

  const open = Effect.suspend(
    () => connections.open(terms, openTimeoutMillis(connections.latency())),
    // A connection can die before it is open. The next one has more time.
  ).pipe(Effect.retry({ times: 1 }))

  const acquire = Effect.suspend(() => {
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.connection.isOpen()) return Effect.succeed(last.connection)
    }
    return open
  })

  const release = (connection: Connection, exit: Exit.Exit<unknown, unknown>): void => {
    // The cancellation of an interrupted statement may arrive late and hit the next statement.
    if (Exit.hasInterrupts(exit)) connection.close()
    else if (connection.isOpen()) {
      invariant(idle.length < size, "a connection was returned to a pool that has all its own")
      idle.push({ connection, since: performance.now() })
    }
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
      semaphore.take(
        owner,
        onConnection((connection) => connection.run(sql, params)),
      ),
    use: () => ({ idle: idle.length, used: semaphore.taken(), waiting: semaphore.waiting() }),
  }
})

/**
 * Shows in the metrics how pools are used, until the scope closes.
 *
 * @param maxConnections - how many connections they may have together
 * @param pool - the name that tells them from pools for other databases; `undefined` if there are none
 */
export const observePool = Effect.fnUntraced(function* (
  pools: ReadonlyArray<ConnectionPool>,
  maxConnections: number,
  pool: string | undefined,
) {
  const sum = (name: keyof PoolUse) => () =>
    pools.reduce((total, each) => total + each.use()[name], 0)
  yield* observeGauge("db.client.connection.count", sum("idle"), "idle", pool)
  yield* observeGauge("db.client.connection.count", sum("used"), "used", pool)
  yield* observeGauge("db.client.connection.pending_requests", sum("waiting"), pool)
  yield* observeGauge("db.client.connection.max", () => maxConnections, pool)
})
