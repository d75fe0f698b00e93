/** Telling dispatchers, in this process and in others, that there is something to deliver. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { Database } from "./database.ts"

// Notifications within this time are one. They are sent apart from the changes they tell of, since a
// commit that carries one holds up every other that does.
const pauseMillis = 20

// How often a dispatcher looks even if nobody has told it to: what others have told may get lost.
const pollMillis = 1000

const retryMillis = 1000

/** The news of deliveries. */
export interface Nudge {
  /** Tells everybody. */
  readonly tell: Effect.Effect<void>
  /** Completes when somebody has told, or a second has passed. */
  readonly heard: Effect.Effect<void>
}

/** Makes the news of one schema, which are spread for as long as the scope lives. */
export const make = Effect.fnUntraced(function* (
  client: PgClient,
  database: Database,
  channel: string,
) {
  const news = yield* Latch.make()
  const outgoing = yield* Latch.make()

  const send = Effect.gen(function* () {
    yield* outgoing.await
    yield* outgoing.close
    yield* database.query("SELECT pg_notify($1, '')", [channel])
    yield* Effect.sleep(pauseMillis)
  })

  const listen = Effect.scoped(
    Effect.gen(function* () {
      // On a connection apart, so that it takes none of the host's.
      const connection = yield* PgConnection.make(client.config)
      const notifications = yield* connection.listen(channel)
      yield* Effect.forever(Effect.andThen(Queue.take(notifications), news.open))
    }),
  )

  yield* Effect.forkScoped(Effect.forever(Effect.ignoreCause(send)))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.ignoreCause(listen), Effect.sleep(retryMillis))),
  )

  const nudge: Nudge = {
    tell: Effect.andThen(news.open, outgoing.open),
    heard: Effect.andThen(Effect.timeoutOption(news.await, pollMillis), news.close),
  }
  return nudge
})
