/** When a delivery that failed is attempted again. */

/** Delays between attempts, in milliseconds: after the first, after the second, and so on. */
export type RetrySchedule = ReadonlyArray<number>

const jitter = 0.2

/**
 * Returns the delay before the next attempt.
 *
 * @param attemptNumber - the number of the attempt that failed, from 1
 * @param random - a number from 0 to 1, which spreads the delay by 20 % to either side
 * @returns milliseconds, or `undefined` if there are no more attempts
 */
export const delay = (
  schedule: RetrySchedule,
  attemptNumber: number,
  random: number,
): number | undefined => {
  const scheduled = schedule[attemptNumber - 1]
  return scheduled && Math.round(scheduled * (1 + jitter * (2 * random - 1)))
}

/**
 * Returns the longest delay that a receiver can ask for in place of the scheduled one: that of the
 * next two steps.
 *
 * @param attemptNumber - the number of the attempt that failed, from 1
 * @returns milliseconds; 0 if there are no further steps
 */
export const longestAsked = (schedule: RetrySchedule, attemptNumber: number): number =>
  Math.max(0, ...schedule.slice(attemptNumber, attemptNumber + 2))
