import { PgClient } from "@effect/sql-pg"
import { expect } from "@effect/vitest"
import { Outbox, WebhookStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { claimAll } from "./harness.ts"
import { testsOn } from "./locking.ts"

const schema = "replays"
const { makeWebhook, occasion, p1, u1, u2 } = Fixture

const attempt = {
  at: 0,
  durationMillis: 1,
  result: { _tag: "Answered", status: 500, body: "" },
} as const

/** Delivers an event of one member to each webhook, and gives up that of another. Returns the webhooks and events. */
const settled = Effect.gen(function* () {
  const outbox = yield* Outbox
  const webhooks = [makeWebhook(p1), makeWebhook(p1)].map((one) => ({ ...one, ordered: true }))
  for (const one of webhooks) yield* (yield* WebhookStore).add(one, 100, occasion)
  for (const userId of [u1, u2]) yield* outbox.publish(Fixture.event(p1, undefined, userId))
  const { claims } = yield* claimAll
  const events = [...new Set(claims.map(({ event }) => event.id))]
  for (const claim of claims) {
    const isFirst = claim.event.id === events[0]
    yield* outbox.settle(
      claim,
      isFirst ? { _tag: "Delivered", attempt } : { _tag: "Failed", attempt, holdMillis: 0 },
    )
  }
  return { webhooks: webhooks.map(({ id }) => id), events }
})

testsOn(schema)(
  "a replay of one event restarts its delivery as a replay of many does",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const { webhooks, events } = yield* settled
    const [one, many] = webhooks
    if (one === undefined || many === undefined) return yield* Effect.die("no webhooks")
    for (const id of events) {
      expect(yield* outbox.replay({ projectId: p1, webhookId: one }, id)).toBe(1)
    }
    const all = { since: 0, types: undefined, position: undefined, isDryRun: false } as const
    const kinds = ["failed", "delivered"] as const
    expect(
      yield* outbox.replayMany({ projectId: p1, webhookId: many }, { ...all, kinds }),
    ).toMatchObject({ replayed: 2 })

    // All columns but the webhook's id, the times and `is_replay`, in which they differ.
    const rowsOf = (webhookId: string) =>
      PgClient.PgClient.use((client) =>
        client.unsafe(
          `SELECT d.event_id, d.state, d.lease, d.dispatcher, d.claim_count, d.attempts, d.member,
                  d.attempted_at IS NOT NULL AS is_attempted, d.next_attempt_at <= clock_timestamp() AS is_due,
                  (SELECT count(*) FROM ${schema}.deliveries o
                   WHERE o.webhook_id = d.webhook_id AND o.position < d.position)::integer AS place
           FROM ${schema}.deliveries d WHERE d.webhook_id = $1::uuid ORDER BY d.position`,
          [webhookId],
        ),
      )
    const rows = yield* rowsOf(one)
    expect(rows).toEqual(yield* rowsOf(many))
    expect(rows).toMatchObject(
      events.map((id) => ({ event_id: id, state: "ready", member: expect.anything() })),
    )
  }),
)
