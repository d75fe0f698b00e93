/** Puts the stores together: the project stores in one schema, and the home stores, which belong to no project. */

import type { Setting } from "@tenure/core/internal"
import {
  ApiKeyStore,
  FeedStore,
  MembershipStore,
  Outbox,
  RateLimitStore,
  TicketStore,
  Transactions,
  WebhookStore,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Database } from "./connection/database.ts"
import { type Executor, type Server, makeExecutor } from "./connection/executor.ts"
import { toClientConfig } from "./connection/url.ts"
import { makePostgresFeedStore, startEpoch } from "./feed.ts"
import { type IdempotencyStore, makeIdempotencyStore } from "./idempotency.ts"
import { makePostgresApiKeyStore, makePostgresTicketStore } from "./keys.ts"
import { makePostgresMembershipStore } from "./memberships.ts"
import { type Notifications, makeListener, makeNotifications } from "./notifications.ts"
import { makePostgresOutbox } from "./outbox.ts"
import { makePostgresRateLimitStore } from "./rate-limits.ts"
import { type retentionOptions, startRetention } from "./retention.ts"
import { makeCommitWatcher, makeTransactions } from "./transactions.ts"
import { makePostgresWebhookStore } from "./webhooks.ts"

/** Options for the stores in one schema. */
interface StoreSettings extends Setting.OutputOf<typeof retentionOptions> {
  readonly listenUrl: string | undefined
}

/** Makes the project stores in one schema. */
export const makeProjectStores = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  settings: Setting.OutputOf<typeof retentionOptions>,
) {
  yield* startEpoch(executor)
  yield* startRetention(executor, settings)
  const idempotencyStore = makeIdempotencyStore(executor)
  return {
    idempotencyStore,
    memberships: yield* makePostgresMembershipStore(executor, notifications, idempotencyStore),
    webhooks: makePostgresWebhookStore(executor, notifications, idempotencyStore),
    outbox: yield* makePostgresOutbox(executor, notifications, idempotencyStore),
    feed: makePostgresFeedStore(executor, settings.eventRetention),
  }
})

/** Makes the stores that belong to no project: API keys, rate limits and tickets. */
export const makeHomeStores = Effect.fnUntraced(function* (
  executor: Executor,
  idempotencyStore: IdempotencyStore,
) {
  return Context.make(ApiKeyStore, yield* makePostgresApiKeyStore(executor, idempotencyStore)).pipe(
    Context.add(RateLimitStore, yield* makePostgresRateLimitStore(executor)),
    Context.add(TicketStore, yield* makePostgresTicketStore(executor)),
  )
})

/** Makes all stores in one schema. */
export const makeAllStores = Effect.fnUntraced(function* (
  server: Server,
  schema: string,
  settings: StoreSettings,
) {
  const executor = makeExecutor(server, schema)
  const notifications = yield* makeServerNotifications(server, schema, settings.listenUrl)
  const stores = yield* makeProjectStores(executor, notifications, settings)
  const watcher = yield* makeCommitWatcher(executor)
  return (yield* makeHomeStores(executor, stores.idempotencyStore)).pipe(
    Context.add(MembershipStore, stores.memberships),
    Context.add(WebhookStore, stores.webhooks),
    Context.add(Outbox, stores.outbox),
    Context.add(FeedStore, stores.feed),
    Context.add(
      Transactions,
      makeTransactions([server.client], () => watcher),
    ),
    Context.add(Database, {
      run: executor.run,
      atomically: executor.atomically,
      keep: stores.idempotencyStore.keep,
    }),
  )
})

/** Sends and receives notifications for all schemas on a server. */
export const makeServerNotifications = Effect.fnUntraced(function* (
  server: Server,
  schema: string,
  listenUrl: string | undefined,
) {
  const apart = listenUrl === undefined ? undefined : yield* toClientConfig(listenUrl, "listenUrl")
  return yield* makeNotifications(makeExecutor(server, schema), makeListener(server, apart))
})

// The client only migrates and runs atomic work, so it opens a connection on demand.
export const clientConfig = Effect.fnUntraced(function* (url: string) {
  const { connectTimeout = Duration.seconds(10), ...config } = yield* toClientConfig(url, "url")
  return {
    ...config,
    connectTimeout,
    maxConnections: 1,
    idleTimeout: "1 second",
    // A pooler would keep prepared statements.
    prepare: false,
  } as const
})
