/** Reading the JSON object that a request carries. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { RequestError } from "../ApiError.ts"
import type { ApiRequest } from "../ApiRequest.ts"
import { type HeaderFields, type Single, single } from "../HeaderFields.ts"

/** A JSON object, to be read by own properties only. */
export type JsonObject = Readonly<Record<string, unknown>>

// The body has to be UTF-8 (RFC 8259, 8.1); a byte order mark is passed over.
const utf8 = new TextDecoder("utf-8", { fatal: true })

const malformed = (message: string): Result.Result<never, RequestError> =>
  Result.fail({ _tag: "MalformedRequest", message })

const unsupported = (message: string): Result.Result<never, RequestError> =>
  Result.fail({ _tag: "UnsupportedMediaType", message })

const jsonType = /^application\/json[ \t]*(;|$)/i

const notJson = "The content type must be application/json."

/** Whether the body is JSON by its content type. A charset says nothing (RFC 8259, 11). */
const isJson = (type: Single): boolean => type._tag === "Value" && jsonType.test(type.value)

/** Why the body is not plain JSON by its header fields. */
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

const asObject = (value: unknown): Result.Result<JsonObject, RequestError> =>
  Predicate.isObject(value) ? Result.succeed(value) : malformed("The body must be a JSON object.")

/**
 * Reads the body of a request.
 *
 * @param limit - the longest body in bytes, named in the error about one that is longer
 */
export const read = (
  { body, headers }: ApiRequest,
  limit: number,
): Result.Result<JsonObject, RequestError> => {
  switch (body._tag) {
    case "TooLarge":
      return Result.fail({ _tag: "PayloadTooLarge", limit })
    case "Consumed":
      return malformed("The body was read before it came to the API, and nothing of it was kept.")
    case "Unreadable":
      return Result.fail(body.error)
    case "Parsed": {
      // A host may parse other types as well, such as forms.
      const type = single(headers, "content-type")
      return type._tag === "Absent" || isJson(type) ? asObject(body.value) : unsupported(notJson)
    }
    case "Bytes": {
      if (body.bytes.length > limit) return Result.fail({ _tag: "PayloadTooLarge", limit })
      if (body.bytes.length === 0) return malformed("The request has no body.")
      const fault = mediaFault(headers)
      if (fault !== undefined) return unsupported(fault)
      const value = parse(body.bytes)
      return value === undefined ? malformed("The body is not valid JSON.") : asObject(value)
    }
  }
}

/** The value of an object's own field: nothing that it inherits. */
export const field = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined
