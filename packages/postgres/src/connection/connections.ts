/** All connections of this process to one server: which are open, busy or idle, and how fast it answers. */

import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import { invariant } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Connection,
  type SessionTimeouts,
  openDirect,
  openInProcess,
  openPooled,
} from "./connection.ts"
import { isRefusedSetting } from "./errors.ts"
import {
  type RoundTripTime,
  capRoundTrip,
  unknownRoundTrip,
  updateRoundTrip,
} from "./round-trip.ts"

/** A connection with a statement in flight. */
export interface BusyConnections {
  readonly connection: Connection
  /** When the statement was sent. */
  readonly since: number
}

/** Opens connections, and knows which are in use. */
export interface Connections {
  /** Opens a connection. Fails if that takes longer than `millis`. */
  readonly open: (terms: SessionTimeouts, millis: number) => Effect.Effect<Connection, SqlError>
  /** Marks a connection as busy for the duration of a statement. */
  readonly send: <A, E>(
    connection: Connection,
    statement: Effect.Effect<A, E>,
  ) => Effect.Effect<A, E>
  /** Whether a pooler is in between. */
  readonly isPooled: () => boolean
  /** Whether the database runs in this process. */
  readonly isInProcess: boolean
  /** The connections with a statement in flight. */
  readonly busy: () => ReadonlyArray<BusyConnections>
  /** The number of statements that got a response. */
  readonly answered: () => number
  /** The measured time to the database. */
  readonly latency: () => RoundTripTime
  readonly learn: (measured: Partial<RoundTripTime>) => void
  /** Destroys the connections without a statement in flight. */
  readonly destroyIdle: () => void
  /**
   * Leaves a server that refuses changes, because the address may lead to another one by now: destroys idle
   * connections, and the others after their statement. Does nothing within a second after the last time.
   * Returns whether it did.
   */
  readonly leaveReadOnly: () => boolean
  readonly destroyAll: () => void
  /** Closes all connections, including those about to open. */
  readonly close: () => void
}

// A database can be read-only for a long time. One new connection a second is then enough to notice a change.
const leavePauseMillis = 1000

/** Makes the connections for a configuration. */
export const makeConnections = (config: PgClientConfig, isInProcess: boolean): Connections => {
  const all = new Set<Connection>()
  const sent = new Map<Connection, number>()
  // Connections to destroy after their statement.
  const left = new WeakSet<Connection>()
  let leftAt = -Infinity
  let latency = unknownRoundTrip
  let answered = 0
  let isPooled = false
  let isClosed = false

  const openAny = Effect.fnUntraced(function* (terms: SessionTimeouts, millis: number) {
    if (isInProcess) return yield* openInProcess(config, millis)
    if (!isPooled) {
      const direct = yield* openDirect(config, terms, millis).pipe(
        Effect.catchIf(isRefusedSetting, () => Effect.undefined),
      )
      if (direct !== undefined) return direct
      isPooled = true
    }
    return yield* openPooled(config, terms, millis)
  })

  const forgetClosed = (): void => {
    for (const connection of all) if (!connection.isOpen()) all.delete(connection)
  }

  const destroyIdle = (): void => {
    for (const connection of all) if (!sent.has(connection)) connection.destroy()
  }

  return {
    open: (terms, millis) =>
      // Not interruptible once it is open, so that it is known and can be closed.
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const began = performance.now()
          // Also measured on a timeout: the connection would have taken longer, so the next one has more
          // time.
          const connection = yield* Effect.ensuring(
            restore(openAny(terms, millis)),
            Effect.sync(() => {
              latency = updateRoundTrip(latency, { opening: performance.now() - began })
            }),
          )
          forgetClosed()
          all.add(connection)
          if (isClosed) connection.close()
          return connection
        }),
      ),

    send: (connection, statement) =>
      Effect.suspend(() => {
        const since = performance.now()
        invariant(!sent.has(connection), "two statements were sent on one connection")
        sent.set(connection, since)
        return Effect.onExit(statement, (exit) =>
          Effect.sync(() => {
            sent.delete(connection)
            if (left.has(connection)) connection.destroy()
            if (exit._tag === "Failure") return
            answered++
            latency = capRoundTrip(latency, performance.now() - since)
          }),
        )
      }),

    isPooled: () => isPooled,
    isInProcess,
    busy: () => [...sent].map(([connection, since]) => ({ connection, since })),
    answered: () => answered,
    latency: () => latency,
    learn: (measured) => {
      latency = updateRoundTrip(latency, measured)
    },

    destroyIdle,
    leaveReadOnly: () => {
      const now = performance.now()
      if (now - leftAt < leavePauseMillis) return false
      leftAt = now
      for (const connection of sent.keys()) left.add(connection)
      destroyIdle()
      return true
    },
    destroyAll: () => {
      for (const connection of all) connection.destroy()
    },
    close: () => {
      isClosed = true
      for (const connection of all) connection.close()
    },
  }
}
