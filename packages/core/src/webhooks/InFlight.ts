/** The attempts in flight of this process, and the room for more. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Concurrency from "./Concurrency.ts"
import type { Claim } from "./Outbox.ts"
import type { WebhookId } from "./Webhook.ts"

/** How many attempts are in flight. */
export interface Count {
  readonly all: number
  /** Those for webhooks whose attempts fail. */
  readonly failing: number
}

type Webhook = Pick<Claim["webhook"], "webhookId" | "failures">

/** Attempts in flight. */
export interface InFlight {
  readonly count: () => Count
  /** Forgets earlier cancellations: they do not concern what is claimed from now on. */
  readonly beginClaim: () => void
  /**
   * Starts an attempt, unless its webhook was cancelled since the claim began.
   *
   * @param fork - returns the fiber of the attempt, which returns whether it has succeeded
   */
  readonly start: (webhook: Webhook, fork: () => Fiber.Fiber<boolean>) => void
  /** Tells whether attempts for a webhook are in flight. */
  readonly has: (webhookId: WebhookId) => boolean
  /** Interrupts the attempts for a webhook. Those of the current claim do not start. */
  readonly cancel: (webhookId: WebhookId) => void
  /** Interrupts all attempts and waits until they have ended. */
  readonly interruptAll: Effect.Effect<void>
}

/** The attempts for one webhook. */
interface Lane {
  readonly fibers: Set<Fiber.Fiber<boolean>>
  /** Whether none has failed since one started for a webhook that did not fail. */
  isSmooth: boolean
}

/**
 * Makes an empty set of attempts. Each method is one synchronous step, so that no cancellation misses
 * an attempt that is starting.
 *
 * @param onEnd - called when an attempt has ended. `isSmooth` is false if its webhook has failed lately:
 *   the store may treat it in another way from now on.
 */
export const make = (onEnd: (webhookId: WebhookId, isSmooth: boolean) => void): InFlight => {
  const lanes = new Map<WebhookId, Lane>()
  const cancelled = new Set<WebhookId>()
  const count = { all: 0, failing: 0 }

  const laneOf = ({ failures, webhookId }: Webhook): Lane => {
    const lane = lanes.get(webhookId) ?? { fibers: new Set(), isSmooth: true }
    lane.isSmooth = failures === 0
    lanes.set(webhookId, lane)
    return lane
  }

  const add = ({ failures }: Webhook, change: 1 | -1): void => {
    count.all += change
    if (failures > 0) count.failing += change
  }

  const remove = (
    webhook: Webhook,
    lane: Lane,
    fiber: Fiber.Fiber<boolean>,
    exit: Exit.Exit<boolean>,
  ): void => {
    add(webhook, -1)
    lane.fibers.delete(fiber)
    if (lane.fibers.size === 0) lanes.delete(webhook.webhookId)
    lane.isSmooth &&= Exit.isSuccess(exit) && exit.value
    onEnd(webhook.webhookId, lane.isSmooth)
  }

  return {
    count: () => count,
    beginClaim: () => cancelled.clear(),
    start: (webhook, fork) => {
      const { webhookId } = webhook
      if (cancelled.has(webhookId)) return
      const fiber = fork()
      const lane = laneOf(webhook)
      lane.fibers.add(fiber)
      add(webhook, 1)
      fiber.addObserver((exit) => remove(webhook, lane, fiber, exit))
    },
    has: (webhookId) => lanes.has(webhookId),
    cancel: (webhookId) => {
      cancelled.add(webhookId)
      for (const fiber of lanes.get(webhookId)?.fibers ?? []) fiber.interruptUnsafe()
    },
    interruptAll: Effect.suspend(() =>
      Fiber.interruptAll([...lanes.values()].flatMap(({ fibers }) => [...fibers])),
    ),
  }
}

// A project may have an eighth of the room: the rest is for other projects.
const projectsToShare = 8

// Webhooks whose attempts fail may together have half of the room: the rest is for the others.
const failingToShare = 2

// A claim takes at most a quarter of the room, so that the shares shrink before it is full.
const claimsToShare = 4

/** How many deliveries to claim. */
export interface Room {
  /** The most deliveries to claim. */
  readonly limit: number
  /** The most of them for webhooks whose attempts fail. */
  readonly failing: number
  /** Bounds of the concurrency of each webhook. */
  readonly perWebhook: Concurrency.Range
  /** The most attempts in flight for each project, including those that were claimed earlier. */
  readonly perProject: number
}

/**
 * Returns the room for more attempts. The less room there is, the less each project gets and, from the
 * half on, each webhook, whatever its concurrency, so that many that hang do not delay the others: `n`
 * projects that take all they get leave about `most / (1 + n / 8)`.
 *
 * @param most - the number of attempts that may be in flight
 * @returns `undefined` if there is no room
 */
export const room = ({ all, failing }: Count, most: number): Room | undefined => {
  const free = most - all
  if (free <= 0) return undefined
  const hasHalf = 2 * free >= most
  const least = Math.ceil((2 * Concurrency.range.least * free) / most)
  return {
    limit: Math.ceil(free / claimsToShare),
    failing: Math.max(0, Math.ceil(most / failingToShare) - failing),
    perWebhook: hasHalf ? Concurrency.range : { least, most: least },
    perProject: Math.ceil(free / projectsToShare),
  }
}
