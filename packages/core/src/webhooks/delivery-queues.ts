/** Decides which deliveries come next: a queue for each webhook, turns of projects and webhooks, and claims. */

import type { Mutable } from "effect/Types"
import { type RoundRobin, makeRoundRobin } from "../base/collections.ts"
import { type Micros, type Millis, type Moment, toMicros } from "../base/time.ts"
import { type ProjectId, invariant } from "../base/values.ts"
import { takeToken, waitMicros } from "../limits/buckets.ts"
import {
  clampConcurrency,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  initialConcurrency,
  webhookRatePolicy,
} from "./claim-budget.ts"
import {
  type AttemptResult,
  type Backlog,
  type ClaimResult,
  type Outbox,
  isAwaited,
  maxAttemptsOfWebhook,
} from "./outbox.ts"
import {
  type QueuedDelivery,
  type WaitingDeliveries,
  makeWaitingDeliveries,
} from "./waiting-deliveries.ts"
import type { Health, StoredWebhook, WebhookId } from "./webhook.ts"

/** What a webhook's queue depends on. */
export type QueueSettings = Pick<
  StoredWebhook,
  "disabled" | "id" | "ordered" | "projectId" | "rate"
>

/** What a store has in the queues: its own types of deliveries and webhooks. */
export interface Queued {
  readonly delivery: QueuedDelivery
  readonly webhook: QueueSettings
}

/** A claimed delivery's lease. */
interface Lease<D> {
  readonly delivery: D
  /** When it expires, by the monotonic clock. */
  readonly until: number
  /** Whether it was prefetched beyond the webhook's concurrency. */
  readonly isAhead: boolean
}

/** How a webhook's latest attempts went, and when the next one may start. */
interface QueueState extends Mutable<Health> {
  webhook: QueueSettings
  concurrency: number
  /** The share of `disableAfter` announced since `failingSince`, in percent. */
  announcedPercent: number
  /** Until when the webhook is held, by the monotonic clock. */
  heldUntil: number
  /** When the token bucket of its rate is full, by the monotonic clock. */
  rateFullAt: Micros | undefined
}

/** A webhook's open deliveries. */
export interface WebhookQueue<Q extends Queued> extends QueueState {
  webhook: Q["webhook"]
  readonly waiting: WaitingDeliveries<Q["delivery"]>
  /** Claimed deliveries by lease token. */
  readonly leases: Map<string, Lease<Q["delivery"]>>
  readonly project: ProjectQueues<Q>
}

/** A project's webhooks, served in turn. */
interface ProjectQueues<Q extends Queued> {
  readonly queues: Set<WebhookQueue<Q>>
  readonly turns: RoundRobin<WebhookQueue<Q>>
  /** The number of leases, without prefetched ones. */
  leased: number
}

const healthy = {
  failures: 0,
  failingSince: undefined,
  announcedPercent: 0,
  heldUntil: -Infinity,
}

const untried = { ...healthy, concurrency: initialConcurrency }

/** Tells whether deliveries may wait. Those to a webhook that failures have disabled fail. */
const isOpen = ({ webhook }: QueueState): boolean => webhook.disabled?.by !== "failures"

/** Returns until when the webhook is held, by the monotonic clock. Somebody may have asked for it. */
const heldUntilOf = ({ heldUntil, webhook }: QueueState): number =>
  webhook.disabled === undefined ? heldUntil : Infinity

/** Returns when there is a token of the webhook's rate, by the monotonic clock: `tick` if there is one now. */
const nextTokenAt = ({ rateFullAt, webhook: { rate } }: QueueState, tick: Millis): number =>
  rate === undefined
    ? tick
    : tick + Math.ceil(waitMicros(rateFullAt, toMicros(tick), webhookRatePolicy(rate)) / 1000)

/** Returns when an attempt may start, by the monotonic clock. */
const startsAt = (queue: QueueState, tick: Millis): number =>
  Math.max(heldUntilOf(queue), nextTokenAt(queue, tick))

/** Tells whether the webhook takes another attempt, beside those in flight. */
const hasRoom = <Q extends Queued>({ failures, leases }: WebhookQueue<Q>, most: number): boolean =>
  leases.size < (failures > 0 ? 1 : most)

