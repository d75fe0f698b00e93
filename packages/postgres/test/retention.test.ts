/** What is deleted when, by ids and dates of the past. */

import { PgClient } from "@effect/sql-pg"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import { newEventId } from "@tenure/core/internal"
import {
  type AttemptResult,
  EventId,
  MembershipStore,
  Millis,
  Outbox,
  type StorePorts,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { makeExecutor, makeServer } from "../src/connection/executor.ts"
import { migrate, postgresLayer } from "../src/index.ts"
import {
  createDays,
  deleteOldEvents,
  deleteOldFailedDeliveries,
  deleteOldIdempotencyKeys,
  dropDay,
  startRetention,
} from "../src/retention.ts"
import { daysParam } from "../src/sql/values.ts"
import { claimAll, clientLayer, execute, sql } from "./harness.ts"

const schema = "retention"
const dayMillis = 86_400_000
const { occasion, p1 } = Fixture
const retentionWebhook = Fixture.makeWebhook(p1)
const ref = { projectId: p1, webhookId: retentionWebhook.id }

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

/** Runs a test on stores with a project that has a webhook. */
const onStores = <A, E>(name: string, test: Effect.Effect<A, E, StorePorts | PgClient.PgClient>) =>
  it.live(name, () =>
    Effect.gen(function* () {
      yield* (yield* MembershipStore).createProject(p1, occasion)
      yield* (yield* WebhookStore).add(retentionWebhook, 50, occasion)
      return yield* test
    }).pipe(
      Effect.provide(Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer())),
    ),
  )

const daysAgo = (count: number): number => Date.now() - count * dayMillis

/** Publishes an event of a time, on a day that has its partition by then. */
const publish = (at: number, id = newEventId(crypto, at)) =>
  Effect.gen(function* () {
    yield* sql(`SELECT ${schema}.create_day('${new Date(at).toISOString().slice(0, 10)}')`)
    yield* (yield* Outbox).publish({ ...Fixture.event(p1), id, at })
    return id
  })

const answered = { at: 0, durationMillis: 1, result: { _tag: "Failed", reason: "Test" } } as const
const delivered: AttemptResult = { _tag: "Delivered", attempt: answered }
const failed: AttemptResult = { _tag: "Failed", attempt: answered, holdMillis: 0 }
const retried: AttemptResult = { _tag: "Retry", attempt: answered, delayMillis: 0, holdMillis: 0 }

/** Claims everything that is due, and settles it. */
const settle = (settlement: AttemptResult) =>
  Effect.gen(function* () {
    const { claims } = yield* claimAll
    const outbox = yield* Outbox
    yield* Effect.forEach(claims, (one) => outbox.settle(one, settlement))
  })

/** Deletes what is old: delivered rows after three days, failed ones after thirty. */
const forget = Effect.gen(function* () {
  const name = `"${schema}"`
  yield* sql(deleteOldFailedDeliveries(name), [daysParam(30 * dayMillis)])
  yield* sql(deleteOldEvents(name), [daysParam(30 * dayMillis)])
  const drop = sql<{ readonly drop_day: Date }>(dropDay(name), [daysParam(3 * dayMillis)])
  yield* Effect.repeat(drop, { while: (rows) => rows.length > 0 })
})

/** The deliveries of the webhook: ids and states, newest first. */
const listed = Effect.flatMap(Outbox, (outbox) => outbox.deliveries(ref, { limit: 100 })).pipe(
  Effect.map((all) => all.map(({ eventId, state }) => [eventId, state])),
)

const count = (table: string) =>
  sql<{ readonly count: number }>(`SELECT count(*)::integer AS count FROM ${schema}.${table}`).pipe(
    Effect.map(([row]) => row?.count),
  )

/** The partitions that events have, without the default one, as days from today. */
const partitions = sql<{ readonly day: number }>(
  `SELECT right(relname, 8)::date - (now() AT TIME ZONE 'UTC')::date AS day FROM pg_class
   WHERE relnamespace = '${schema}'::regnamespace AND relname ~ '^events_[0-9]{8}$' ORDER BY day`,
).pipe(Effect.map((rows) => rows.map(({ day }) => day)))

describe("delivered events", () => {
  onStores(
    "are dropped by the day when all of it is three days old",
    Effect.gen(function* () {
      yield* publish(daysAgo(6))
      yield* publish(daysAgo(4))
      const kept = [yield* publish(daysAgo(2.9)), yield* publish(daysAgo(0))]
      yield* settle(delivered)
      yield* forget
      expect(yield* listed).toEqual(kept.map((id) => [id, "delivered"]).toReversed())
      expect(yield* count("events")).toBe(2)
      expect(yield* count("finished_deliveries")).toBe(2)
      expect(yield* partitions).toEqual([expect.any(Number), 0, 1, 2])
    }),
  )

  onStores(
    "can be replayed before",
    Effect.gen(function* () {
      const id = yield* publish(daysAgo(2))
      yield* settle(delivered)
      const outbox = yield* Outbox
      expect(yield* outbox.replay(ref, id)).toBe(1)
      expect(yield* count("finished_deliveries")).toBe(0)
      yield* settle(delivered)
      const [delivery] = yield* outbox.deliveries(ref, { limit: 1 })
      expect(delivery).toMatchObject({ state: "delivered", attempts: [answered, answered] })
    }),
  )
})

