/** One delivery: an event for a webhook. */

import { type Moment, initialConcurrency, mentionsUser, waitMicros } from "@tenure/core/internal"
import {
  type Attempt,
  type AttemptResult,
  type Backlog,
  type Claim,
  type ClaimResult,
  type Delivery,
  type Event,
  type EventId,
  type FailingAnnouncement,
  type Health,
  type LatestAttempt,
  type Micros,
  type Millis,
  type Outbox,
  type ProjectId,
  type StoredWebhook,
  type UserId,
  type WebhookId,
  type WebhookRef,
  clampConcurrency,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  eraseUser,
  isAwaited,
  maxAttemptsOfWebhook,
  takeToken,
  toMicros,
  userOf,
  webhookRatePolicy,
} from "@tenure/core/store"
import type { Mutable } from "effect/Types"
import { type Ring, type RoundRobin, makeRing, makeRoundRobin } from "./collections.ts"
import {
  type ActivityCounts,
  type HourCounts,
  makeDayCounts,
  makeHourCounts,
} from "./delivery-activity.ts"
import { type Job, type WaitingJobs, delayJob, makeJob, makeWaitingJobs } from "./jobs.ts"

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

type LaneClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** A claimed delivery's lease. */
interface Lease {
  readonly job: Job
  /** When it expires, by the monotonic clock. */
  readonly until: number
  /** Whether it was prefetched beyond the webhook's concurrency. */
  readonly isAhead: boolean
}

/** How the latest attempts for a webhook went. */
interface Progress extends Mutable<Health> {
  /** The share of `disableAfter` announced since `failingSince`, in percent. */
  announcedPercent: number
  /** Until when the webhook is held, by the monotonic clock. */
  heldUntil: number
}

/** A webhook's unfinished deliveries and its recent results. */
interface WebhookQueue extends Progress {
  webhook: StoredWebhook
  concurrency: number
  readonly waiting: WaitingJobs
  /** Claimed deliveries by lease token. */
  readonly leases: Map<string, Lease>
  /** When the token bucket of its rate is full, by the monotonic clock. */
  rateFullAt: Micros | undefined
  readonly day: ActivityCounts
  /** Without the response. */
  latestAttempt: LatestAttempt | undefined
}

/** Nothing has failed. */
const healthyWebhook: Progress = {
  failures: 0,
  failingSince: undefined,
  announcedPercent: 0,
  heldUntil: -Infinity,
}

const untried = { ...healthyWebhook, concurrency: initialConcurrency }

/** Creates an empty queue. */
const makeLane = (webhook: StoredWebhook): WebhookQueue => ({
  webhook,
  waiting: makeWaitingJobs(),
  leases: new Map(),
  rateFullAt: undefined,
  day: makeDayCounts(),
  latestAttempt: undefined,
  ...untried,
})

/** Tells whether deliveries may wait. Those to a webhook that failures have disabled fail. */
const isOpen = ({ webhook }: WebhookQueue): boolean => webhook.disabled?.by !== "failures"

/** Returns until when the webhook is held, by the monotonic clock. Somebody may have asked for it. */
const heldUntilOf = ({ heldUntil, webhook }: WebhookQueue): number =>
  webhook.disabled === undefined ? heldUntil : Infinity

/** Returns when there is a token of the webhook's rate, by the monotonic clock: `tick` if there is one now. */
const nextTokenAt = ({ rateFullAt, webhook: { rate } }: WebhookQueue, tick: Millis): number =>
  rate === undefined
    ? tick
    : tick + Math.ceil(waitMicros(rateFullAt, toMicros(tick), webhookRatePolicy(rate)) / 1000)

/** Takes a token of the webhook's rate, if it has one. */
const takeRateToken = (lane: WebhookQueue, tick: Millis): void => {
  const { rate } = lane.webhook
  if (rate === undefined) return
  lane.rateFullAt = takeToken(lane.rateFullAt, toMicros(tick), webhookRatePolicy(rate)).tat
}

/** Replaces the webhook. Enabling it again resets its health and concurrency. */
const updateQueue = (lane: WebhookQueue, webhook: StoredWebhook): void => {
  if (lane.webhook.disabled !== undefined && webhook.disabled === undefined) {
    Object.assign(lane, untried)
  }
  lane.webhook = webhook
}

