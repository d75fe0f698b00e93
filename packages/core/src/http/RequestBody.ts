/** Reads the JSON object in the body of a request. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { type HeaderFields, type Single, single } from "../base/HeaderFields.ts"
import type { ArrivedBody } from "./ApiRequest.ts"
import * as Outcome from "./Outcome.ts"

/** A JSON object. Read its own properties only, with `own`. */
export type JsonObject = Readonly<Record<string, unknown>>

// The body must be UTF-8 (RFC 8259, 8.1). A byte order mark is ignored.
const utf8 = new TextDecoder("utf-8", { fatal: true })

const malformed = (message: string): Outcome.Outcome<never> =>
  Outcome.fail({ _tag: "MalformedRequest", message })

const unsupported = (message: string): Outcome.Outcome<never> =>
  Outcome.fail({ _tag: "UnsupportedMediaType", message })

const jsonType = /^application\/json[ \t]*(;|$)/i

const notJson = "The content type must be application/json."

/** Tells whether a content type is JSON. A charset has no meaning there (RFC 8259, 11). */
const isJson = (type: Single): boolean => type._tag === "Value" && jsonType.test(type.value)

/** Returns what is wrong with a body by its header fields, or `undefined` for plain JSON. */
const mediaFault = (headers: HeaderFields): string | undefined => {
  const encoding = single(headers, "content-encoding")
  if (
    encoding._tag !== "Absent" &&
    !(encoding._tag === "Value" && /^identity$/i.test(encoding.value))
  ) {
    return "The body must be sent without a content encoding."
  }
  return isJson(single(headers, "content-type")) ? undefined : notJson
}

const parse = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
}

const asObject = (value: unknown): Outcome.Outcome<JsonObject> =>
  Predicate.isObject(value) ? Result.succeed(value) : malformed("The body must be a JSON object.")

/**
 * Reads the body of a request.
 *
 * @param limit - the longest body, in bytes
 */
export const read = (
  body: ArrivedBody,
  headers: HeaderFields,
  limit: number,
): Outcome.Outcome<JsonObject> => {
  switch (body._tag) {
    case "TooLarge":
      return Outcome.fail({ _tag: "PayloadTooLarge", limit })
    case "Consumed":
      return malformed("The body was read before it came to the API, and nothing of it was kept.")
    case "Unreadable":
      return Outcome.fail(body.error)
    case "Parsed": {
      // A host may also parse other types, such as forms.
      const type = single(headers, "content-type")
      return type._tag === "Absent" || isJson(type) ? asObject(body.value) : unsupported(notJson)
    }
    case "Bytes": {
      if (body.bytes.length > limit) return Outcome.fail({ _tag: "PayloadTooLarge", limit })
      if (body.bytes.length === 0) return malformed("The request has no body.")
      const fault = mediaFault(headers)
      if (fault !== undefined) return unsupported(fault)
      const value = parse(body.bytes)
      return value === undefined ? malformed("The body is not valid JSON.") : asObject(value)
    }
  }
}
