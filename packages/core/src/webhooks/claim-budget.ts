/** How many deliveries to claim: a webhook's concurrency and rate, prefetching, and shares per project. */

import { Millis } from "../base/time.ts"
import { type BucketPolicy, bucketPolicy } from "../limits/buckets.ts"
import type { WebhookId } from "./webhook.ts"

/** Limits for a concurrency. */
export interface ConcurrencyRange {
  readonly least: number
  readonly most: number
}

/** The bounds for every webhook. */
export const concurrencyRange: ConcurrencyRange = { least: 4, most: 16 }

/** A webhook's concurrency before any attempt. */
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

// A dispatcher that sleeps up to this share of a second misses no token.
const rateBurstsPerSecond = 4

/** Returns the token bucket of a webhook with a rate. Each claim takes a token. */
export const webhookRatePolicy = (rate: number): BucketPolicy =>
  bucketPolicy({
    limit: rate,
    window: Millis(1000),
    capacity: Math.max(1, Math.floor(rate / rateBurstsPerSecond)),
  })

// A claim takes much less than this, so the queue is refilled before it is empty.
const soughtMillis = 100

// All queues in a process share this part of the budget.
const queuesToShare = 4

/**
 * How long a prefetched claim may wait at most, in milliseconds. It limits how long a process unaware
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
 * Returns how many deliveries to prefetch for a webhook: the faster it answers, the more, because the
 * next attempt then starts as soon as the previous one is answered.
 *
 * @param most - the maximum in a process
 */
export const wantedPrefetch = ({ attemptMillis, concurrency }: WebhookPace, most: number): number =>
  attemptMillis === undefined
    ? 0
    : Math.min(most, Math.floor((concurrency * soughtMillis) / Math.max(1, attemptMillis)))

/** Tells whether a queue is at least half empty, and so worth another claim. */
export const isPrefetchLow = (length: number, pace: WebhookPace, most: number): boolean =>
  2 * length <= wantedPrefetch(pace, most)

/**
 * Returns the maximum number of prefetched claims in a process.
 *
 * @param maxInFlight - the maximum number of concurrent attempts
 */
export const maxPrefetch = (maxInFlight: number): number => Math.floor(maxInFlight / queuesToShare)

/** How many claims a process has. */
export interface ClaimCount {
  readonly all: number
  /** Claims for webhooks with failing attempts. */
  readonly failing: number
  /** Claims without a started attempt. */
  readonly queued: number
}

// A project may have an eighth of the budget: the rest is for other projects.
const projectsToShare = 8

// Failing webhooks may together have half of the budget: the rest is for the others.
const failingToShare = 2

// A claim takes at most a quarter of the budget, so the shares shrink before it is used up.
const claimsToShare = 4

/** How many deliveries to claim. */
export interface ClaimBudget {
  /** The most deliveries to claim, without those claimed ahead. */
  readonly limit: number
  /** The maximum for failing webhooks. */
  readonly failing: number
  /** Limits for each webhook's concurrency. */
  readonly perWebhook: ConcurrencyRange
  /** The maximum number of concurrent attempts per project, including those claimed earlier. */
  readonly perProject: number
  /** The most deliveries to claim ahead. */
  readonly ahead: number
}

/**
 * Returns the claim budget. The smaller it is, the less each project gets and, from half on, each
 * webhook, whatever its concurrency: many hanging attempts thus do not delay the others. `n` projects
 * using their full shares leave about `most / (1 + n / 8)`.
 *
 * @param most - the maximum number of concurrent attempts
 * @returns `undefined` if there is no budget
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

// How often to look whether somebody else has made room.
const pauseMillis = 200

/** Decides whether to claim again, from the skipped deliveries and the settlements since. */
export interface ClaimTrigger {
  readonly beginClaim: () => void
  /**
   * Records the webhooks whose deliveries the claim skipped.
   *
   * @param isInHand - tells whether this process has claims for a webhook to settle
   * @returns in how many milliseconds to claim again, or `undefined` to wait for a settlement
   */
  readonly endClaim: (
    keptBack: ReadonlyArray<WebhookId>,
    isInHand: (webhookId: WebhookId) => boolean,
  ) => number | undefined
  /** Tells whether to claim again after a webhook's claim was settled. */
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
