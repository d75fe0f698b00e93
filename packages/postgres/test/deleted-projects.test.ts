/** What is left of projects that were deleted, and how it is removed. */

import type { PgClient } from "@effect/sql-pg"
import { beforeEach, expect, it } from "@effect/vitest"
import {
  ApiKeyStore,
  MembershipStore,
  Outbox,
  type StorePorts,
  UserId,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { postgresLayer } from "../src/index.ts"
import { purgeDeletedProjects } from "../src/retention.ts"
import { clientLayer, execute, sql } from "./harness.ts"
import { blockedOn, holding } from "./locking.ts"

const schema = "deleted_projects"
const { change, in2027, occasion, p1, p2 } = Fixture

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

const onStores = <A, E>(name: string, test: Effect.Effect<A, E, StorePorts | PgClient.PgClient>) =>
  it.live(name, () =>
    Effect.provide(
      test,
      Layer.fresh(postgresLayer({ schema })).pipe(Layer.provideMerge(clientLayer())),
    ),
  )

const members = 2500

/** Fills a project with more than one batch of everything. */
const fill = Effect.fnUntraced(function* (projectId: typeof p1) {
  const store = yield* MembershipStore
  yield* store.createProject(projectId, occasion)
  const webhook = Fixture.makeWebhook(projectId)
  yield* (yield* WebhookStore).add(webhook, 50, occasion)
  for (const [table, columns, values] of [
    ["delivery_minutes", "", ""],
    ["delivery_quarters", ", webhook_id, answer_times", `, '${webhook.id}', '{1}'`],
  ] as const) {
    yield* sql(
      `INSERT INTO ${schema}.${table} (project_number, at, delivered, failed${columns})
       SELECT number, to_timestamp(n), 1, 0${values}
       FROM ${schema}.projects, generate_series(1, 1500) n WHERE id = '${projectId}'`,
    )
  }
  yield* (yield* ApiKeyStore).add(Fixture.apiKey("a token", projectId), occasion)
  const userIds = Array.from({ length: members }, (_, n) => UserId(String(n)))
  const memberships = userIds.map((userId) => ({ userId, endDate: in2027 }))
  yield* store.import({ ...change(projectId), memberships })
  yield* Effect.forEach(
    memberships.slice(0, 1500),
    (one) => store.extend({ ...change(projectId), ...one }),
    { concurrency: "unbounded", discard: true },
  )
})

const tables = [
  "projects",
  "memberships",
  "api_key_projects",
  "webhooks",
  "events",
  "deliveries",
  "finished_deliveries",
  "delivery_minutes",
  "delivery_quarters",
  "deleted_projects",
] as const

const count = (table: string, where = "true") =>
  sql<{ readonly count: number }>(
    `SELECT count(*)::integer AS count FROM ${schema}.${table} WHERE ${where}`,
  ).pipe(Effect.map(([row]) => row?.count ?? NaN))

const counts = Effect.all([
  ...tables.map((table) => count(table)),
  count("audit", "project_number <> 0"),
])

const step = sql(purgeDeletedProjects(`"${schema}"`))

/** Other tests have transactions open, too. */
const forget = Effect.repeat(Effect.andThen(step, count("deleted_projects")), {
  while: (left) => left > 0,
  schedule: Schedule.spaced("5 millis"),
})

onStores(
  "no other table has rows of projects",
  Effect.gen(function* () {
    const named = yield* sql<{ readonly name: string }>(
      `SELECT c.table_name::text AS name
       FROM information_schema.columns c
       JOIN information_schema.tables t USING (table_schema, table_name)
       WHERE t.table_type = 'BASE TABLE' AND table_schema = '${schema}' AND column_name = 'project_number'
         AND table_name !~ '_([0-9]{8}|default)$' ORDER BY 1`,
    )
    // Idempotency keys are removed by their age.
    const expected = [
      "api_key_projects",
      "audit",
      "bulk_extensions",
      "delivery_minutes",
      "delivery_quarters",
      "erasures",
      "events",
      "idempotency_keys",
      "memberships",
      "webhooks",
    ]
    expect(named.map(({ name }) => name)).toEqual(expected)
  }),
)

onStores(
  "rows are removed a thousand at a time, and only those of the project that was deleted",
  Effect.gen(function* () {
    const store = yield* MembershipStore
    yield* fill(p1)
    yield* store.deleteProject(p1, occasion)
    yield* store.createProject(p1, occasion)
    const empty = yield* counts
    yield* fill(p2)
    const others = yield* counts
    yield* Effect.repeat(step, { until: (rows) => rows.length > 0 })
    expect(yield* count("memberships")).toBe(2 * members - 1000)
    yield* store.grant({ ...change(p1), userId: UserId("1"), endDate: in2027 })
    yield* forget
    const left = yield* counts
    const gained = left.map((now, index) => now - ((others[index] ?? 0) - (empty[index] ?? 0)))
    expect(
      Object.fromEntries([...tables, "audit"].map((name, index) => [name, gained[index]])),
    ).toEqual({
      projects: 1,
      memberships: 1,
      api_key_projects: 0,
      webhooks: 0,
      events: 1,
      deliveries: 0,
      finished_deliveries: 0,
      delivery_minutes: 0,
      delivery_quarters: 0,
      deleted_projects: 0,
      audit: 1,
    })
    expect(yield* store.findProject(p2)).toMatchObject({ memberships: members, webhooks: 1 })
    expect((yield* store.find(p1, UserId("1"))).endDate).toBe(in2027)
    expect((yield* (yield* Outbox).backlog(10_000)).waiting).toBe(1501)
  }),
)

onStores(
  "rows stay while a transaction is open that could write more",
  Effect.gen(function* () {
    const store = yield* MembershipStore
    yield* fill(p1)
    yield* holding(
      "SELECT pg_current_xact_id()::text",
      Effect.gen(function* () {
        yield* store.deleteProject(p1, occasion)
        expect(yield* step).toEqual([])
        expect(yield* count("memberships")).toBe(members)
      }),
    )
    yield* forget
    expect(yield* counts).toEqual([...tables.map(() => 0), 0])
  }),
)

onStores(
  "that are deleted while a webhook is registered do not exist for it",
  Effect.gen(function* () {
    const webhooks = yield* WebhookStore
    yield* (yield* MembershipStore).createProject(p1, occasion)
    const adding = yield* holding(
      `SELECT ${schema}.delete_project('p1', 'a channel')`,
      Effect.gen(function* () {
        const waiting = yield* Effect.forkDetach(
          Effect.flip(webhooks.add(Fixture.makeWebhook(p1), 50, occasion)),
        )
        yield* blockedOn(schema)
        return waiting
      }),
    )
    expect((yield* Fiber.join(adding))._tag).toBe("ProjectNotFound")
  }),
)
