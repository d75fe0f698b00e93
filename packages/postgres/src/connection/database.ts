/** The service `Database`: Tenure's database, for stores that a host writes itself. */

import type { StoreUnavailable } from "@tenure/core/store"
import type {
  IdempotencyConflict,
  IdempotencyKey,
  ProjectId,
  ProjectNotFound,
  ReplayedResponse,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

/**
 * The database with Tenure's tables, for stores that a host writes itself. For example, a store that keeps
 * memberships in a table of the host.
 */
export class Database extends Context.Service<
  Database,
  {
    /**
     * Runs a statement or a transaction of the host's client, and behaves as a port must.
     *
     * Fails with `StoreUnavailable` if the database does not respond: within two seconds at first, then at
     * once until the database responds again. No call waits longer than 30 seconds. Errors in a statement,
     * such as a violated constraint, are defects. Work that loses a deadlock runs again from its start,
     * unless it is inside an open transaction.
     *
     * @example
     * ```ts
     * import * as Effect from "effect/Effect"
     * import { Database } from "tenure/postgres"
     * import { PgClient } from "@effect/sql-pg"
     * import { type Event, Outbox } from "tenure/store"
     *
     * // Stores the row, the event and its deliveries, or none of them.
     * const pay = Effect.fn("pay")(function* (order: number, event: Event) {
     *   const sql = yield* PgClient.PgClient
     *   const database = yield* Database
     *   const outbox = yield* Outbox
     *   const paid = sql`UPDATE orders SET paid = true WHERE id = ${order}`
     *   yield* database.run(sql.withTransaction(Effect.andThen(paid, outbox.publish(event))))
     * })
     * ```
     */
    readonly run: <A, E, R>(
      work: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>

    /**
     * Runs work in one transaction, as `run` does: everything that stores change in it is committed together,
     * or nothing is.
     */
    readonly atomically: <A, E, R>(
      work: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>

    /**
     * Stores an idempotency key with its response, for a change that publishes no event because it changes
     * nothing: in the open transaction, if there is one. Returns `Replayed` if the same request has stored it
     * before.
     */
    readonly keep: (
      idempotency: IdempotencyKey,
      projectId: ProjectId,
    ) => Effect.Effect<
      ReplayedResponse | void,
      ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >
  }
>()("@tenure/postgres/Database") {}
