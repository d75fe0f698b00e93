/** Decides whether a failed call is tried again, and when. */

import { longestTime } from "./sleep.ts"
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

const longestPause = 30_000

/** Tells whether a connection that failed is tried again, however often. */
export const isTransient = ({ code, status = 0 }: TenureError): boolean =>
  codes.has(code) || status === 429 || status >= 500

/**
 * How long to wait before the next connection, in milliseconds: at random up to a time that doubles with
 * every failure, and not before the server asks for it.
 *
 * @param error - why the last one has failed, if it has
 * @param failures - how many have failed in a row
 * @param first - the longest wait without a failure, in milliseconds
 * @param random - a number from 0 to 1
 */
export const pauseBefore = (
  error: TenureError | undefined,
  failures: number,
  first: number,
  random: number,
): number =>
  Math.min(
    longestTime,
    1000 * (error?.retryAfter ?? 0) +
      random * Math.min(longestPause, Math.max(1, first) * 2 ** failures),
  )
