/** Tests of statements that wait for each other. */

import { PgClient } from "@effect/sql-pg"
import { beforeEach, it } from "@effect/vitest"
import { MembershipStore, type StorePorts } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, emptied } from "./harness.ts"

const { in2027, occasion, p1, p2, u1, u2 } = Fixture

/** Makes two projects, each with two members. */
const twoProjects = Effect.gen(function* () {
  const store = yield* MembershipStore
  for (const projectId of [p1, p2]) {
    yield* store.createProject(projectId, occasion)
    for (const userId of [u1, u2]) {
      yield* store.grant({ ...Fixture.change(projectId), userId, endDate: in2027 })
    }
  }
})

/**
 * Prepares the schema of a file before each test. Returns how to declare a test on it.
 *
 * @param prepare - `dropped`, if tests change more of the schema than rows of the usual tables
 * @param populate - makes what each test begins with
 */
export const testsOn = (
  schema: string,
  prepare = emptied(schema),
  populate: Effect.Effect<void, unknown, StorePorts | PgClient.PgClient> = twoProjects,
) => {
  beforeEach(() => Effect.runPromise(prepare))

  /** Runs a test on stores that are populated. */
  return <A, E>(
    name: string,
    test: Effect.Effect<A, E, StorePorts | PgClient.PgClient>,
    options: Parameters<typeof clientLayer>[0] = {},
  ) =>
    it.live(name, () =>
      Effect.andThen(populate, test).pipe(
        Effect.provide(
          Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer(options)),
        ),
      ),
    )
}

/** Runs an effect while another transaction holds the locks of a statement. */
export const holding = <A, E, R>(sql: string, work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const services = yield* Effect.context<R>()
    return yield* client.withTransaction(
      Effect.gen(function* () {
        yield* client.unsafe(sql)
        // A new fiber runs outside of the transaction.
        return yield* Effect.promise(() => Effect.runPromiseWith(services)(work))
      }),
    )
  }).pipe(Effect.provide(clientLayer()))

/** Waits until a connection waits for a lock. */
export const blocked = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const waiting = sql.unsafe(
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
  )
  yield* Effect.repeat(waiting, { until: (rows) => rows.length > 0 })
})

/** Waits until a statement on a schema waits for a lock for so long that it is not about to be cancelled and repeated. */
export const blockedOn = (schema: string) =>
  Effect.repeat(
    PgClient.PgClient.use(
      (sql) => sql`
        SELECT 1 FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE ${`%${schema}"%`}
          AND clock_timestamp() - query_start > interval '300 milliseconds'
      `,
    ),
    { until: (rows) => rows.length > 0 },
  )
