/** Counts of attempts that a process adds to those of the others. */

import { expect } from "@effect/vitest"
import {
  type ActivityCell,
  type Attempt,
  MembershipStore,
  Outbox,
  type ProjectId,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { deleteOldMinutes, deleteOldQuarters, makeDeliveryCounts } from "../src/delivery-counts.ts"
import { postgresLayer } from "../src/index.ts"
import { claimAll, countRows, executorOf, sql, testsAfter } from "./harness.ts"

const schema = "delivery_counts"
const { event, makeWebhook, context, p1, p2 } = Fixture
const webhook = makeWebhook(p1)
const ref = { projectId: p1, webhookId: webhook.id }
const attempt: Attempt = {
  at: 0,
  durationMillis: 100,
  result: { _tag: "Answered", status: 200, body: "" },
}

const prepared = Effect.gen(function* () {
  yield* (yield* MembershipStore).createProject(p1, context)
  yield* (yield* WebhookStore).add(webhook, 50, context)
  return yield* Outbox
})

const test = testsAfter(schema, prepared)

/** Settles an attempt that succeeds. */
const settleOne = Effect.gen(function* () {
  const outbox = yield* Outbox
  yield* outbox.publishTo(event(p1), webhook.id)
  const { claims } = yield* claimAll
  for (const claim of claims) yield* outbox.settle(claim, { _tag: "Delivered", attempt })
})

const sumOf = (cells: ReadonlyArray<ActivityCell>): number =>
  cells.reduce((sum, one) => sum + one.delivered, 0)

/** What a process has counted, for a project or for all. */
const found = (
  counts: { readonly minutes: Outbox["Service"]["minutes"] },
  projectId: ProjectId | undefined = p1,
) => Effect.map(counts.minutes(projectId), sumOf)

const otherProcess = Effect.flatMap(executorOf(schema), makeDeliveryCounts)

/** Runs work while counts cannot be added. */
const whileUnwritable = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    sql(`ALTER TABLE ${schema}.delivery_minutes RENAME TO hidden`),
    () => work,
    () => Effect.orDie(sql(`ALTER TABLE ${schema}.hidden RENAME TO delivery_minutes`)),
  )

/** Adds webhooks to the project, beside the limit. */
const addWebhooks = (count: number) =>
  Effect.as(
    sql(
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, number, 'https://a.example', 'whsec_', now()
       FROM ${schema}.projects, generate_series(0, ${count - 1}) n WHERE id = 'p1'`,
    ),
    Array.from({ length: count }, (_, n) =>
      WebhookId(`00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`),
    ),
  )

test("those that cannot be added are added later", function* (outbox) {
  yield* whileUnwritable(
    Effect.all([
      settleOne,
      Effect.exit(outbox.activity(ref)),
      settleOne,
      Effect.exit(outbox.minutes(p1)),
    ]),
  )
  expect(yield* found(outbox)).toBe(2)
  const { answerTimes, quarters } = yield* outbox.activity(ref)
  expect(sumOf(quarters)).toBe(2)
  expect(answerTimes.reduce((sum, one) => sum + one, 0)).toBe(2)
})

test("those of ten thousand webhooks wait, however long they cannot be added", function* () {
  const most = 10_000
  const ids = yield* addWebhooks(most + 500)
  const counts = yield* otherProcess
  const addAll = Effect.sync(() => {
    for (const id of ids) counts.add(id, true, attempt)
  })
  yield* whileUnwritable(
    Effect.replicateEffect(Effect.andThen(addAll, Effect.exit(counts.minutes(p1))), 3),
  )
  // A reader waits for two seconds, and then gets what has been added so far.
  const reach = (projectId: ProjectId | undefined, sum: number) =>
    Effect.repeat(Effect.map(counts.minutes(projectId), sumOf), { until: (now) => now >= sum })
  expect(yield* reach(p1, 3 * most)).toBe(3 * most)
  yield* addAll
  expect(yield* reach(undefined, 4 * most)).toBe(4 * most)
})

test("those that several processes add at the same time add up", function* () {
  const ids = yield* addWebhooks(50)
  const processes = yield* Effect.replicateEffect(otherProcess, 3)
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
  expect(yield* found(yield* Outbox)).toBe(1500)
})

test("those that wait are added when the process stops", function* () {
  yield* Effect.provide(settleOne, Layer.fresh(postgresLayer({ schema })))
  const rows = yield* sql(`SELECT delivered FROM ${schema}.delivery_minutes`)
  // For the project and for all.
  expect(rows).toEqual([{ delivered: 1 }, { delivered: 1 }])
})

test("those of webhooks and projects that were deleted hold up no others", function* () {
  const memberships = yield* MembershipStore
  const webhooks = yield* WebhookStore
  yield* memberships.createProject(p2, context)
  const foreign = makeWebhook(p2)
  yield* webhooks.add(foreign, 50, context)
  const ids = yield* addWebhooks(2)
  const counts = yield* otherProcess
  for (const id of [...ids, foreign.id]) counts.add(id, true, attempt)
  yield* webhooks.remove(p1, ids[0] ?? webhook.id, context)
  yield* memberships.deleteProject(p2, context)
  expect(yield* found(counts)).toBe(1)
  expect(sumOf(yield* (yield* Outbox).minutes(undefined))).toBe(1)
})

test("old ones are deleted, and those from before the clock was set back", function* () {
  yield* settleOne
  expect(yield* found(yield* Outbox)).toBe(1)
  for (const [table, id, times] of [
    ["minutes", "", ""],
    ["quarters", "gen_random_uuid(),", ", '{}'"],
  ] as const)
    yield* sql(
      `INSERT INTO ${schema}.delivery_${table}
       SELECT number, ${id} now() + n * interval '1 hour', 1, 1 ${times}
       FROM ${schema}.projects, generate_series(-1500, 1500) n WHERE n <> 0`,
    )
  expect(yield* sql(deleteOldMinutes(`"${schema}"`))).toHaveLength(1000)
  for (const statement of [deleteOldMinutes(`"${schema}"`), deleteOldQuarters(`"${schema}"`)])
    yield* Effect.repeat(sql(statement), { while: (rows) => rows.length > 0 })
  // For the project and for all, and an hour ahead or behind.
  expect(yield* countRows(`${schema}.delivery_minutes`)).toBe(4)
  expect(yield* countRows(`${schema}.delivery_quarters`)).toBe(1 + 24 + 1)
  expect(yield* found(yield* Outbox)).toBe(1)
})
