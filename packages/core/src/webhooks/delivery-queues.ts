/** Decides which deliveries come next: a queue for each webhook, turns of projects and webhooks, and claims. */

import { type RoundRobin, makeRoundRobin } from "../base/collections.ts"
import { type Micros, type Millis, type Moment, toMicros } from "../base/time.ts"
import type { ProjectId } from "../base/values.ts"
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
  type WebhookRef,
  isAwaited,
  maxAttemptsOfWebhook,
} from "./outbox.ts"
import {
  type QueuedDelivery,
  type WaitingDeliveries,
  makeWaitingDeliveries,
} from "./waiting-deliveries.ts"
import type { StoredWebhook, WebhookId } from "./webhook.ts"

/** What a webhook's queue depends on. */
export type QueueSettings = Pick<
  StoredWebhook,
  "disabled" | "id" | "ordered" | "projectId" | "rate"
>

/** A claimed delivery's lease. */
interface Lease<D> {
  readonly delivery: D
  /** When it expires, by the monotonic clock. */
  readonly until: number
  /** Whether it was prefetched beyond the webhook's concurrency. */
  readonly isAhead: boolean
}

/** How a webhook's latest attempts went, and when the next one may start. */
interface QueueState {
  webhook: QueueSettings
  /** The number of consecutive failed attempts. */
  failures: number
  concurrency: number
  /** Until when the webhook is held, by the monotonic clock. */
  heldUntil: number
  /** When the token bucket of its rate is full, by the monotonic clock. */
  rateFullAt: Micros | undefined
}

/** A webhook's open deliveries. */
export interface WebhookQueue<D extends QueuedDelivery> extends QueueState {
  readonly waiting: WaitingDeliveries<D>
  /** Claimed deliveries by lease token. */
  readonly leases: Map<string, Lease<D>>
}

const untried = { failures: 0, concurrency: initialConcurrency, heldUntil: -Infinity }

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

/** Takes a token of the webhook's rate, if it has one. */
const takeRateToken = (queue: QueueState, tick: Millis): void => {
  const { rate } = queue.webhook
  if (rate === undefined) return
  queue.rateFullAt = takeToken(queue.rateFullAt, toMicros(tick), webhookRatePolicy(rate)).tat
}

/** Returns when an attempt may start, by the monotonic clock. */
const startsAt = (queue: QueueState, tick: Millis): number =>
  Math.max(heldUntilOf(queue), nextTokenAt(queue, tick))

/** Tells whether another delivery may be claimed now, if one is due. */
const hasRoom = <D extends QueuedDelivery>(
  queue: WebhookQueue<D>,
  most: number,
  tick: Millis,
): boolean => startsAt(queue, tick) <= tick && queue.leases.size < (queue.failures > 0 ? 1 : most)

/** Tells whether the next delivery is due and the webhook not held. It may wait for a token. */
export const isNextDue = <D extends QueuedDelivery>(
  queue: WebhookQueue<D>,
  tick: Millis,
): boolean => {
  const next = queue.waiting.peek(tick)
  return next !== undefined && next.dueTick <= tick && heldUntilOf(queue) <= tick
}

/** Tells whether the next delivery is due and may start. */
const hasReady = <D extends QueuedDelivery>(queue: WebhookQueue<D>, tick: Millis): boolean =>
  isNextDue(queue, tick) && nextTokenAt(queue, tick) <= tick

/** Tells whether the next delivery is due and may be prefetched beyond the webhook's concurrency. */
const isReadyAhead = <D extends QueuedDelivery>(queue: WebhookQueue<D>, tick: Millis): boolean =>
  queue.failures === 0 && queue.webhook.rate === undefined && hasReady(queue, tick)

/** Returns when the next lease expires, in milliseconds by the monotonic clock. */
const nextLeaseExpiry = <D extends QueuedDelivery>({ leases }: WebhookQueue<D>): number =>
  Math.min(Infinity, ...[...leases.values()].map(({ until }) => until))

/**
 * Returns when the next unclaimed delivery is due, or was. Replayed ones do not count.
 *
 * @returns milliseconds on the monotonic clock, or `Infinity` for never
 */
