/** UUIDs (RFC 9562). */

import { memoizeLast } from "./MemoizeLast.ts"

/** The beginning of all ids of a millisecond. */
const prefixOf = memoizeLast((now: number): string => {
  const time = now.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
})

/**
 * Makes a UUID of version 7. UUIDs of later milliseconds sort after those of earlier ones.
 *
 * @param now - milliseconds since the epoch
 */
export const v7 = (crypto: { readonly randomUUID: () => string }, now: number): string =>
  // Joined into one text. A sum would keep its parts, for as long as whoever stores the id.
  [prefixOf(now), crypto.randomUUID().slice(15)].join("")

/**
 * Makes a UUID of version 8 from a digest.
 *
 * @param digest - at least 16 bytes
 */
export const v8 = (digest: Uint8Array): string => {
  const hex = Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  )
  const variant = "89ab"[Number.parseInt(hex.slice(16, 17), 16) % 4]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
}

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Tells whether text is a UUID in lower case. */
export const isUuid = (text: string): boolean => pattern.test(text)