/** Tells whether the next delivery is due and the webhook not held. It may wait for a token. */
export const isNextDue = <Q extends Queued>(queue: WebhookQueue<Q>, tick: Millis): boolean => {
  const next = queue.waiting.peek(tick)
  return next !== undefined && next.dueTick <= tick && heldUntilOf(queue) <= tick
}

/** Tells whether the next delivery is due and may start. */
const hasReady = <Q extends Queued>(queue: WebhookQueue<Q>, tick: Millis): boolean =>
  isNextDue(queue, tick) && nextTokenAt(queue, tick) <= tick

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
const nextLeaseExpiry = <Q extends Queued>({ leases }: WebhookQueue<Q>): number =>
  Math.min(Infinity, ...[...leases.values()].map(({ until }) => until))

/**
 * Returns when the next unclaimed delivery is due, or was. Replayed ones do not count.
 *
 * @returns milliseconds on the monotonic clock, or `Infinity` for never
 */
const queueDueAt = <Q extends Queued>(queue: WebhookQueue<Q>): number =>
  Math.min(queue.waiting.oldestDueTick(), nextLeaseExpiry(queue))

/**
 * Returns when a delivery can be claimed if nothing is published or settled before.
 *
 * @returns milliseconds by the monotonic clock, or `Infinity` for never
 */
const nextAttemptAt = <Q extends Queued>(
  queue: WebhookQueue<Q>,
  most: number,
  tick: Millis,
): number => {
  const startAt = startsAt(queue, tick)
  const next = queue.waiting.peek(tick)
  const mayWait = next !== undefined && (startAt > tick || hasRoom(queue, most))
  const due = mayWait ? Math.max(next.dueTick, startAt) : Infinity
  return Math.min(due, nextLeaseExpiry(queue))
}

/** Returns since when a delivery waits for a dispatcher, rather than for the receiver; `Infinity` if none does. */
const lateSince = <Q extends Queued>(queue: WebhookQueue<Q>, tick: Millis): number => {
  const load = {
    claimed: [...queue.leases.values()].filter(({ until }) => until > tick).length,
    concurrency: queue.concurrency,
    isFailing: queue.failures > 0,
    isOrdered: queue.webhook.ordered,
  }
  return isAwaited(load) && nextTokenAt(queue, tick) <= tick
    ? Math.max(queueDueAt(queue), heldUntilOf(queue))
    : Infinity
}

/** Returns all open deliveries of a webhook. */
export const openDeliveries = <Q extends Queued>({
  leases,
  waiting,
}: WebhookQueue<Q>): ReadonlyArray<Q["delivery"]> => [
  ...waiting.values(),
  ...[...leases.values()].map(({ delivery }) => delivery),
]

/**
 * The open deliveries of all webhooks. Projects take turns, and so do the webhooks within a project. Every function
 * changes them in one synchronous step.
 */
export interface DeliveryQueues<Q extends Queued> {
  readonly byWebhook: Map<WebhookId, WebhookQueue<Q>>
  readonly byProject: Map<ProjectId, ProjectQueues<Q>>
  readonly turns: RoundRobin<ProjectQueues<Q>>
  /** Webhooks with deliveries a claim may have skipped. */
  readonly keptBack: Set<WebhookQueue<Q>>
  /** The number of claims so far. */
  claimed: number
}

/** Starts without deliveries. */
export const makeDeliveryQueues = <Q extends Queued>(): DeliveryQueues<Q> => ({
  byWebhook: new Map(),
  byProject: new Map(),
  turns: makeRoundRobin(),
  keptBack: new Set(),
  claimed: 0,
})

/** Returns a webhook's queue, which is empty if it had none. */
export const queueOf = <Q extends Queued>(
  { byProject, byWebhook }: DeliveryQueues<Q>,
  webhook: Q["webhook"],
): WebhookQueue<Q> => {
  const known = byWebhook.get(webhook.id)
  if (known !== undefined) return known
  const project = byProject.get(webhook.projectId) ?? {
    queues: new Set(),
    turns: makeRoundRobin(),
    leased: 0,
  }
  const queue: WebhookQueue<Q> = {
    webhook,
    waiting: makeWaitingDeliveries(),
    leases: new Map(),
    project,
    rateFullAt: undefined,
    ...untried,
  }
  byProject.set(webhook.projectId, project)
  byWebhook.set(webhook.id, queue)
  project.queues.add(queue)
  return queue
}

