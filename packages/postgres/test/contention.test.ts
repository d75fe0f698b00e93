/** Contention: statements that wait for each other on a healthy database. */

import { describe, expect, it } from "@effect/vitest"
import { digestToken } from "@tenure/core/internal"
import {
  ApiKeyId,
  EndDate,
  MembershipStore,
  Outbox,
  TicketStore,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { migrate, postgresLayer } from "../src/index.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import {
  type Steps,
  claimUpTo,
  clientLayer,
  dropped,
  during,
  duringSteps,
  sql,
  testsOn,
  waitingOn,
} from "./harness.ts"

const schema = "contention"
const { in2027, in2028, in2029, context, p1, p2, u1, u2, u3 } = Fixture

const test = testsOn(schema)

const extend = (projectId = p1, userId = u1) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.extend({ ...Fixture.change(projectId), userId, endDate: in2028 }),
  )

const extendAll = (projectId: typeof p1, endDate: EndDate, mode: "set" | "neverShorten") =>
  Effect.flatMap(MembershipStore, (store) =>
    store.extendAll({ ...Fixture.change(projectId), bulk: { endDate, mode } }),
  )

const endOf = (projectId = p1, userId = u1) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.find(projectId, userId), ({ endDate }) => endDate),
  )

/** Starts work, and returns once it waits for a lock. */
const startBlocked = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.tap(Effect.forkDetach(work), () => waitingOn(schema))

const lockedMembers = `SELECT 1 FROM ${schema}.memberships
  WHERE project_number = (SELECT number FROM ${schema}.projects WHERE id = 'p1')`
const lockedMember = `${lockedMembers} AND user_id = '1001' FOR UPDATE`
const lockedProject = `SELECT 1 FROM ${schema}.projects WHERE id = 'p1' FOR UPDATE`

const start = (calls: ReadonlyArray<Effect.Effect<unknown, unknown, MembershipStore>>) =>
  Effect.forEach(calls, (call) => Effect.forkDetach(call))

/** Runs steps on stores with another client. */
const withClient = (options: Parameters<typeof clientLayer>[0], steps: Steps): Steps =>
  function* () {
    const stores = Layer.fresh(postgresLayer({ schema, migrate: false }))
    yield* Effect.provide(Effect.gen(steps), Layer.provideMerge(stores, clientLayer(options)))
  }

const arePending = (fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) =>
  fibers.every((fiber) => fiber.pollUnsafe() === undefined)

describe("an extension of a locked membership", () => {
  test("does not hold up other extensions, and succeeds when the lock is released", function* () {
    const waiting = yield* duringSteps(sql(lockedMember), function* () {
      const locked = yield* Effect.forEach([1, 2, 3], () => Effect.forkDetach(extend()))
      yield* Effect.all([extend(p1, u2), extend(p2, u1), extend(p2, u2)], {
        concurrency: "unbounded",
      })
      expect(arePending(locked)).toBe(true)
      return locked
    })
    yield* Effect.forEach(waiting, Fiber.join)
    expect(yield* endOf()).toBe(in2028)
  })

  test("is overridden by a bulk extension meanwhile, and comes before it in the audit trail", function* (store) {
    const waiting = startBlocked(extend())
    yield* Fiber.join(
      yield* during(
        sql(lockedMember),
        Effect.tap(waiting, () => extendAll(p1, in2029, "set")),
      ),
    )
    expect(yield* endOf()).toBe(in2029)
    expect(yield* store.history(p1, { userId: undefined, limit: 2 })).toMatchObject([
      { action: "bulk_extended", to: in2029 },
      { action: "extended", from: in2027, to: in2028 },
    ])
  })
})

