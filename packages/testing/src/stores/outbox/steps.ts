/** Values and steps for `Outbox` tests. */

import { type ConcurrencyRange, currentUnixMillis, isReplayedResponse } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  type FailingAnnouncement,
  Outbox,
  type ReplaySelection,
  type StoredWebhook,
  type WebhookId,
  type WebhookRef,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { event, context, p1 } from "../../support/fixtures.ts"
import { addWebhook, at, createProjects, firstOf, hour, refOf } from "../steps.ts"

export const leaseMillis = 30_000

// Stores may keep whole milliseconds, and clocks run apart a little.
const roundingMillis = 10

/**
 * Starts to measure the time that passes for stores whose clock no test holds. Returns how many milliseconds may have
 * passed since.
 */
export const stopwatch = () => {
  const start = performance.now()
  return () => performance.now() - start + roundingMillis
}

export const answered = (status: number): Attempt => ({
  at: 1234,
  durationMillis: 12,
  result: { _tag: "Answered", status, body: "the response" },
})
export const attempt = answered(500)
export const timeout: Attempt = { ...attempt, result: { _tag: "Failed", reason: "Timeout" } }

export const delivered: AttemptResult = { _tag: "Delivered", attempt: answered(200) }
export const released: AttemptResult = { _tag: "Released" }

/** A failure that ends a delivery and holds its webhook for a time. */
export const failedFor = (holdMillis: number): AttemptResult => ({
  _tag: "Failed",
  attempt: timeout,
  holdMillis,
})
export const failed = failedFor(0)

/** Disables the webhook, and announces this with a new event. */
export const gone = (failing?: FailingAnnouncement, projectId = p1): AttemptResult => ({
  _tag: "Disabled",
  attempt: answered(410),
  announcement: event(projectId, "webhook.disabled"),
  failing,
})

export const retry = (
  delayMillis: number,
  holdMillis = 0,
  failing?: FailingAnnouncement,
): AttemptResult => ({ _tag: "Retry", attempt, delayMillis, holdMillis, failing })

/** Prepares an outbox and two projects. The first has the given number of webhooks. */
export const prepared = Effect.fnUntraced(function* (webhooks: number) {
  yield* createProjects
  const added = yield* Effect.forEach(Array.from({ length: webhooks }), () => addWebhook())
  return { outbox: yield* Outbox, webhooks: added }
})

/** Prepares an outbox and a project with one webhook, with the given settings. */
export const preparedWith = Effect.fnUntraced(function* (settings: Partial<StoredWebhook>) {
  yield* createProjects
  const webhook = yield* addWebhook(p1, settings)
  return { outbox: yield* Outbox, store: yield* WebhookStore, webhook, ref: refOf(webhook) }
})

/** Prepares an outbox and a project with one webhook. */
export const preparedWebhook = preparedWith({})

/** Replaces some settings of a webhook, which are as they were when it was added but for those given. */
export const updateWebhook = (
  webhook: StoredWebhook,
  before: Partial<StoredWebhook>,
  after: Partial<StoredWebhook>,
) =>
  WebhookStore.use((store) => {
    const expected = { ...webhook, ...before }
    const change = { expected, settings: { ...expected, ...after }, changes: [] }
    return store.update(refOf(webhook), change, context)
  })

/** Publishes events in a project, and returns them in this order. */
export const publishMany = Effect.fnUntraced(function* (count: number, projectId = p1) {
  const outbox = yield* Outbox
  const events = Array.from({ length: count }, () => event(projectId))
  yield* Effect.forEach(events, (one) => outbox.publish(one))
  return events
})

/** What limits a claim. One number for each webhook holds whatever its concurrency is. */
interface Limits {
  readonly limit?: number
  readonly perWebhook?: number | ConcurrencyRange
  readonly perProject?: number
  readonly failing?: number
  readonly ahead?: ReadonlyMap<WebhookId, number>
}

