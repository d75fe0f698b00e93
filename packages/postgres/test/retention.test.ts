/** What is deleted when: events, audit rows and idempotency keys by their age, and what deleted projects have left. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { newEventId } from "@tenure/core/internal"
import {
  ApiKeyStore,
  type AttemptResult,
  EndDate,
  EventId,
  MembershipStore,
  Millis,
  Outbox,
  type ProjectId,
  UserId,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as TestClock from "effect/testing/TestClock"
import { postgresLayer } from "../src/index.ts"
import { extend, paramsOfEach } from "../src/memberships.sql.ts"
import {
  beginAudit,
  createDays,
  deleteOldEvents,
  deleteOldFailedDeliveries,
  deleteOldIdempotencyKeys,
  dropAudit,
  dropDay,
  purgeDeletedProjects,
  startRetention,
} from "../src/retention.ts"
import { daysParam } from "../src/sql/values.ts"
import {
  type Steps,
  claimAll,
  clientLayer,
  countRows,
  during,
  duringSteps,
  executorOf,
  ownSchema,
  sql,
  valuesOf,
  waitingOn,
} from "./harness.ts"

const schema = "retention"
const name = `"${schema}"`
const dayMillis = 86_400_000
const { change, in2027, context, p1, p2 } = Fixture
const webhook = Fixture.makeWebhook(p1)
const ref = { projectId: p1, webhookId: webhook.id }
const userId = UserId("1001")

const { empty, stores } = ownSchema(schema)

/** Drops all days and parts, and creates those that a new schema has. */
const resetDays = sql(`
  DO $$ DECLARE part text; BEGIN
    FOR part IN
      SELECT oid::regclass FROM pg_class
      WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'r' AND relname ~ '_[0-9]{8}$'
    LOOP EXECUTE 'DROP TABLE ' || part; END LOOP;
    PERFORM ${schema}.create_days();
  END $$`)

const dayBefore = (count: number): string =>
  `((clock_timestamp() AT TIME ZONE 'UTC')::date - ${count})`

const createPart = (daysAgo: number) =>
  sql(`SELECT ${schema}.create_audit_part(${dayBefore(daysAgo)})`)

/** Continues the audit trail with a part that began some days ago. */
const continueIn = (daysAgo: number) =>
  Effect.andThen(
    createPart(daysAgo),
    sql(`SELECT setval('${schema}.audit_ids', ${schema}.first_audit_id(${dayBefore(daysAgo)}))`),
  )

/** Runs a test on stores with an audit trail that began nine days ago. */
const onEmpty = (title: string, steps: Steps) =>
  it.live(title, () =>
    Effect.all([resetDays, continueIn(9), empty, Effect.gen(steps)]).pipe(Effect.provide(stores)),
  )

/** Runs a test on stores with a project that has a webhook. */
const onWebhook = (title: string, steps: Steps) =>
  onEmpty(title, function* () {
    yield* (yield* MembershipStore).createProject(p1, context)
    yield* (yield* WebhookStore).add(webhook, 50, context)
    yield* Effect.gen(steps)
  })

const daysAgo = (count: number): number => Date.now() - count * dayMillis

const createDay = (at: number) =>
  sql(`SELECT ${schema}.create_day('${new Date(at).toISOString().slice(0, 10)}')`)

