/** All connections of one process, apart from those of the host. */

import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { type Connection, openDirect, openInProcess, openPooled } from "./Connection.ts"
import * as Patience from "./Patience.ts"
import type { Terms } from "./session.sql.ts"
import { isRefusedSetting } from "./sqlErrors.ts"

/** A connection with a statement in flight. */
export interface Busy {
  readonly connection: Connection
  /** When the statement was sent. */
  readonly since: number
}

/** Opens connections, and knows what they do. */
export interface Connections {
  /** Opens a connection. Fails if that takes longer. */
  readonly open: (terms: Terms, millis: number) => Effect.Effect<Connection, SqlError>
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
  readonly busy: () => ReadonlyArray<Busy>
  /** How many statements have been answered. */
  readonly answered: () => number
  /** How long the way to the database takes. */
  readonly latency: () => Patience.Latency
  readonly learn: (measured: Partial<Patience.Latency>) => void
  /** Destroys the connections without a statement in flight. */
  readonly destroyIdle: () => void
  readonly destroyAll: () => void
  /** Closes all connections, those too that are about to open. */
  readonly close: () => void
}

/** Makes the connections of a configuration. */
export const make = (config: PgClientConfig, isInProcess: boolean): Connections => {
  const all = new Set<Connection>()
  const sent = new Map<Connection, number>()
  let latency = Patience.unknown
  let answered = 0
  let isPooled = false
  let isClosed = false

  const openAny = Effect.fnUntraced(function* (terms: Terms, millis: number) {
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

  return {
    open: (terms, millis) =>
      // Once it is open, it is known, so that it can be closed.
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const began = performance.now()
          // A connection that does not open in time would have taken longer: next time it may.
          const connection = yield* Effect.ensuring(
            restore(openAny(terms, millis)),
            Effect.sync(() => {
              latency = Patience.learn(latency, { opening: performance.now() - began })
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
        sent.set(connection, since)
        return Effect.onExit(statement, (exit) =>
          Effect.sync(() => {
            sent.delete(connection)
            if (exit._tag === "Failure") return
            answered++
            latency = Patience.learnAtMost(latency, performance.now() - since)
          }),
        )
      }),

    isPooled: () => isPooled,
    isInProcess,
    busy: () => [...sent].map(([connection, since]) => ({ connection, since })),
    answered: () => answered,
    latency: () => latency,
    learn: (measured) => {
      latency = Patience.learn(latency, measured)
    },

    destroyIdle: () => {
      for (const connection of all) if (!sent.has(connection)) connection.destroy()
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