const queueDueAt = <D extends QueuedDelivery>(queue: WebhookQueue<D>): number =>
  Math.min(queue.waiting.oldestDueTick(), nextLeaseExpiry(queue))

/**
 * Returns when a delivery can be claimed if nothing is published or settled before.
 *
 * @returns milliseconds by the monotonic clock, or `Infinity` for never
 */
const nextAttemptAt = <D extends QueuedDelivery>(
  queue: WebhookQueue<D>,
  most: number,
  tick: Millis,
): number => {
  const startAt = startsAt(queue, tick)
  const next = queue.waiting.peek(tick)
  const mayWait = next !== undefined && (startAt > tick || hasRoom(queue, most, tick))
  const due = mayWait ? Math.max(next.dueTick, startAt) : Infinity
  return Math.min(due, nextLeaseExpiry(queue))
}

/** Returns since when a delivery waits for a dispatcher, rather than for the receiver; `Infinity` if none does. */
const lateSince = <D extends QueuedDelivery>(queue: WebhookQueue<D>, tick: Millis): number => {
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
export const openDeliveries = <D extends QueuedDelivery>({
  leases,
  waiting,
}: WebhookQueue<D>): ReadonlyArray<D> => [
  ...waiting.values(),
  ...[...leases.values()].map(({ delivery }) => delivery),
]

/** A project's webhooks, served in turn. */
interface ProjectQueues<D extends QueuedDelivery> {
  readonly queues: Set<WebhookQueue<D>>
  readonly turns: RoundRobin<WebhookQueue<D>>
  /** The number of leases, without prefetched ones. */
  leased: number
}

/**
 * The open deliveries of all webhooks. Projects take turns, and so do the webhooks within a project. Every function
 * changes them in one synchronous step.
 */
export interface DeliveryQueues<D extends QueuedDelivery> {
  readonly byWebhook: Map<WebhookId, WebhookQueue<D>>
  readonly byProject: Map<ProjectId, ProjectQueues<D>>
  readonly turns: RoundRobin<ProjectQueues<D>>
  /** Webhooks with deliveries a claim may have skipped. */
  readonly keptBack: Set<WebhookQueue<D>>
  /** The number of claims so far. */
  claimed: number
}

/** Starts without deliveries. */
export const makeDeliveryQueues = <D extends QueuedDelivery>(): DeliveryQueues<D> => ({
  byWebhook: new Map(),
  byProject: new Map(),
  turns: makeRoundRobin(),
  keptBack: new Set(),
  claimed: 0,
})

const projectOf = <D extends QueuedDelivery>(
  { byProject }: DeliveryQueues<D>,
  projectId: ProjectId,
): ProjectQueues<D> => {
  const known = byProject.get(projectId)
  if (known !== undefined) return known
  const project = {
    queues: new Set<WebhookQueue<D>>(),
    turns: makeRoundRobin<WebhookQueue<D>>(),
    leased: 0,
  }
  byProject.set(projectId, project)
  return project
}

/** Returns a webhook's queue, which is empty if it had none. */
export const queueOf = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  webhook: QueueSettings,
): WebhookQueue<D> => {
  const known = queues.byWebhook.get(webhook.id)
  if (known !== undefined) return known
  const queue: WebhookQueue<D> = {
    webhook,
    waiting: makeWaitingDeliveries(),
    leases: new Map(),
    rateFullAt: undefined,
    ...untried,
  }
  queues.byWebhook.set(webhook.id, queue)
  projectOf(queues, webhook.projectId).queues.add(queue)
  return queue
}

/** Has a webhook and its project take turns. */
const enqueue = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  queue: WebhookQueue<D>,
): void => {
  const project = projectOf(queues, queue.webhook.projectId)
  project.turns.enqueue(queue)
  queues.turns.enqueue(project)
}

/**
 * Has a delivery wait until it is due: a new one, or one whose lease has ended. Returns whether it waits: it is given up
 * if failures have disabled its webhook.
 */
export const addToQueue = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  queue: WebhookQueue<D>,
  delivery: D,
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
export const withdraw = <D extends QueuedDelivery>(
  { waiting }: WebhookQueue<D>,
  deliveries: ReadonlySet<D>,
): void => {
  const others = waiting.values().filter((delivery) => !deliveries.has(delivery))
  if (others.length === waiting.size()) return
  waiting.clear()
  for (const delivery of others) waiting.push(delivery)
}