/** Has a webhook and its project take turns. */
const enqueue = <Q extends Queued>(queues: DeliveryQueues<Q>, queue: WebhookQueue<Q>): void => {
  queue.project.turns.enqueue(queue)
  queues.turns.enqueue(queue.project)
}

/**
 * Has a delivery wait until it is due: a new one, or one whose lease has ended. Returns whether it waits: it is given up
 * if failures have disabled its webhook.
 */
export const addToQueue = <Q extends Queued>(
  queues: DeliveryQueues<Q>,
  queue: WebhookQueue<Q>,
  delivery: Q["delivery"],
): boolean => {
  if (!isOpen(queue)) {
    queue.waiting.leave(delivery)
    return false
  }
  queue.waiting.push(delivery)
  enqueue(queues, queue)
  return true
}

/** Removes waiting deliveries before they become due at another time. */
export const withdraw = <Q extends Queued>(
  { waiting }: WebhookQueue<Q>,
  deliveries: ReadonlySet<Q["delivery"]>,
): void => {
  const others = waiting.values().filter((delivery) => !deliveries.has(delivery))
  if (others.length === waiting.size()) return
  waiting.clear()
  for (const delivery of others) waiting.push(delivery)
}

/** Takes over the settings of a webhook. Enabling it again resets its health. Returns the deliveries that it gives up. */
export const changeSettings = <Q extends Queued>(
  queues: DeliveryQueues<Q>,
  webhook: Q["webhook"],
): ReadonlyArray<Q["delivery"]> => {
  const queue = queues.byWebhook.get(webhook.id)
  if (queue === undefined) return []
  if (queue.webhook.disabled !== undefined && webhook.disabled === undefined) {
    Object.assign(queue, untried)
  }
  queue.webhook = webhook
  if (isOpen(queue)) {
    enqueue(queues, queue)
    return []
  }
  const given = queue.waiting.values()
  queue.waiting.clear()
  return given
}

/** Forgets a webhook, and with it the claims of its deliveries. Returns these, and those that wait. */
export const forgetWebhook = <Q extends Queued>(
  queues: DeliveryQueues<Q>,
  webhookId: WebhookId,
): ReadonlyArray<Q["delivery"]> => {
  const queue = queues.byWebhook.get(webhookId)
  if (queue === undefined) return []
  const { leases, project } = queue
  const leased = [...leases.values()].filter(({ isAhead }) => !isAhead).length
  invariant(leased <= project.leased, "a webhook had more leases than its project")
  project.leased -= leased
  project.queues.delete(queue)
  project.turns.park(queue, Infinity)
  queues.byWebhook.delete(webhookId)
  queues.keptBack.delete(queue)
  return openDeliveries(queue)
}

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** A delivery that was claimed. */
export interface ClaimedDelivery<Q extends Queued> {
  readonly delivery: Q["delivery"]
  readonly queue: WebhookQueue<Q>
  /** Another one for each claim. */
  readonly token: string
}

/** What came of a claim. */
export interface ClaimedDeliveries<Q extends Queued> extends Pick<
  ClaimResult,
  "keptBack" | "nextDueMillis"
> {
  readonly claimed: ReadonlyArray<ClaimedDelivery<Q>>
  /** Deliveries given up, because their leases have expired and failures have disabled their webhooks. */
  readonly givenUp: ReadonlyArray<Q["delivery"]>
}

/** A claim under way. */
interface Claiming<Q extends Queued> {
  readonly queues: DeliveryQueues<Q>
  readonly options: ClaimOptions
  readonly tick: Millis
  readonly claimed: Array<ClaimedDelivery<Q>>
  readonly givenUp: Array<Q["delivery"]>
  /** How many deliveries of failing webhooks may still be claimed. */
  failing: number
}

/** Ends a lease. */
const endLease = <Q extends Queued>(
  { leases, project }: WebhookQueue<Q>,
  token: string,
  { isAhead }: Lease<Q["delivery"]>,
): void => {
  invariant(leases.has(token), "a lease ended twice")
  invariant(isAhead || project.leased > 0, "a lease ended that its project did not have")
  if (!isAhead) project.leased--
  leases.delete(token)
}

