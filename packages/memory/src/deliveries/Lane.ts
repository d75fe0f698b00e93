/** The deliveries of one webhook that have not ended, and how its attempts went. */

import * as Concurrency from "@tenure/core/Concurrency"
import type { Moment } from "@tenure/core/Moment"
import type { Claim, Outbox, Settlement } from "@tenure/core/Outbox"
import type { Health, StoredWebhook } from "@tenure/core/Webhook"
import type { Mutable } from "effect/Types"
import * as Heap from "../collections/Heap.ts"
import * as Job from "./Job.ts"

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** The lease of a claimed job. */
interface Lease {
  readonly job: Job.Job
  /** When it expires, by the monotonic clock. */
  readonly until: number
  /** Whether it was claimed beyond the concurrency of the webhook. */
  readonly isAhead: boolean
}

/** How the latest attempts for a webhook went. */
interface Progress extends Mutable<Health> {
  /** Until when the webhook is held, by the monotonic clock. */
  heldUntil: number
}

/** The lane of a webhook. */
export interface Lane extends Progress {
  webhook: StoredWebhook
  concurrency: number
  readonly waiting: Heap.Heap<Job.Job>
  /** The claimed jobs by the tokens of their leases. */
  readonly leases: Map<string, Lease>
}

/** Nothing has failed. */
export const well: Progress = { failures: 0, failingSince: undefined, heldUntil: -Infinity }

const untried = { ...well, concurrency: Concurrency.initial }

/** Makes an empty lane. */
export const make = (webhook: StoredWebhook): Lane => ({
  webhook,
  waiting: Heap.make<Job.Job>(Job.isSooner),
  leases: new Map(),
  ...untried,
})

/** Tells whether the webhook is enabled. */
export const isOpen = ({ webhook }: Lane): boolean => webhook.disabledAt === undefined

/** Replaces the webhook. Enabling it again resets its health and concurrency. */
export const update = (lane: Lane, webhook: StoredWebhook): void => {
  if (!isOpen(lane) && webhook.disabledAt === undefined) Object.assign(lane, untried)
  lane.webhook = webhook
}

/** Returns all jobs that have not ended. */
export const jobsOf = ({ leases, waiting }: Lane): ReadonlyArray<Job.Job> => [
  ...waiting.values(),
  ...[...leases.values()].map(({ job }) => job),
]

/** Takes back jobs that wait, before they become due at another time. */
export const withdraw = ({ waiting }: Lane, jobs: ReadonlySet<Job.Job>): void => {
  const others = waiting.values().filter((job) => !jobs.has(job))
  if (others.length === waiting.size()) return
  waiting.clear()
  for (const job of others) waiting.push(job)
}

/** Tells whether another job may be claimed now, if one is due. */
const hasRoom = ({ failures, heldUntil, leases }: Lane, most: number, tick: number): boolean =>
  heldUntil <= tick && leases.size < (failures > 0 ? 1 : most)

/** Tells whether the next job is due, and the webhook not held. */
export const hasReady = ({ heldUntil, waiting }: Lane, tick: number): boolean => {
  const next = waiting.peek()
  return next !== undefined && next.dueTick <= tick && heldUntil <= tick
}

/** Tells whether the next job is due, and may be claimed beyond the concurrency of the webhook. */
export const isReadyAhead = (lane: Lane, tick: number): boolean =>
  lane.failures === 0 && hasReady(lane, tick)

/** Tells whether the next job is due and may be claimed. */
export const isReady = (lane: Lane, most: number, tick: number): boolean =>
  hasReady(lane, tick) && hasRoom(lane, most, tick)

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
export const nextExpiry = ({ leases }: Lane): number =>
  Math.min(Infinity, ...[...leases.values()].map(({ until }) => until))

/**
 * Returns when the job that is due next is or was due, if its lease is over or it has none.
 *
 * @returns milliseconds by the monotonic clock, or `Infinity` for never
 */
export const dueAt = (lane: Lane): number =>
  Math.min(lane.waiting.peek()?.dueTick ?? Infinity, nextExpiry(lane))

/**
 * Returns when a job can be claimed if nothing is published or settled before.
 *
 * @returns milliseconds by the monotonic clock, or `Infinity` for never
 */
export const nextAt = (lane: Lane, most: number, tick: number): number => {
  const { heldUntil, waiting } = lane
  const next = waiting.peek()
  const mayWait = next !== undefined && (heldUntil > tick || hasRoom(lane, most, tick))
  const due = mayWait ? Math.max(next.dueTick, heldUntil) : Infinity
  return Math.min(due, nextExpiry(lane))
}

/** Claims a job, with a token for its lease. */
export const lease = (
  lane: Lane,
  job: Job.Job,
  { isAhead, token }: { readonly token: string; readonly isAhead: boolean },
  { leaseMillis, perWebhook }: ClaimOptions,
  { tick, unix }: Moment,
): Claim => {
  job.claims++
  lane.leases.set(token, { job, until: tick + leaseMillis, isAhead })
  const { id, previous, projectId, secret, signingKey, url } = lane.webhook
  const isRotating = previous !== undefined && previous.until > unix
  return {
    event: { id: job.event.id, body: job.event.body },
    webhook: {
      projectId,
      webhookId: id,
      url,
      secrets: isRotating ? [secret, previous.secret] : [secret],
      signingKey,
      failures: lane.failures,
      failingSince: lane.failingSince,
      concurrency: Concurrency.within(lane.concurrency, perWebhook),
    },
    attemptNumber: job.claims,
    lease: token,
  }
}

const holdMillisOf = (settlement: Settlement): number =>
  "holdMillis" in settlement ? settlement.holdMillis : 0

/** Records how an attempt went. */
export const recordAttempt = (lane: Lane, settlement: Settlement, { tick, unix }: Moment): void => {
  if (settlement._tag === "Delivered") {
    Object.assign(lane, well)
    lane.concurrency = Concurrency.afterSuccess(lane.concurrency)
  } else {
    lane.concurrency = Concurrency.afterFailure(lane.concurrency)
    lane.failures++
    lane.failingSince ??= unix
    lane.heldUntil = Math.max(lane.heldUntil, tick + holdMillisOf(settlement))
  }
}