/** Extensions that depend on the date that the membership has, which is 2027. */
describe.each([
  ["expects a date", { endDate: in2029, expectedEndDate: in2027 }],
  ["leaves later dates", { endDate: in2029, mode: "neverShorten" }],
] as const)("an extension that %s", (_, condition) => {
  const extendIf = Effect.flatMap(MembershipStore, (store) =>
    Effect.result(store.extend({ ...Fixture.change(p1), userId: u1, ...condition })),
  )

  test("is not passed by a bulk extension while it waits for its membership", function* () {
    const { bulk, extension, seen } = yield* duringSteps(sql(lockedMember), function* () {
      const waiting = yield* startBlocked(extendIf)
      const next = yield* Effect.forkDetach(extendAll(p1, in2028, "neverShorten"))
      // Long enough for one that waits for nothing.
      yield* Effect.timeoutOption(Fiber.await(next), 1000)
      return { extension: waiting, bulk: next, seen: yield* endOf() }
    })
    expect(yield* Fiber.join(extension)).toMatchObject({ _tag: "Success" })
    yield* Fiber.join(bulk)
    // The date that it has replaced is that which everybody has seen until then.
    expect([seen, yield* endOf()]).toEqual([in2027, in2029])
    const store = yield* MembershipStore
    expect(yield* store.history(p1, { userId: u1, limit: 10 })).toMatchObject([
      { action: "extended", from: in2027, to: in2029 },
      { action: "granted", from: undefined, to: in2027 },
    ])
  })

  test("compares the date of a bulk extension that is committed while it waits for the project", function* () {
    const endDate = EndDate(in2029 + 1)
    const extension = yield* during(extendAll(p1, endDate, "neverShorten"), startBlocked(extendIf))
    expect(yield* Fiber.join(extension)).toMatchObject(
      "expectedEndDate" in condition
        ? { _tag: "Failure", failure: { currentEndDate: endDate } }
        : { _tag: "Success", success: { _tag: "EndsLater", endDate } },
    )
    expect(yield* endOf()).toBe(endDate)
  })
})

test("a project that somebody has locked holds up no other project, and nothing that all need", function* (store) {
  const webhooks = yield* WebhookStore
  const outbox = yield* Outbox
  /** Each kind once. */
  const calls = (projectId: typeof p1) => {
    const membership = { userId: u3, endDate: in2028 }
    return [
      extendAll(projectId, in2028, "set"),
      extendAll(projectId, in2028, "neverShorten"),
      store.grant({ ...Fixture.change(projectId), ...membership }),
      store.import({ ...Fixture.change(projectId), memberships: [membership] }),
      webhooks.add(Fixture.makeWebhook(projectId), 100, context),
      extend(projectId, u1),
      extend(projectId, u2),
    ]
  }
  const waiting = yield* duringSteps(
    sql(`WITH project AS MATERIALIZED (${lockedProject}), members AS MATERIALIZED (${lockedMembers} FOR UPDATE)
     SELECT (SELECT count(*) FROM project), (SELECT count(*) FROM members)`),
    function* () {
      const all = Array.from({ length: 12 }, () => calls(p1)).flat()
      const fibers = yield* start(all)
      yield* waitingOn(schema)
      const publication = outbox.publish(Fixture.event(p2))
      const others = [...calls(p2), endOf(), publication, claimUpTo(1), store.ping]
      yield* Effect.forEach(
        others,
        (call) => Effect.asVoid<unknown, unknown, MembershipStore | Outbox>(call),
        { concurrency: "unbounded" },
      )
      expect(arePending(fibers)).toBe(true)
      return fibers
    },
  )
  yield* Effect.forEach(waiting, Fiber.join)
  expect(yield* endOf()).toBe(in2028)
})

describe("a pool", () => {
  test(
    "whose connections all wait for locks is no outage, and all succeed when the lock is released",
    withClient({ maxConnections: 2 }, function* () {
      const store = yield* MembershipStore
      const granting = Effect.suspend(() =>
        store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2028 }),
      )
      const waiting = yield* duringSteps(sql(lockedProject), function* () {
        const fibers = yield* start([granting, granting, granting, granting, endOf(p2)])
        // Elapsed time is what this test is about: long enough to probe the database.
        yield* Effect.sleep(1200)
        return fibers
      })
      yield* Effect.forEach(waiting, Fiber.join)
      expect(yield* endOf()).toBe(in2028)
    }),
  )

  test(
    "may have a single connection",
    withClient({ maxConnections: 1 }, function* () {
      const all = [extend(), extend(p2), endOf(), endOf(p2)]
      yield* Effect.all(all, { concurrency: "unbounded" })
    }),
  )
})

