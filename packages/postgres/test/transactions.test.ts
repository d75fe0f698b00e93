/** Operations inside a transaction of the host commit and roll back with it. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Events, Memberships, type Services, Webhooks, tenureLayer } from "@tenure/core/effect"
import type { Outbox } from "@tenure/core/store"
import { WebhookTransport } from "@tenure/core/transport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "transactions"
const projectId = "p1"
const member = { projectId, userId: "1001" }
const early = Date.parse("2027-01-01T00:00:00.000Z")
const late = "2099-01-01T00:00:00.000Z"

/** Attempts that never end, so that claimed deliveries stay claimed. */
const silent = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: () => Effect.never,
})

const told: Array<unknown> = []

const host = tenureLayer({ transport: silent, onEvent: ({ id }) => void told.push(id) }).pipe(
  Layer.provideMerge(postgresLayer({ schema })),
  Layer.provideMerge(clientLayer()),
)

/** Runs a test with a project and a member, on empty tables. */
const inHost = <A, E>(
  name: string,
  test: Effect.Effect<A, E, Services | Outbox | PgClient.PgClient>,
  limit?: number,
) =>
  it.live(
    name,
    () =>
      Effect.gen(function* () {
        yield* execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
        yield* Effect.gen(function* () {
          const memberships = yield* Memberships
          yield* memberships.createProject(projectId)
          yield* memberships.grant({ ...member, endDate: "2027-01-01T00:00:00.000Z" })
          yield* test
        }).pipe(Effect.provide(host))
      }),
    limit,
  )

const addWebhook = Effect.flatMap(Webhooks, (webhooks) =>
  webhooks.create({ projectId, url: "https://receiver.example/" }),
)

const extend = Effect.flatMap(Memberships, ({ extend: set }) => set({ ...member, endDate: late }))

const extendOnce = Effect.flatMap(Memberships, ({ extend: set }) =>
  set({ ...member, endDate: late, idempotencyKey: "key-1" }),
)

/** Who waits for the transaction of the host. */
const isAwaited = PgClient.PgClient.use(
  (sql) =>
    sql`SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::text::xid`,
)

const endDate = Effect.flatMap(Memberships, ({ find }) =>
  Effect.map(find(member), (found) => found.endDate),
)

const actions = Effect.flatMap(Memberships, ({ history }) =>
  Effect.map(history({ projectId }), (rows) => rows.map(({ action }) => action)),
)

describe("a transaction of the host", () => {
  inHost(
    "that rolls back undoes the change, its audit row, its event and its deliveries",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { deliveries } = yield* Webhooks
      const { id } = yield* addWebhook
      const work = Effect.gen(function* () {
        yield* extend
        expect(yield* endDate).toBe(Date.parse(late))
        return yield* Effect.fail("the host's error")
      })
      expect(yield* Effect.flip(sql.withTransaction(work))).toBe("the host's error")
      expect(yield* endDate).toBe(early)
      expect(yield* actions).toEqual(["webhook_created", "granted"])
      expect(yield* deliveries({ projectId, webhookId: id })).toEqual([])
    }),
  )

  inHost(
    "that commits stores the work of the host and of Tenure",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { deliveries } = yield* Webhooks
      const { id } = yield* addWebhook
      yield* sql.unsafe(`CREATE TABLE ${schema}.orders (id integer)`)
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql.unsafe(`INSERT INTO ${schema}.orders VALUES (1)`)
          yield* extend
          yield* (yield* Events).publish({ projectId, type: "payment.completed", data: {} })
        }),
      )
      expect(yield* endDate).toBe(Date.parse(late))
      expect(yield* deliveries({ projectId, webhookId: id })).toHaveLength(2)
      expect(yield* sql.unsafe(`SELECT id FROM ${schema}.orders`)).toEqual([{ id: 1 }])
    }),
  )

  inHost(
    "is invisible to others until it commits, and does not hold them up",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { find, grant } = yield* Memberships
      const context = yield* Effect.context<Services>()
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* extend
          // A new fiber runs outside of the transaction.
          const outside = Effect.runPromiseWith(context)
          const seen = yield* Effect.promise(() => outside(find(member)))
          expect(seen.endDate).toBe(early)
          yield* Effect.promise(() => outside(grant({ projectId, userId: "1002", endDate: late })))
        }),
      )
      expect(yield* endDate).toBe(Date.parse(late))
    }),
  )

  inHost(
    "can continue after an extension of a missing membership fails",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { extend: set } = yield* Memberships
      yield* sql.withTransaction(
        Effect.gen(function* () {
          const missing = set({ projectId, userId: "404", endDate: late })
          expect((yield* Effect.flip(missing))._tag).toBe("MembershipNotFound")
          yield* extend
        }),
      )
      expect(yield* endDate).toBe(Date.parse(late))
    }),
  )

  inHost(
    "that overlaps one with its idempotency key is answered when that is committed, and goes on",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const isKept = yield* Deferred.make<void>()
      const first = Effect.gen(function* () {
        yield* extendOnce
        yield* Deferred.succeed(isKept, undefined)
        yield* Effect.repeat(isAwaited, { until: (rows) => rows.length > 0 })
      })
      const second = Effect.andThen(extendOnce, endDate)
      const both = [
        sql.withTransaction(first),
        Effect.andThen(Deferred.await(isKept), sql.withTransaction(second)),
      ] as const
      expect(yield* Effect.all(both, { concurrency: 2 })).toEqual([undefined, Date.parse(late)])
      expect(yield* actions).toEqual(["extended", "granted"])
    }),
  )

  inHost(
    "tells of its events when it is committed, and not at all if it is rolled back",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { publish } = yield* Events
      const publishOne = publish({ projectId, type: "payment.completed", data: {} })
      const committing = Effect.gen(function* () {
        const id = yield* publishOne
        expect(told).not.toContain(id)
        return id
      })
      expect(told).toContain(yield* sql.withTransaction(committing))
      const failing = Effect.flatMap(publishOne, Effect.fail)
      expect(told).not.toContain(yield* Effect.flip(sql.withTransaction(failing)))
    }),
  )

  inHost(
    "that holds a lock for seconds keeps a request with an idempotency key in progress",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const services = yield* Effect.context<Services>()
      const locking = Effect.gen(function* () {
        yield* sql.unsafe(`SELECT FROM ${schema}.memberships FOR UPDATE`)
        const apart = Effect.promise(() => Effect.runPromiseWith(services)(Effect.flip(extendOnce)))
        expect(yield* apart).toMatchObject({ _tag: "IdempotencyInProgress" })
      })
      yield* sql.withTransaction(locking)
      yield* extendOnce
      expect(yield* actions).toEqual(["extended", "granted"])
    }),
  )
})
