/** The rates of webhooks, of which every process takes a part. */

import { expect } from "@effect/vitest"
import { Outbox, type StoredWebhook, WebhookStore, webhookRatePolicy } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { postgresLayer } from "../src/index.ts"
import { claimAll, claimUpTo, clientLayer, sql } from "./harness.ts"
import { testsOn } from "./locking.ts"

const schema = "rates"
const { event, makeWebhook, occasion, p1 } = Fixture
const onStores = testsOn(schema)

const add = Effect.fnUntraced(function* (more: Partial<StoredWebhook>) {
  const webhook = { ...makeWebhook(p1), ...more }
  yield* (yield* WebhookStore).add(webhook, 10, occasion)
  return webhook
})

/** Publishes an event, and adds deliveries to a webhook as if there had been more. */
const publishMany = Effect.fnUntraced(function* ({ id }: StoredWebhook, count: number) {
  const one = event(p1)
  yield* (yield* Outbox).publishTo(one, id)
  yield* sql(`
    WITH published AS (
      INSERT INTO ${schema}.events (id, project_number, type, at, body)
      SELECT gen_random_uuid(), e.project_number, e.type, now(), e.body
      FROM ${schema}.events e, generate_series(2, ${count}) WHERE e.id = '${one.id}'
      RETURNING id
    )
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
    SELECT id, '${id}', now() FROM published`)
})

const claimMany = claimUpTo(1000)

const clock = Effect.map(
  sql<{ readonly now: number }>("SELECT extract(epoch FROM clock_timestamp())::float8 AS now"),
  ([row]) => row?.now ?? NaN,
)

onStores(
  "bound what several processes claim together",
  Effect.gen(function* () {
    const rate = 200
    const { capacity } = webhookRatePolicy(rate)
    const webhook = yield* add({ rate })
    yield* publishMany(webhook, 1000)
    const processes = Array.from({ length: 3 }, () =>
      claimMany.pipe(
        Effect.map(({ claims }) => claims.length),
        Effect.replicateEffect(10),
        Effect.provide(Layer.fresh(Layer.provideMerge(postgresLayer({ schema }), clientLayer()))),
      ),
    )
    const begin = yield* clock
    const counts = yield* Effect.all(processes, { concurrency: "unbounded" })
    const seconds = (yield* clock) - begin
    const total = counts.flat().reduce((sum, count) => sum + count, 0)
    expect(total).toBeGreaterThanOrEqual(capacity)
    expect(total).toBeLessThanOrEqual(capacity + rate * seconds)
  }),
)

onStores(
  "hide no other webhook, however many wait for a token",
  Effect.gen(function* () {
    const webhook = yield* add({ rate: 1 })
    const other = yield* add({})
    yield* publishMany(webhook, 1)
    // Not by the outbox, which would look at the webhook first.
    yield* sql(`
      WITH added AS (
        INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at, rate)
        SELECT gen_random_uuid(), project_number, url, secret, created_at, rate
        FROM ${schema}.webhooks, generate_series(1, 1000) WHERE id = '${webhook.id}'
        RETURNING id
      ), taken AS (
        INSERT INTO ${schema}.rate_limit_buckets (id, full_at)
        SELECT 'webhook:' || id, 0 FROM added UNION ALL SELECT 'webhook:${webhook.id}', 0
      )
      INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
      SELECT d.event_id, a.id, now()
      FROM ${schema}.deliveries d, (SELECT id FROM added UNION ALL SELECT '${other.id}') a`)
    const claimed: Array<string> = []
    // A claim looks at 512.
    for (let count = 0; count < 2; count++) {
      // A token would return after a second.
      yield* sql(`
        UPDATE ${schema}.rate_limit_buckets
        SET full_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000000`)
      const { claims } = yield* claimMany
      claimed.push(...claims.map((one) => one.webhook.webhookId))
    }
    expect(claimed).toContain(other.id)
  }),
)

onStores(
  "let a bucket refill that was taken from before the clock was set back",
  Effect.gen(function* () {
    const webhook = yield* add({ rate: 1 })
    yield* publishMany(webhook, 3)
    expect((yield* claimAll).claims).toHaveLength(1)
    const move = (by: string) =>
      sql(`UPDATE ${schema}.rate_limit_buckets SET full_at = full_at + ${by} * 1000000::bigint`)
    yield* move("3600")
    const waiting = yield* claimAll
    expect([waiting.claims, waiting.nextDueMillis]).toEqual([[], expect.any(Number)])
    expect(waiting.nextDueMillis).toBeLessThanOrEqual(1000)
    yield* move("-1")
    expect((yield* claimAll).claims).toHaveLength(1)
  }),
)