/** Returns all unfinished deliveries. */
const jobsOf = ({ leases, waiting }: WebhookQueue): ReadonlyArray<Job> => [
  ...waiting.values(),
  ...[...leases.values()].map(({ job }) => job),
]

/** Removes waiting deliveries before they become due at another time. */
export const withdrawJobs = ({ waiting }: WebhookQueue, jobs: ReadonlySet<Job>): void => {
  const others = waiting.values().filter((job) => !jobs.has(job))
  if (others.length === waiting.size()) return
  waiting.clear()
  for (const job of others) waiting.push(job)
}

/** Returns when an attempt may start, by the monotonic clock. */
const startsAt = (lane: WebhookQueue, tick: Millis): number =>
  Math.max(heldUntilOf(lane), nextTokenAt(lane, tick))

/** Tells whether another delivery may be claimed now, if one is due. */
const hasRoom = (lane: WebhookQueue, most: number, tick: Millis): boolean =>
  startsAt(lane, tick) <= tick && lane.leases.size < (lane.failures > 0 ? 1 : most)

/** Tells whether the next delivery is due and the webhook not held. It may wait for a token. */
const isNextDue = (lane: WebhookQueue, tick: Millis): boolean => {
  const next = lane.waiting.peek(tick)
  return next !== undefined && next.dueTick <= tick && heldUntilOf(lane) <= tick
}

/** Tells whether the next delivery is due and may start. */
const hasReady = (lane: WebhookQueue, tick: Millis): boolean =>
  isNextDue(lane, tick) && nextTokenAt(lane, tick) <= tick

/** Tells whether the next delivery is due and may be prefetched beyond the webhook's concurrency. */
const isReadyAhead = (lane: WebhookQueue, tick: Millis): boolean =>
  lane.failures === 0 && lane.webhook.rate === undefined && hasReady(lane, tick)

/** Tells whether the next delivery is due and may be claimed. */
const isQueueReady = (lane: WebhookQueue, most: number, tick: Millis): boolean =>
  hasReady(lane, tick) && hasRoom(lane, most, tick)

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
const nextLeaseExpiry = ({ leases }: WebhookQueue): number =>
  Math.min(Infinity, ...[...leases.values()].map(({ until }) => until))

/**
 * Returns when the next unclaimed delivery is due, or was. Replayed ones do not count.
 *
 * @returns milliseconds on the monotonic clock, or `Infinity` for never
 */
const queueDueAt = (lane: WebhookQueue): number =>
  Math.min(lane.waiting.oldestDueTick(), nextLeaseExpiry(lane))

/**
 * Returns when a delivery can be claimed if nothing is published or settled before.
 *
 * @returns milliseconds by the monotonic clock, or `Infinity` for never
 */
const nextAttemptOf = (lane: WebhookQueue, most: number, tick: Millis): number => {
  const startAt = startsAt(lane, tick)
  const next = lane.waiting.peek(tick)
  const mayWait = next !== undefined && (startAt > tick || hasRoom(lane, most, tick))
  const due = mayWait ? Math.max(next.dueTick, startAt) : Infinity
  return Math.min(due, nextLeaseExpiry(lane))
}

/** Claims a delivery, with a token for its lease. */
const leaseJobs = (
  lane: WebhookQueue,
  job: Job,
  { isAhead, token }: { readonly token: string; readonly isAhead: boolean },
  { leaseMillis, perWebhook }: LaneClaimOptions,
  { tick, unix }: Moment,
): Claim => {
  job.claims++
  takeRateToken(lane, tick)
  lane.leases.set(token, { job, until: tick + leaseMillis, isAhead })
  const { headers, id, previous, projectId, secret, signingKey, url } = lane.webhook
  const isRotating = previous !== undefined && previous.until > unix
  return {
    event: { id: job.event.id, body: job.event.body },
    webhook: {
      projectId,
      webhookId: id,
      url,
      secrets: isRotating ? [secret, previous.secret] : [secret],
      signingKey,
      headers: headers?.sealed,
      failures: lane.failures,
      failingSince: lane.failingSince,
      concurrency: clampConcurrency(lane.concurrency, perWebhook),
    },
    attemptNumber: job.claims,
    lease: token,
  }
}