/** Has deliveries wait again whose leases have expired. */
const expireLeases = <Q extends Queued>(
  { givenUp, queues, tick }: Claiming<Q>,
  queue: WebhookQueue<Q>,
): void => {
  for (const [token, lease] of queue.leases) {
    if (lease.until > tick) continue
    endLease(queue, token, lease)
    if (!addToQueue(queues, queue, lease.delivery)) givenUp.push(lease.delivery)
  }
}

/** Claims a delivery that was taken from its queue. */
const claimOne = <Q extends Queued>(
  { claimed, options: { leaseMillis }, queues, tick }: Claiming<Q>,
  queue: WebhookQueue<Q>,
  delivery: Q["delivery"],
  isAhead: boolean,
): void => {
  const token = String(++queues.claimed)
  const { rate } = queue.webhook
  if (rate !== undefined) {
    queue.rateFullAt = takeToken(queue.rateFullAt, toMicros(tick), webhookRatePolicy(rate)).tat
  }
  queue.leases.set(token, { delivery, until: tick + leaseMillis, isAhead })
  claimed.push({ delivery, queue, token })
}

/** Claims a project's next delivery, from its first webhook with one. Returns whether there was one. */
const claimOfProject = <Q extends Queued>(
  claiming: Claiming<Q>,
  project: ProjectQueues<Q>,
): boolean => {
  const { options, queues, tick } = claiming
  project.turns.wake(tick)
  for (const queue of project.turns.queue()) {
    expireLeases(claiming, queue)
    const concurrency = clampConcurrency(queue.concurrency, options.perWebhook)
    const most = maxAttemptsOfWebhook(concurrency, options.perProject, project.leased)
    const isReady = hasReady(queue, tick) && hasRoom(queue, most)
    queues.keptBack.add(queue)
    // Keeps its turn, because the next claim may allow more.
    if (isReady && queue.failures > 0 && claiming.failing === 0) continue
    const delivery = isReady ? queue.waiting.pop(tick) : undefined
    if (delivery !== undefined) {
      project.turns.requeue(queue)
      project.leased++
      if (queue.failures > 0) claiming.failing--
      claimOne(claiming, queue, delivery, false)
      return true
    }
    project.turns.park(queue, nextAttemptAt(queue, most, tick))
  }
  return false
}

/** Prefetches deliveries beyond their webhooks' concurrency. */
const claimAhead = <Q extends Queued>(claiming: Claiming<Q>): void => {
  const { claimed, options, queues, tick } = claiming
  for (const [webhookId, most] of options.ahead) {
    const queue = queues.byWebhook.get(webhookId)
    if (queue === undefined || 2 * queue.project.leased > options.perProject) continue
    if (queue.failures > 0 || queue.webhook.rate !== undefined) continue
    for (let count = 0; count < most && claimed.length < options.limit; count++) {
      const delivery = hasReady(queue, tick) ? queue.waiting.pop(tick) : undefined
      if (delivery === undefined) break
      claimOne(claiming, queue, delivery, true)
    }
  }
}

/** Tells whether a project has as many leases as it may have. */
const isFull = <Q extends Queued>(claiming: Claiming<Q>, project: ProjectQueues<Q>): boolean => {
  const { perProject } = claiming.options
  if (project.leased < perProject) return false
  for (const queue of project.queues) expireLeases(claiming, queue)
  return project.leased >= perProject
}

/**
 * Returns when a project that is full may have something to claim. It keeps its turn, because the next claim may allow
 * more.
 */
const fullUntil = <Q extends Queued>(
  { queues, tick }: Claiming<Q>,
  project: ProjectQueues<Q>,
): number => {
  project.turns.wake(tick)
  let first = project.turns.nextAt() ?? Infinity
  for (const queue of project.queues) first = Math.min(first, nextLeaseExpiry(queue))
  for (const queue of project.turns.queue()) {
    queues.keptBack.add(queue)
    const startAt = startsAt(queue, tick)
    if (startAt > tick) first = Math.min(first, startAt)
  }
  return first
}

/** Returns the webhooks with claimable deliveries, and drops the others from the set. */
const readyOf = <Q extends Queued>(
  queues: Set<WebhookQueue<Q>>,
  tick: Millis,
): ReadonlyArray<WebhookId> => {
  for (const queue of queues) if (!hasReady(queue, tick)) queues.delete(queue)
  return [...queues].map(({ webhook }) => webhook.id)
}

