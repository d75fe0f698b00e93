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
  forgetWebhook,
  invariant,
  isNextDue,
  makeDeliveryQueues,
  makeRing,
  mentionsUser,
  openDeliveries,
  queueOf,
  settleClaim,
  withdraw,
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
  clampConcurrency,
  eraseUser,
  userOf,
} from "@tenure/core/store"
import {
  type ActivityCounts,
  type HourCounts,
  makeDayCounts,
  makeHourCounts,
} from "./delivery-activity.ts"
import { type Job, delayJob, memberOf } from "./jobs.ts"

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

/** What is in the queues. */
interface Queued {
  readonly delivery: Job
  readonly webhook: StoredWebhook
}

/** What is known of a webhook beside its queue. */
interface WebhookRecord {
  readonly day: ActivityCounts
  /** Without the response. */
  latestAttempt: LatestAttempt | undefined
}

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]
type Page = Parameters<Outbox["Service"]["deliveries"]>[1]
type Ended = Exclude<Delivery["state"], "waiting">

/** All deliveries. Every function changes them in one synchronous step. */
export interface Deliveries {
  readonly queues: DeliveryQueues<Queued>
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
  invariant(job.state === "waiting", "a delivery ended twice")
  job.state = state
  job.member = undefined
  ended.push(job)
}

/** Returns a webhook's queue. */
export const queueFor = (
  { queues, records }: Deliveries,
  webhook: StoredWebhook,
): WebhookQueue<Queued> => {
  if (!records.has(webhook.id)) {
    records.set(webhook.id, { day: makeDayCounts(), latestAttempt: undefined })
  }
  return queueOf(queues, webhook)
}

/** Queues a delivery until it is due. If its webhook is disabled, the delivery fails. */
export const wait = (deliveries: Deliveries, queue: WebhookQueue<Queued>, job: Job): void => {
  if (!addToQueue(deliveries.queues, queue, job)) end(deliveries, job, "failed")
}

/** Makes a delivery that is in no queue yet. */
export const newJob = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): Job => ({
  event,
  webhookId: webhook.id,
  order: ++deliveries.added,
  member: memberOf(webhook, event),
  attempts: [],
  state: "waiting",
  isReplay: false,
  dueTick: now.tick,
  dueAt: event.at,
  attemptedAt: undefined,
  claims: 0,
})

/** Adds a delivery, due at once. */
export const addDelivery = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): void => wait(deliveries, queueFor(deliveries, webhook), newJob(deliveries, event, webhook, now))

/** Returns how the latest attempts for a webhook went. */
export const healthOf = ({ queues }: Deliveries, webhookId: WebhookId): Health => {
  const { failingSince, failures = 0 } = queues.byWebhook.get(webhookId) ?? {}
  return { failures, failingSince }
}

/** Returns what a dispatcher gets for a claimed delivery. */
const toClaim = (
  { delivery: { claims, event }, queue, token }: ClaimedDelivery<Queued>,
  { perWebhook }: ClaimOptions,
  { unix }: Moment,
): Claim => {
  const { headers, id, previous, projectId, secret, signingKey, url } = queue.webhook
  const isRotating = previous !== undefined && previous.until > unix
  return {
    event: { id: event.id, body: event.body },
    webhook: {
      projectId,
      webhookId: id,
      url,
      secrets: isRotating ? [secret, previous.secret] : [secret],
      signingKey,
      headers: headers?.sealed,
      failures: queue.failures,
      failingSince: queue.failingSince,
      concurrency: clampConcurrency(queue.concurrency, perWebhook),
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
  const claims = claimed.map((one) => {
    one.delivery.claims++
    return toClaim(one, options, now)
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
  hour.add(job.event.projectId, unix, isDelivered, attempt)
}

/** Ends a delivery that was claimed. */
const finish = (
  deliveries: Deliveries,
  { waiting }: WebhookQueue<Queued>,
  job: Job,
  state: Ended,
): void => {
  waiting.leave(job)
  end(deliveries, job, state)
}

/** Changes a delivery's state after its claim. */
const proceed = (
  deliveries: Deliveries,
  queue: WebhookQueue<Queued>,
  job: Job,
  settlement: AttemptResult,
  now: Moment,
): void => {
  switch (settlement._tag) {
    case "Released":
      invariant(job.claims > 0, "a delivery was released without a claim")
      job.claims--
      return wait(deliveries, queue, job)
    case "Retry":
      delayJob(job, settlement.delayMillis, now)
      return wait(deliveries, queue, job)
    case "Delivered":
      return finish(deliveries, queue, job, "delivered")
    case "Failed":
    case "Disabled":
      return finish(deliveries, queue, job, "failed")
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
  const claim = settleClaim(deliveries.queues, webhookId, token, settlement, now)
  if (record === undefined || claim === undefined) return undefined
  const { delivery: job, queue } = claim
  const isOrdered = job.member !== undefined
  if (settlement._tag !== "Released") addAttempt(deliveries, record, job, settlement, now)
  proceed(deliveries, queue, job, settlement, now)
  return { webhook: queue.webhook, hasNext: isOrdered && isNextDue(queue, now.tick) }
}

/** Records an announcement. Returns whether it is the first with this share in its run of failures. */
export const addAnnouncement = (
  { queues }: Deliveries,
  webhookId: WebhookId,
  { failingSince, percent }: FailingAnnouncement,
): boolean => {
  const queue = queues.byWebhook.get(webhookId)
  if (queue?.failingSince !== failingSince || percent <= queue.announcedPercent) return false
  queue.announcedPercent = percent
  return true
}

/** Replaces a webhook. If failures have disabled it, its waiting deliveries fail. */
export const updateWebhook = (deliveries: Deliveries, webhook: StoredWebhook): void => {
  for (const job of changeSettings(deliveries.queues, webhook)) end(deliveries, job, "failed")
}

/** Cancels deliveries that wait for a webhook. */
export const cancelWaiting = (
  deliveries: Deliveries,
  webhook: StoredWebhook,
  jobs: ReadonlyArray<Job>,
): void => {
  withdraw(queueFor(deliveries, webhook), new Set(jobs))
  for (const job of jobs) end(deliveries, job, "cancelled")
}

/** Cancels a removed webhook's deliveries. Earlier claims can no longer be settled. */
export const cancelDeliveries = (deliveries: Deliveries, webhookId: WebhookId): void => {
  for (const job of forgetWebhook(deliveries.queues, webhookId)) end(deliveries, job, "cancelled")
  deliveries.records.delete(webhookId)
}

/** Deletes a purged project's deliveries. Earlier claims can no longer be settled. */
export const forgetProject = (deliveries: Deliveries, projectId: ProjectId): void => {
  for (const { webhook } of deliveries.queues.byWebhook.values()) {
    if (webhook.projectId === projectId) cancelDeliveries(deliveries, webhook.id)
  }
  deliveries.ended.replace((job) => (job.event.projectId === projectId ? undefined : job))
  deliveries.hour.forget(projectId)
}

/** Returns the open deliveries of some webhooks, and all finished ones. */
const jobsIn = (
  { ended }: Deliveries,
  queues: ReadonlyArray<WebhookQueue<Queued>>,
): ReadonlyArray<Job> => [
  // A replayed delivery may be in both, or have ended twice.
  ...new Set([...queues.flatMap(openDeliveries), ...ended.newestFirst()]),
]

const allJobs = (deliveries: Deliveries): ReadonlyArray<Job> =>
  jobsIn(deliveries, [...deliveries.queues.byWebhook.values()])

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
  deliveries: Deliveries,
  webhook: WebhookRef,
): ReadonlyArray<Job> => {
  const queue = deliveries.queues.byWebhook.get(webhook.webhookId)
  const jobs = jobsIn(deliveries, queue === undefined ? [] : [queue])
  return jobs.filter((job) => isJobOf(job, webhook))
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
