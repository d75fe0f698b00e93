/** Counts of attempts that a process adds to those of the others. */

import { PgClient } from "@effect/sql-pg"
import { beforeEach, expect, it } from "@effect/vitest"
import {
  type ActivityCell,
  type Attempt,
  type AttemptResult,
  MembershipStore,
  Outbox,
  ProjectId,
  type StorePorts,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { makeExecutor, makeServer } from "../src/connection/executor.ts"
import { deleteOldMinutes, deleteOldQuarters, makeDeliveryCounts } from "../src/delivery-counts.ts"
import { postgresLayer } from "../src/index.ts"
import { claimAll, clientLayer, emptied, sql } from "./harness.ts"

const schema = "delivery_counts"
const { event, makeWebhook, occasion, p1 } = Fixture
const webhook = makeWebhook(p1)
const ref = { projectId: p1, webhookId: webhook.id }
const attempt: Attempt = {
  at: 0,
  durationMillis: 100,
  result: { _tag: "Answered", status: 200, body: "" },
}
const delivered: AttemptResult = { _tag: "Delivered", attempt }

const empty = emptied(schema)
beforeEach(() => Effect.runPromise(empty))

const stores = () => Layer.fresh(postgresLayer({ schema }))

/** Runs a test on stores with a project that has a webhook. */
const onStores = <A, E>(
  name: string,
  test: Effect.Effect<A, E, StorePorts | PgClient.PgClient | Scope.Scope>,
) =>
  it.live(name, () =>
    Effect.gen(function* () {
      yield* (yield* MembershipStore).createProject(p1, occasion)
      yield* (yield* WebhookStore).add(webhook, 50, occasion)
      return yield* test
    }).pipe(Effect.provide(Layer.provideMerge(stores(), clientLayer())), Effect.scoped),
  )

/** Settles an attempt that succeeds. */
const settleOne = Effect.gen(function* () {
  const outbox = yield* Outbox
  yield* outbox.publishTo(event(p1), webhook.id)
  for (const claim of (yield* claimAll).claims) yield* outbox.settle(claim, delivered)
})

const sumOf = (cells: ReadonlyArray<ActivityCell>): number =>
  cells.reduce((sum, one) => sum + one.delivered, 0)

const executor = Effect.flatMap(PgClient.PgClient, (client) =>
  Effect.map(makeServer(client, 2, undefined), (server) => makeExecutor(server, `"${schema}"`)),
)

/** Runs work while counts cannot be added. */
const whileUnwritable = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    yield* sql(`ALTER TABLE ${schema}.delivery_minutes RENAME TO hidden`)
    const result = yield* work
    yield* sql(`ALTER TABLE ${schema}.hidden RENAME TO delivery_minutes`)
    return result
  })

const webhookIds = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    WebhookId(`00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`),
  )

/** Adds webhooks to the project, beside the limit. */
const addWebhooks = (count: number) =>
  sql(
    `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
     SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, number, 'https://a.example', 'whsec_', now()
     FROM ${schema}.projects, generate_series(0, ${count - 1}) n WHERE id = 'p1'`,
  )

onStores(
  "those that cannot be added are added later",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    yield* whileUnwritable(
      Effect.gen(function* () {
        yield* settleOne
        yield* Effect.exit(outbox.activity(ref))
        yield* settleOne
        yield* Effect.exit(outbox.minutes(p1))
      }),
    )
    expect(sumOf(yield* outbox.minutes(p1))).toBe(2)
    const { answerTimes, quarters } = yield* outbox.activity(ref)
    expect(sumOf(quarters)).toBe(2)
    expect(answerTimes.reduce((sum, one) => sum + one, 0)).toBe(2)
  }),
)

onStores(
  "those of ten thousand webhooks wait, however long they cannot be added",
  Effect.gen(function* () {
    const most = 10_000
    yield* addWebhooks(most + 500)
    const counts = yield* makeDeliveryCounts(yield* executor)
    const ids = webhookIds(most + 500)
    const addAll = Effect.sync(() => {
      for (const id of ids) counts.add(id, true, attempt)
    })
    yield* whileUnwritable(
      Effect.gen(function* () {
        for (let round = 0; round < 3; round++) {
          yield* addAll
          yield* Effect.exit(counts.minutes(p1))
        }
      }),
    )
    // A reader waits for two seconds, and then gets what has been added so far.
    const reach = (project: ProjectId | undefined, sum: number) =>
      Effect.repeat(Effect.map(counts.minutes(project), sumOf), { until: (found) => found >= sum })
    expect(yield* reach(p1, 3 * most)).toBe(3 * most)
    yield* addAll
    expect(yield* reach(undefined, 4 * most)).toBe(4 * most)
  }),
)