/**
 * Claims from each project in turn, up to the limit.
 *
 * @returns when there may be more, in milliseconds by the monotonic clock, or `Infinity` if that is unknown
 */
const takeTurns = <Q extends Queued>(claiming: Claiming<Q>): number => {
  const { claimed, options, queues, tick } = claiming
  const { turns } = queues
  let nextAt = Infinity
  turns.wake(tick)
  for (const project of turns.queue()) {
    if (claimed.length === options.limit) return tick
    if (isFull(claiming, project)) {
      nextAt = Math.min(nextAt, fullUntil(claiming, project))
    } else if (claimOfProject(claiming, project)) {
      turns.requeue(project)
    } else {
      const wakesAt = project.turns.nextAt() ?? Infinity
      nextAt = Math.min(nextAt, wakesAt)
      if (project.turns.isEmpty()) turns.park(project, wakesAt)
    }
  }
  nextAt = Math.min(nextAt, turns.nextAt() ?? Infinity)
  claimAhead(claiming)
  return claimed.length === options.limit ? tick : Math.max(tick + 1, nextAt)
}

/** Claims due deliveries as `Outbox` says. */
export const claimDeliveries = <Q extends Queued>(
  queues: DeliveryQueues<Q>,
  options: ClaimOptions,
  { tick }: Moment,
): ClaimedDeliveries<Q> => {
  const claiming: Claiming<Q> = {
    queues,
    options,
    tick,
    claimed: [],
    givenUp: [],
    failing: options.failing,
  }
  const nextAt = takeTurns(claiming)
  return {
    claimed: claiming.claimed,
    givenUp: claiming.givenUp,
    nextDueMillis: nextAt === Infinity ? undefined : nextAt - tick,
    keptBack: readyOf(queues.keptBack, tick),
  }
}

/** Adapts a webhook's health and concurrency to an attempt. */
const recordAttempt = (
  queue: QueueState,
  attempted: Exclude<AttemptResult, { readonly _tag: "Released" }>,
  { tick, unix }: Moment,
): void => {
  if (attempted._tag === "Delivered") {
    Object.assign(queue, healthy)
    queue.concurrency = concurrencyAfterSuccess(queue.concurrency)
  } else {
    const holdMillis = "holdMillis" in attempted ? attempted.holdMillis : 0
    queue.failures++
    queue.failingSince ??= unix
    queue.heldUntil = Math.max(queue.heldUntil, tick + holdMillis)
    queue.concurrency = concurrencyAfterFailure(queue.concurrency)
  }
}

/** Settles a claim, whose delivery then is in no queue. Returns `undefined` if it does not hold any more. */
export const settleClaim = <Q extends Queued>(
  queues: DeliveryQueues<Q>,
  webhookId: WebhookId,
  token: string,
  settlement: AttemptResult,
  now: Moment,
): Omit<ClaimedDelivery<Q>, "token"> | undefined => {
  const queue = queues.byWebhook.get(webhookId)
  const lease = queue?.leases.get(token)
  if (queue === undefined || lease === undefined || lease.until <= now.tick) return undefined
  endLease(queue, token, lease)
  enqueue(queues, queue)
  if (settlement._tag !== "Released") recordAttempt(queue, settlement, now)
  return { queue, delivery: lease.delivery }
}

/** Returns how many deliveries are open, and for how long the oldest one has been due, and has waited for a dispatcher. */
export const queuedBacklog = <Q extends Queued>(
  { byWebhook }: DeliveryQueues<Q>,
  { tick }: Moment,
): Pick<Backlog, "dueForMillis" | "lateForMillis" | "waiting"> => {
  let waiting = 0
  let first = Infinity
  let late = Infinity
  for (const queue of byWebhook.values()) {
    waiting += queue.waiting.size() + queue.leases.size
    if (queue.webhook.disabled !== undefined) continue
    first = Math.min(first, queueDueAt(queue))
    late = Math.min(late, lateSince(queue, tick))
  }
  const since = (at: number) => (at <= tick ? tick - at : undefined)
  return { waiting, dueForMillis: since(first), lateForMillis: since(late) }
}
