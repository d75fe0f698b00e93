/** Asks the database whether it answers, on a connection that serves nothing else. */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type Connection, within } from "./Connection.ts"
import type { Connections } from "./Connections.ts"
import { integers } from "./parameters.ts"
import * as Patience from "./Patience.ts"
import { ping, type PingRow } from "./ping.sql.ts"
import { brief } from "./session.sql.ts"
import { isCrowded } from "./sqlErrors.ts"

/** What the database answers. */
export interface Answer {
  /** Whether it refuses changes. */
  readonly isReadOnly: boolean
  /** Which of the processes asked for are at work, as far as it says. */
  readonly working: ReadonlySet<number>
}

/** Asks the database. */
export interface Monitor {
  /** Asks which of the server's processes are at work. Fails if the answer does not come in time. */
  readonly ask: (processIds: ReadonlyArray<number>) => Effect.Effect<Answer, SqlError>
  /** Ends when the database answers. It may take longer than ever before. */
  readonly untilAnswered: (pauseMillis: number) => Effect.Effect<void>
}

/** What is assumed of a database that is up, and says nothing of its processes. */
const up = (processIds: ReadonlyArray<number>): Answer => ({
  isReadOnly: false,
  working: new Set(processIds),
})

/** Makes the monitor of some connections. */
export const make = (connections: Connections): Monitor => {
  let standing: Connection | undefined

  const askOn = Effect.fnUntraced(function* (
    connection: Connection,
    processIds: ReadonlyArray<number>,
    millis: number,
  ) {
    if (connections.isInProcess) {
      standing = connection
      // It would answer after the transaction that is open, however long that takes.
      return up(processIds)
    }
    const began = performance.now()
    const question = connection.run<PingRow>(ping, [integers(processIds)])
    // An answer that does not come in time would have taken longer: next time it may.
    const [row] = yield* Effect.ensuring(
      within(millis, connection, connections.send(connection, question)),
      Effect.sync(() => connections.learn({ roundTrip: performance.now() - began })),
    )
    standing = connection
    return { isReadOnly: row?.read_only !== false, working: new Set(row?.working) }
  })

  /** Asks on a new connection. */
  const askAfresh = (processIds: ReadonlyArray<number>, millis: number) =>
    Effect.flatMap(connections.open(brief, millis), (connection) =>
      askOn(connection, processIds, millis),
    ).pipe(
      // A server that has too many connections is up.
      Effect.catchIf(isCrowded, () => Effect.succeed(up(processIds))),
    )

  return {
    ask: (processIds) =>
      Effect.suspend(() => {
        const latency = connections.latency()
        const afresh = askAfresh(processIds, Patience.openMillis(latency))
        if (standing?.isOpen() !== true) return afresh
        // The connection may be what has died.
        const asked = askOn(standing, processIds, Patience.answerMillis(latency))
        return Effect.catchIf(asked, isSqlError, () => afresh)
      }),

    untilAnswered: (pauseMillis) =>
      Effect.gen(function* () {
        const answered = yield* Deferred.make<void>()
        const attempt = Effect.flatMap(askAfresh([], Patience.mostMillis), () =>
          Deferred.succeed(answered, undefined),
        )
        const attempts = Effect.forever(
          Effect.andThen(Effect.forkChild(Effect.ignoreCause(attempt)), Effect.sleep(pauseMillis)),
        )
        yield* Effect.raceFirst(Deferred.await(answered), attempts)
      }),
  }
}