const holdMillisOf = (settlement: AttemptResult): number =>
  "holdMillis" in settlement ? settlement.holdMillis : 0

/** Records how an attempt went. */
const recordAttempt = (
  lane: WebhookQueue,
  settlement: AttemptResult,
  { tick, unix }: Moment,
): void => {
  if (settlement._tag === "Delivered") {
    Object.assign(lane, healthyWebhook)
    lane.concurrency = concurrencyAfterSuccess(lane.concurrency)
  } else {
    lane.concurrency = concurrencyAfterFailure(lane.concurrency)
    lane.failures++
    lane.failingSince ??= unix
    lane.heldUntil = Math.max(lane.heldUntil, tick + holdMillisOf(settlement))
  }
}

/** A project's webhooks, served in turn. */
interface ProjectQueues {
  readonly lanes: Set<WebhookQueue>
  readonly turns: RoundRobin<WebhookQueue>
  /** The number of leases, without prefetched ones. */
  leased: number
}

/** Makes an empty group. */
const makeProjectQueues = (): ProjectQueues => ({
  lanes: new Set(),
  turns: makeRoundRobin(),
  leased: 0,
})

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
const nextLeaseExpiryOfProject = ({ lanes }: ProjectQueues): number => {
  let first = Infinity
  for (const lane of lanes) first = Math.min(first, nextLeaseExpiry(lane))
  return first
}

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]
type Page = Parameters<Outbox["Service"]["deliveries"]>[1]
type Ended = Exclude<Delivery["state"], "waiting">

/**
 * All deliveries: a queue per webhook. Projects take turns, and so do the webhooks within a project.
 * Every function changes them in one synchronous step.
 */
export interface Deliveries {
  readonly lanes: Map<WebhookId, WebhookQueue>
  readonly groups: Map<ProjectId, ProjectQueues>
  readonly turns: RoundRobin<ProjectQueues>
  /** Webhooks with deliveries a claim may have skipped. */
  readonly keptBack: Set<WebhookQueue>
  readonly ended: Ring<Job>
  readonly hour: HourCounts
  /** The number of added deliveries and of claims. */
  readonly counts: { added: number; claimed: number }
}

/**
 * Creates an empty set.
 *
 * @param history - how many finished deliveries to keep
 */
export const makeDeliveries = (history: number): Deliveries => ({
  lanes: new Map(),
  groups: new Map(),
  turns: makeRoundRobin(),
  keptBack: new Set(),
  ended: makeRing(history),
  hour: makeHourCounts(),
  counts: { added: 0, claimed: 0 },
})

const groupOf = ({ groups }: Deliveries, { webhook }: WebhookQueue): ProjectQueues => {
  const known = groups.get(webhook.projectId)
  if (known !== undefined) return known
  const group = makeProjectQueues()
  groups.set(webhook.projectId, group)
  return group
}

/** Returns a webhook's queue. */
export const laneOf = (deliveries: Deliveries, webhook: StoredWebhook): WebhookQueue => {
  const known = deliveries.lanes.get(webhook.id)
  if (known !== undefined) return known
  const lane = makeLane(webhook)
  deliveries.lanes.set(webhook.id, lane)
  groupOf(deliveries, lane).lanes.add(lane)
  return lane
}

/** Enqueues a webhook in its project, and the project among the projects. */
const enqueue = (deliveries: Deliveries, lane: WebhookQueue): void => {
  const group = groupOf(deliveries, lane)
  group.turns.enqueue(lane)
  deliveries.turns.enqueue(group)
}

const end = ({ ended }: Deliveries, job: Job, state: Ended): void => {
  job.state = state
  job.member = undefined
  ended.push(job)
}

/** Ends a delivery that was claimed. */
const finish = (deliveries: Deliveries, lane: WebhookQueue, job: Job, state: Ended): void => {
  lane.waiting.leave(job)
  end(deliveries, job, state)
}

/** Queues a delivery until it is due. If its webhook is disabled, the delivery fails. */
export const wait = (deliveries: Deliveries, lane: WebhookQueue, job: Job): void => {
  if (!isOpen(lane)) return finish(deliveries, lane, job, "failed")
  lane.waiting.push(job)
  enqueue(deliveries, lane)
}

