/** Deliveries in memory: for each webhook a lane, in which they wait by the time they are due. */

import type { Event } from "@tenure/core/Event"
import type {
  Attempt,
  Claim,
  Claimed,
  Delivery,
  Outbox,
  Replay,
  Settlement,
  WebhookRef,
} from "@tenure/core/Outbox"
import type { Webhook, WebhookId } from "@tenure/core/Webhook"
import * as Heap from "./Heap.ts"
import * as Ring from "./Ring.ts"

interface Job {
  readonly event: Event
  readonly lane: Lane
  /** The order of publication, which decides between those due at the same time. */
  readonly order: number
  readonly attempts: Array<Attempt>
  state: Delivery["state"]
  dueAt: number
  /** How often it was claimed. One whose holders die is given up in the end like any other. */
  tries: number
  lease: { readonly token: string; readonly until: number } | undefined
}

interface Lane {
  webhook: Webhook
  readonly waiting: Heap.Heap<Job>
  readonly leased: Set<Job>
  isOpen: boolean
  /** Attempts that have failed since one succeeded, and when the first of them did. */
  failures: number
  failingSince: number | undefined
  /** Until when the webhook is left alone. */
  heldUntil: number
  /** When the lane is looked at again; `undefined` if that is at the next claim, or never. */
  parked: Parked | undefined
}

/** Deliveries by webhook. */
export interface Deliveries {
  readonly add: (event: Event, webhook: Webhook) => void
  readonly claim: (
    options: {
      readonly limit: number
      readonly perWebhook: number
      readonly leaseMillis: number
    },
    now: number,
  ) => Claimed
  /** Gives the webhook whose delivery was settled; `undefined` if the claim is void. */
  readonly settle: (claim: Claim, settlement: Settlement, now: number) => Webhook | undefined
  /** Takes no more deliveries for a webhook; those that wait end in the given state. */
  readonly close: (webhookId: WebhookId, state: "failed" | "cancelled") => void
  /** Goes on with a webhook as it is now; takes deliveries for it again if it is enabled. */
  readonly update: (webhook: Webhook) => void
  /** Reads deliveries, newest first. */
  readonly list: (webhook: WebhookRef, page: Page) => ReadonlyArray<Delivery>
  /** Begins deliveries that have ended anew, and gives their number. */
  readonly replay: (webhook: WebhookRef, which: Replay, now: number) => number
}

type Page = Parameters<Outbox["Service"]["deliveries"]>[1]

const isOf =
  ({ projectId, webhookId }: WebhookRef) =>
  ({ event, lane }: Job): boolean =>
    lane.webhook.id === webhookId && event.projectId === projectId

const isChosen =
  (which: Replay) =>
  ({ event, state }: Job): boolean =>
    which._tag === "One"
      ? event.id === which.eventId && (state === "delivered" || state === "failed")
      : event.at >= which.at && state === "failed"

const fresh = { failures: 0, failingSince: undefined, heldUntil: 0 }

const isSooner = (one: Job, other: Job): boolean =>
  one.dueAt === other.dueAt ? one.order < other.order : one.dueAt < other.dueAt

type Ended = Exclude<Settlement, { readonly _tag: "Released" }>

interface Parked {
  readonly lane: Lane
  readonly until: number
}

const isEarlier = (one: Parked, other: Parked): boolean => one.until < other.until

/** Whether the lane is parked by this entry still, and not by a later one or not at all. */
const isCurrent = (entry: Parked): boolean => entry.lane.parked === entry

const toDelivery = ({ attempts, dueAt, event, lane, state }: Job): Delivery => ({
  eventId: event.id,
  type: event.type,
  webhookId: lane.webhook.id,
  state,
  dueAt,
  attempts: [...attempts],
})

/**
 * Makes an empty set of deliveries.
 *
 * @param kept - how many deliveries are kept after they have ended
 */
