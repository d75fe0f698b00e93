/** All deliveries in memory: those that are open, those that have ended, and how webhooks are doing. */

import {
  type ClaimedDelivery,
  type DeliveryQueues,
  type Moment,
  type Ring,
  type WebhookQueue,
  addToQueue,
  changeSettings,
  claimDeliveries,
  endClaim,
  forgetWebhook,
  isNextDue,
  makeDeliveryQueues,
  makeRing,
  mentionsUser,
  openDeliveries,
  queueOf,
  recordAttempt,
} from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  type ClaimResult,
  type Delivery,
  type Event,
  type EventId,
  type FailingAnnouncement,
  type Health,
  type LatestAttempt,
  type Outbox,
  type ProjectId,
  type StoredWebhook,
  type UserId,
  type WebhookId,
  type WebhookRef,
  eraseUser,
  userOf,
} from "@tenure/core/store"
import {
  type ActivityCounts,
  type HourCounts,
  makeDayCounts,
  makeHourCounts,
} from "./delivery-activity.ts"
import { type Job, delayJob, makeJob } from "./jobs.ts"

/** Tells whether a delivery is for a webhook. */
const isJobOf = ({ event, webhookId }: Job, webhook: WebhookRef): boolean =>
  webhookId === webhook.webhookId && event.projectId === webhook.projectId

const withoutResponse = ({ result, ...attempt }: Attempt): Attempt => ({
  ...attempt,
  result: result._tag === "Answered" ? { ...result, body: "" } : result,
})

/** Removes a user id from a delivery's event, and then from the recorded response. */
const eraseUserFromJob = (job: Job, userId: UserId): void => {
  if (!mentionsUser(job.event, userId)) return
  job.event = eraseUser(job.event, userId)
  job.attempts = job.attempts.map(withoutResponse)
}

/** Returns the delivery as it is now. */
export const toDelivery = ({
  attemptedAt,
  attempts,
  dueAt,
  event,
  state,
  webhookId,
}: Job): Delivery => ({
  eventId: event.id,
  type: event.type,
  webhookId,
  createdAt: event.at,
  userId: userOf(event.body),
  state,
  attemptedAt,
  dueAt,
  attempts: [...attempts],
})

/** What is known of a webhook beside its queue. */
interface WebhookRecord {
  webhook: StoredWebhook
  /** Since when attempts fail, in milliseconds since the epoch. */
  failingSince: number | undefined
  /** The share of `disableAfter` announced since then, in percent. */
  announcedPercent: number
  readonly day: ActivityCounts
  /** Without the response. */
  latestAttempt: LatestAttempt | undefined
}

const healthy = { failingSince: undefined, announcedPercent: 0 }

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]
type Page = Parameters<Outbox["Service"]["deliveries"]>[1]
type Ended = Exclude<Delivery["state"], "waiting">

/** All deliveries. Every function changes them in one synchronous step. */
export interface Deliveries {
  readonly queues: DeliveryQueues<Job>
  readonly records: Map<WebhookId, WebhookRecord>
  readonly ended: Ring<Job>
  readonly hour: HourCounts
  /** The number of added deliveries. */
  added: number
}

/**
 * Starts without deliveries.
 *
 * @param history - how many finished deliveries to keep
 */
export const makeDeliveries = (history: number): Deliveries => ({
  queues: makeDeliveryQueues(),
  records: new Map(),
  ended: makeRing(history),
  hour: makeHourCounts(),
  added: 0,
})

const end = ({ ended }: Deliveries, job: Job, state: Ended): void => {
  job.state = state
  job.member = undefined
  ended.push(job)
}

/** Returns a webhook's queue. */
export const queueFor = (
  { queues, records }: Deliveries,
  webhook: StoredWebhook,
): WebhookQueue<Job> => {
  if (!records.has(webhook.id)) {
    records.set(webhook.id, { webhook, day: makeDayCounts(), latestAttempt: undefined, ...healthy })
  }
  return queueOf(queues, webhook)
}

/** Queues a delivery until it is due. If its webhook is disabled, the delivery fails. */
export const wait = (deliveries: Deliveries, webhook: StoredWebhook, job: Job): void => {
  const queue = queueFor(deliveries, webhook)
  if (!addToQueue(deliveries.queues, queue, job)) end(deliveries, job, "failed")
}

