/** Contention: statements that wait for each other on a healthy database. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { digestToken } from "@tenure/core/internal"
import {
  ApiKeyId,
  type Claim,
  EndDate,
  type EventId,
  MembershipStore,
  Outbox,
  TicketStore,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { migrate } from "../src/index.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { clientLayer, dropped } from "./harness.ts"
import { blocked, blockedOn, holding, testsOn } from "./locking.ts"

const schema = "contention"
const { in2027, in2028, in2029, occasion, p1, p2, u1, u2, u3 } = Fixture

const onStores = testsOn(schema)

const extend = (projectId = p1, userId = u1) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.extend({ ...Fixture.change(projectId), userId, endDate: in2028 }),
  )

const find = (projectId = p1, userId = u1) =>
  Effect.flatMap(MembershipStore, (store) => store.find(projectId, userId))

const membersOfP1 = `SELECT 1 FROM ${schema}.memberships
  WHERE project_number = (SELECT number FROM ${schema}.projects WHERE id = 'p1')`

describe("an extension of a locked membership", () => {
  onStores(
    "does not hold up other extensions, and succeeds when the lock is released",
    Effect.gen(function* () {
      const waiting = yield* holding(
        `${membersOfP1} AND user_id = '1001' FOR UPDATE`,
        Effect.gen(function* () {
          const locked = yield* Effect.forEach([1, 2, 3], () => Effect.forkDetach(extend()))
          yield* Effect.all([extend(p1, u2), extend(p2, u1), extend(p2, u2)], {
            concurrency: "unbounded",
          })
          // The extensions of other members are done, while these still wait.
          expect(locked.map((fiber) => fiber.pollUnsafe())).toEqual([
            undefined,
            undefined,
            undefined,
          ])
          return locked
        }),
      )
      yield* Effect.forEach(waiting, Fiber.join)
      expect((yield* find()).endDate).toBe(in2028)
    }),
  )

  onStores(
    "is overridden by a bulk extension meanwhile, and comes before it in the audit trail",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const extension = yield* holding(
        `${membersOfP1} AND user_id = '1001' FOR UPDATE`,
        Effect.gen(function* () {
          const waiting = yield* Effect.forkDetach(extend())
          yield* blockedOn(schema)
          yield* store.extendAll({ ...Fixture.change(p1), bulk: { endDate: in2029, mode: "set" } })
          return waiting
        }),
      )
      yield* Fiber.join(extension)
      expect((yield* find()).endDate).toBe(in2029)
      expect(yield* store.history(p1, { userId: undefined, limit: 2 })).toMatchObject([
        { action: "bulk_extended", to: in2029 },
        { action: "extended", from: in2027, to: in2028 },
      ])
    }),
  )
})

/** Extensions that depend on the date that the membership has, which is 2027. */
const conditions = [
  ["expects a date", { endDate: in2029, expectedEndDate: in2027 }],
  ["leaves later dates", { endDate: in2029, mode: "neverShorten" }],
] as const

