/** Telling dispatchers, in this process and in others, that there is something to deliver. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import type { Change } from "@tenure/core/Outbox"
import { WebhookId } from "@tenure/core/Webhook"
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
  /** Where they are spread. The payload is empty, or the id of a webhook that was removed. */
  readonly channel: string
  /** Tells everybody that something may be due. */
  readonly tell: Effect.Effect<void>
  /** Gives what somebody has told, or after a second that something may be due. */
  readonly heard: Effect.Effect<Change>
}

const due: Change = { _tag: "Due" }

/** Makes the news of one schema, which are spread for as long as the scope lives. */
export const make = Effect.fnUntraced(function* (
  client: PgClient,
  database: Database,
  channel: string,
) {
  const news = yield* Latch.make()
  const outgoing = yield* Latch.make()

  const removed: Array<WebhookId> = []

  const hear = (payload: string): void => {
    if (WebhookId.is(payload)) removed.push(payload)
    news.openUnsafe()
  }

  const heard = Effect.map(Effect.timeoutOption(news.await, pollMillis), (): Change => {
    const webhookId = removed.shift()
    if (removed.length === 0) news.closeUnsafe()
    return webhookId === undefined ? due : { _tag: "Removed", webhookId }
  })

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
      yield* Effect.forever(Effect.map(Queue.take(notifications), ({ payload }) => hear(payload)))
    }),
  )

  yield* Effect.forkScoped(Effect.forever(Effect.ignoreCause(send)))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.ignoreCause(listen), Effect.sleep(retryMillis))),
  )

  const nudge: Nudge = {
    channel,
    tell: Effect.andThen(news.open, outgoing.open),
    heard,
  }
  return nudge
})
