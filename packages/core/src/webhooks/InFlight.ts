/** The claims of this process: their attempts are in flight, or wait in the queue of their webhook. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ProjectId } from "../base/Project.ts"
import type { Claim } from "./Outbox.ts"
import * as Queueing from "./Queueing.ts"
import type { Count } from "./Room.ts"
import type { WebhookId } from "./Webhook.ts"

/** What happens to claims. */
export interface Handling {
  /**
   * Starts to attempt and settle a delivery. The fiber returns whether it is delivered.
   *
   * @param onAnswer - called when the attempt has ended, before it is settled, with whether it succeeded
   */
  readonly deliver: (claim: Claim, onAnswer: (succeeded: boolean) => void) => Fiber.Fiber<boolean>
  /** Starts to release a claim. */
  readonly release: (claim: Claim) => Fiber.Fiber<void>
  /**
   * Called when a claim was settled or released. `isSmooth` is false if attempts for its webhook have
   * failed lately: the store may treat it in another way from now on.
   */
  readonly onEnd: (webhookId: WebhookId, isSmooth: boolean) => void
  /** The time in milliseconds, by the monotonic clock. */
  readonly now: () => number
  /** The most claims that may wait. */
  readonly mostQueued: number
}

/** Claims. */
export interface InFlight {
  readonly count: () => Count
  /**
   * Forgets earlier cancellations, because they do not concern what is claimed from now on, and releases
   * claims that have waited for too long.
   */
  readonly beginClaim: () => void
  /**
   * Starts the attempt of a claim, or queues it. Releases it if its webhook or project was cancelled after
   * `beginClaim`.
   */
  readonly add: (claim: Claim) => void
  /** Tells whether there are claims of a webhook. */
  readonly has: (webhookId: WebhookId) => boolean
  /** Tells whether few claims of a webhook wait. */
  readonly isLow: (webhookId: WebhookId) => boolean
  /** Returns how many more should wait, for each webhook, and not more than `most` for all together. */
  readonly sought: (most: number) => ReadonlyMap<WebhookId, number>
  /** Interrupts the attempts for a webhook, and releases the claims in its queue. */
  readonly cancel: (webhookId: WebhookId) => void
  /** Does so for all webhooks of a project. */
  readonly cancelProject: (projectId: ProjectId) => void
  /** Interrupts all attempts and releases all queued claims. Waits until both are done. */
  readonly interruptAll: Effect.Effect<void>
}

interface Waiting {
  readonly claim: Claim
  readonly since: number
}

/** The claims of one webhook. */
interface Lane {
  readonly projectId: ProjectId
  /** Those whose attempts have not started. */
  queue: Array<Waiting>
  /** All others. */
  readonly fibers: Set<Fiber.Fiber<unknown>>
  /** The number of attempts that are not yet answered. */
  sending: number
  concurrency: number
  attemptMillis: number | undefined
  /** Whether none has failed since one was claimed while the webhook did not fail. */
  isSmooth: boolean
}

const makeLane = (projectId: ProjectId): Lane => ({
  projectId,
  queue: [],
  fibers: new Set(),
  sending: 0,
  concurrency: 0,
  attemptMillis: undefined,
  isSmooth: true,
})

/**
 * Starts without claims. Each method is one synchronous step, so that no cancellation misses an attempt
 * that is starting.
 */
