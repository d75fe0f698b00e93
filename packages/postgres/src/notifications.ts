/** Notifications between processes about due deliveries and stopped webhooks, over LISTEN and NOTIFY. */

import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import { readMonotonicMillis } from "@tenure/core/internal"
import { type OutboxChange, WebhookId } from "@tenure/core/store"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { SqlError } from "effect/sql/SqlError"
import { type Connection, failOnLockTimeouts, openPooled, within } from "./connection/connection.ts"
import type { Executor, Server } from "./connection/executor.ts"
import { maxTimeoutMillis } from "./connection/round-trip.ts"
import { textParam } from "./sql/values.ts"

/**
 * The changes that this process has heard about and its dispatcher has not. Each is there once, however often
 * it is reported.
 */
export interface PendingChanges {
  readonly addDue: () => void
  readonly addStopped: (webhookId: WebhookId) => void
  /** Removes and returns one, those that abort attempts first. */
  readonly take: () => OutboxChange | undefined
  readonly isEmpty: () => boolean
}

/** Makes an empty set. */
export const makePendingChanges = (): PendingChanges => {
  const stopped = new Set<WebhookId>()
  let isDue = false
  return {
    addDue: () => {
      isDue = true
    },
    addStopped: (webhookId) => {
      stopped.add(webhookId)
    },
    take: () => {
      const [webhookId] = stopped
      if (webhookId !== undefined) {
        stopped.delete(webhookId)
        return { _tag: "Stopped", webhookId }
      }
      if (!isDue) return undefined
      isDue = false
      return { _tag: "Due" }
    },
    isEmpty: () => stopped.size === 0 && !isDue,
  }
}

// At most one notification is sent in this time. It has its own transaction, because a commit with a
// notification holds up all other such commits.
const pauseMillis = 20

// Dispatchers look at least this often, because notifications can get lost.
const pollMillis = 1000

const reconnectMillis = 1000

// Whatever cut a connection may have cut other processes' connections, too. They have this long to reconnect.
const returnMillis = 2000

// How often the listening connection proves that it is alive, and how long that may take.
const heartbeatMillis = 5000

/** Notifications among processes that share a schema. */
export interface Notifications {
  /** The channel. A payload is the id of a removed or disabled webhook, or names the sending process. */
  readonly channel: string
  /** Notifies all processes that a delivery may be due. */
  readonly notify: Effect.Effect<void>
  /** Asks this process to abort attempts for webhooks. */
  readonly stopped: (webhookIds: ReadonlyArray<WebhookId>) => Effect.Effect<void>
  /** Waits for the next notification, or for a second. */
  readonly next: Effect.Effect<OutboxChange>
  /** Waits until the listening connection is open for the first time, or it is known that there can be none. */
  readonly opened: Effect.Effect<void>
  /**
   * The id of the listening session, whose lock proves to others that this process is alive. `undefined`
   * without a session, and until others had time to reconnect after whatever cut the last one.
   */
  readonly session: () => string | undefined
}

/** Takes the session's lock until the session ends. Only this session has the key. */
const holdSession = "SELECT pg_advisory_lock(hashtextextended($1::text, 0))"

interface HeldSession {
  readonly id: string
  /** From this time on the monotonic clock, it can report whether others are alive. */
  readonly from: number
}

/**
 * Opens a listening connection. Returns `undefined` behind a pooler, which may give the session to others
 * without notice.
 *
 * @param apart - where to listen instead, whatever is there
 */
export const makeListener = (
  server: Server,
  apart: PgClientConfig | undefined,
): Effect.Effect<Connection | undefined, SqlError> =>
  apart === undefined
    ? Effect.map(server.connect, (connection) => {
        if (connection.processId !== undefined) return connection
        connection.close()
        return undefined
      })
    : openPooled(apart, failOnLockTimeouts, maxTimeoutMillis)

/**
 * Sends and receives notifications for as long as the scope is open.
 *
 * @param connect - opens the listening connection; `undefined` if that is impossible, see `makeListener`
 */
export const makeNotifications = Effect.fnUntraced(function* (
  executor: Executor,
  connect: Effect.Effect<Connection | undefined, SqlError>,
) {
  const channel = `${executor.schema}.deliveries`
  const crypto = yield* WebCrypto
  const clock = yield* Clock.Clock
  const own = `from ${crypto.randomUUID()}`
  const opened = yield* Latch.make()
  const received = yield* Latch.make()
  const requested = yield* Latch.make()
  const pending = makePendingChanges()
  let listening: Connection | undefined
  let held: HeldSession | undefined
  let wasCut = false

  const receive = (payload: string): void => {
    if (payload === own) return
    if (WebhookId.is(payload)) pending.addStopped(payload)
    else pending.addDue()
    received.openUnsafe()
  }

  const next = Effect.map(Effect.timeoutOption(received.await, pollMillis), (): OutboxChange => {
    const change = pending.take()
    if (pending.isEmpty()) received.closeUnsafe()
    return change ?? { _tag: "Due" }
  })

  const send = Effect.gen(function* () {
    yield* requested.await
    yield* requested.close
    yield* executor.executeApart("SELECT pg_notify($1, $2)", [channel, own])
    yield* Effect.sleep(pauseMillis)
  })

  const listenOn = Effect.fnUntraced(function* (connection: Connection) {
    // Only the holder of the pin can run statements while it listens.
    const session = yield* connection.session.pin
    const id = crypto.randomUUID()
    yield* within(heartbeatMillis, connection, session.query(holdSession, [textParam(id)], false))
    const notifications = yield* within(heartbeatMillis, connection, session.listen(channel))
    held = { id, from: readMonotonicMillis(clock) + (wasCut ? returnMillis : 0) }
    yield* opened.open
    const heartbeat = within(heartbeatMillis, connection, session.query("SELECT 1")).pipe(
      Effect.delay(heartbeatMillis),
      Effect.forever,
    )
    const receiving = Effect.forever(
      Effect.map(Queue.take(notifications), ({ payload }) => receive(payload)),
    )
    yield* Effect.raceFirst(heartbeat, receiving)
  }, Effect.scoped)

  const listen = Effect.gen(function* () {
    const connection = yield* connect
    if (connection === undefined) return yield* Effect.andThen(opened.open, Effect.never)
    listening = connection
    const close = (): void => {
      held = undefined
      wasCut = true
      connection.close()
    }
    yield* Effect.ensuring(listenOn(connection), Effect.sync(close))
  })

  yield* Effect.forkScoped(Effect.forever(Effect.ignoreCause(send)))
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.ignoreCause(listen), Effect.sleep(reconnectMillis))),
  )
  // Before the others end, because the driver waits for a response that may never come.
  yield* Effect.addFinalizer(() => Effect.sync(() => listening?.destroy()))

  const notifications: Notifications = {
    channel,
    // This process learns it at once, without the round trip.
    notify: Effect.sync(() => {
      pending.addDue()
      received.openUnsafe()
      requested.openUnsafe()
    }),
    stopped: (webhookIds) =>
      Effect.sync(() => {
        for (const webhookId of webhookIds) receive(webhookId)
      }),
    next,
    opened: opened.await,
    session: () =>
      held !== undefined && readMonotonicMillis(clock) >= held.from ? held.id : undefined,
  }
  return notifications
})
