/** Steps that tests of an outbox take. */

import { MembershipStore } from "@tenure/core/MembershipStore"
import { type Attempt, type Claim, Outbox, type Settlement } from "@tenure/core/Outbox"
import type { Webhook } from "@tenure/core/Webhook"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import * as Fixture from "./fixtures.ts"

const { p1, p2 } = Fixture

export const leaseMillis = 30_000

export const answered = (status: number): Attempt => ({
  at: 0,
  durationMillis: 12,
  result: { _tag: "Answered", status, body: "" },
})
export const attempt = answered(500)
export const timeout: Attempt = { ...attempt, result: { _tag: "Failed", reason: "Timeout" } }
export const delivered: Settlement = { _tag: "Delivered", attempt: answered(200) }
export const failed: Settlement = { _tag: "Failed", attempt: timeout, holdMillis: 0 }
/** The end of a webhook, which is announced. */
export const gone: Settlement = {
  _tag: "Disabled",
  attempt: answered(410),
  announcement: Fixture.event(p1, "webhook.disabled"),
}
export const retry = (delayMillis: number, holdMillis = 0): Settlement => ({
  _tag: "Retry",
  attempt,
  delayMillis,
  holdMillis,
})

export const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1)
export const byWebhook = (one: Pick<Claim, "webhook">, other: Pick<Claim, "webhook">) =>
  one.webhook.webhookId < other.webhook.webhookId ? -1 : 1

/** An outbox with two projects, of which the first has as many webhooks as asked for. */
export const prepared = Effect.fnUntraced(function* (webhooks: number) {
  const memberships = yield* MembershipStore
  const store = yield* WebhookStore
  yield* memberships.createProject(p1)
  yield* memberships.createProject(p2)
  const added = Array.from({ length: webhooks }, () => Fixture.webhook(p1))
  yield* Effect.forEach(added, (webhook) => store.add(webhook, 100))
  return { outbox: yield* Outbox, webhooks: added }
})

export const claim = Effect.fnUntraced(function* (limit = 100, perWebhook = 100) {
  const outbox = yield* Outbox
  return yield* outbox.claim({ limit, perWebhook, leaseMillis })
})

export const claims = Effect.fnUntraced(function* (limit?: number, perWebhook?: number) {
  return (yield* claim(limit, perWebhook)).claims
})

/** The one claim that there has to be. */
export const theClaim = Effect.gen(function* () {
  const all = yield* claims()
  const [only] = all
  expect(all).toHaveLength(1)
  return only ?? (yield* Effect.die("nothing to claim"))
})

export const settle = Effect.fnUntraced(function* (one: Claim, settlement: Settlement) {
  const outbox = yield* Outbox
  return yield* outbox.settle(one, settlement)
})

export const statesOf = Effect.fnUntraced(function* ({ id }: Pick<Webhook, "id">) {
  const outbox = yield* Outbox
  return (yield* outbox.deliveries({ projectId: p1, webhookId: id }, { limit: 100 })).map(
    ({ state }) => state,
  )
})