onStores(
  "those of several processes add up, also while they add them at the same time",
  Effect.gen(function* () {
    yield* addWebhooks(50)
    const ids = webhookIds(50)
    const processes = yield* Effect.forEach([1, 2, 3], () =>
      Effect.flatMap(executor, makeDeliveryCounts),
    )
    for (let round = 0; round < 10; round++) {
      yield* Effect.forEach(
        processes,
        (counts, index) => {
          for (const id of index === 1 ? ids.toReversed() : ids) counts.add(id, true, attempt)
          return counts.minutes(p1)
        },
        { concurrency: "unbounded" },
      )
    }
    expect(sumOf(yield* (yield* Outbox).minutes(p1))).toBe(1500)
  }),
)

it.live("those that wait are added when the process stops", () =>
  Effect.gen(function* () {
    yield* Effect.provide(
      Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(p1, occasion)
        yield* (yield* WebhookStore).add(webhook, 50, occasion)
        yield* settleOne
      }),
      stores(),
    )
    const rows = yield* sql<{ readonly delivered: number }>(
      `SELECT delivered FROM ${schema}.delivery_minutes`,
    )
    expect(rows).toEqual([{ delivered: 1 }, { delivered: 1 }])
  }).pipe(Effect.provide(clientLayer())),
)

onStores(
  "those of webhooks and projects that were deleted meanwhile are dropped, and hold up no others",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const memberships = yield* MembershipStore
    const other = ProjectId("other")
    yield* memberships.createProject(other, occasion)
    const foreign = makeWebhook(other)
    yield* (yield* WebhookStore).add(foreign, 50, occasion)
    yield* addWebhooks(2)
    const [first, second] = webhookIds(2)
    const counts = yield* makeDeliveryCounts(yield* executor)
    for (const id of [first, second, foreign.id])
      if (id !== undefined) counts.add(id, true, attempt)
    yield* (yield* WebhookStore).remove(p1, first ?? webhook.id, occasion)
    yield* memberships.deleteProject(other, occasion)
    expect(sumOf(yield* counts.minutes(p1))).toBe(1)
    expect(sumOf(yield* outbox.minutes(undefined))).toBe(1)
  }),
)

onStores(
  "old ones are deleted, and those from before the clock was set back",
  Effect.gen(function* () {
    yield* settleOne
    yield* (yield* Outbox).minutes(p1)
    yield* sql(
      `INSERT INTO ${schema}.delivery_minutes SELECT 1, now() + n * interval '1 hour', 1, 1
       FROM generate_series(-1500, 1500) n WHERE n <> 0`,
    )
    yield* sql(
      `INSERT INTO ${schema}.delivery_quarters SELECT 1, gen_random_uuid(), now() + n * interval '1 hour', 1, 1, '{}'
       FROM generate_series(-1500, 1500) n WHERE n <> 0`,
    )
    const steps = (statement: string) =>
      Effect.repeat(sql(statement), { while: (rows) => rows.length > 0 })
    const name = `"${schema}"`
    expect(yield* sql(deleteOldMinutes(name))).toHaveLength(1000)
    yield* steps(deleteOldMinutes(name))
    yield* steps(deleteOldQuarters(name))
    const [kept] = yield* sql<{ readonly minutes: number; readonly quarters: number }>(
      `SELECT (SELECT count(*)::integer FROM ${schema}.delivery_minutes) AS minutes,
              (SELECT count(*)::integer FROM ${schema}.delivery_quarters) AS quarters`,
    )
    // Of the project and of all, and an hour ahead or behind.
    expect(kept).toEqual({ minutes: 4, quarters: 1 + 24 + 1 })
    expect(sumOf(yield* (yield* Outbox).minutes(p1))).toBe(1)
  }),
)
