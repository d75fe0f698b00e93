/** UUIDs (RFC 9562). */

import { rememberLatest } from "./rememberLatest.ts"

/** What the ids of a millisecond begin with. */
const prefixOf = rememberLatest((now: number): string => {
  const time = now.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
})

/**
 * A UUID of version 7, whose order is that of time: the first 48 bits of a random one give way to
 * `now` in milliseconds.
 */
export const v7 = (crypto: { readonly randomUUID: () => string }, now: number): string =>
  prefixOf(now) + crypto.randomUUID().slice(15)

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Tells whether a text is a UUID in lower case. */
export const isUuid = (text: string): boolean => pattern.test(text)
