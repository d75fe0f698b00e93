/** The deliveries of all webhooks. Each webhook has a lane. Projects take turns, and so do their lanes. */

import * as Concurrency from "@tenure/core/Concurrency"
import type { Event, EventId } from "@tenure/core/Event"
import type { UserId } from "@tenure/core/Membership"
import type { Moment } from "@tenure/core/Moment"
import {
  type Backlog,
  type Claim,
  type Claimed,
  type Delivery,
  mostInProject,
  type Outbox,
  type Replay,
  type Settlement,
  type WebhookRef,
} from "@tenure/core/Outbox"
import type { ProjectId } from "@tenure/core/Project"
import type { Health, StoredWebhook, WebhookId } from "@tenure/core/Webhook"
import * as Ring from "../collections/Ring.ts"
import * as Turns from "../collections/Turns.ts"
import * as Group from "./Group.ts"
import * as Job from "./Job.ts"
import * as Lane from "./Lane.ts"

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]
type Page = Parameters<Outbox["Service"]["deliveries"]>[1]
type Ended = Exclude<Delivery["state"], "waiting">

/** All deliveries. Every function that changes them is one synchronous step. */
export interface Deliveries {
  readonly lanes: Map<WebhookId, Lane.Lane>
  readonly groups: Map<ProjectId, Group.Group>
  readonly turns: Turns.Turns<Group.Group>
  /** The lanes in which claims may have left jobs that are ready. */
  readonly keptBack: Set<Lane.Lane>
  readonly ended: Ring.Ring<Job.Job>
  /** The number of deliveries added, and of claims. */
  readonly counts: { added: number; claimed: number }
}

/**
 * Makes an empty set of deliveries.
 *
 * @param history - how many deliveries are kept after they have ended
 */
export const make = (history: number): Deliveries => ({
  lanes: new Map(),
  groups: new Map(),
  turns: Turns.make(),
  keptBack: new Set(),
  ended: Ring.make(history),
  counts: { added: 0, claimed: 0 },
})

const groupOf = ({ groups }: Deliveries, { webhook }: Lane.Lane): Group.Group => {
  const known = groups.get(webhook.projectId)
  if (known !== undefined) return known
  const group = Group.make()
  groups.set(webhook.projectId, group)
  return group
}

const laneOf = (deliveries: Deliveries, webhook: StoredWebhook): Lane.Lane => {
  const known = deliveries.lanes.get(webhook.id)
  if (known !== undefined) return known
  const lane = Lane.make(webhook)
  deliveries.lanes.set(webhook.id, lane)
  groupOf(deliveries, lane).lanes.add(lane)
  return lane
}

/** Puts a lane into the queue of its project, and the project into the queue of projects. */
const enqueue = (deliveries: Deliveries, lane: Lane.Lane): void => {
  const group = groupOf(deliveries, lane)
  group.turns.enqueue(lane)
  deliveries.turns.enqueue(group)
}

const end = ({ ended }: Deliveries, job: Job.Job, state: Ended): void => {
  job.state = state
  ended.push(job)
}

/** Makes a job wait until it is due. A job of a disabled webhook fails. */
const wait = (deliveries: Deliveries, lane: Lane.Lane, job: Job.Job): void => {
  if (!Lane.isOpen(lane)) return end(deliveries, job, "failed")
  lane.waiting.push(job)
  enqueue(deliveries, lane)
}

/** Adds a delivery of an event, due at once. */
export const add = (
  deliveries: Deliveries,
  event: Event,
  webhook: StoredWebhook,
  now: Moment,
): void => {
  const job = Job.make(event, webhook.id, ++deliveries.counts.added, now)
  wait(deliveries, laneOf(deliveries, webhook), job)
}

/** Ends a lease. */
const unlease = (deliveries: Deliveries, lane: Lane.Lane, token: string): void => {
  if (lane.leases.get(token)?.isAhead === false) groupOf(deliveries, lane).leased--
  lane.leases.delete(token)
}

/** Makes the jobs of expired leases wait again. */
const expire = (deliveries: Deliveries, lane: Lane.Lane, tick: number): void => {
  for (const [token, { job, until }] of lane.leases) {
    if (until > tick) continue
    unlease(deliveries, lane, token)
    wait(deliveries, lane, job)
  }
}

