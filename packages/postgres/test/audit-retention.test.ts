/** How long the audit trail is kept, by parts that have begun on days of the past. */

import { PgClient } from "@effect/sql-pg"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import { EndDate, MembershipStore, type StorePorts, UserId } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { postgresLayer } from "../src/index.ts"
import { extend, paramsOfEach } from "../src/memberships.sql.ts"
import { beginAudit, dropAudit } from "../src/retention.ts"
import { daysParam } from "../src/sql/values.ts"
import { clientLayer, execute, sql } from "./harness.ts"

const schema = "audit_retention"
const name = `"${schema}"`
const dayMillis = 86_400_000
const { occasion, p1 } = Fixture
const userId = UserId("1001")

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

const dayBefore = (count: number): string =>
  `((clock_timestamp() AT TIME ZONE 'UTC')::date - ${count})`

const createPart = (daysAgo: number) =>
  sql(`SELECT ${schema}.create_audit_part(${dayBefore(daysAgo)})`)

/** Continues with a part that began some days ago. */
const continueIn = (daysAgo: number) =>
  sql(`SELECT setval('${schema}.audit_ids', ${schema}.first_audit_id(${dayBefore(daysAgo)}))`)

/** Runs a test on stores with a member, and an audit trail that began nine days ago. */
const onStores = <A, E>(title: string, test: Effect.Effect<A, E, StorePorts | PgClient.PgClient>) =>
  it.live(title, () =>
    Effect.gen(function* () {
      const [today] = yield* parts
      yield* sql(`DROP TABLE ${schema}.${today?.name}`)
      yield* createPart(9)
      yield* continueIn(9)
      const memberships = yield* MembershipStore
      yield* memberships.createProject(p1, occasion)
      yield* memberships.grant({ ...Fixture.change(p1), userId, endDate: EndDate(0) })
      return yield* test
    }).pipe(
      Effect.provide(Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer())),
    ),
  )

/** The parts, as days before today, oldest first. */
const parts = sql<{ readonly name: string; readonly age: number }>(
  `SELECT name, ${dayBefore(0)} - day AS age FROM ${schema}.audit_parts ORDER BY day`,
)
const ages = Effect.map(parts, (all) => all.map(({ age }) => age))

const begin = (kept: number) => sql(beginAudit(name), [daysParam(kept * dayMillis)])
const drop = (kept: number) => sql(dropAudit(name), [daysParam(kept * dayMillis)])

const extendTo = (endDate: number) =>
  MembershipStore.use((memberships) =>
    memberships.extend({ ...Fixture.change(p1), userId, endDate: EndDate(endDate) }),
  )

/** The dates of the audit rows of the project or of the user, newest first. */
const history = (user?: UserId) =>
  MembershipStore.use((memberships) => memberships.history(p1, { limit: 10, userId: user })).pipe(
    Effect.map((rows) => rows.map(({ to }) => to)),
  )

describe("a part of the audit trail", () => {
  onStores(
    "is followed by another after a day, in two steps",
    Effect.gen(function* () {
      expect(yield* begin(3)).toHaveLength(1)
      expect(yield* begin(3)).toHaveLength(1)
      expect(yield* begin(3)).toHaveLength(0)
      expect(yield* ages).toEqual([9, 0])
    }),
  )

  onStores(
    "is followed by another after a thirtieth of the time that rows are kept",
    Effect.gen(function* () {
      expect(yield* begin(300)).toHaveLength(0)
      expect(yield* begin(270)).toHaveLength(1)
    }),
  )

  onStores(
    "is dropped when all of it is old, and not before",
    Effect.gen(function* () {
      yield* extendTo(1)
      for (const day of [5, 4, 3, 1]) {
        yield* createPart(day)
        yield* continueIn(day)
        yield* extendTo(10 - day)
      }
      expect(yield* drop(3)).toHaveLength(1)
      expect(yield* drop(3)).toHaveLength(1)
      expect(yield* drop(3)).toHaveLength(0)
      expect(yield* ages).toEqual([4, 3, 1])
      expect(yield* history()).toEqual([9, 7, 6])
    }),
  )

  onStores(
    "that has not begun ends no other, and is replaced",
    Effect.gen(function* () {
      yield* createPart(6)
      expect(yield* drop(3)).toHaveLength(0)
      expect(yield* begin(3)).toHaveLength(1)
      expect(yield* begin(3)).toHaveLength(1)
      expect(yield* ages).toEqual([9, 0])
      expect(yield* drop(3)).toHaveLength(0)
      expect(yield* history()).toEqual([0])
    }),
  )

  onStores(
    "does not begin before statements that know nothing of it have ended",
    Effect.gen(function* () {
      const client = yield* PgClient.PgClient
      const services = yield* Effect.context<StorePorts | PgClient.PgClient>()
      const isWaiting = sql(
        `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`,
      )
      // A statement of the store would be cancelled and repeated when it meets the lock.
      const extension = { ...Fixture.change(p1), userId, endDate: EndDate(1) }
      const waiting = sql(extend(name).always, paramsOfEach([extension]))
      const extended = yield* Deferred.make<unknown, unknown>()
      yield* client.withTransaction(
        Effect.gen(function* () {
          yield* sql(`SELECT FROM ${schema}.memberships FOR UPDATE`)
          // New fibers run outside of the transaction.
          const apart = Effect.gen(function* () {
            yield* Effect.forkDetach(Deferred.into(waiting, extended))
            yield* Effect.repeat(isWaiting, { until: (rows) => rows.length > 0 })
            return [yield* begin(3), yield* begin(3)]
          })
          const steps = yield* Effect.promise(() => Effect.runPromiseWith(services)(apart))
          expect(steps.map((rows) => rows.length)).toEqual([1, 0])
        }),
      )
      yield* Deferred.await(extended)
      expect(yield* begin(3)).toHaveLength(1)
      yield* extendTo(2)
      expect(yield* history()).toEqual([2, 1, 0])
    }),
  )
})

describe("the history", () => {
  onStores(
    "is in order across parts",
    Effect.gen(function* () {
      yield* createPart(1)
      yield* continueIn(1)
      yield* MembershipStore.use((memberships) =>
        memberships.extendAll({
          ...Fixture.change(p1),
          bulk: { endDate: EndDate(3), mode: "set" },
        }),
      )
      yield* createPart(0)
      yield* continueIn(0)
      // An extension that had read the project before the bulk extension.
      yield* sql(
        `INSERT INTO ${schema}.audit (project_number, seq, user_id, action, to_date, at)
         SELECT number, 0, '1001', 'extended', 'epoch'::timestamptz + interval '2 ms', now()
         FROM ${schema}.projects WHERE id = $1::text`,
        [p1],
      )
      yield* extendTo(4)
      expect(yield* history()).toEqual([4, 3, 2, 0])
      expect(yield* history(userId)).toEqual([4, 3, 2, 0])
    }),
  )
})