/** Takes over the settings of a webhook. Enabling it again resets its health. Returns the deliveries that it gives up. */
export const changeSettings = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  webhook: QueueSettings,
): ReadonlyArray<D> => {
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
export const forgetWebhook = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  webhookId: WebhookId,
): ReadonlyArray<D> => {
  const queue = queues.byWebhook.get(webhookId)
  if (queue === undefined) return []
  const project = projectOf(queues, queue.webhook.projectId)
  project.leased -= [...queue.leases.values()].filter(({ isAhead }) => !isAhead).length
  project.queues.delete(queue)
  project.turns.park(queue, Infinity)
  queues.byWebhook.delete(webhookId)
  queues.keptBack.delete(queue)
  return openDeliveries(queue)
}

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** A delivery that was claimed. */
export interface ClaimedDelivery<D extends QueuedDelivery> {
  readonly delivery: D
  readonly webhook: WebhookRef
  /** Another one for each claim. */
  readonly token: string
  /** As in a `Claim`. */
  readonly failures: number
  /** As in a `Claim`. */
  readonly concurrency: number
}

/** What came of a claim. */
export interface ClaimedDeliveries<D extends QueuedDelivery> extends Pick<
  ClaimResult,
  "keptBack" | "nextDueMillis"
> {
  readonly claimed: ReadonlyArray<ClaimedDelivery<D>>
  /** Deliveries given up, because their leases have expired and failures have disabled their webhooks. */
  readonly givenUp: ReadonlyArray<D>
}

/** A claim under way. */
interface Claiming<D extends QueuedDelivery> {
  readonly queues: DeliveryQueues<D>
  readonly options: ClaimOptions
  readonly tick: Millis
  readonly claimed: Array<ClaimedDelivery<D>>
  readonly givenUp: Array<D>
  /** How many deliveries of failing webhooks may still be claimed. */
  failing: number
}

/** Ends a lease. */
const endLease = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  queue: WebhookQueue<D>,
  token: string,
): void => {
  if (queue.leases.get(token)?.isAhead === false)
    projectOf(queues, queue.webhook.projectId).leased--
  queue.leases.delete(token)
}

/** Has deliveries wait again whose leases have expired. */
const expireLeases = <D extends QueuedDelivery>(
  { givenUp, queues, tick }: Claiming<D>,
  queue: WebhookQueue<D>,
): void => {
  for (const [token, { delivery, until }] of queue.leases) {
    if (until > tick) continue
    endLease(queues, queue, token)
    if (!addToQueue(queues, queue, delivery)) givenUp.push(delivery)
  }
}

/** Leases a delivery that was taken from its queue. */
const lease = <D extends QueuedDelivery>(
  { claimed, options: { leaseMillis, perWebhook }, queues, tick }: Claiming<D>,
  queue: WebhookQueue<D>,
  delivery: D,
  isAhead: boolean,
): void => {
  const { id: webhookId, projectId } = queue.webhook
  const token = String(++queues.claimed)
  takeRateToken(queue, tick)
  queue.leases.set(token, { delivery, until: tick + leaseMillis, isAhead })
  claimed.push({
    delivery,
    webhook: { projectId, webhookId },
    token,
    failures: queue.failures,
    concurrency: clampConcurrency(queue.concurrency, perWebhook),
  })
}

/** Claims a project's next delivery, from its first webhook with one. Returns whether there was one. */
const claimOfProject = <D extends QueuedDelivery>(
  claiming: Claiming<D>,
  project: ProjectQueues<D>,
): boolean => {
  const { options, queues, tick } = claiming
  project.turns.wake(tick)
  for (const queue of project.turns.queue()) {
    expireLeases(claiming, queue)
    const concurrency = clampConcurrency(queue.concurrency, options.perWebhook)
    const most = maxAttemptsOfWebhook(concurrency, options.perProject, project.leased)
    const isReady = hasReady(queue, tick) && hasRoom(queue, most, tick)
    queues.keptBack.add(queue)
    // Keeps its turn, because the next claim may allow more.
    if (isReady && queue.failures > 0 && claiming.failing === 0) continue
    const delivery = isReady ? queue.waiting.pop(tick) : undefined
    if (delivery !== undefined) {
      project.turns.requeue(queue)
      project.leased++
      if (queue.failures > 0) claiming.failing--
      lease(claiming, queue, delivery, false)
      return true
    }
    project.turns.park(queue, nextAttemptAt(queue, most, tick))
  }
  return false
}

