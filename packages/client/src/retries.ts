/** Decides whether a failed call is tried again, and when. */

import type { TenureError } from "./TenureError.ts"

/** The limits of retries. */
export interface Limits {
  /** The most attempts after the first. */
  readonly maxRetries: number
  /** The longest wait before a retry, in milliseconds. */
  readonly maxWait: number
}

const firstWait = 500
const longestWait = 8000

// 502 and 504 are what a proxy makes of a broken connection.
const statuses: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504])
const codes: ReadonlySet<string> = new Set(["NETWORK_ERROR", "TIMEOUT", "IDEMPOTENCY_IN_PROGRESS"])

/** The wait without a `Retry-After`: it doubles with every attempt, and half of it is random. */
const backOff = (retries: number, random: number): number =>
  Math.min(longestWait, firstWait * 2 ** retries) * (0.5 + random / 2)

/**
 * How long to wait before the next attempt.
 *
 * @param retries - how many attempts have followed the first
 * @param random - a number from 0 to 1
 * @returns milliseconds, or `undefined` if there is no next attempt
 */
export const waitBefore = (
  { code, retryAfter, status }: TenureError,
  retries: number,
  { maxRetries, maxWait }: Limits,
  random: number,
): number | undefined => {
  if (retries >= maxRetries || !(statuses.has(status) || codes.has(code))) return undefined
  const wait = retryAfter === undefined ? backOff(retries, random) : retryAfter * 1000
  return wait <= maxWait ? wait : undefined
}
