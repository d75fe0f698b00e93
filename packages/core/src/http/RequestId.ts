/** The id of a request: its own, or one that it comes with. */

import { single } from "../base/HeaderFields.ts"
import * as Setting from "../base/Setting.ts"
import type { ApiRequest } from "./ApiRequest.ts"

/** The longest id that a request may come with, in characters. */
export const maxLength = 128

// Visible ASCII: an id goes into logs, the audit trail and events as it is.
const pattern = new RegExp(`^[\\x21-\\x7e]{1,${maxLength}}$`)

const namePattern = /^[!#$%&'*+.^`|~\w-]+$/

/** The definition of the option that names the header field. */
export const setting: Setting.Setting<string, string> = Setting.make(
  'the name of a header field, such as "x-request-id"',
  (given) =>
    typeof given === "string" && namePattern.test(given) ? given.toLowerCase() : undefined,
)

/**
 * Makes the function that returns the id of a request: that in its header field, if it has one that is
 * valid, or else a fresh one.
 *
 * @param header - the name of the field in lower case; if `undefined`, every id is fresh
 */
export const make = (
  header: string | undefined,
  fresh: () => string,
): ((request: Pick<ApiRequest, "headers">) => string) => {
  if (header === undefined) return fresh
  return ({ headers }) => {
    const field = single(headers, header)
    return field._tag === "Value" && pattern.test(field.value) ? field.value : fresh()
  }
}
