import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import {
  type EndDateConflict,
  type IdempotencyConflict,
  type InvalidInput,
  type MembershipNotFound,
  MembershipStore,
  type ProjectNotFound,
  type StorePorts,
  StoreUnavailable,
  WebhookStore,
} from "@tenure/core/store"
import { postgresLayer } from "@tenure/postgres"
import { Fixture, storeSuite } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { afterAll, describe } from "vitest"
import * as Schema from "../src/schema.ts"
import * as SubscriptionStore from "../src/subscription-store.ts"

const { change, in2027, in2028, in2029, occasion, p1, u1, u2, u3 } = Fixture

const server = await startPostgres({ settings: { fsync: "off" } })
afterAll(() => server.stop())

const client = PgClient.layer({ url: Redacted.make(server.url) })

const empty = Layer.effectDiscard(
  Effect.flatMap(
    PgClient.PgClient,
    (sql) => sql`
      TRUNCATE accounts, subscription_changes, tenure.projects, tenure.webhooks, tenure.deliveries,
               tenure.api_keys, tenure.audit CASCADE
    `,
  ),
)

/** Empty stores, and the client that they use. */
const stores = empty.pipe(
  Layer.provideMerge(SubscriptionStore.layer),
  Layer.provideMerge(postgresLayer()),
  Layer.provideMerge(Schema.layer),
  Layer.provideMerge(client),
)

/** Moves all end dates into the past, which has the same effect as time passing. */
const advance = (millis: number): Effect.Effect<void> =>
  Effect.flatMap(
    PgClient.PgClient,
    (sql) =>
      sql`UPDATE subscriptions SET paid_until = paid_until - ${millis} * interval '1 millisecond'`,
  ).pipe(Effect.provide(client), Effect.orDie, Effect.asVoid)

// To open the stores takes longer than most tests, and they remember nothing.
const opened = ManagedRuntime.make(stores)
afterAll(() => opened.dispose())

storeSuite("subscriptions", {
  layer: Layer.provideMerge(empty, Layer.effectContext(opened.contextEffect)),
  advance,
  transaction: (work) => PgClient.PgClient.use((sql) => sql.withTransaction(work)),
  ports: ["MembershipStore"],
  // A subscription has one date, which changes of all of them replace.
  settlesAtOnce: true,
  // So that the tests of an example do not take long.
  runs: process.env["THOROUGH"] === "1" ? 15 : 5,
})

/** Runs a test with an account that has two subscriptions and a webhook. */
const test = <A, E>(name: string, run: Effect.Effect<A, E, StorePorts | PgClient.PgClient>) =>
  it.live(name, () =>
    Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
      yield* store.grant({ ...change(p1), userId: u2, endDate: in2027 })
      yield* (yield* WebhookStore).add(Fixture.makeWebhook(p1), 50, occasion)
      return yield* run
    }).pipe(Effect.provide(stores)),
  )

/** Everything that a change writes: subscriptions, audit rows, events and deliveries. */
const everything = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return {
    subscriptions: yield* sql`SELECT * FROM subscriptions ORDER BY account, customer`,
    changes: yield* sql`SELECT * FROM subscription_changes ORDER BY id`,
    events: yield* sql`SELECT id FROM tenure.events ORDER BY id`,
    deliveries: yield* sql`SELECT * FROM tenure.deliveries ORDER BY position`,
  }
})

type Change = Effect.Effect<
  unknown,
  | IdempotencyConflict
  | EndDateConflict
  | InvalidInput
  | MembershipNotFound
  | ProjectNotFound
  | StoreUnavailable
>

const changesOf = (store: MembershipStore["Service"]): ReadonlyArray<Change> => [
  store.grant({ ...change(p1), userId: u1, endDate: in2028 }),
  store.grant({ ...change(p1), userId: u3, endDate: in2028 }),
  store.extend({ ...change(p1), userId: u1, endDate: in2028 }),
  store.extendAll({ ...change(p1), bulk: { endDate: in2028, mode: "set" } }),
  store.end({ ...change(p1), userId: u1 }),
]

describe("a change is atomic", () => {
  test(
    "and writes nothing if its deliveries cannot be stored",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const store = yield* MembershipStore
      const before = yield* everything
      yield* sql`ALTER TABLE tenure.deliveries ADD CONSTRAINT broken CHECK (false) NOT VALID`
      for (const one of changesOf(store)) {
        const ended = yield* Effect.exit(one)
        expect(ended._tag).toBe("Failure")
      }
      yield* sql`ALTER TABLE tenure.deliveries DROP CONSTRAINT broken`
      expect(yield* everything).toEqual(before)
    }),
  )
})

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

/** Sends a signal to all processes of the database. */
const signal = (name: "STOP" | "CONT") =>
  Effect.sync(() => {
    const [pid = ""] = readFileSync(`${server.dataDirectory}/postmaster.pid`, "utf8").split("\n")
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", pid], { encoding: "utf8" })
    for (const one of [pid, ...children.trim().split(/\s+/)])
      process.kill(Number(one), `SIG${name}`)
  })

describe("while the database does not answer", () => {
  test(
    "every operation soon fails with StoreUnavailable, and succeeds again afterwards",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* signal("STOP")
      const all: ReadonlyArray<Change> = [
        ...changesOf(store),
        store.createProject(p1, occasion),
        store.find(p1, u1),
        store.list(p1, { after: undefined, limit: 1 }),
        store.history(p1, { userId: undefined, limit: 1 }),
      ]
      const began = performance.now()
      const errors = yield* Effect.forEach(all, (one) => Effect.flip(one), {
        concurrency: "unbounded",
      })
      // It takes about a second. Waiting for the database would take thirty.
      expect(performance.now() - began).toBeLessThan(10_000)
      for (const error of errors) expect(error).toBeInstanceOf(StoreUnavailable)
      yield* signal("CONT")
      expect((yield* Effect.eventually(store.find(p1, u2))).userId).toBe(u2)
      yield* Effect.eventually(store.extend({ ...change(p1), userId: u2, endDate: in2029 }))
      expect((yield* store.find(p1, u2)).endDate).toBe(in2029)
    }).pipe(Effect.ensuring(signal("CONT"))),
  )
})
