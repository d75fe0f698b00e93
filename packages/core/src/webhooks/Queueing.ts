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
export const longestMillis = 250

/** How fast a webhook is. */
export interface Pace {
  /** How many attempts may be in flight. */
  readonly concurrency: number
  /** How long an attempt takes, or `undefined` as long as none has succeeded. */
  readonly attemptMillis: number | undefined
}

/** Returns how long an attempt takes, from the value so far and the last attempt. */
export const smoothed = (attemptMillis: number | undefined, lastMillis: number): number =>
  attemptMillis === undefined ? lastMillis : (3 * attemptMillis + lastMillis) / 4

/**
 * Returns how many claims of a webhook should wait.
 *
 * @param most - the most that may wait in a process
 */
export const sought = ({ attemptMillis, concurrency }: Pace, most: number): number =>
  attemptMillis === undefined
    ? 0
    : Math.min(most, Math.floor((concurrency * soughtMillis) / Math.max(1, attemptMillis)))

/** Tells whether a queue is at least half empty, and so worth another claim. */
export const isLow = (length: number, pace: Pace, most: number): boolean =>
  2 * length <= sought(pace, most)

/**
 * Returns the most claims that may wait in a process.
 *
 * @param maxInFlight - the number of attempts that may be in flight
 */
export const most = (maxInFlight: number): number => Math.floor(maxInFlight / queuesToShare)