/** Makes a delivery that is in no queue yet. */
export const newJob = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): Job => makeJob(event, webhook, ++deliveries.added, now)

/** Adds a delivery, due at once. */
export const addDelivery = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): void => wait(deliveries, webhook, newJob(deliveries, event, webhook, now))

/** Returns what a dispatcher gets for a claimed delivery. */
const toClaim = (
  { concurrency, delivery: { claims, event }, failures, token, webhook: ref }: ClaimedDelivery<Job>,
  { failingSince, webhook: { headers, previous, secret, signingKey, url } }: WebhookRecord,
  { unix }: Moment,
): Claim => {
  const isRotating = previous !== undefined && previous.until > unix
  return {
    event: { id: event.id, body: event.body },
    webhook: {
      ...ref,
      url,
      secrets: isRotating ? [secret, previous.secret] : [secret],
      signingKey,
      headers: headers?.sealed,
      failures,
      failingSince,
      concurrency,
    },
    attemptNumber: claims,
    lease: token,
  }
}

/** Claims due deliveries. */
export const claimDue = (
  deliveries: Deliveries,
  options: ClaimOptions,
  now: Moment,
): ClaimResult => {
  const { claimed, givenUp, ...result } = claimDeliveries(deliveries.queues, options, now)
  for (const job of givenUp) end(deliveries, job, "failed")
  const claims = claimed.flatMap((one) => {
    one.delivery.claims++
    const record = deliveries.records.get(one.webhook.webhookId)
    return record === undefined ? [] : [toClaim(one, record, now)]
  })
  return { ...result, claims }
}

/** Records how an attempt went. */
const addAttempt = (
  { hour }: Deliveries,
  record: WebhookRecord,
  job: Job,
  { _tag, attempt }: Exclude<AttemptResult, { readonly _tag: "Released" }>,
  { unix }: Moment,
): void => {
  const isDelivered = _tag === "Delivered"
  job.attempts.push(attempt)
  job.attemptedAt = Math.floor(unix)
  record.latestAttempt = { ...withoutResponse(attempt), eventId: job.event.id }
  record.day.add(unix, isDelivered, attempt.durationMillis)
  hour.add(record.webhook.projectId, unix, isDelivered, attempt)
  if (isDelivered) Object.assign(record, healthy)
  else record.failingSince ??= unix
}

/** Ends a delivery that was claimed. */
const finish = (deliveries: Deliveries, webhook: StoredWebhook, job: Job, state: Ended): void => {
  queueFor(deliveries, webhook).waiting.leave(job)
  end(deliveries, job, state)
}

/** Changes a delivery's state after its claim. */
const proceed = (
  deliveries: Deliveries,
  { webhook }: WebhookRecord,
  job: Job,
  settlement: AttemptResult,
  now: Moment,
): void => {
  switch (settlement._tag) {
    case "Released":
      job.claims--
      return wait(deliveries, webhook, job)
    case "Retry":
      delayJob(job, settlement.delayMillis, now)
      return wait(deliveries, webhook, job)
    case "Delivered":
      return finish(deliveries, webhook, job, "delivered")
    case "Failed":
    case "Disabled":
      return finish(deliveries, webhook, job, "failed")
  }
}

/** Settles a claim. Returns its webhook, and whether a next delivery of the member is due, or `undefined` if the claim is void. */
export const settleDelivery = (
  deliveries: Deliveries,
  { lease: token, webhook: { webhookId } }: Claim,
  settlement: AttemptResult,
  now: Moment,
): { readonly webhook: StoredWebhook; readonly hasNext: boolean } | undefined => {
  const record = deliveries.records.get(webhookId)
  const claim = endClaim(deliveries.queues, webhookId, token, now)
  if (record === undefined || claim === undefined) return undefined
  const { delivery: job, queue } = claim
  const isOrdered = job.member !== undefined
  recordAttempt(queue, settlement, now)
  if (settlement._tag !== "Released") addAttempt(deliveries, record, job, settlement, now)
  proceed(deliveries, record, job, settlement, now)
  return { webhook: record.webhook, hasNext: isOrdered && isNextDue(queue, now.tick) }
}