/** Claims the next delivery of a project, from the first of its lanes that has one. */
const claimOne = (
  deliveries: Deliveries,
  group: Group.Group,
  options: ClaimOptions,
  now: Moment,
): Claim | undefined => {
  const { tick } = now
  group.turns.wake(tick)
  for (const lane of group.turns.queue()) {
    expire(deliveries, lane, tick)
    const concurrency = Concurrency.within(lane.concurrency, options.perWebhook)
    const most = mostInProject(concurrency, options.perProject, group.leased)
    const isReady = Lane.isReady(lane, most, tick)
    deliveries.keptBack.add(lane)
    // It keeps its place, because the next claim may allow more.
    if (isReady && lane.failures > 0 && options.failing === 0) continue
    const job = isReady ? lane.waiting.pop() : undefined
    if (job !== undefined) {
      group.turns.requeue(lane)
      group.leased++
      const token = String(++deliveries.counts.claimed)
      return Lane.lease(lane, job, { token, isAhead: false }, options, now)
    }
    group.turns.park(lane, Lane.nextAt(lane, most, tick))
  }
  return undefined
}

/** Claims deliveries beyond the concurrency of their webhooks, up to a limit. */
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
      const job = Lane.isReadyAhead(lane, now.tick) ? lane.waiting.pop() : undefined
      if (job === undefined) break
      const token = String(++deliveries.counts.claimed)
      claims.push(Lane.lease(lane, job, { token, isAhead: true }, options, now))
    }
  }
  return claims
}

/** Tells whether a project has as many leases as it may have. */
const isFull = (
  deliveries: Deliveries,
  group: Group.Group,
  { perProject }: ClaimOptions,
  tick: number,
): boolean => {
  if (group.leased < perProject) return false
  for (const lane of group.lanes) expire(deliveries, lane, tick)
  return group.leased >= perProject
}

/** Returns the webhooks of lanes with jobs that are ready, and forgets the other lanes. */
const readyOf = (lanes: Set<Lane.Lane>, tick: number): ReadonlyArray<WebhookId> => {
  for (const lane of lanes) if (!Lane.hasReady(lane, tick)) lanes.delete(lane)
  return [...lanes].map(({ webhook }) => webhook.id)
}

const millisUntil = (at: number, { tick }: Moment): number | undefined =>
  at === Infinity ? undefined : Math.max(1, at - tick)

