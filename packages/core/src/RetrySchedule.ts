/** When a delivery that failed is tried again. */
/** Delays between attempts, in milliseconds: after the first, after the second, and so on. */
export type RetrySchedule = ReadonlyArray<number>

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h: ten attempts in three days and more. */
export const standard: RetrySchedule = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

const jitter = 0.2

/**
 * The delay before the next attempt.
 *
 * @param attempt - the number of the attempt that failed, from 1
 * @param random - a number from 0 to 1, which spreads the delay by 20 % to either side
 * @param retryAfterMillis - what the receiver asked for: never shortens the delay, and lengthens it
 *   to that of the second next step at most
 * @returns milliseconds, or `undefined` when there are no more attempts
 */
export const delay = (
  schedule: RetrySchedule,
  attempt: number,
  random: number,
  retryAfterMillis = 0,
): number | undefined => {
  const scheduled = schedule[attempt - 1]
  if (scheduled === undefined) return undefined
  const spread = Math.round(scheduled * (1 + jitter * (2 * random - 1)))
  const most = Math.max(spread, ...schedule.slice(attempt, attempt + 2))
  return Math.max(spread, Math.min(retryAfterMillis, most))
}