/** Makes a delivery that is in no queue yet. */
export const newJob = (
  { counts }: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): Job => makeJob(event, webhook, ++counts.added, now)

/** Adds a delivery, due at once. */
export const addDelivery = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): void => {
  const job = newJob(deliveries, event, webhook, now)
  wait(deliveries, laneOf(deliveries, webhook), job)
}

/** Ends a lease. */
const unlease = (deliveries: Deliveries, lane: WebhookQueue, token: string): void => {
  if (lane.leases.get(token)?.isAhead === false) groupOf(deliveries, lane).leased--
  lane.leases.delete(token)
}

/** Queues deliveries again after their leases expire. */
const expire = (deliveries: Deliveries, lane: WebhookQueue, now: Moment): void => {
  for (const [token, { job, until }] of lane.leases) {
    if (until > now.tick) continue
    unlease(deliveries, lane, token)
    wait(deliveries, lane, job)
  }
}

/** Claims a project's next delivery, from its first webhook with one. */
const claimOne = (
  deliveries: Deliveries,
  group: ProjectQueues,
  options: ClaimOptions,
  now: Moment,
): Claim | undefined => {
  const { tick } = now
  group.turns.wake(tick)
  for (const lane of group.turns.queue()) {
    expire(deliveries, lane, now)
    const concurrency = clampConcurrency(lane.concurrency, options.perWebhook)
    const most = maxAttemptsOfWebhook(concurrency, options.perProject, group.leased)
    const isReady = isQueueReady(lane, most, tick)
    deliveries.keptBack.add(lane)
    // Keeps its turn, because the next claim may allow more.
    if (isReady && lane.failures > 0 && options.failing === 0) continue
    const job = isReady ? lane.waiting.pop(now.tick) : undefined
    if (job !== undefined) {
      group.turns.requeue(lane)
      group.leased++
      const token = String(++deliveries.counts.claimed)
      return leaseJobs(lane, job, { token, isAhead: false }, options, now)
    }
    group.turns.park(lane, nextAttemptOf(lane, most, tick))
  }
  return undefined
}

/** Prefetches deliveries beyond their webhooks' concurrency, up to a limit. */
const claimAhead = (
  deliveries: Deliveries,
  options: ClaimOptions,
  limit: number,
  now: Moment,
): ReadonlyArray<Claim> => {
  const claims: Array<Claim> = []
  for (const [webhookId, most] of options.ahead) {
    const lane = deliveries.lanes.get(webhookId)
    if (lane === undefined || 2 * groupOf(deliveries, lane).leased > options.perProject) continue
    for (let count = 0; count < most && claims.length < limit; count++) {
      const job = isReadyAhead(lane, now.tick) ? lane.waiting.pop(now.tick) : undefined
      if (job === undefined) break
      const token = String(++deliveries.counts.claimed)
      claims.push(leaseJobs(lane, job, { token, isAhead: true }, options, now))
    }
  }
  return claims
}

/** Tells whether a project has as many leases as it may have. */
const isFull = (
  deliveries: Deliveries,
  group: ProjectQueues,
  { perProject }: ClaimOptions,
  now: Moment,
): boolean => {
  if (group.leased < perProject) return false
  for (const lane of group.lanes) expire(deliveries, lane, now)
  return group.leased >= perProject
}

/** Returns the webhooks with claimable deliveries, and drops the others from the set. */
const readyOf = (lanes: Set<WebhookQueue>, tick: Millis): ReadonlyArray<WebhookId> => {
  for (const lane of lanes) if (!hasReady(lane, tick)) lanes.delete(lane)
  return [...lanes].map(({ webhook }) => webhook.id)
}

const millisUntil = (at: number, { tick }: Moment): number | undefined =>
  at === Infinity ? undefined : Math.max(1, at - tick)