/** Claims deliveries that are due, project by project in turn. */
export const claim = (deliveries: Deliveries, options: ClaimOptions, now: Moment): Claimed => {
  const { keptBack, turns } = deliveries
  const claims: Array<Claim> = []
  let { failing } = options
  let nextAt = Infinity
  turns.wake(now.tick)
  for (const group of turns.queue()) {
    if (claims.length === options.limit) {
      return { claims, nextDueMillis: 0, keptBack: readyOf(keptBack, now.tick) }
    }
    if (isFull(deliveries, group, options, now.tick)) {
      // It keeps its place, because the next claim may allow more.
      nextAt = Math.min(nextAt, Group.nextExpiry(group))
      for (const lane of group.turns.queue()) keptBack.add(lane)
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

/** Changes the state of a job after its claim. */
const proceed = (
  deliveries: Deliveries,
  lane: Lane.Lane,
  job: Job.Job,
  settlement: Settlement,
  now: Moment,
): void => {
  switch (settlement._tag) {
    case "Released":
      job.claims--
      return wait(deliveries, lane, job)
    case "Retry":
      Job.delay(job, settlement.delayMillis, now)
      return wait(deliveries, lane, job)
    case "Delivered":
      return end(deliveries, job, "delivered")
    case "Failed":
    case "Disabled":
      return end(deliveries, job, "failed")
  }
}

/** Settles a claim. Returns its webhook, or `undefined` if the claim is void. */
export const settle = (
  deliveries: Deliveries,
  { lease: token, webhook }: Claim,
  settlement: Settlement,
  now: Moment,
): StoredWebhook | undefined => {
  const lane = deliveries.lanes.get(webhook.webhookId)
  const lease = lane?.leases.get(token)
  if (lane === undefined || lease === undefined || lease.until <= now.tick) return undefined
  const { job } = lease
  unlease(deliveries, lane, token)
  if (settlement._tag !== "Released") {
    job.attempts.push(settlement.attempt)
    Lane.recordAttempt(lane, settlement, now)
  }
  proceed(deliveries, lane, job, settlement, now)
  enqueue(deliveries, lane)
  return lane.webhook
}

/** Replaces a webhook. If it is disabled, its waiting deliveries fail. */
export const update = (deliveries: Deliveries, webhook: StoredWebhook): void => {
  const lane = deliveries.lanes.get(webhook.id)
  if (lane === undefined) return
  Lane.update(lane, webhook)
  if (Lane.isOpen(lane)) return
  for (const job of lane.waiting.values()) end(deliveries, job, "failed")
  lane.waiting.clear()
}

/** Cancels all deliveries of a webhook that was removed. Earlier claims can no longer be settled. */
export const cancel = (deliveries: Deliveries, webhookId: WebhookId): void => {
  const lane = deliveries.lanes.get(webhookId)
  if (lane === undefined) return
  for (const job of Lane.jobsOf(lane)) end(deliveries, job, "cancelled")
  const group = groupOf(deliveries, lane)
  group.leased -= [...lane.leases.values()].filter(({ isAhead }) => !isAhead).length
  group.lanes.delete(lane)
  group.turns.park(lane, Infinity)
  deliveries.lanes.delete(webhookId)
  deliveries.keptBack.delete(lane)
}

/** Forgets all deliveries of a project that was deleted. Earlier claims can no longer be settled. */
export const forget = (deliveries: Deliveries, projectId: ProjectId): void => {
  for (const { webhook } of deliveries.lanes.values()) {
    if (webhook.projectId === projectId) cancel(deliveries, webhook.id)
  }
  deliveries.ended.replace((job) => (job.event.projectId === projectId ? undefined : job))
}

/** Erases a person from all deliveries of a project. */
export const erase = (deliveries: Deliveries, projectId: ProjectId, userId: UserId): void => {
  for (const job of jobsIn(deliveries, [...deliveries.lanes.values()])) {
    if (job.event.projectId === projectId) Job.erase(job, userId)
  }
}

/** Returns how the latest attempts for a webhook went. */
export const healthOf = ({ lanes }: Deliveries, webhookId: WebhookId): Health => {
  const { failingSince, failures } = lanes.get(webhookId) ?? Lane.well
  return { failures, failingSince }
}

/** Returns how many jobs have not ended, and for how long the oldest that is due has been due. */
export const backlogOf = (
  { lanes }: Deliveries,
  { tick }: Moment,
): Pick<Backlog, "waiting" | "dueForMillis"> => {
  let waiting = 0
  let first = Infinity
  for (const lane of lanes.values()) {
    waiting += lane.waiting.size() + lane.leases.size
    first = Math.min(first, Lane.dueAt(lane))
  }
  return { waiting, dueForMillis: first <= tick ? tick - first : undefined }
}

/** Returns how many jobs of these webhooks have failed. */
export const countFailed = (
  { ended }: Deliveries,
  webhooks: { readonly has: (id: WebhookId) => boolean },
): number => {
  const failed = new Set<Job.Job>()
  for (const job of ended.newestFirst()) {
    // A job that was replayed may have ended twice.
    if (job.state === "failed" && webhooks.has(job.webhookId)) failed.add(job)
  }
  return failed.size
}

/** Returns the open jobs of these lanes and all that have ended. */
const jobsIn = ({ ended }: Deliveries, lanes: ReadonlyArray<Lane.Lane>): ReadonlyArray<Job.Job> => [
  // A job that was replayed may be among both, or have ended twice.
  ...new Set([...lanes.flatMap(Lane.jobsOf), ...ended.newestFirst()]),
]

/** Returns all jobs of a webhook that are kept. */
const jobsOf = (deliveries: Deliveries, webhook: WebhookRef): ReadonlyArray<Job.Job> => {
  const lane = deliveries.lanes.get(webhook.webhookId)
  const jobs = jobsIn(deliveries, lane === undefined ? [] : [lane])
  return jobs.filter((job) => Job.isOf(job, webhook))
}

/** Returns all jobs of an event that are kept, in the order of their webhooks. */
export const jobsOfEvent = (deliveries: Deliveries, eventId: EventId): ReadonlyArray<Job.Job> =>
  jobsIn(deliveries, [...deliveries.lanes.values()])
    .filter(({ event }) => event.id === eventId)
    .toSorted((one, other) => one.order - other.order)

/** Returns a page of a webhook's deliveries, newest first. */
export const list = (
  deliveries: Deliveries,
  webhook: WebhookRef,
  { limit, olderThan, state }: Page,
): ReadonlyArray<Delivery> => {
  const jobs = jobsOf(deliveries, webhook).toSorted((one, other) => other.order - one.order)
  const before =
    olderThan === undefined ? Infinity : jobs.find(({ event }) => event.id === olderThan)?.order
  return jobs
    .filter((job) => job.order < (before ?? 0) && (state === undefined || job.state === state))
    .slice(0, limit)
    .map(Job.toDelivery)
}

/** Restarts deliveries of a webhook that have ended or wait for their next attempt. Returns their number. */
export const replay = (
  deliveries: Deliveries,
  webhook: StoredWebhook,
  which: Replay,
  now: Moment,
): number => {
  const ref = { projectId: webhook.projectId, webhookId: webhook.id }
  const jobs = jobsOf(deliveries, ref).filter((job) => Job.isReplayed(job, which, now))
  const lane = laneOf(deliveries, webhook)
  Lane.withdraw(lane, new Set(jobs))
  for (const job of jobs) {
    job.state = "waiting"
    job.claims = 0
    Job.delay(job, 0, now)
    wait(deliveries, lane, job)
  }
  return jobs.length
}