describe.each(conditions)("an extension that %s", (_, condition) => {
  const extendIf = Effect.flatMap(MembershipStore, (store) =>
    Effect.result(store.extend({ ...Fixture.change(p1), userId: u1, ...condition })),
  )

  const historyOf = Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.history(p1, { userId: u1, limit: 10 }), (rows) =>
      rows.map(({ action, from, to }) => [action, from, to]),
    ),
  )

  onStores(
    "is not passed by a bulk extension while it waits for its membership",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const { bulk, extension, seen } = yield* holding(
        `${membersOfP1} AND user_id = '1001' FOR UPDATE`,
        Effect.gen(function* () {
          const waiting = yield* Effect.forkDetach(extendIf)
          yield* blockedOn(schema)
          const all = {
            ...Fixture.change(p1),
            bulk: { endDate: in2028, mode: "neverShorten" },
          } as const
          const next = yield* Effect.forkDetach(store.extendAll(all))
          // Long enough for one that waits for nothing.
          yield* Effect.timeoutOption(Fiber.await(next), 1000)
          return { extension: waiting, bulk: next, seen: (yield* find()).endDate }
        }),
      )
      expect(yield* Fiber.join(extension)).toMatchObject({ _tag: "Success" })
      yield* Fiber.join(bulk)
      // The date that it has replaced is that which everybody has seen until then.
      expect(seen).toBe(in2027)
      expect((yield* find()).endDate).toBe(in2029)
      expect(yield* historyOf).toEqual([
        ["extended", in2027, in2029],
        ["granted", undefined, in2027],
      ])
    }),
  )

  onStores(
    "compares the date of a bulk extension that is committed while it waits for the project",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const client = yield* PgClient.PgClient
      const services = yield* Effect.context<MembershipStore | PgClient.PgClient>()
      const endDate = EndDate(in2029 + 1)
      const extension = yield* client.withTransaction(
        Effect.gen(function* () {
          yield* store.extendAll({ ...Fixture.change(p1), bulk: { endDate, mode: "neverShorten" } })
          const waiting = Effect.tap(Effect.forkDetach(extendIf), () => blockedOn(schema))
          // A new fiber runs outside of the transaction.
          return yield* Effect.promise(() => Effect.runPromiseWith(services)(waiting))
        }),
      )
      expect(yield* Fiber.join(extension)).toMatchObject(
        "expectedEndDate" in condition
          ? { _tag: "Failure", failure: { currentEndDate: endDate } }
          : { _tag: "Success", success: { _tag: "EndsLater", endDate } },
      )
      expect((yield* find()).endDate).toBe(endDate)
    }),
  )
})

const lockedMembers = `${membersOfP1} FOR UPDATE`
const lockedProject = `SELECT 1 FROM ${schema}.projects WHERE id = 'p1' FOR UPDATE`

describe("a project that somebody has locked", () => {
  onStores(
    "holds up no other project, and nothing that all need",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const webhooks = yield* WebhookStore
      const outbox = yield* Outbox
      const extendAll = (projectId: typeof p1, mode: "set" | "neverShorten") =>
        store.extendAll({ ...Fixture.change(projectId), bulk: { endDate: in2028, mode } })
      /** Calls of each kind. */
      const calls = (projectId: typeof p1) => [
        extendAll(projectId, "set"),
        extendAll(projectId, "neverShorten"),
        store.grant({ ...Fixture.change(projectId), userId: u3, endDate: in2028 }),
        store.import({
          ...Fixture.change(projectId),
          memberships: [{ userId: u3, endDate: in2028 }],
        }),
        webhooks.add(Fixture.makeWebhook(projectId), 100, occasion),
        extend(projectId, u1),
        extend(projectId, u2),
      ]
      const waiting = yield* holding(
        `WITH project AS MATERIALIZED (${lockedProject}), members AS MATERIALIZED (${lockedMembers})
         SELECT (SELECT count(*) FROM project), (SELECT count(*) FROM members)`,
        Effect.gen(function* () {
          const all = Array.from({ length: 12 }, () => calls(p1)).flat()
          const fibers = yield* Effect.forEach(all, (call) =>
            Effect.forkDetach(Effect.asVoid<unknown, unknown, MembershipStore>(call)),
          )
          yield* blocked
          const others = [
            ...calls(p2),
            find(p1),
            outbox.publish(Fixture.event(p2)),
            outbox.claim({
              limit: 1,
              failing: 1,
              perWebhook: { least: 1, most: 1 },
              perProject: 1,
              ahead: new Map(),
              leaseMillis: 60_000,
            }),
            store.ping,
          ]
          yield* Effect.forEach(
            others,
            (call) => Effect.asVoid<unknown, unknown, MembershipStore>(call),
            { concurrency: "unbounded" },
          )
          expect(fibers.map((fiber) => fiber.pollUnsafe())).toEqual(fibers.map(() => undefined))
          return fibers
        }),
      )
      yield* Effect.forEach(waiting, Fiber.join)
      expect((yield* find()).endDate).toBe(in2028)
    }),
  )
})

