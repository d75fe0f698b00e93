/** The database, for stores of the host's own. */

import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

/**
 * The database that Tenure's tables are in, as a store of the host's own uses it: one that keeps
 * memberships in a table of the host's, for instance.
 */
export class Database extends Context.Service<
  Database,
  {
    /**
     * Runs one statement or one transaction of the host's client in the way that ports promise.
     *
     * While the database does not answer, it fails with `StoreUnavailable` at once, or within about
     * a second if that is not known yet; nobody waits for more than thirty seconds. Faults of a
     * statement, such as broken constraints, are defects. What loses a deadlock is run again from
     * its start, unless a transaction is open around it.
     *
     * @example
     * ```ts
     * import { PgClient } from "@effect/sql-pg"
     * import type { Event } from "@tenure/core/Event"
     * import { Outbox } from "@tenure/core/Outbox"
     * import { Database } from "@tenure/postgres"
     * import * as Effect from "effect/Effect"
     *
     * // The row, the event and its deliveries are stored together or not at all.
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
  }
>()("@tenure/postgres/Database") {}