/** Prefetches deliveries beyond their webhooks' concurrency. */
const claimAhead = <D extends QueuedDelivery>(claiming: Claiming<D>): void => {
  const { claimed, options, queues, tick } = claiming
  for (const [webhookId, most] of options.ahead) {
    const queue = queues.byWebhook.get(webhookId)
    if (queue === undefined) continue
    if (2 * projectOf(queues, queue.webhook.projectId).leased > options.perProject) continue
    for (let count = 0; count < most && claimed.length < options.limit; count++) {
      const delivery = isReadyAhead(queue, tick) ? queue.waiting.pop(tick) : undefined
      if (delivery === undefined) break
      lease(claiming, queue, delivery, true)
    }
  }
}

/** Tells whether a project has as many leases as it may have. */
const isFull = <D extends QueuedDelivery>(
  claiming: Claiming<D>,
  project: ProjectQueues<D>,
): boolean => {
  const { perProject } = claiming.options
  if (project.leased < perProject) return false
  for (const queue of project.queues) expireLeases(claiming, queue)
  return project.leased >= perProject
}

/**
 * Returns when a project that is full may have something to claim. It keeps its turn, because the next claim may allow
 * more.
 */
const fullUntil = <D extends QueuedDelivery>(
  { queues, tick }: Claiming<D>,
  project: ProjectQueues<D>,
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
const readyOf = <D extends QueuedDelivery>(
  queues: Set<WebhookQueue<D>>,
  tick: Millis,
): ReadonlyArray<WebhookId> => {
  for (const queue of queues) if (!hasReady(queue, tick)) queues.delete(queue)
  return [...queues].map(({ webhook }) => webhook.id)
}

/**
 * Gives every project its turns, until the limit is reached. Returns when there may be more, by the monotonic clock; `Infinity`
 * if that is not known.
 */
const takeTurns = <D extends QueuedDelivery>(claiming: Claiming<D>): number => {
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
export const claimDeliveries = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  options: ClaimOptions,
  { tick }: Moment,
): ClaimedDeliveries<D> => {
  const claiming: Claiming<D> = {
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

/** A claim that is settled. */
export interface EndedClaim<D extends QueuedDelivery> {
  readonly queue: WebhookQueue<D>
  readonly delivery: D
}

/** Ends a claim, whose delivery then is in no queue. Returns `undefined` if it does not hold any more. */
export const endClaim = <D extends QueuedDelivery>(
  queues: DeliveryQueues<D>,
  webhookId: WebhookId,
  token: string,
  { tick }: Moment,
): EndedClaim<D> | undefined => {
  const queue = queues.byWebhook.get(webhookId)
  const ended = queue?.leases.get(token)
  if (queue === undefined || ended === undefined || ended.until <= tick) return undefined
  endLease(queues, queue, token)
  enqueue(queues, queue)
  return { queue, delivery: ended.delivery }
}

/** Adapts a webhook's health and concurrency to an attempt. */
export const recordAttempt = (
  queue: QueueState,
  settlement: AttemptResult,
  { tick }: Moment,
): void => {
  if (settlement._tag === "Released") return
  if (settlement._tag === "Delivered") {
    queue.failures = 0
    queue.heldUntil = -Infinity
    queue.concurrency = concurrencyAfterSuccess(queue.concurrency)
  } else {
    const holdMillis = "holdMillis" in settlement ? settlement.holdMillis : 0
    queue.failures++
    queue.heldUntil = Math.max(queue.heldUntil, tick + holdMillis)
    queue.concurrency = concurrencyAfterFailure(queue.concurrency)
  }
}

/** Returns how many deliveries are open, and for how long the oldest one has been due, and has waited for a dispatcher. */
export const queuedBacklog = <D extends QueuedDelivery>(
  { byWebhook }: DeliveryQueues<D>,
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