/** Claims deliveries: everything that is due, unless limited. */
export const claim = ({
  ahead = new Map(),
  limit = 100,
  failing = limit,
  perProject = 1000,
  perWebhook = 100,
}: Limits = {}) =>
  Outbox.use((outbox) => {
    const range =
      typeof perWebhook === "number" ? { least: perWebhook, most: perWebhook } : perWebhook
    return outbox.claim({ limit, failing, perWebhook: range, perProject, ahead, leaseMillis })
  })

export const claims = (limits?: Limits) => Effect.map(claim(limits), (claimed) => claimed.claims)

export const eventIdsOf = (all: ReadonlyArray<Claim>) => all.map((one) => one.event.id)

export const webhookIdsOf = (all: ReadonlyArray<Claim>) =>
  all.map(({ webhook }) => webhook.webhookId)

/** Claims everything. Returns the events' ids. */
export const claimedIds = Effect.map(claims(), eventIdsOf)

/** Claims everything. Returns the events' types. */
export const claimedTypes = Effect.map(claims(), (all) =>
  all.map((one): string => JSON.parse(one.event.body).type),
)

/** Claims everything, and expects one delivery. */
export const theClaim = Effect.gen(function* () {
  const all = yield* claims()
  expect(all).toHaveLength(1)
  return firstOf(all)
})

/** Claims everything, and expects two deliveries. */
export const twoClaims = Effect.gen(function* () {
  const all = yield* claims()
  expect(all).toHaveLength(2)
  return [at(all, 0), at(all, 1)] as const
})

export const settle = (one: Claim, result: AttemptResult) =>
  Outbox.use((outbox) => outbox.settle(one, result))

/** Settles claims in their order: each with the result at its index, or all with the same. */
export const settleAll = (
  all: ReadonlyArray<Claim>,
  results: AttemptResult | ReadonlyArray<AttemptResult>,
) =>
  Effect.forEach(all, (one, index) => settle(one, "_tag" in results ? results : at(results, index)))

/** Makes an attempt for everything that is due, with the same result. */
export const attemptAll = (result: AttemptResult) =>
  Effect.flatMap(claims(), (all) => settleAll(all, result))

/** Disables webhooks: each receiver answers 410. */
export const disable = Effect.fnUntraced(function* (webhooks: ReadonlyArray<StoredWebhook>) {
  const outbox = yield* Outbox
  for (const { id, projectId } of webhooks) yield* outbox.publishTo(event(projectId), id)
  const outcomes = yield* Effect.forEach(yield* claims(), (one) => {
    const isGone = webhooks.some(({ id }) => id === one.webhook.webhookId)
    return settle(one, isGone ? gone(undefined, one.webhook.projectId) : delivered)
  })
  const disabled = outcomes.filter((outcome) => outcome === "WebhookDisabled")
  expect(disabled).toHaveLength(webhooks.length)
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

/** Replays deliveries: by default, all that were given up. Returns how many. */
export const replayed = (webhook: WebhookRef, ...selection: Parameters<typeof selected>) =>
  Outbox.use((outbox) =>
    Effect.map(outbox.replayMany(webhook, selected(...selection)), (page) =>
      isReplayedResponse(page) ? NaN : page.replayed,
    ),
  )

/** Returns a webhook's deliveries, newest first. */
export const deliveriesOf = (
  webhook: Pick<StoredWebhook, "id" | "projectId">,
  page: Partial<Parameters<Outbox["Service"]["deliveries"]>[1]> = {},
) => Outbox.use((outbox) => outbox.deliveries(refOf(webhook), { limit: 1000, ...page }))

export const statesOf = (webhook: StoredWebhook) =>
  Effect.map(deliveriesOf(webhook), (all) => all.map(({ state }) => state))

/** Returns how many hours from now the next attempt for a webhook is due, NaN for none. */
export const hoursToNext = Effect.fnUntraced(function* ({ id, projectId }: StoredWebhook) {
  const progress = (yield* (yield* Outbox).progress(projectId, [id])).get(id)
  return ((progress?.nextAttemptAt ?? NaN) - (yield* currentUnixMillis)) / hour
})