describe("a pool whose connections all wait for locks", () => {
  onStores(
    "is not treated as an outage, and all operations succeed when the lock is released",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const waiting = yield* holding(
        `SELECT 1 FROM ${schema}.projects WHERE id = 'p1' FOR UPDATE`,
        Effect.gen(function* () {
          const all = yield* Effect.forEach([1, 2, 3, 4], () =>
            Effect.forkDetach(store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2028 })),
          )
          const reading = yield* Effect.forkDetach(Effect.asVoid(find(p2)))
          // Elapsed time is what this test is about: long enough for a probe of the database.
          yield* Effect.sleep(1200)
          return { all, reading }
        }),
      )
      yield* Effect.forEach(waiting.all, (fiber) => Fiber.join(fiber))
      yield* Fiber.join(waiting.reading)
      expect((yield* find()).endDate).toBe(in2028)
    }),
    { maxConnections: 2 },
  )

  onStores(
    "may have a single connection",
    Effect.gen(function* () {
      yield* Effect.all([extend(), extend(p2), find(), find(p2)], { concurrency: "unbounded" })
    }),
    { maxConnections: 1 },
  )
})

describe("webhooks with ready deliveries", () => {
  onStores(
    "take turns, even if a claim takes fewer deliveries than there are webhooks",
    Effect.gen(function* () {
      const store = yield* WebhookStore
      const outbox = yield* Outbox
      yield* Effect.forEach(Array.from({ length: 40 }), () =>
        store.add(Fixture.makeWebhook(p1), 100, occasion),
      )
      yield* outbox.publish(Fixture.event(p1))
      yield* outbox.publish(Fixture.event(p1))
      const claims: Array<Claim> = []
      for (let round = 0; round < 8; round++) {
        const options = {
          limit: 5,
          failing: 5,
          perWebhook: { least: 4, most: 4 },
          perProject: 100,
          ahead: new Map(),
          leaseMillis: 60_000,
        }
        claims.push(...(yield* outbox.claim(options)).claims)
      }
      expect(new Set(claims.map(({ webhook }) => webhook.webhookId)).size).toBe(40)
    }),
  )
})

/** Adds webhooks whose attempts fail, each with a delivery that is ready. */
const addFailing = (count: number) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql.unsafe(`
      INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, failures)
      SELECT gen_random_uuid(), number, 'http://127.0.0.1:1', 'whsec_', now(), 1
      FROM ${schema}.projects, generate_series(1, ${count}) WHERE projects.id = 'p1'`)
    yield* (yield* Outbox).publish(Fixture.event(p1))
  })

describe("replays of a webhook at the same time", () => {
  onStores(
    "wait for one connection, and all succeed",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const webhook = Fixture.makeWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 100, occasion)
      const all = { since: 0, types: undefined, kinds: ["missed"], position: undefined } as const
      const replay = outbox.replayMany(
        { projectId: p1, webhookId: webhook.id },
        { ...all, isDryRun: false },
        undefined,
      )
      const replays = yield* holding(
        `SELECT pg_advisory_xact_lock(hashtextextended('"${schema}".replay ${webhook.id}', 0))`,
        Effect.gen(function* () {
          const started = yield* Effect.forEach(Array(20), () => Effect.forkDetach(replay))
          yield* blockedOn(schema)
          const waiting = yield* PgClient.PgClient.use((client) =>
            client.unsafe(
              `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}"%'`,
            ),
          )
          expect(waiting).toHaveLength(1)
          return started
        }),
      )
      const pages = yield* Effect.forEach(replays, Fiber.join)
      const counts = pages.map((page) => ("replayed" in page ? page.replayed : undefined))
      // The grants of two members are missed.
      expect(counts.toSorted()).toEqual([...Array(19).fill(0), 2])
    }),
  )
})