describe("an event whose delivery is open", () => {
  onStores(
    "is kept and delivered after a week, when all others of its day are gone",
    Effect.gen(function* () {
      yield* publish(daysAgo(7))
      yield* settle(delivered)
      const open = yield* publish(daysAgo(7))
      yield* settle(retried)
      yield* forget
      expect(yield* partitions).toEqual([0, 1, 2])
      const { claims } = yield* claimAll
      expect(claims.map(({ event }) => event)).toEqual([{ id: open, body: Fixture.event(p1).body }])
      const outbox = yield* Outbox
      yield* Effect.forEach(claims, (one) => outbox.settle(one, delivered))
      yield* forget
      expect(yield* listed).toEqual([[open, "delivered"]])
    }),
  )
})

describe("an event whose delivery has failed", () => {
  onStores(
    "is kept for thirty days, and can be replayed",
    Effect.gen(function* () {
      const kept = yield* publish(daysAgo(29))
      yield* publish(daysAgo(31))
      yield* settle(failed)
      yield* forget
      expect(yield* listed).toEqual([[kept, "failed"]])
      expect(yield* count("deliveries")).toBe(1)
      expect(yield* count("events")).toBe(1)
      const outbox = yield* Outbox
      expect(
        yield* outbox.replayMany(ref, {
          since: 0,
          types: undefined,
          kinds: ["failed"],
          position: undefined,
          isDryRun: false,
        }),
      ).toMatchObject({ replayed: 1 })
      yield* sql(`UPDATE ${schema}.webhooks SET paused_until = NULL`)
      yield* settle(delivered)
      expect(yield* listed).toEqual([[kept, "delivered"]])
      // Two more days pass.
      yield* sql(`UPDATE ${schema}.events SET at = at - interval '2 days'`)
      yield* forget
      expect(yield* count("events")).toBe(0)
      expect(yield* count("finished_deliveries")).toBe(0)
    }),
  )
})

describe("a day with many events that are needed", () => {
  onStores(
    "stays as it is until they are fewer",
    Effect.gen(function* () {
      const at = daysAgo(5)
      yield* publish(at)
      yield* settle(delivered)
      const first = newEventId(crypto, at).slice(0, 18)
      yield* sql(
        `INSERT INTO ${schema}.deliveries (event_id, webhook_id, state, next_attempt_at)
         SELECT ('${first}-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), 'failed', now()
         FROM generate_series(0, 5000) n`,
      )
      yield* forget
      expect(yield* partitions).toHaveLength(4)
      expect(yield* listed).toHaveLength(1)
      yield* sql(`DELETE FROM ${schema}.deliveries WHERE event_id = '${first}-8000-000000000000'`)
      yield* forget
      expect(yield* partitions).toHaveLength(3)
      expect(yield* listed).toHaveLength(0)
    }),
  )
})

describe("an id that tells no time, or a wrong one", () => {
  onStores(
    "is in no day, and is deleted by the date of its event",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const in2099 = newEventId(crypto, Date.UTC(2099, 0))
      const random = () => EventId(crypto.randomUUID())
      const publishAt = (id: EventId, age: number) =>
        outbox.publish({ ...Fixture.event(p1), id, at: daysAgo(age) })
      for (const id of [in2099, random()]) yield* publishAt(id, 31)
      const kept = random()
      yield* publishAt(kept, 29)
      yield* settle(delivered)
      const open = random()
      yield* publishAt(open, 31)
      expect(yield* count("events_default")).toBe(4)
      yield* forget
      expect(yield* listed).toEqual([
        [open, "waiting"],
        [kept, "delivered"],
      ])
      expect(yield* count("events")).toBe(2)
      expect(yield* count("finished_deliveries")).toBe(1)
    }),
  )

  onStores(
    "moves to its day when that is created",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const at = daysAgo(5)
      const id = newEventId(crypto, at)
      yield* outbox.publish({ ...Fixture.event(p1), id, at })
      yield* settle(delivered)
      expect(yield* count("events_default")).toBe(1)
      yield* sql(`SELECT ${schema}.create_day('${new Date(at).toISOString().slice(0, 10)}')`)
      expect(yield* count("events_default")).toBe(0)
      expect(yield* listed).toEqual([[id, "delivered"]])
      yield* forget
      expect(yield* listed).toEqual([])
    }),
  )
})

/** Drops the partitions of the day after tomorrow. */
const dropLast = Effect.gen(function* () {
  const suffix = new Date(daysAgo(-2)).toISOString().slice(0, 10).replaceAll("-", "")
  yield* sql(`DROP TABLE ${schema}.events_${suffix}, ${schema}.finished_deliveries_${suffix}`)
})