export const make = ({ deliver, mostQueued, now, onEnd, release }: Handling): InFlight => {
  const lanes = new Map<WebhookId, Lane>()
  const cancelled = { webhooks: new Set<WebhookId>(), projects: new Set<ProjectId>() }
  const count = { all: 0, failing: 0, queued: 0 }

  /** The most claims of one webhook that may wait. */
  const share = (): number => Math.floor(mostQueued / Math.max(1, lanes.size))

  const laneOf = ({ webhook: { concurrency, failures, projectId, webhookId } }: Claim): Lane => {
    const lane = lanes.get(webhookId) ?? makeLane(projectId)
    lane.isSmooth = failures === 0
    lane.concurrency = concurrency
    lanes.set(webhookId, lane)
    return lane
  }

  const add = ({ webhook: { failures } }: Claim, change: 1 | -1): void => {
    count.all += change
    if (failures > 0) count.failing += change
  }

  /** Keeps a fiber until it has ended, and its claim with it. */
  const keep = <A>(
    lane: Lane,
    claim: Claim,
    fiber: Fiber.Fiber<A>,
    whenEnded: (exit: Exit.Exit<A>) => void,
  ): void => {
    const { webhookId } = claim.webhook
    lane.fibers.add(fiber)
    fiber.addObserver((exit) => {
      add(claim, -1)
      lane.fibers.delete(fiber)
      whenEnded(exit)
      if (lane.fibers.size === 0 && lane.queue.length === 0) lanes.delete(webhookId)
      onEnd(webhookId, lane.isSmooth)
    })
  }

  const releaseOne = (lane: Lane, claim: Claim): void => keep(lane, claim, release(claim), () => {})

  /** Empties the queue of a lane. The caller releases its claims. */
  const empty = (lane: Lane): ReadonlyArray<Claim> => {
    const { queue } = lane
    lane.queue = []
    count.queued -= queue.length
    return queue.map(({ claim }) => claim)
  }

  const releaseAll = (lane: Lane): void => {
    for (const claim of empty(lane)) releaseOne(lane, claim)
  }

  /** Releases the whole queue of a lane if its first claim has waited too long, because the webhook hangs. */
  const expire = (lane: Lane): void => {
    const [first] = lane.queue
    if (first === undefined || now() - first.since <= Queueing.longestMillis) return
    lane.attemptMillis = undefined
    releaseAll(lane)
  }

  /** Starts the attempts that wait, as far as the concurrency allows. */
  const startNext = (lane: Lane): void => {
    expire(lane)
    while (lane.sending < lane.concurrency) {
      const next = lane.queue.shift()
      if (next === undefined) return
      count.queued--
      start(lane, next.claim)
    }
  }

  const start = (lane: Lane, claim: Claim): void => {
    const begin = now()
    let isAnswered = false
    // They wait until the failure is settled: it may hold the webhook.
    let left: ReadonlyArray<Claim> = []
    const onAnswer = (succeeded: boolean): void => {
      if (isAnswered) return
      isAnswered = true
      lane.sending--
      if (succeeded) {
        lane.attemptMillis = Queueing.smoothed(lane.attemptMillis, now() - begin)
        startNext(lane)
      } else {
        lane.isSmooth = false
        left = empty(lane)
      }
    }
    lane.sending++
    keep(lane, claim, deliver(claim, onAnswer), (exit) => {
      const isDelivered = Exit.isSuccess(exit) && exit.value
      onAnswer(isDelivered)
      lane.isSmooth &&= isDelivered
      for (const one of left) releaseOne(lane, one)
    })
  }

  const isCancelled = ({ webhook: { projectId, webhookId } }: Claim): boolean =>
    cancelled.webhooks.has(webhookId) || cancelled.projects.has(projectId)

  const interrupt = (lane: Lane): void => {
    releaseAll(lane)
    for (const fiber of lane.fibers) fiber.interruptUnsafe()
  }

  return {
    count: () => count,
    beginClaim: () => {
      cancelled.webhooks.clear()
      cancelled.projects.clear()
      for (const lane of lanes.values()) expire(lane)
    },
    add: (claim) => {
      const lane = laneOf(claim)
      add(claim, 1)
      if (isCancelled(claim)) return releaseOne(lane, claim)
      // It has not waited until now, however long the claim took.
      lane.queue.push({ claim, since: now() })
      count.queued++
      startNext(lane)
    },
    has: (webhookId) => lanes.has(webhookId),
    isLow: (webhookId) => {
      const lane = lanes.get(webhookId)
      return lane === undefined || Queueing.isLow(lane.queue.length, lane, share())
    },
    sought: (most) => {
      const wanted = new Map<WebhookId, number>()
      let left = most
      for (const [webhookId, lane] of lanes) {
        const missing = lane.isSmooth ? Queueing.sought(lane, share()) - lane.queue.length : 0
        const more = Math.min(missing, left)
        if (more > 0) wanted.set(webhookId, more)
        left -= Math.max(0, more)
      }
      return wanted
    },
    cancel: (webhookId) => {
      cancelled.webhooks.add(webhookId)
      const lane = lanes.get(webhookId)
      if (lane !== undefined) interrupt(lane)
    },
    cancelProject: (projectId) => {
      cancelled.projects.add(projectId)
      for (const lane of lanes.values()) if (lane.projectId === projectId) interrupt(lane)
    },
    interruptAll: Effect.gen(function* () {
      for (const lane of lanes.values()) interrupt(lane)
      // Releasing claims adds fibers.
      while (lanes.size > 0) {
        yield* Fiber.awaitAll([...lanes.values()].flatMap(({ fibers }) => [...fibers]))
      }
    }),
  }
}
