/** Values and steps for `Outbox` tests. */

import { type ConcurrencyRange, isReplayedResponse } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  type FailingAnnouncement,
  MembershipStore,
  Outbox,
  type ReplaySelection,
  type StoredWebhook,
  type WebhookId,
  type WebhookRef,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { event, occasion, p1, p2, makeWebhook } from "../../support/fixtures.ts"

export const leaseMillis = 30_000

export const answered = (status: number): Attempt => ({
  at: 1234,
  durationMillis: 12,
  result: { _tag: "Answered", status, body: "the response" },
})
export const attempt = answered(500)
export const timeout: Attempt = { ...attempt, result: { _tag: "Failed", reason: "Timeout" } }

export const delivered: AttemptResult = { _tag: "Delivered", attempt: answered(200) }
export const failed: AttemptResult = { _tag: "Failed", attempt: timeout, holdMillis: 0 }
export const released: AttemptResult = { _tag: "Released" }

/** Disables the webhook, and announces this with a new event. */
export const gone = (failing?: FailingAnnouncement): AttemptResult => ({
  _tag: "Disabled",
  attempt: answered(410),
  announcement: event(p1, "webhook.disabled"),
  failing,
})

export const retry = (
  delayMillis: number,
  holdMillis = 0,
  failing?: FailingAnnouncement,
): AttemptResult => ({
  _tag: "Retry",
  attempt,
  delayMillis,
  holdMillis,
  failing,
})

/** Announces that a webhook has been failing for a share of `disableAfter`, with a new event. */
export const failingFor = (
  percent: FailingAnnouncement["percent"],
  failingSince: number,
): FailingAnnouncement => ({ percent, failingSince, event: event(p1, `failing.${percent}`) })

/** Prepares an outbox and two projects. The first has the given number of webhooks. */
export const prepared = Effect.fnUntraced(function* (webhooks: number) {
  const memberships = yield* MembershipStore
  const store = yield* WebhookStore
  yield* memberships.createProject(p1, occasion)
  yield* memberships.createProject(p2, occasion)
  const added = Array.from({ length: webhooks }, () => makeWebhook(p1))
  yield* Effect.forEach(added, (one) => store.add(one, 100, occasion))
  return { outbox: yield* Outbox, webhooks: added }
})

/** Returns the first element, and fails the test if the list is empty. */
export const firstOf = <A>(all: ReadonlyArray<A>): Effect.Effect<A> => {
  const [first] = all
  return first === undefined ? Effect.die("the list is empty") : Effect.succeed(first)
}

/** Prepares an outbox and a project with one webhook. */
export const preparedWebhook = Effect.gen(function* () {
  const { outbox, webhooks } = yield* prepared(1)
  return { outbox, webhook: yield* firstOf(webhooks) }
})

/** Publishes events in the first project, and returns them in this order. */
export const publishMany = Effect.fnUntraced(function* (count: number) {
  const outbox = yield* Outbox
  const events = Array.from({ length: count }, () => event(p1))
  yield* Effect.forEach(events, (one) => outbox.publish(one))
  return events
})

/** Claims deliveries. One number for each webhook holds whatever its concurrency is. */
export const claim = Effect.fnUntraced(function* (
  limit = 100,
  most: number | ConcurrencyRange = 100,
  perProject = 1000,
  failing = limit,
  ahead: ReadonlyMap<WebhookId, number> = new Map(),
) {
  const outbox = yield* Outbox
  const perWebhook = typeof most === "number" ? { least: most, most } : most
  return yield* outbox.claim({ limit, failing, perWebhook, perProject, ahead, leaseMillis })
})

export const claims = Effect.fnUntraced(function* (
  limit?: number,
  perWebhook?: number | ConcurrencyRange,
  perProject?: number,
  failing?: number,
) {
  return (yield* claim(limit, perWebhook, perProject, failing)).claims
})

/** Claims everything, and expects one delivery. */
export const theClaim = Effect.gen(function* () {
  const all = yield* claims()
  expect(all).toHaveLength(1)
  return yield* firstOf(all)
})

/** Claims everything, and expects two deliveries. */
export const twoClaims = Effect.gen(function* () {
  const [one, other, ...rest] = yield* claims()
  expect(rest).toEqual([])
  if (one === undefined || other === undefined) return yield* Effect.die("fewer than two claims")
  return { one, other }
})

export const settle = Effect.fnUntraced(function* (one: Claim, settlement: AttemptResult) {
  const outbox = yield* Outbox
  return yield* outbox.settle(one, settlement)
})

/** Selects what to replay: by default, all that was given up. */
export const selected = (
  kinds: ReplaySelection["kinds"] = ["failed"],
  more: Partial<ReplaySelection> = {},
): ReplaySelection => ({
  since: 0,
  types: undefined,
  kinds,
  position: undefined,
  isDryRun: false,
  ...more,
})

/** Replays what was given up, and returns how many. */
export const replayFailed = Effect.fnUntraced(function* (webhook: WebhookRef, since = 0) {
  const outbox = yield* Outbox
  const page = yield* outbox.replayMany(webhook, selected(["failed"], { since }))
  return isReplayedResponse(page) ? undefined : page.replayed
})

/** Returns a webhook's deliveries, newest first. */
export const deliveriesOf = Effect.fnUntraced(function* (
  { id }: Pick<StoredWebhook, "id">,
  limit = 100,
) {
  const outbox = yield* Outbox
  return yield* outbox.deliveries({ projectId: p1, webhookId: id }, { limit })
})

export const statesOf = (one: Pick<StoredWebhook, "id">) =>
  Effect.map(deliveriesOf(one), (all) => all.map(({ state }) => state))