/** Publishes an event with a time, on a day that has its partition by then. */
const publish = (at: number) =>
  Effect.gen(function* () {
    const id = newEventId(crypto, at)
    yield* createDay(at)
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

const dropOldDay = sql(dropDay(name), [daysParam(3 * dayMillis)])

/** Deletes what is old: delivered rows after three days, failed ones after thirty. */
const forget = Effect.gen(function* () {
  yield* sql(deleteOldFailedDeliveries(name), [daysParam(30 * dayMillis)])
  yield* sql(deleteOldEvents(name), [daysParam(30 * dayMillis)])
  yield* Effect.repeat(dropOldDay, { while: (rows) => rows.length > 0 })
})

/** The webhook's deliveries: ids and states, newest first. */
const listed = Effect.flatMap(Outbox, (outbox) => outbox.deliveries(ref, { limit: 100 })).pipe(
  Effect.map((all) => all.map(({ eventId, state }) => [eventId, state])),
)

const count = (table: string) => countRows(`${schema}.${table}`)

/** The partitions that events have, without the default one, as days from today. */
const partitions = valuesOf<number>(
  `SELECT right(relname, 8)::date - (now() AT TIME ZONE 'UTC')::date AS day FROM pg_class
   WHERE relnamespace = '${schema}'::regnamespace AND relname ~ '^events_[0-9]{8}$' ORDER BY day`,
)

/** Drops the partitions for the day after tomorrow. */
const dropLast = Effect.suspend(() => {
  const suffix = new Date(daysAgo(-2)).toISOString().slice(0, 10).replaceAll("-", "")
  const tables = ["events", "finished_deliveries", "delivered_runs"]
  return sql(`DROP TABLE ${tables.map((table) => `${schema}.${table}_${suffix}`).join(", ")}`)
})

describe("an event", () => {
  onWebhook("is dropped with its day after three days, and can be replayed before", function* () {
    const outbox = yield* Outbox
    yield* publish(daysAgo(6))
    yield* publish(daysAgo(4))
    const kept = [yield* publish(daysAgo(2.9)), yield* publish(daysAgo(0))] as const
    yield* settle(delivered)
    yield* forget
    expect(yield* listed).toEqual(kept.map((id) => [id, "delivered"]).toReversed())
    expect(yield* Effect.all([count("events"), count("delivered_runs")])).toEqual([2, 2])
    expect(yield* partitions).toEqual([expect.any(Number), 0, 1, 2])
    expect(yield* outbox.replay(ref, kept[0])).toBe(1)
    expect(yield* count("finished_deliveries")).toBe(0)
    yield* settle(delivered)
    expect(yield* count("finished_deliveries")).toBe(1)
    const replayed = (yield* outbox.deliveries(ref, { limit: 2 })).find(
      ({ eventId }) => eventId === kept[0],
    )
    expect(replayed).toMatchObject({ state: "delivered", attempts: [answered, answered] })
  })

  onWebhook("whose delivery is open stays when all others of its day are gone", function* () {
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
  })

  onWebhook("whose delivery has failed is kept for thirty days, and can be replayed", function* () {
    const kept = yield* publish(daysAgo(29))
    yield* publish(daysAgo(31))
    yield* settle(failed)
    yield* forget
    expect(yield* listed).toEqual([[kept, "failed"]])
    expect(yield* Effect.all([count("deliveries"), count("events")])).toEqual([1, 1])
    const all = { since: 0, types: undefined, position: undefined, isDryRun: false } as const
    const replayed = (yield* Outbox).replayMany(ref, { ...all, kinds: ["failed"] })
    expect(yield* replayed).toMatchObject({ replayed: 1 })
    yield* sql(`UPDATE ${schema}.webhooks SET paused_until = NULL`)
    yield* settle(delivered)
    expect(yield* listed).toEqual([[kept, "delivered"]])
    // Two more days pass.
    yield* sql(`UPDATE ${schema}.events SET at = at - interval '2 days'`)
    yield* forget
    expect(yield* Effect.all([count("events"), count("finished_deliveries")])).toEqual([0, 0])
  })

  onWebhook("of a day with many that are needed stays until these are fewer", function* () {
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
    expect(yield* listed).toEqual([])
  })

  onWebhook("whose id tells no time, or a wrong one, is deleted by its date", function* () {
    const outbox = yield* Outbox
    const publishAt = (age: number, id = EventId(crypto.randomUUID())) =>
      Effect.as(outbox.publish({ ...Fixture.event(p1), id, at: daysAgo(age) }), id)
    yield* publishAt(31, newEventId(crypto, Date.UTC(2099, 0)))
    yield* publishAt(31)
    const kept = yield* publishAt(29)
    yield* settle(delivered)
    const open = yield* publishAt(31)
    expect(yield* count("events_default")).toBe(4)
    yield* forget
    expect(yield* listed).toEqual([
      [open, "waiting"],
      [kept, "delivered"],
    ])
    expect(yield* Effect.all([count("events"), count("delivered_runs")])).toEqual([2, 1])
  })

  onWebhook("moves to its day when that is created", function* () {
    const at = daysAgo(5)
    const id = newEventId(crypto, at)
    yield* (yield* Outbox).publish({ ...Fixture.event(p1), id, at })
    yield* settle(delivered)
    expect(yield* count("events_default")).toBe(1)
    yield* createDay(at)
    expect(yield* count("events_default")).toBe(0)
    expect(yield* listed).toEqual([[id, "delivered"]])
    yield* forget
    expect(yield* listed).toEqual([])
  })
})

describe("the days to come", () => {
  onEmpty("are created at the start", function* () {
    yield* dropLast
    expect(yield* partitions).toEqual([0, 1])
    const opened = Layer.build(Layer.fresh(postgresLayer({ schema, migrate: false })))
    yield* Effect.provide(opened, clientLayer({ maxConnections: 2 }))
    expect(yield* partitions).toEqual([0, 1, 2])
  })

  onWebhook("are left, as old ones are, while somebody has locked a table", function* () {
    yield* publish(daysAgo(5))
    yield* settle(delivered)
    yield* dropLast
    const create = sql(createDays(name))
    const meanwhile = during(
      // As long as a statement that writes events.
      sql(`LOCK TABLE ${schema}.events, ${schema}.finished_deliveries IN ROW EXCLUSIVE MODE`),
      Effect.all([dropOldDay, create, publish(Date.now())], { concurrency: 3 }),
    )
    expect(yield* meanwhile).toEqual([[], [], expect.any(String)])
    expect(yield* dropOldDay).toHaveLength(1)
    expect(yield* create).toHaveLength(1)
  })
})

describe("an idempotency key", () => {
  const forgetKeys = Effect.map(
    sql(deleteOldIdempotencyKeys(name), [daysParam(dayMillis)]),
    (rows) => rows.length,
  )

  onWebhook("is forgotten after a day, and not before, a thousand at a time", function* () {
    const client = yield* PgClient.PgClient
    const outbox = yield* Outbox
    const [old, recent] = [Fixture.idempotency(), Fixture.idempotency()]
    for (const key of [old, recent]) yield* outbox.publish(Fixture.event(p1), key)
    yield* sql(
      `UPDATE ${schema}.idempotency_keys SET at = at - interval '25 hours' WHERE key = $1::text`,
      [old.key],
    )
    yield* sql(`
      INSERT INTO ${schema}.idempotency_keys (owner, key, project_number, fingerprint, response, at)
      SELECT 'other', n::text, 0, '', '', now() - interval '2 days' FROM generate_series(1, 2500) n`)
    // Also where the planner joins tables in a poor way.
    const ways = ["hashjoin", "mergejoin", "hashagg", "sort", "material"]
    const poorly = Effect.forEach(ways, (way) => sql(`SET LOCAL enable_${way} = off`))
    expect(yield* client.withTransaction(Effect.andThen(poorly, forgetKeys))).toBe(1000)
    expect(yield* Effect.replicateEffect(forgetKeys, 3)).toEqual([1000, 501, 0])
    expect(yield* outbox.publish(Fixture.event(p1), recent)).toMatchObject({ _tag: "Replayed" })
    expect(yield* outbox.publish(Fixture.event(p1), old)).toBeUndefined()
  })
})

it.effect("full buckets are deleted in a schema without limits of its own, such as a cell", () =>
  Effect.gen(function* () {
    yield* empty
    yield* sql(`
      INSERT INTO ${schema}.rate_limit_buckets (id, full_at, burst_full_at)
      VALUES ('webhook:full', 1, NULL), ('webhook:later', 9e18, NULL), ('key:full', 1, 1), ('key:bursts', 1, 9e18)`)
    yield* startRetention(yield* executorOf(schema), {
      auditRetention: undefined,
      eventRetention: Millis(30 * dayMillis),
      failedRetention: Millis(30 * dayMillis),
      idempotencyRetention: Millis(dayMillis),
    })
    yield* TestClock.adjust("1 minute")
    const left = sql(`SELECT id FROM ${schema}.rate_limit_buckets ORDER BY id`)
    const rows = yield* Effect.repeat(left, {
      until: (found) => found.length <= 2,
      schedule: Schedule.spaced("10 millis"),
      times: 1000,
    }).pipe(TestClock.withLive)
    expect(rows).toEqual([{ id: "key:bursts" }, { id: "webhook:later" }])
  }).pipe(Effect.provide(clientLayer())),
)

describe("a part of the audit trail", () => {
  const ages = valuesOf<number>(
    `SELECT ${dayBefore(0)} - day FROM ${schema}.audit_parts ORDER BY day`,
  )

  const changed = Effect.map(({ length }: ReadonlyArray<unknown>) => length)
  const begin = (kept: number) => changed(sql(beginAudit(name), [daysParam(kept * dayMillis)]))
  const drop = (kept: number) => changed(sql(dropAudit(name), [daysParam(kept * dayMillis)]))

  const extendTo = (endDate: number) =>
    MembershipStore.use((memberships) =>
      memberships.extend({ ...change(p1), userId, endDate: EndDate(endDate) }),
    )

  /** The dates in the audit rows for the project or the user, newest first. */
  const history = (user?: UserId) =>
    MembershipStore.use((memberships) => memberships.history(p1, { limit: 10, userId: user })).pipe(
      Effect.map((rows) => rows.map(({ to }) => to)),
    )

  /** Runs a test on stores with a member. */
  const onMember = (title: string, steps: Steps) =>
    onEmpty(title, function* () {
      yield* (yield* MembershipStore).createProject(p1, context)
      yield* (yield* MembershipStore).grant({ ...change(p1), userId, endDate: EndDate(0) })
      yield* Effect.gen(steps)
    })

  onMember("is followed by another after a day or a thirtieth of the retention", function* () {
    expect(yield* begin(300)).toBe(0)
    expect(yield* begin(270)).toBe(1)
    expect([yield* begin(3), yield* begin(3)]).toEqual([1, 0])
    expect(yield* ages).toEqual([9, 0])
  })

  onMember("is dropped when all of it is old, and not before", function* () {
    yield* extendTo(1)
    for (const day of [5, 4, 3, 1]) {
      yield* continueIn(day)
      yield* extendTo(10 - day)
    }
    expect([yield* drop(3), yield* drop(3), yield* drop(3)]).toEqual([1, 1, 0])
    expect(yield* ages).toEqual([4, 3, 1])
    expect(yield* history()).toEqual([9, 7, 6])
  })

  onMember("that has not begun ends no other, and is replaced", function* () {
    yield* createPart(6)
    expect(yield* drop(3)).toBe(0)
    expect([yield* begin(3), yield* begin(3)]).toEqual([1, 1])
    expect(yield* ages).toEqual([9, 0])
    expect(yield* drop(3)).toBe(0)
    expect(yield* history()).toEqual([0])
  })

  onMember("does not begin before statements that know nothing of it have ended", function* () {
    // A store's statement would be cancelled and repeated when it meets the lock.
    const extension = { ...change(p1), userId, endDate: EndDate(1) }
    const extending = yield* duringSteps(
      sql(`SELECT FROM ${schema}.memberships FOR UPDATE`),
      function* () {
        const fiber = yield* Effect.forkDetach(sql(extend(name).always, paramsOfEach([extension])))
        yield* waitingOn(schema)
        expect([yield* begin(3), yield* begin(3)]).toEqual([1, 0])
        return fiber
      },
    )
    yield* Fiber.join(extending)
    expect(yield* begin(3)).toBe(1)
    yield* extendTo(2)
    expect(yield* history()).toEqual([2, 1, 0])
  })

  onMember("has its rows in the history in the order of the others'", function* () {
    yield* continueIn(1)
    const bulk = { endDate: EndDate(3), mode: "set" } as const
    yield* (yield* MembershipStore).extendAll({ ...change(p1), bulk })
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
  })
})

describe("a project that was deleted", () => {
  const members = 2500

  /** Fills a project with more than one batch each. */
  const fill = Effect.fnUntraced(function* (projectId: ProjectId) {
    const memberships = yield* MembershipStore
    yield* memberships.createProject(projectId, context)
    const one = Fixture.makeWebhook(projectId)
    yield* (yield* WebhookStore).add(one, 50, context)
    for (const [table, columns, values] of [
      ["delivery_minutes", "", ""],
      ["delivery_quarters", ", webhook_id, answer_times", `, '${one.id}', '{1}'`],
    ] as const) {
      yield* sql(
        `INSERT INTO ${schema}.${table} (project_number, at, delivered, failed${columns})
         SELECT number, to_timestamp(n), 1, 0${values}
         FROM ${schema}.projects, generate_series(1, 1500) n WHERE id = '${projectId}'`,
      )
    }
    yield* (yield* ApiKeyStore).add(Fixture.apiKey("a token", projectId), context)
    const all = Array.from({ length: members }, (_, n) => ({
      userId: UserId(String(n)),
      endDate: in2027,
    }))
    yield* memberships.import({ ...change(projectId), memberships: all })
    yield* Effect.forEach(
      all.slice(0, 1500),
      (member) => memberships.extend({ ...change(projectId), ...member }),
      { concurrency: "unbounded", discard: true },
    )
  })

  /** The tables, and how many rows each has after a project was deleted and created again with a member. */
  const remains = {
    projects: 1,
    memberships: 1,
    api_key_projects: 0,
    webhooks: 0,
    events: 1,
    deliveries: 0,
    finished_deliveries: 0,
    delivered_runs: 0,
    delivery_minutes: 0,
    delivery_quarters: 0,
    deleted_projects: 0,
    "audit WHERE project_number <> 0": 1,
  }

  const counts = Effect.all(
    Object.fromEntries(Object.keys(remains).map((table) => [table, count(table)])),
  )

  const step = sql(purgeDeletedProjects(name))

  /** Other tests have transactions open, too. */
  const purge = Effect.repeat(Effect.andThen(step, count("deleted_projects")), {
    while: (left) => left > 0,
    schedule: Schedule.spaced("5 millis"),
  })

  onEmpty("has rows in no other table", function* () {
    const named = yield* valuesOf<string>(
      `SELECT c.table_name::text
       FROM information_schema.columns c
       JOIN information_schema.tables t USING (table_schema, table_name)
       WHERE t.table_type = 'BASE TABLE' AND table_schema = '${schema}' AND column_name = 'project_number'
         AND table_name !~ '_([0-9]{8}|default)$' ORDER BY 1`,
    )
    // Idempotency keys are removed by their age.
    expect(named.join(" ")).toBe(
      "api_key_projects audit bulk_extensions delivered_runs delivery_minutes delivery_quarters erasures " +
        "events idempotency_keys memberships webhooks",
    )
  })

  onEmpty("loses its rows, a thousand at a time, once nobody can write more", function* () {
    const memberships = yield* MembershipStore
    yield* fill(p1)
    yield* duringSteps(sql("SELECT pg_current_xact_id()::text"), function* () {
      yield* memberships.deleteProject(p1, context)
      expect(yield* step).toEqual([])
      expect(yield* count("memberships")).toBe(members)
    })
    yield* memberships.createProject(p1, context)
    const before = yield* counts
    yield* fill(p2)
    const others = yield* counts
    yield* Effect.repeat(step, { until: (rows) => rows.length > 0 })
    expect(yield* count("memberships")).toBe(2 * members - 1000)
    yield* memberships.grant({ ...change(p1), userId, endDate: in2027 })
    yield* purge
    const left = Object.entries(yield* counts).map(([table, now]) => [
      table,
      now - ((others[table] ?? 0) - (before[table] ?? 0)),
    ])
    expect(Object.fromEntries(left)).toEqual(remains)
    expect(yield* memberships.findProject(p2)).toMatchObject({
      memberships: members,
      webhooks: 1,
    })
    expect((yield* memberships.find(p1, userId)).endDate).toBe(in2027)
    expect((yield* (yield* Outbox).backlog(10_000)).waiting).toBe(1501)
  })

  onEmpty("does not exist for a webhook that was being registered", function* () {
    const webhooks = yield* WebhookStore
    yield* (yield* MembershipStore).createProject(p1, context)
    const adding = yield* during(
      sql(`SELECT ${schema}.delete_project('p1', 'a channel')`),
      Effect.tap(
        Effect.forkDetach(Effect.flip(webhooks.add(webhook, 50, context))),
        waitingOn(schema),
      ),
    )
    expect((yield* Fiber.join(adding))._tag).toBe("ProjectNotFound")
  })
})
