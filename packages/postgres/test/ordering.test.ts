/** Ordered webhooks: what claims and settlements at the same time see of each other, and what long chains cost. */

import { expect } from "@effect/vitest"
import { type Event, Outbox, type WebhookId, WebhookStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { blocksReadBy } from "./blocks.ts"
import { claimAll, sql } from "./harness.ts"
import { blockedOn, holding, testsOn } from "./locking.ts"

const schema = "ordering"
const { event, makeWebhook, occasion, p1 } = Fixture
const onStores = testsOn(schema)

const ordered = Effect.gen(function* () {
  const webhook = { ...makeWebhook(p1), ordered: true }
  yield* (yield* WebhookStore).add(webhook, 10, occasion)
  return webhook
})

const publish = Effect.fnUntraced(function* (...userIds: ReadonlyArray<string>) {
  const outbox = yield* Outbox
  const events = userIds.map((userId) => event(p1, undefined, userId))
  yield* Effect.forEach(events, (one) => outbox.publish(one))
  return events
})

const claimedIds = Effect.map(claimAll, ({ claims }) => claims.map((one) => one.event.id))

const statesOf = (events: ReadonlyArray<Event>) =>
  Effect.map(
    sql<{ readonly state: string }>(
      `SELECT state FROM ${schema}.deliveries WHERE event_id = ANY ('{${events.map(({ id }) => id).join()}}') ORDER BY position`,
    ),
    (rows) => rows.map(({ state }) => state),
  )

const delivered = {
  _tag: "Delivered",
  attempt: { at: 0, durationMillis: 1, result: { _tag: "Answered", status: 204, body: "" } },
} as const

onStores(
  "unblock a delivery that was blocked while the one before it was being settled",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const webhook = yield* ordered
    const [first] = yield* publish("ada")
    const { claims } = yield* claimAll
    const [one] = claims
    if (one === undefined || first === undefined) return yield* Effect.die("nothing claimed")
    const rest = yield* publish("ada", "ada")
    const settling = yield* holding(
      `SELECT * FROM ${schema}.block_deliveries(ARRAY['${webhook.id}'::uuid])`,
      Effect.gen(function* () {
        const fiber = yield* Effect.forkDetach(outbox.settle(one, delivered))
        yield* blockedOn(schema)
        return fiber
      }),
    )
    expect(yield* Fiber.join(settling)).toBe("Settled")
    expect(yield* statesOf(rest)).toEqual(["ready", "blocked"])
    expect(yield* claimedIds).toEqual([rest[0]?.id])
  }),
)

onStores(
  "do not wait in a claim for a settlement, nor claim what may follow it",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const webhook = yield* ordered
    const [first, second] = yield* publish("ada", "ada")
    const { claims } = yield* claimAll
    const [one] = claims
    if (one === undefined || first === undefined || second === undefined)
      return yield* Effect.die("nothing claimed")
    // The first claim has blocked it.
    yield* sql(`UPDATE ${schema}.deliveries SET state = 'ready' WHERE event_id = '${second.id}'`)
    const claimed = yield* holding(
      `SELECT FROM ${schema}.deliveries WHERE event_id = '${first.id}' FOR UPDATE`,
      claimAll,
    )
    expect([claimed.claims, claimed.keptBack]).toEqual([[], [webhook.id]])
    expect(yield* statesOf([first, second])).toEqual(["leased", "ready"])
    yield* outbox.settle(one, delivered)
    expect(yield* claimedIds).toEqual([second.id])
  }),
)

/** Makes deliveries that follow the first one. */
const follow = (
  first: Event | undefined,
  webhookId: WebhookId,
  state: "ready" | "blocked",
  length: number,
) =>
  sql(`
    WITH published AS (
      INSERT INTO ${schema}.events (id, project_number, type, at, body)
      SELECT gen_random_uuid(), e.project_number, e.type, now(), e.body
      FROM ${schema}.events e, generate_series(1, ${length}) WHERE e.id = '${first?.id}'
      RETURNING id, body
    )
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, state, next_attempt_at, member)
    SELECT id, '${webhookId}', '${state}', now(), ${schema}.member_of(body) FROM published`)

onStores(
  "are blocked by claims, a thousand at a time",
  Effect.gen(function* () {
    const webhook = yield* ordered
    const [first] = yield* publish("ada")
    yield* follow(first, webhook.id, "ready", 3000)
    const count = sql<{ readonly count: number }>(
      `SELECT count(*)::integer AS count FROM ${schema}.deliveries WHERE state = 'blocked'`,
    )
    for (const blocked of [999, 1999, 2999, 3000]) {
      yield* claimAll
      expect(yield* count).toEqual([{ count: blocked }])
    }
    expect((yield* claimAll).nextDueMillis).not.toBe(0)
  }),
)

onStores(
  "take no part in claims for others, however many deliveries of a member wait",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const webhook = yield* ordered
    const [first] = yield* publish("ada")
    yield* claimAll
    // In more than 300 blocks.
    yield* follow(first, webhook.id, "blocked", 10_000)
    const other = makeWebhook(p1)
    yield* (yield* WebhookStore).add(other, 10, occasion)
    yield* outbox.publishTo(event(p1), other.id)
    const nobody = "'00000000-0000-0000-0000-000000000000'"
    const claim = `SELECT * FROM ${schema}.claim(${nobody}, 0, 100, 100, 4, 16, 100, '{}', '{}', 30000, ${nobody}, '{}')`
    expect(yield* blocksReadBy(claim, [])).toBeLessThan(150)
    expect(yield* claimedIds).toHaveLength(1)
  }),
  { maxConnections: 1 },
)