/** Claims due deliveries, each project in turn. */
export const claimDeliveries = (
  deliveries: Deliveries,
  options: ClaimOptions,
  now: Moment,
): ClaimResult => {
  const { keptBack, turns } = deliveries
  const claims: Array<Claim> = []
  let { failing } = options
  let nextAt = Infinity
  turns.wake(now.tick)
  for (const group of turns.queue()) {
    if (claims.length === options.limit) {
      return { claims, nextDueMillis: 0, keptBack: readyOf(keptBack, now.tick) }
    }
    if (isFull(deliveries, group, options, now)) {
      // Keeps its turn, because the next claim may allow more.
      group.turns.wake(now.tick)
      nextAt = Math.min(nextAt, nextLeaseExpiryOfProject(group), group.turns.nextAt() ?? Infinity)
      for (const lane of group.turns.queue()) {
        keptBack.add(lane)
        const startAt = startsAt(lane, now.tick)
        if (startAt > now.tick) nextAt = Math.min(nextAt, startAt)
      }
      continue
    }
    const claimed = claimOne(deliveries, group, { ...options, failing }, now)
    if (claimed !== undefined) {
      claims.push(claimed)
      if (claimed.webhook.failures > 0) failing--
      turns.requeue(group)
    } else {
      const wakesAt = group.turns.nextAt() ?? Infinity
      nextAt = Math.min(nextAt, wakesAt)
      if (group.turns.isEmpty()) turns.park(group, wakesAt)
    }
  }
  nextAt = Math.min(nextAt, turns.nextAt() ?? Infinity)
  claims.push(...claimAhead(deliveries, options, options.limit - claims.length, now))
  return {
    claims,
    nextDueMillis: claims.length === options.limit ? 0 : millisUntil(nextAt, now),
    keptBack: readyOf(keptBack, now.tick),
  }
}

/** Changes a delivery's state after its claim. */
const proceed = (
  deliveries: Deliveries,
  lane: WebhookQueue,
  job: Job,
  settlement: AttemptResult,
  now: Moment,
): void => {
  switch (settlement._tag) {
    case "Released":
      job.claims--
      return wait(deliveries, lane, job)
    case "Retry":
      delayJob(job, settlement.delayMillis, now)
      return wait(deliveries, lane, job)
    case "Delivered":
      return finish(deliveries, lane, job, "delivered")
    case "Failed":
    case "Disabled":
      return finish(deliveries, lane, job, "failed")
  }
}

/** Settles a claim. Returns its webhook, and whether a next delivery of the member is due, or `undefined` if the claim is void. */
export const settleDelivery = (
  deliveries: Deliveries,
  { lease: token, webhook }: Claim,
  settlement: AttemptResult,
  now: Moment,
): { readonly webhook: StoredWebhook; readonly hasNext: boolean } | undefined => {
  const lane = deliveries.lanes.get(webhook.webhookId)
  const lease = lane?.leases.get(token)
  if (lane === undefined || lease === undefined || lease.until <= now.tick) return undefined
  const { job } = lease
  const isOrdered = job.member !== undefined
  unlease(deliveries, lane, token)
  if (settlement._tag !== "Released") {
    const { attempt } = settlement
    const isDelivered = settlement._tag === "Delivered"
    job.attempts.push(attempt)
    job.attemptedAt = Math.floor(now.unix)
    lane.latestAttempt = { ...withoutResponse(attempt), eventId: job.event.id }
    lane.day.add(now.unix, isDelivered, attempt.durationMillis)
    deliveries.hour.add(lane.webhook.projectId, now.unix, isDelivered, attempt)
    recordAttempt(lane, settlement, now)
  }
  proceed(deliveries, lane, job, settlement, now)
  enqueue(deliveries, lane)
  return { webhook: lane.webhook, hasNext: isOrdered && isNextDue(lane, now.tick) }
}

/** Records an announcement. Returns whether it is the first with this share in its run of failures. */
export const addAnnouncement = (
  { lanes }: Deliveries,
  webhookId: WebhookId,
  { failingSince, percent }: FailingAnnouncement,
): boolean => {
  const lane = lanes.get(webhookId)
  if (lane?.failingSince !== failingSince || percent <= lane.announcedPercent) return false
  lane.announcedPercent = percent
  return true
}

/** Replaces a webhook. If failures have disabled it, its waiting deliveries fail. */
export const updateWebhook = (deliveries: Deliveries, webhook: StoredWebhook): void => {
  const lane = deliveries.lanes.get(webhook.id)
  if (lane === undefined) return
  updateQueue(lane, webhook)
  if (isOpen(lane)) return enqueue(deliveries, lane)
  for (const job of lane.waiting.values()) end(deliveries, job, "failed")
  lane.waiting.clear()
}