describe("a webhook beside more than a thousand that fail", () => {
  onStores(
    "is reached by the third claim, because claims continue where the last one stopped",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      yield* addFailing(1100)
      const webhook = Fixture.makeWebhook(p2)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      yield* outbox.publish(Fixture.event(p2))
      // Failing webhooks have all the attempts that they may have.
      const claim = outbox.claim({
        limit: 10,
        failing: 0,
        perWebhook: { least: 4, most: 4 },
        perProject: 100,
        ahead: new Map(),
        leaseMillis: 60_000,
      })
      const claimed = yield* Effect.all([claim, claim, claim])
      const ids = claimed.flatMap(({ claims }) => claims.map((one) => one.webhook.webhookId))
      expect(ids).toEqual([webhook.id])
      expect(claimed.map(({ nextDueMillis }) => nextDueMillis)).toEqual([0, 0, 0])
    }),
  )
})

describe("an attempt whose response PostgreSQL cannot store", () => {
  onStores(
    "is recorded with replacement characters",
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const webhook = Fixture.makeWebhook(p1)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      yield* outbox.publish(Fixture.event(p1))
      const { claims } = yield* outbox.claim({
        limit: 1,
        failing: 1,
        perWebhook: { least: 4, most: 4 },
        perProject: 100,
        ahead: new Map(),
        leaseMillis: 60_000,
      })
      const [claim] = claims
      const result = { _tag: "Answered", status: 200, body: "a\0b\ud800" } as const
      const attempt = { at: 0, durationMillis: 1, result }
      expect(claim && (yield* outbox.settle(claim, { _tag: "Delivered", attempt }))).toBe("Settled")
      const ids: ReadonlyArray<EventId> = claims.map(({ event }) => event.id)
      const of = { projectId: p1, webhookId: webhook.id }
      expect(yield* outbox.deliveries(of, { limit: 1 })).toMatchObject([
        { eventId: ids[0], attempts: [{ result: { body: "a\ufffdb\ufffd" } }] },
      ])
    }),
  )
})

describe("the host's client", () => {
  onStores(
    "may transform the names of columns",
    Effect.gen(function* () {
      yield* extend()
      expect((yield* find()).endDate).toBe(in2028)
    }),
    {
      transformResultNames: (name) => name.toUpperCase(),
      transformQueryNames: (name) => name.toLowerCase(),
    },
  )

  it.live("may have a stricter isolation level while several processes migrate", () =>
    Effect.gen(function* () {
      const isolated = clientLayer({
        startupParameters: { default_transaction_isolation: "repeatable read" },
      })
      const migrated = "contention_migrated"
      yield* dropped(migrated)
      const applied = yield* Effect.all(
        Array.from({ length: 6 }, () => Effect.provide(migrate({ schema: migrated }), isolated)),
        { concurrency: "unbounded" },
      )
      expect(applied.flat()).toEqual(migrations.map((_, index) => index + 1))
    }),
  )
})

describe("a ticket that another process is adding", () => {
  const others = `SELECT * FROM ${schema}.add_ticket('others', 'a key', NULL, NULL, interval '1 minute', 2)`

  onStores(
    "counts for those of its key, and holds up no other key",
    Effect.gen(function* () {
      const store = yield* TicketStore
      const add = (text: string, keyId = "a key") =>
        store.add(
          {
            digest: digestToken(text),
            keyId: ApiKeyId(keyId),
            keyDigest: undefined,
            projects: "all",
          },
          { lifeMillis: 60_000, most: 2 },
        )
      yield* add("first")
      const waiting = yield* holding(
        others,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkDetach(Effect.exit(add("second")))
          yield* Effect.raceFirst(blocked, Fiber.join(fiber))
          yield* add("first of another", "another")
          return fiber
        }),
      )
      expect(yield* Effect.flip(Effect.flatten(Fiber.join(waiting)))).toMatchObject({
        _tag: "TicketLimitReached",
      })
    }),
  )
})
