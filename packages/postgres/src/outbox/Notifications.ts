/** Notifications between processes that there is something to deliver. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import type { Change } from "@tenure/core/Outbox"
import { WebhookId } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { Executor } from "../connection/Executor.ts"

// At most one notification is sent in this time. It has its own transaction, because a commit
// that carries a notification holds up all others that do.
const pauseMillis = 20

// Dispatchers look at least this often, because notifications can get lost.
const pollMillis = 1000

const reconnectMillis = 1000

/** Notifications among the processes that use one schema. */
export interface Notifications {
  /** The channel. A payload is empty, or the id of a webhook that was removed. */
  readonly channel: string
  /** Notifies all processes that a delivery may be due. */
  readonly notify: Effect.Effect<void>
  /** Waits for the next notification, or for a second. */
  readonly next: Effect.Effect<Change>
}

const due: Change = { _tag: "Due" }

/** Sends and receives notifications for as long as the scope is open. */
export const make = Effect.fnUntraced(function* (client: PgClient, executor: Executor) {
  const channel = `${executor.schema}.deliveries`
  const received = yield* Latch.make()
  const requested = yield* Latch.make()
  const removed: Array<WebhookId> = []

  const receive = (payload: string): void => {
    if (WebhookId.is(payload)) removed.push(payload)
    received.openUnsafe()
  }

  const next = Effect.map(Effect.timeoutOption(received.await, pollMillis), (): Change => {
    const webhookId = removed.shift()
    if (removed.length === 0) received.closeUnsafe()
    return webhookId === undefined ? due : { _tag: "Removed", webhookId }
  })

  const send = Effect.gen(function* () {
    yield* requested.await
    yield* requested.close
    yield* executor.executeApart("SELECT pg_notify($1, '')", [channel])
    yield* Effect.sleep(pauseMillis)
  })

  const listen = Effect.scoped(
    Effect.gen(function* () {
      // A connection outside the pool, which leaves all of the pool to the host.
      const connection = yield* PgConnection.make(client.config)
      const notifications = yield* connection.listen(channel)
      yield* Effect.forever(
        Effect.map(Queue.take(notifications), ({ payload }) => receive(payload)),
      )
    }),
  )

  yield* Effect.forkScoped(Effect.forever(Effect.ignoreCause(send)))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.ignoreCause(listen), Effect.sleep(reconnectMillis))),
  )

  const notifications: Notifications = {
    channel,
    // This process knows at once, without the round trip.
    notify: Effect.andThen(received.open, requested.open),
    next,
  }
  return notifications
})