describe("the days to come", () => {
  onStores(
    "are created at the start",
    Effect.gen(function* () {
      expect(yield* partitions).toEqual([0, 1, 2])
      yield* dropLast
      const client = yield* PgClient.PgClient
      const stores = Layer.fresh(postgresLayer({ schema, migrate: false }))
      yield* Effect.scoped(Layer.build(stores)).pipe(
        Effect.provideService(PgClient.PgClient, client),
      )
      expect(yield* partitions).toEqual([0, 1, 2])
    }),
  )
})

describe("a table that somebody has locked", () => {
  onStores(
    "is left for the next time, and meanwhile delays nothing",
    Effect.gen(function* () {
      yield* publish(daysAgo(5))
      yield* settle(delivered)
      yield* dropLast
      const name = `"${schema}"`
      const drop = sql(dropDay(name), [daysParam(3 * dayMillis)])
      const create = sql(createDays(name))
      const client = yield* PgClient.PgClient
      const services = yield* Effect.context<StorePorts | PgClient.PgClient>()
      const isLocked = client.withTransaction(
        Effect.gen(function* () {
          // As long as a statement that writes events.
          yield* sql(
            `LOCK TABLE ${schema}.events, ${schema}.finished_deliveries IN ROW EXCLUSIVE MODE`,
          )
          // A new fiber runs outside of the transaction.
          return yield* Effect.promise(() =>
            Effect.runPromiseWith(services)(
              Effect.all([drop, create, publish(Date.now())], { concurrency: 3 }),
            ),
          )
        }),
      )
      expect(yield* isLocked).toEqual([[], [], expect.any(String)])
      expect(yield* drop).toHaveLength(1)
      expect(yield* create).toHaveLength(1)
    }),
  )
})

describe("an idempotency key", () => {
  onStores(
    "is forgotten after a day, and not before, a thousand at a time",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const [old, recent] = [Fixture.once(), Fixture.once()]
      for (const key of [old, recent]) yield* outbox.publish(Fixture.event(p1), key)
      yield* sql(
        `UPDATE ${schema}.idempotency_keys SET at = at - interval '25 hours' WHERE key = $1::text`,
        [old.key],
      )
      yield* sql(`
        INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response, at)
        SELECT 'other', n::text, 0, '', '', now() - interval '2 days' FROM generate_series(1, 1500) n
      `)
      const forgetKeys = sql(deleteOldIdempotencyKeys(`"${schema}"`), [daysParam(dayMillis)])
      const sizes = [(yield* forgetKeys).length, (yield* forgetKeys).length]
      expect([...sizes, (yield* forgetKeys).length]).toEqual([1000, 501, 0])
      expect(yield* outbox.publish(Fixture.event(p1), recent)).toMatchObject({ _tag: "Replayed" })
      expect(yield* outbox.publish(Fixture.event(p1), old)).toBeUndefined()
    }),
  )
})

it.live("a step deletes a thousand rows, also where the planner joins tables in a poor way", () =>
  Effect.gen(function* () {
    yield* migrate({ schema })
    const client = yield* PgClient.PgClient
    yield* sql(`
      INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response, at)
      SELECT 'other', n::text, 0, '', '', now() - interval '2 days' FROM generate_series(1, 2500) n
    `)
    const step = Effect.gen(function* () {
      for (const way of ["hashjoin", "mergejoin", "hashagg", "sort", "material"])
        yield* sql(`SET LOCAL enable_${way} = off`)
      return yield* sql(deleteOldIdempotencyKeys(`"${schema}"`), [daysParam(dayMillis)])
    })
    expect(yield* client.withTransaction(step)).toHaveLength(1000)
  }).pipe(Effect.provide(clientLayer())),
)

it.effect("full buckets are deleted in a schema without limits of its own, such as a cell", () =>
  Effect.gen(function* () {
    yield* migrate({ schema })
    yield* sql(`
      INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
      VALUES ('webhook:full', 1, NULL), ('webhook:later', 9e18, NULL), ('key:full', 1, 1), ('key:bursts', 1, 9e18)`)
    const server = yield* makeServer(yield* PgClient.PgClient, 2, undefined)
    yield* startRetention(makeExecutor(server, `"${schema}"`), {
      auditRetention: undefined,
      eventRetention: Millis(30 * dayMillis),
      failedRetention: Millis(30 * dayMillis),
      idempotencyRetention: Millis(dayMillis),
    })
    yield* TestClock.adjust("1 minute")
    const left = sql(`SELECT id FROM ${schema}.rate_limit_buckets ORDER BY id`)
    const rows = yield* Effect.repeat(left, { until: (found) => found.length < 4, times: 1000 })
    expect(rows).toEqual([{ id: "key:bursts" }, { id: "webhook:later" }])
  }).pipe(Effect.provide(clientLayer())),
)