/** Records an announcement. Returns whether it is the first with this share in its run of failures. */
export const addAnnouncement = (
  { records }: Deliveries,
  webhookId: WebhookId,
  { failingSince, percent }: FailingAnnouncement,
): boolean => {
  const record = records.get(webhookId)
  if (record?.failingSince !== failingSince || percent <= record.announcedPercent) return false
  record.announcedPercent = percent
  return true
}

/** Replaces a webhook. If failures have disabled it, its waiting deliveries fail. */
export const updateWebhook = (deliveries: Deliveries, webhook: StoredWebhook): void => {
  const record = deliveries.records.get(webhook.id)
  if (record === undefined) return
  if (record.webhook.disabled !== undefined && webhook.disabled === undefined) {
    Object.assign(record, healthy)
  }
  record.webhook = webhook
  for (const job of changeSettings(deliveries.queues, webhook)) end(deliveries, job, "failed")
}

/** Cancels a removed webhook's deliveries. Earlier claims can no longer be settled. */
export const cancelDeliveries = (deliveries: Deliveries, webhookId: WebhookId): void => {
  for (const job of forgetWebhook(deliveries.queues, webhookId)) end(deliveries, job, "cancelled")
  deliveries.records.delete(webhookId)
}

/** Deletes a purged project's deliveries. Earlier claims can no longer be settled. */
export const forgetProject = (deliveries: Deliveries, projectId: ProjectId): void => {
  for (const { webhook } of deliveries.records.values()) {
    if (webhook.projectId === projectId) cancelDeliveries(deliveries, webhook.id)
  }
  deliveries.ended.replace((job) => (job.event.projectId === projectId ? undefined : job))
  deliveries.hour.forget(projectId)
}

/** Returns all open deliveries and all finished ones. */
const allJobs = ({ ended, queues }: Deliveries): ReadonlyArray<Job> => [
  // A replayed delivery may be in both, or have ended twice.
  ...new Set([...[...queues.byWebhook.values()].flatMap(openDeliveries), ...ended.newestFirst()]),
]

/** Erases a person from a project's deliveries. */
export const eraseUserFromDeliveries = (
  deliveries: Deliveries,
  projectId: ProjectId,
  userId: UserId,
): void => {
  for (const job of allJobs(deliveries)) {
    if (job.event.projectId === projectId) eraseUserFromJob(job, userId)
  }
}

/** Returns how the latest attempts for a webhook went. */
export const healthOf = ({ queues, records }: Deliveries, webhookId: WebhookId): Health => ({
  failures: queues.byWebhook.get(webhookId)?.failures ?? 0,
  failingSince: records.get(webhookId)?.failingSince,
})

/** Returns how many deliveries to these webhooks have failed. */
export const countFailed = (
  { ended }: Deliveries,
  webhooks: { readonly has: (id: WebhookId) => boolean },
): number => {
  const failed = new Set<Job>()
  for (const job of ended.newestFirst()) {
    // A replayed delivery may have ended twice.
    if (job.state === "failed" && webhooks.has(job.webhookId)) failed.add(job)
  }
  return failed.size
}

/** Returns all kept deliveries to a webhook. */
export const deliveriesJobsOf = (
  { ended, queues }: Deliveries,
  webhook: WebhookRef,
): ReadonlyArray<Job> => {
  const queue = queues.byWebhook.get(webhook.webhookId)
  const open = queue === undefined ? [] : openDeliveries(queue)
  return [...new Set([...open, ...ended.newestFirst()])].filter((job) => isJobOf(job, webhook))
}

/** Returns an event's kept deliveries, in webhook order. */
export const jobsOfEvent = (deliveries: Deliveries, eventId: EventId): ReadonlyArray<Job> =>
  allJobs(deliveries)
    .filter(({ event }) => event.id === eventId)
    .toSorted((one, other) => one.order - other.order)

/** Returns a page with a webhook's deliveries, newest first. */
export const listDeliveries = (
  deliveries: Deliveries,
  webhook: WebhookRef,
  { limit, olderThan, state }: Page,
): ReadonlyArray<Delivery> => {
  const jobs = deliveriesJobsOf(deliveries, webhook).toSorted(
    (one, other) => other.order - one.order,
  )
  const before =
    olderThan === undefined ? Infinity : jobs.find(({ event }) => event.id === olderThan)?.order
  return jobs
    .filter((job) => job.order < (before ?? 0) && (state === undefined || job.state === state))
    .slice(0, limit)
    .map(toDelivery)
}