/** Cancels a removed webhook's deliveries. Earlier claims can no longer be settled. */
export const cancelDeliveries = (deliveries: Deliveries, webhookId: WebhookId): void => {
  const lane = deliveries.lanes.get(webhookId)
  if (lane === undefined) return
  for (const job of jobsOf(lane)) end(deliveries, job, "cancelled")
  const group = groupOf(deliveries, lane)
  group.leased -= [...lane.leases.values()].filter(({ isAhead }) => !isAhead).length
  group.lanes.delete(lane)
  group.turns.park(lane, Infinity)
  deliveries.lanes.delete(webhookId)
  deliveries.keptBack.delete(lane)
}

/** Deletes a purged project's deliveries. Earlier claims can no longer be settled. */
export const forgetProject = (deliveries: Deliveries, projectId: ProjectId): void => {
  for (const { webhook } of deliveries.lanes.values()) {
    if (webhook.projectId === projectId) cancelDeliveries(deliveries, webhook.id)
  }
  deliveries.ended.replace((job) => (job.event.projectId === projectId ? undefined : job))
  deliveries.hour.forget(projectId)
}

/** Erases a person from a project's deliveries. */
export const eraseUserFromDeliveries = (
  deliveries: Deliveries,
  projectId: ProjectId,
  userId: UserId,
): void => {
  for (const job of jobsIn(deliveries, [...deliveries.lanes.values()])) {
    if (job.event.projectId === projectId) eraseUserFromJob(job, userId)
  }
}

/** Returns how the latest attempts for a webhook went. */
export const healthOf = ({ lanes }: Deliveries, webhookId: WebhookId): Health => {
  const { failingSince, failures } = lanes.get(webhookId) ?? healthyWebhook
  return { failures, failingSince }
}

/** Returns since when a delivery waits for a dispatcher, rather than for the receiver; `Infinity` if none does. */
const queueLateAt = (lane: WebhookQueue, tick: Millis): number => {
  const load = {
    claimed: [...lane.leases.values()].filter(({ until }) => until > tick).length,
    concurrency: lane.concurrency,
    isFailing: lane.failures > 0,
    isOrdered: lane.webhook.ordered,
  }
  return isAwaited(load) && nextTokenAt(lane, tick) <= tick
    ? Math.max(queueDueAt(lane), heldUntilOf(lane))
    : Infinity
}

/** Returns the number of unfinished deliveries, and for how long the oldest due one has been due that is not replayed. */
export const backlogOf = (
  { lanes }: Deliveries,
  { tick }: Moment,
): Pick<Backlog, "waiting" | "dueForMillis" | "lateForMillis"> => {
  let waiting = 0
  let first = Infinity
  let late = Infinity
  for (const lane of lanes.values()) {
    waiting += lane.waiting.size() + lane.leases.size
    if (lane.webhook.disabled !== undefined) continue
    first = Math.min(first, queueDueAt(lane))
    late = Math.min(late, queueLateAt(lane, tick))
  }
  const since = (at: number) => (at <= tick ? tick - at : undefined)
  return { waiting, dueForMillis: since(first), lateForMillis: since(late) }
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

/** Returns the webhooks' open deliveries and all finished ones. */
const jobsIn = ({ ended }: Deliveries, lanes: ReadonlyArray<WebhookQueue>): ReadonlyArray<Job> => [
  // A replayed delivery may be in both, or have ended twice.
  ...new Set([...lanes.flatMap(jobsOf), ...ended.newestFirst()]),
]

/** Returns all kept deliveries to a webhook. */
export const deliveriesJobsOf = (
  deliveries: Deliveries,
  webhook: WebhookRef,
): ReadonlyArray<Job> => {
  const lane = deliveries.lanes.get(webhook.webhookId)
  const jobs = jobsIn(deliveries, lane === undefined ? [] : [lane])
  return jobs.filter((job) => isJobOf(job, webhook))
}

/** Returns an event's kept deliveries, in webhook order. */
export const jobsOfEvent = (deliveries: Deliveries, eventId: EventId): ReadonlyArray<Job> =>
  jobsIn(deliveries, [...deliveries.lanes.values()])
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
