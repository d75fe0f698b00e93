/** Keeps to the limits of a server instead of running into them, so that it never suspends the key. */

import { setTimeout } from "node:timers/promises"

type Fetch = typeof globalThis.fetch

// Left for whoever else uses the key.
const spare = 2

/**
 * How long to wait before the next request, in milliseconds: as long as it takes until one more request
 * is allowed, if hardly any is left.
 *
 * @param now - milliseconds since the epoch
 */
export const pauseAfter = (headers: Pick<Headers, "get">, now: number): number => {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    Number(headers.get(`x-ratelimit-${name}`) ?? NaN),
  )
  if (limit === undefined || remaining === undefined || reset === undefined) return 0
  const isScarce = remaining <= spare && remaining < limit
  if (!isScarce || Number.isNaN(reset)) return 0
  return Math.max(0, (reset * 1000 - now) / (limit - remaining))
}

/** Delays requests as the responses before them ask for. */
export const paced = (fetch: Fetch): Fetch => {
  let next = 0
  return async (input, init) => {
    const wait = next - Date.now()
    if (wait > 0) await setTimeout(wait, undefined, { signal: init?.signal ?? undefined })
    const response = await fetch(input, init)
    const now = Date.now()
    next = now + pauseAfter(response.headers, now)
    return response
  }
}
