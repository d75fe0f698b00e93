/** Own request headers, sent with every notification to a webhook. */

import type { Branded } from "effect/Brand"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import type * as Setting from "../base/setting.ts"
import { branded } from "../base/values.ts"

/** Values by lower-case name. */
export type OwnHeaders = ReadonlyMap<string, string>

/** New values by lower-case name, and `null` to remove a header. Others stay. */
export type HeadersPatch = ReadonlyMap<string, string | null>

/** The JSON of headers: pairs of a name and a value, sorted by name. */
export type HeadersText = Branded<string, "@tenure/core/HeadersText">

const HeadersText = branded<string, HeadersText>()

/** The maximum number of a webhook's own headers. */
export const maxHeaders = 10

// A token (RFC 9110, 5.6.2).
const name = /^[!#$%&'*+.^_`|~0-9a-z-]{1,64}$/

// Set by Tenure, or needed by HTTP to carry a request.
const reserved =
  /^(?:content-.*|proxy-.*|webhook-.*|accept-encoding|connection|date|expect|host|keep-alive|te|trailer|traceparent|tracestate|transfer-encoding|upgrade|user-agent)$/

const value = /^[\x21-\x7e](?:[\x20-\x7e]{0,998}[\x21-\x7e])?$/

/** Describes valid headers. */
const headersFormat = `at most ${maxHeaders} texts of 1 to 1,000 visible ASCII characters and inner spaces, by names that are HTTP tokens of at most 64 characters`

const isValue = (given: unknown): given is string => typeof given === "string" && value.test(given)

const isPatchValue = (given: unknown): given is string | null => given === null || isValue(given)

/** Describes an invalid name. Values may be secrets, so they are never shown. */
const faultOfName = (lower: string, known: ReadonlyMap<string, unknown>): string | undefined => {
  if (!name.test(lower)) return `must have names that are HTTP tokens of at most 64 characters`
  if (reserved.test(lower)) return `must not have ${lower}, which is reserved for Tenure and HTTP`
  return known.has(lower) ? `must have ${lower} once: names are compared without case` : undefined
}

const headersOf = <A>(
  expected: string,
  isOne: (given: unknown) => given is A,
  json: Setting.JsonSchema,
): Setting.Setting<Readonly<Record<string, A>>, ReadonlyMap<string, A>> => ({
  expected,
  json: { type: "object", maxProperties: maxHeaders, additionalProperties: json },
  read: (given, field) => {
    const fail = (problem: string) => Result.fail(new InvalidInput({ field, problem }))
    if (!Predicate.isObject(given)) return fail(`must be ${expected}`)
    const entries = Object.entries(given)
    if (entries.length > maxHeaders) return fail(`must have at most ${maxHeaders} names`)
    const headers = new Map<string, A>()
    for (const [written, one] of entries) {
      const lower = written.toLowerCase()
      const fault = faultOfName(lower, headers)
      if (fault !== undefined) return fail(fault)
      if (!isOne(one)) {
        return fail(`must have 1 to 1,000 visible ASCII characters and inner spaces in ${lower}`)
      }
      headers.set(lower, one)
    }
    return Result.succeed(headers)
  },
})

const valueJson = { type: "string", minLength: 1, maxLength: 1000 }

/** Headers of a new webhook. */
export const headersSetting = headersOf(`an object of ${headersFormat}`, isValue, valueJson)

/** A change of headers: a JSON Merge Patch (RFC 7396). */
export const headersPatchSetting = headersOf(
  `an object of ${headersFormat}; null removes one`,
  isPatchValue,
  { anyOf: [valueJson, { type: "null" }] },
)

/** Merges a change into headers. */
export const applyHeadersPatch = (before: OwnHeaders, patch: HeadersPatch): OwnHeaders => {
  const after = new Map(before)
  for (const [header, given] of patch) {
    if (given === null) after.delete(header)
    else after.set(header, given)
  }
  return after
}

/** Returns headers as text. Equal headers have equal texts. */
export const formatHeaders = (headers: OwnHeaders): HeadersText =>
  HeadersText(JSON.stringify([...headers].toSorted(([one], [other]) => (one < other ? -1 : 1))))

const isPair = (given: unknown): given is readonly [string, string] =>
  Array.isArray(given) && given.length === 2 && given.every(Predicate.isString)

/** Reads headers. Returns `undefined` for any other text. */
export const parseHeaders = (text: string): OwnHeaders | undefined => {
  try {
    const pairs: unknown = JSON.parse(text)
    return Array.isArray(pairs) && pairs.every(isPair) ? new Map(pairs) : undefined
  } catch {
    return undefined
  }
}
