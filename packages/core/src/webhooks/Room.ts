/** The room of a process for more claims. */

import * as Concurrency from "./Concurrency.ts"
import * as Queueing from "./Queueing.ts"

/** How many claims a process has. */
export interface Count {
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
export interface Room {
  /** The most deliveries to claim. */
  readonly limit: number
  /** The most of them for webhooks whose attempts fail. */
  readonly failing: number
  /** Bounds of the concurrency of each webhook. */
  readonly perWebhook: Concurrency.Range
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
export const of = ({ all, failing, queued }: Count, most: number): Room | undefined => {
  const free = most - all
  if (free <= 0) return undefined
  const hasHalf = 2 * free >= most
  const least = Math.ceil((2 * Concurrency.range.least * free) / most)
  return {
    limit: Math.ceil(free / claimsToShare),
    failing: Math.max(0, Math.ceil(most / failingToShare) - failing),
    perWebhook: hasHalf ? Concurrency.range : { least, most: least },
    perProject: Math.ceil(free / projectsToShare),
    ahead: hasHalf ? Math.max(0, Queueing.most(most) - queued) : 0,
  }
}
