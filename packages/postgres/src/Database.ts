/** The database, for a host's own stores. */

import type { Conflict, Once, Replayed } from "@tenure/core/Once"
import type { ProjectId, ProjectNotFound } from "@tenure/core/Project"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

/**
 * The database that holds Tenure's tables, for stores that a host writes itself. For example, a
 * store that keeps memberships in a table of the host's.
 */
export class Database extends Context.Service<
  Database,
  {
    /**
     * Runs a statement or a transaction of the host's client, and keeps the promises of a port.
     *
     * Fails with `StoreUnavailable` if the database does not answer: within two seconds at first,
     * then at once until the database answers again. No call waits longer than 30 seconds. Errors in
     * a statement, such as a violated constraint, are defects. Work that loses a deadlock runs again
     * from its start, unless it runs inside an open transaction.
     *
     * @example
     * ```ts
     * import { PgClient } from "@effect/sql-pg"
     * import * as Effect from "effect/Effect"
     * import type { Event } from "tenure/Event"
     * import { Outbox } from "tenure/Outbox"
     * import { Database } from "tenure/postgres"
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
     * Runs work in one transaction, as `run` does: all that the stores change in it is committed
     * together, or nothing is.
     */
    readonly atomically: <A, E, R>(
      work: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnavailable, R>

    /**
     * Stores an idempotency key with its answer, for a change that publishes no event because it leaves all as
     * it is: in the open transaction, if there is one. Returns `Replayed` if the same request has stored it.
     */
    readonly keep: (
      once: Once,
      projectId: ProjectId,
    ) => Effect.Effect<Replayed | void, ProjectNotFound | Conflict | StoreUnavailable>
  }
>()("@tenure/postgres/Database") {}
