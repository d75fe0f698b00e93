/** The concurrency of a webhook: how many attempts for it may be in flight. It follows their success. */

import type { WebhookId } from "./webhook.ts"

/** Bounds of a concurrency. */
export interface ConcurrencyRange {
  readonly least: number
  readonly most: number
}

/** The bounds for every webhook. */
export const concurrencyRange: ConcurrencyRange = { least: 4, most: 16 }

/** The concurrency of a webhook without attempts. */
export const initialConcurrency = concurrencyRange.least

/** Returns the concurrency after a successful attempt: one more. */
export const concurrencyAfterSuccess = (concurrency: number): number =>
  Math.min(concurrencyRange.most, concurrency + 1)

/** Returns the concurrency after a failed attempt: half. */
export const concurrencyAfterFailure = (concurrency: number): number =>
  Math.max(concurrencyRange.least, Math.floor(concurrency / 2))

/** Returns the concurrency within other bounds, for example while there is little room. */
export const clampConcurrency = (concurrency: number, { least, most }: ConcurrencyRange): number =>
  Math.max(least, Math.min(concurrency, most))

/**
 * Claiming ahead: claims wait in the queue of their webhook, so that the next attempt starts as soon as
 * another is answered. A queue is as long as its webhook is fast.
 */

// A claim takes much less than this, so that the queue is filled again before it is empty.
const soughtMillis = 100

// All queues of a process together have this share of the room.
const queuesToShare = 16

/**
 * The longest that a claim may wait, in milliseconds. It bounds for how long a process that learns nothing
 * of a deletion starts attempts.
 */
export const maxPrefetchMillis = 250

/** How fast a webhook is. */
export interface WebhookPace {
  /** How many attempts may be in flight. */
  readonly concurrency: number
  /** How long an attempt takes, or `undefined` as long as none has succeeded. */
  readonly attemptMillis: number | undefined
}

/** Returns how long an attempt takes, from the value so far and the last attempt. */
export const smoothedMillis = (attemptMillis: number | undefined, lastMillis: number): number =>
  attemptMillis === undefined ? lastMillis : (3 * attemptMillis + lastMillis) / 4

/**
 * Returns how many claims of a webhook should wait.
 *
 * @param most - the most that may wait in a process
 */
export const wantedPrefetch = ({ attemptMillis, concurrency }: WebhookPace, most: number): number =>
  attemptMillis === undefined
    ? 0
    : Math.min(most, Math.floor((concurrency * soughtMillis) / Math.max(1, attemptMillis)))

/** Tells whether a queue is at least half empty, and so worth another claim. */
export const isPrefetchLow = (length: number, pace: WebhookPace, most: number): boolean =>
  2 * length <= wantedPrefetch(pace, most)

/**
 * Returns the most claims that may wait in a process.
 *
 * @param maxInFlight - the number of attempts that may be in flight
 */
export const maxPrefetch = (maxInFlight: number): number => Math.floor(maxInFlight / queuesToShare)

/** The room of a process for more claims. */

/** How many claims a process has. */
export interface ClaimCount {
  readonly all: number
  /** Those for webhooks whose attempts fail. */
  readonly failing: number
  /** Those whose attempts have not started. */
  readonly queued: number
}

// A project may have an eighth of the room: the rest is for other projects.
const projectsToShare = 8

// Webhooks whose attempts fail may together have half of the room: the rest is for the others.
const failingToShare = 2

// A claim takes at most a quarter of the room, so that the shares shrink before it is full.
const claimsToShare = 4

/** How many deliveries to claim. */
export interface ClaimBudget {
  /** The most deliveries to claim. */
  readonly limit: number
  /** The most of them for webhooks whose attempts fail. */
  readonly failing: number
  /** Bounds of the concurrency of each webhook. */
  readonly perWebhook: ConcurrencyRange
  /** The most attempts in flight for each project, including those that were claimed earlier. */
  readonly perProject: number
  /** The most deliveries to claim ahead. */
  readonly ahead: number
}

/**
 * Returns the room for more attempts. The less room there is, the less each project gets and, from the
 * half on, each webhook, whatever its concurrency, so that many that hang do not delay the others: `n`
 * projects that take all they get leave about `most / (1 + n / 8)`.
 *
 * @param most - the number of attempts that may be in flight
 * @returns `undefined` if there is no room
 */
export const claimBudget = (
  { all, failing, queued }: ClaimCount,
  most: number,
): ClaimBudget | undefined => {
  const free = most - all
  if (free <= 0) return undefined
  const hasHalf = 2 * free >= most
  const least = Math.ceil((2 * concurrencyRange.least * free) / most)
  return {
    limit: Math.ceil(free / claimsToShare),
    failing: Math.max(0, Math.ceil(most / failingToShare) - failing),
    perWebhook: hasHalf ? concurrencyRange : { least, most: least },
    perProject: Math.ceil(free / projectsToShare),
    ahead: hasHalf ? Math.max(0, maxPrefetch(most) - queued) : 0,
  }
}

/** Which settlements are a reason to claim again: those that make room for what was kept back. */

// How often to look whether somebody else has made room.
const pauseMillis = 200

/** Decides whether to claim again, from what claims have kept back and what was settled since. */
export interface ClaimTrigger {
  readonly beginClaim: () => void
  /**
   * Takes note of the webhooks of which the claim kept something back.
   *
   * @param isInHand - tells whether there are claims of a webhook that will be settled here
   * @returns in how many milliseconds to claim again, or `undefined` for not before a settlement
   */
  readonly endClaim: (
    keptBack: ReadonlyArray<WebhookId>,
    isInHand: (webhookId: WebhookId) => boolean,
  ) => number | undefined
  /** Tells whether to claim again because a claim of a webhook was settled. */
  readonly settled: (webhookId: WebhookId) => boolean
}

/** Starts without claims. */
export const makeClaimTrigger = (): ClaimTrigger => {
  let keptBack: ReadonlySet<WebhookId> = new Set()
  // The claim may not have seen these settlements.
  const settledMeanwhile = new Set<WebhookId>()
  return {
    beginClaim: () => {
      keptBack = new Set()
      settledMeanwhile.clear()
    },
    endClaim: (ids, isInHand) => {
      keptBack = new Set(ids)
      if (ids.some((id) => settledMeanwhile.has(id))) return 0
      return ids.every(isInHand) ? undefined : pauseMillis
    },
    settled: (webhookId) => {
      settledMeanwhile.add(webhookId)
      return keptBack.has(webhookId)
    },
  }
}
