/** Changes are atomic, and leave the host's other columns and rows as they are. */

import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { MembershipStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import { type Change, changesOf, databaseOf, harnessOn, testOn } from "./stores.ts"

const { change, in2027, in2028, in2029, p1, u1, u3 } = Fixture

const test = testOn(harnessOn(databaseOf("custom_store")))

/** Reads all rows a change writes: subscriptions, audit rows, events and deliveries. */
const everything = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return {
    subscriptions: yield* sql`SELECT * FROM subscriptions ORDER BY account, customer`,
    changes: yield* sql`SELECT * FROM subscription_changes ORDER BY id`,
    events: yield* sql`SELECT id FROM tenure.events ORDER BY id`,
    deliveries: yield* sql`SELECT * FROM tenure.deliveries ORDER BY position`,
  }
})

test(
  "a change is atomic, and writes nothing if its deliveries cannot be stored",
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const store = yield* MembershipStore
    const before = yield* everything
    yield* sql`ALTER TABLE tenure.deliveries ADD CONSTRAINT broken CHECK (false) NOT VALID`
    for (const one of changesOf(store)) expect((yield* Effect.exit(one))._tag).toBe("Failure")
    yield* sql`ALTER TABLE tenure.deliveries DROP CONSTRAINT broken`
    expect(yield* everything).toEqual(before)
  }),
)

describe("the host's table", () => {
  test(
    "keeps the columns that Tenure does not use",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const store = yield* MembershipStore
      yield* sql`UPDATE subscriptions SET plan = 'gold', note = 'a friend' WHERE customer = ${u1}`
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2028 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2029 })
      yield* store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } })
      const rows = yield* sql`SELECT plan, note FROM subscriptions ORDER BY customer`
      expect(rows).toEqual([
        { plan: "gold", note: "a friend" },
        { plan: "basic", note: null },
      ])
    }),
  )

  test(
    "may receive rows from the host, which are memberships",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const store = yield* MembershipStore
      yield* sql`
        INSERT INTO subscriptions (account, customer, paid_until, plan)
        VALUES (${p1}, ${u3}, '2027-01-01T00:00:00Z', 'gold')
      `
      yield* store.extend({ ...change(p1), userId: u3, endDate: in2028 })
      expect((yield* store.find(p1, u3)).endDate).toBe(in2028)
      expect(yield* store.history(p1, { userId: u3, limit: 1 })).toMatchObject([
        { action: "extended", from: in2027, to: in2028 },
      ])
    }),
  )

  test(
    "has no memberships for an account that is not a project",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const store = yield* MembershipStore
      const projectId = Fixture.p2
      yield* sql`INSERT INTO accounts (id) VALUES (${projectId})`
      yield* sql`INSERT INTO subscriptions VALUES (${projectId}, ${u1}, now())`
      const before = yield* everything
      const member = { ...change(projectId), userId: u1 }
      const tags = yield* Effect.forEach(
        [
          store.extend({ ...member, endDate: in2028 }),
          store.end(member),
          store.grant({ ...member, endDate: in2028 }),
        ],
        (one: Change) => Effect.map(Effect.flip(one), ({ _tag }) => _tag),
      )
      expect(tags).toEqual(["MembershipNotFound", "MembershipNotFound", "ProjectNotFound"])
      expect(yield* everything).toEqual(before)
    }),
  )
})