test("replays of a webhook at the same time wait for one connection, and all succeed", function* () {
  const webhook = Fixture.makeWebhook(p1)
  yield* (yield* WebhookStore).add(webhook, 100, context)
  const replay = (yield* Outbox).replayMany(
    { projectId: p1, webhookId: webhook.id },
    { since: 0, types: undefined, kinds: ["missed"], position: undefined, isDryRun: false },
    undefined,
  )
  const replays = yield* duringSteps(
    sql(`SELECT pg_advisory_xact_lock(hashtextextended('"${schema}".replay ${webhook.id}', 0))`),
    function* () {
      const started = yield* Effect.forEach(Array(20), () => Effect.forkDetach(replay))
      yield* waitingOn(schema)
      const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}"%'`
      expect(yield* sql(waiting)).toHaveLength(1)
      return started
    },
  )
  const pages = yield* Effect.forEach(replays, Fiber.join)
  const counts = pages.map((page) => ("replayed" in page ? page.replayed : undefined))
  // The two members' grants are missed.
  expect(counts.toSorted()).toEqual([...Array(19).fill(0), 2])
})

test("a webhook waits for one that is being added, and counts it for the limit", function* () {
  const store = yield* WebhookStore
  const add = Effect.suspend(() => store.add(Fixture.makeWebhook(p1), 1, context))
  const waiting = yield* during(add, startBlocked(Effect.flip(add)))
  expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "WebhookLimitReached" })
})

test("a webhook beside more than a thousand that fail is reached by the third claim, because claims continue where the last one stopped", function* () {
  const outbox = yield* Outbox
  yield* sql(`
    INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, failures)
    SELECT gen_random_uuid(), number, 'http://127.0.0.1:1', 'whsec_', now(), 1
    FROM ${schema}.projects, generate_series(1, 1100) WHERE projects.id = 'p1'`)
  yield* outbox.publish(Fixture.event(p1))
  const webhook = Fixture.makeWebhook(p2)
  yield* (yield* WebhookStore).add(webhook, 50, context)
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
})

test("an attempt whose response PostgreSQL cannot store is recorded with replacement characters", function* () {
  const outbox = yield* Outbox
  const webhook = Fixture.makeWebhook(p1)
  yield* (yield* WebhookStore).add(webhook, 50, context)
  yield* outbox.publish(Fixture.event(p1))
  const [claim] = (yield* claimUpTo(1)).claims
  if (claim === undefined) return yield* Effect.die("no claim")
  const result = { _tag: "Answered", status: 200, body: "a\0b\ud800" } as const
  const attempt = { at: 0, durationMillis: 1, result }
  expect(yield* outbox.settle(claim, { _tag: "Delivered", attempt })).toBe("Settled")
  expect(
    yield* outbox.deliveries({ projectId: p1, webhookId: webhook.id }, { limit: 1 }),
  ).toMatchObject([{ eventId: claim.event.id, attempts: [{ result: { body: "a\ufffdb\ufffd" } }] }])
})

describe("the host's client", () => {
  test(
    "may transform the names of columns",
    withClient(
      {
        transformResultNames: (name) => name.toUpperCase(),
        transformQueryNames: (name) => name.toLowerCase(),
      },
      function* () {
        yield* extend()
        expect(yield* endOf()).toBe(in2028)
      },
    ),
  )

  it.live("may have a stricter isolation level while several processes migrate", () =>
    Effect.gen(function* () {
      const startupParameters = { default_transaction_isolation: "repeatable read" }
      const migrated = "contention_migrated"
      yield* dropped(migrated)
      const migrating = Effect.provide(
        migrate({ schema: migrated }),
        clientLayer({ startupParameters }),
      )
      const applied = yield* Effect.replicateEffect(migrating, 6, { concurrency: "unbounded" })
      expect(applied.flat()).toEqual(migrations.map((_, index) => index + 1))
    }),
  )
})

test("a ticket that another process is adding counts for those of its key, and holds up no other key", function* () {
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
  const waiting = yield* duringSteps(
    sql(
      `SELECT * FROM ${schema}.add_ticket('others', 'a key', NULL, NULL, interval '1 minute', 2)`,
    ),
    function* () {
      const fiber = yield* Effect.forkDetach(Effect.flip(add("second")))
      yield* Effect.raceFirst(waitingOn(schema), Fiber.join(fiber))
      yield* add("first of another", "another")
      return fiber
    },
  )
  expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "TicketLimitReached" })
})
