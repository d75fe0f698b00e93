/** The attempts in flight of this process, and the room for more. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { WebhookId } from "./Webhook.ts"

/** Attempts in flight. */
export interface InFlight {
  /** The number of attempts. */
  readonly size: () => number
  /** Forgets earlier cancellations: they do not concern what is claimed from now on. */
  readonly beginClaim: () => void
  /** Starts an attempt, unless its webhook was cancelled since the claim began. */
  readonly start: (webhookId: WebhookId, fork: () => Fiber.Fiber<void>) => void
  /** Interrupts the attempts for a webhook. Those of the current claim do not start. */
  readonly cancel: (webhookId: WebhookId) => void
  /** Interrupts all attempts and waits until they have ended. */
  readonly interruptAll: Effect.Effect<void>
}

/**
 * Makes an empty set of attempts. Each method is one synchronous step, so that no cancellation misses
 * an attempt that is starting.
 *
 * @param onEnd - called when an attempt has ended
 */
export const make = (onEnd: () => void): InFlight => {
  const fibersOf = new Map<WebhookId, Set<Fiber.Fiber<void>>>()
  const cancelled = new Set<WebhookId>()
  let size = 0

  const remove = (
    webhookId: WebhookId,
    fibers: Set<Fiber.Fiber<void>>,
    fiber: Fiber.Fiber<void>,
  ) => {
    size--
    fibers.delete(fiber)
    if (fibers.size === 0) fibersOf.delete(webhookId)
    onEnd()
  }

  return {
    size: () => size,
    beginClaim: () => cancelled.clear(),
    start: (webhookId, fork) => {
      if (cancelled.has(webhookId)) return
      const fiber = fork()
      const fibers = fibersOf.get(webhookId) ?? new Set()
      fibersOf.set(webhookId, fibers.add(fiber))
      size++
      fiber.addObserver(() => remove(webhookId, fibers, fiber))
    },
    cancel: (webhookId) => {
      cancelled.add(webhookId)
      for (const fiber of fibersOf.get(webhookId) ?? []) fiber.interruptUnsafe()
    },
    interruptAll: Effect.suspend(() =>
      Fiber.interruptAll([...fibersOf.values()].flatMap((fibers) => [...fibers])),
    ),
  }
}

// The most attempts in flight for one webhook.
const mostPerWebhook = 4

// A project may have an eighth of the room: the rest is for other projects.
const projectsToShare = 8

// A claim takes at most a quarter of the room, so that the shares shrink before it is full.
const claimsToShare = 4

/** How many deliveries to claim. */
export interface Room {
  /** The most deliveries to claim. */
  readonly limit: number
  /** The most attempts in flight for each webhook, including those that were claimed earlier. */
  readonly perWebhook: number
  /** The most attempts in flight for each project, including those that were claimed earlier. */
  readonly perProject: number
}

/**
 * Returns the room for more attempts. The less room there is, the less each webhook and each project
 * gets, so that many that hang do not delay the others: `n` projects that take all they get leave
 * about `most / (1 + n / 8)`.
 *
 * @param size - the number of attempts in flight
 * @param most - the number of attempts that may be in flight
 * @returns `undefined` if there is no room
 */
export const room = (size: number, most: number): Room | undefined => {
  const free = most - size
  if (free <= 0) return undefined
  return {
    limit: Math.ceil(free / claimsToShare),
    perWebhook: Math.ceil((mostPerWebhook * free) / most),
    perProject: Math.ceil(free / projectsToShare),
  }
}
