/** Operations inside a transaction of the host commit and roll back with it. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Events } from "@tenure/core/Events"
import { Memberships } from "@tenure/core/Memberships"
import type { Outbox } from "@tenure/core/Outbox"
import * as Tenure from "@tenure/core/Tenure"
import { Webhooks } from "@tenure/core/Webhooks"
import { WebhookTransport } from "@tenure/core/WebhookTransport"
import { layer } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
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

const host = Tenure.layer({ transport: silent }).pipe(
  Layer.provideMerge(layer({ schema })),
  Layer.provideMerge(clientLayer()),
)

/** Runs a test with a project and a member, on empty tables. */
const inHost = <A, E>(
  name: string,
  test: Effect.Effect<A, E, Tenure.Services | Outbox | PgClient.PgClient>,
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      yield* execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      yield* Effect.gen(function* () {
        const memberships = yield* Memberships
        yield* memberships.createProject(projectId)
        yield* memberships.grant({ ...member, endDate: "2027-01-01T00:00:00.000Z" })
        yield* test
      }).pipe(Effect.provide(host))
    }),
  )

const addWebhook = Effect.flatMap(Webhooks, (webhooks) =>
  webhooks.create({ projectId, url: "https://receiver.example/" }),
)

const extend = Effect.flatMap(Memberships, ({ extend: set }) => set({ ...member, endDate: late }))

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
      expect(yield* actions).toEqual(["granted"])
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
      const context = yield* Effect.context<Tenure.Services>()
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
})
