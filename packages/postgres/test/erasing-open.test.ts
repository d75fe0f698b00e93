/** Erasures of persons while a transaction of the host is open that has published an event of them. */

import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { MembershipStore, Outbox } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { makeExecutor, makeServer } from "../src/connection/executor.ts"
import { makeErasures } from "../src/erasure.ts"
import { sql } from "./harness.ts"
import { testsOn } from "./locking.ts"

const schema = "erasing_open"
const { in2027, p1, u1, u2 } = Fixture

const onStores = testsOn(schema)

const now = () => ({ ...Fixture.change(p1), at: Date.now() })

/** Publishes events of two members. */
const published = Effect.gen(function* () {
  const outbox = yield* Outbox
  for (const userId of [u1, u2]) {
    const data = { user_id: userId }
    const draft = {
      ...Fixture.event(p1),
      at: Date.now(),
      body: JSON.stringify({ type: "a.b", data }),
    }
    yield* outbox.publish(draft)
  }
})

/** The user ids of the events that were published, and of the audit trail, which may have one more than once. */
const userIds = Effect.gen(function* () {
  const events = yield* sql<{ readonly user_id: string | null }>(
    `SELECT body::jsonb #>> '{data,user_id}' AS user_id FROM ${schema}.events
     WHERE body LIKE '{"type":"a.b"%' ORDER BY xid, user_id NULLS FIRST`,
  )
  return events.map(({ user_id }) => user_id)
})

const pending = sql(`SELECT FROM ${schema}.erasures`)

/** Begins to erase a member while a transaction is open that has published, and does something before its end. */
const erasing = <A, E>(
  work: (erasing: Fiber.Fiber<unknown, unknown>) => Effect.Effect<A, E, PgClient.PgClient>,
) =>
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const store = yield* MembershipStore
    const services = yield* Effect.context<PgClient.PgClient>()
    const isErased = Effect.repeat(
      sql(`SELECT FROM ${schema}.audit WHERE action = 'person_erased'`),
      { until: (rows) => rows.length > 0 },
    )
    return yield* client.withTransaction(
      Effect.gen(function* () {
        yield* published
        // A new fiber runs outside of the transaction.
        const apart = Effect.gen(function* () {
          const fiber = yield* Effect.forkDetach(store.erase({ ...now(), userId: u1 }))
          yield* isErased
          return [fiber, yield* work(fiber)] as const
        })
        return yield* Effect.promise(() => Effect.runPromiseWith(services)(apart))
      }),
    )
  })

onStores(
  "an erasure waits for a transaction that is about to be committed",
  Effect.gen(function* () {
    const [fiber] = yield* erasing(() => Effect.sleep(100))
    yield* Fiber.join(fiber)
    expect(yield* userIds).toEqual([null, u2])
    expect(yield* pending).toEqual([])
  }),
)

onStores(
  "an erasure that is answered before the transaction is over is completed afterwards",
  Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    const store = yield* MembershipStore
    const { eraseDue } = makeErasures(
      makeExecutor(yield* makeServer(client, 2, undefined), `"${schema}"`),
    )
    yield* erasing((fiber) =>
      Effect.gen(function* () {
        yield* Fiber.join(fiber)
        expect(yield* pending).toHaveLength(1)
        expect(yield* Effect.orDie(eraseDue)).toEqual([])
      }),
    )
    expect(yield* userIds).toEqual([u1, u2])
    // What is written since then stays: the person is back.
    yield* store.grant({ ...now(), userId: u1, endDate: in2027 })
    yield* published
    // Transactions of other tests may hold it up.
    yield* Effect.repeat(eraseDue, { until: (rows) => rows.length > 0 })
    expect(yield* pending).toEqual([])
    expect(yield* userIds).toEqual([null, u2, u1, u2])
    expect((yield* store.find(p1, u1)).endDate).toBe(in2027)
    expect(yield* store.history(p1, { userId: u1, limit: 10 })).toMatchObject([
      { action: "granted" },
    ])
  }).pipe(Effect.scoped),
)
