/** The `Retry-After` header field, with which a receiver asks for a pause (RFC 9110, 10.2.3). */

import * as HttpDate from "./HttpDate.ts"

/**
 * Decodes the pause that a receiver asks for.
 *
 * @param field - the field as sent: a number of seconds or an HTTP date
 * @param now - when the response ended, in milliseconds since the epoch
 * @param longest - the longest pause to grant, in milliseconds
 * @returns milliseconds; 0 if the field is missing, invalid or in the past
 */
export const millis = (field: string | undefined, now: number, longest: number): number => {
  if (field === undefined) return 0
  const asked = /^\d+$/.test(field)
    ? Number(field) * 1000
    : (HttpDate.parse(field, now) ?? now) - now
  return Math.min(Math.max(0, asked), longest)
}