export const make = (kept: number): Deliveries => {
  const lanes = new Map<WebhookId, Lane>()
  // Lanes to look at in the next claim, in the order of their turns.
  const ready = new Set<Lane>()
  // Lanes to look at later, among entries that are no longer current.
  const parked = Heap.make<Parked>(isEarlier)
  const ended = Ring.make<Job>(kept)
  let published = 0
  let leases = 0

  const touch = (lane: Lane): void => {
    lane.parked = undefined
    ready.add(lane)
  }

  const laneOf = (webhook: Webhook): Lane => {
    const known = lanes.get(webhook.id)
    if (known !== undefined) return known
    const lane: Lane = {
      webhook,
      waiting: Heap.make<Job>(isSooner),
      leased: new Set(),
      isOpen: true,
      ...fresh,
      parked: undefined,
    }
    lanes.set(webhook.id, lane)
    return lane
  }

  const wait = (job: Job, dueAt: number): void => {
    if (!job.lane.isOpen) return end(job, "failed")
    job.dueAt = dueAt
    job.lane.waiting.push(job)
    touch(job.lane)
  }

  const end = (job: Job, state: Exclude<Delivery["state"], "waiting">): void => {
    job.state = state
    ended.push(job)
  }

  const close = (webhookId: WebhookId, state: "failed" | "cancelled"): void => {
    const lane = lanes.get(webhookId)
    if (lane === undefined) return
    touch(lane)
    lane.isOpen = false
    for (const job of lane.waiting.values()) end(job, state)
    lane.waiting.clear()
    if (state === "failed") return
    for (const job of lane.leased) {
      job.lease = undefined
      end(job, state)
    }
    lane.leased.clear()
    lanes.delete(webhookId)
  }

  const release = (job: Job): void => {
    job.lease = undefined
    job.lane.leased.delete(job)
  }

  /** Lets those whose lease has passed wait again. */
  const expire = (lane: Lane, now: number): void => {
    for (const job of lane.leased) {
      if (job.lease !== undefined && job.lease.until > now) continue
      release(job)
      wait(job, job.dueAt)
    }
  }

  /** All that is known of a webhook's deliveries. One that was replayed may have ended twice. */
  const jobsOf = (webhook: WebhookRef): ReadonlyArray<Job> => {
    const lane = lanes.get(webhook.webhookId)
    const open = lane === undefined ? [] : [...lane.waiting.values(), ...lane.leased]
    return [...new Set([...open, ...ended.newestFirst()])].filter(isOf(webhook))
  }

  const park = (lane: Lane, hasSlot: boolean, isHeld: boolean): void => {
    const next = lane.waiting.peek()
    const due = hasSlot ? next?.dueAt : undefined
    const held = isHeld && next !== undefined ? Math.max(lane.heldUntil, next.dueAt) : undefined
    const passing = [...lane.leased].map((job) => job.lease?.until ?? 0)
    const until = Math.min(due ?? Infinity, held ?? Infinity, ...passing)
    if (until === Infinity) return
    lane.parked = { lane, until }
    parked.push(lane.parked)
    if (parked.size() > 2 * lanes.size + 64) compact()
  }

  const compact = (): void => {
    const current = parked.values().filter(isCurrent)
    parked.clear()
    for (const entry of current) parked.push(entry)
  }

  const unpark = (now: number): void => {
    for (let next = parked.peek(); next !== undefined; next = parked.peek()) {
      if (isCurrent(next) && next.until > now) return
      parked.pop()
      if (isCurrent(next)) touch(next.lane)
    }
  }

  const lease = (job: Job, now: number, leaseMillis: number): Claim => {
    const token = String(++leases)
    job.tries++
    job.lease = { token, until: now + leaseMillis }
    job.lane.leased.add(job)
    const { id, previous, projectId, secret, signingKey, url } = job.lane.webhook
    const isRotating = previous !== undefined && previous.until > now
    return {
      event: { id: job.event.id, body: job.event.body },
      webhook: {
        projectId,
        webhookId: id,
        url,
        secrets: isRotating ? [secret, previous.secret] : [secret],
        signingKey,
        failures: job.lane.failures,
        failingSince: job.lane.failingSince,
      },
      attempt: job.tries,
      lease: token,
    }
  }

  const leasedBy = ({ lease: token, webhook }: Claim): Job | undefined => {
    const lane = lanes.get(webhook.webhookId)
    return lane && [...lane.leased].find((job) => job.lease?.token === token)
  }

  /** Takes down how a webhook fares. */
  const pace = (lane: Lane, settlement: Ended, now: number): void => {
    if (settlement._tag === "Delivered") {
      lane.failures = 0
      lane.failingSince = undefined
      lane.heldUntil = 0
    } else {
      lane.failures++
      lane.failingSince ??= now
      const hold = settlement._tag === "Disabled" ? 0 : settlement.holdMillis
      lane.heldUntil = Math.max(lane.heldUntil, now + hold)
    }
  }

  return {
    close,

    add: (event, webhook) => {
      const lane = laneOf(webhook)
      published++
      const job: Job = {
        event,
        lane,
        order: published,
        attempts: [],
        state: "waiting",
        dueAt: event.at,
        tries: 0,
        lease: undefined,
      }
      wait(job, event.at)
    },

    claim: ({ leaseMillis, limit, perWebhook }, now) => {
      unpark(now)
      const claims: Array<Claim> = []
      for (const lane of ready) {
        if (claims.length === limit) break
        ready.delete(lane)
        expire(lane, now)
        const next = lane.waiting.peek()
        const isHeld = lane.heldUntil > now
        const hasSlot = !isHeld && lane.leased.size < perWebhook
        if (hasSlot && next !== undefined && next.dueAt <= now) {
          lane.waiting.pop()
          claims.push(lease(next, now, leaseMillis))
          // Deleted and added again: to the end of the turns.
          ready.delete(lane)
          ready.add(lane)
        } else {
          ready.delete(lane)
          park(lane, hasSlot, isHeld)
        }
      }
      const next = parked.peek()
      return { claims, nextDueMillis: next && Math.max(1, next.until - now) }
    },

    settle: (claim, settlement, now) => {
      const job = leasedBy(claim)
      if (job === undefined || job.lease === undefined || job.lease.until <= now) return undefined
      release(job)
      if (settlement._tag === "Released") {
        job.tries--
        wait(job, job.dueAt)
        return job.lane.webhook
      }
      job.attempts.push(settlement.attempt)
      pace(job.lane, settlement, now)
      switch (settlement._tag) {
        case "Delivered":
          end(job, "delivered")
          break
        case "Retry":
          wait(job, now + settlement.delayMillis)
          break
        case "Failed":
          end(job, "failed")
          break
        case "Disabled":
          end(job, "failed")
          close(claim.webhook.webhookId, "failed")
          break
      }
      touch(job.lane)
      return job.lane.webhook
    },

    update: (webhook) => {
      const lane = lanes.get(webhook.id)
      if (lane === undefined) return
      lane.webhook = webhook
      const isOpen = webhook.disabledAt === undefined
      // One that was enabled again begins as if it were new.
      if (isOpen && !lane.isOpen) Object.assign(lane, fresh)
      lane.isOpen = isOpen
    },

    list: (webhook, { limit, olderThan, state }) => {
      const jobs = jobsOf(webhook).toSorted((one, other) => other.order - one.order)
      const before =
        olderThan === undefined ? Infinity : jobs.find(({ event }) => event.id === olderThan)?.order
      return jobs
        .filter((job) => job.order < (before ?? 0) && (state === undefined || job.state === state))
        .slice(0, limit)
        .map(toDelivery)
    },

    replay: (webhook, which, now) => {
      const jobs = jobsOf(webhook).filter(isChosen(which))
      for (const job of jobs) {
        job.state = "waiting"
        job.tries = 0
        wait(job, now)
      }
      return jobs.length
    },
  }
}
