/** Reads request bodies: a JSON object, or text with JSON on each line. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { InvalidInput } from "../base/errors.ts"
import { type HeaderFields, type Single, singleHeader } from "../base/headers.ts"
import { faultOfJson, repeatedFields } from "../base/json-text.ts"
import type { ArrivedBody } from "./request.ts"
import { type Outcome, failOutcome } from "./response.ts"

/** A JSON object. Read its own properties only, with `own`. */
export type JsonObject = Readonly<Record<string, unknown>>

/** The expected body. */
export interface BodyFormat<A> {
  readonly mediaType: string
  /** The content types with this media type. A charset has no meaning for JSON (RFC 8259, 11). */
  readonly contentType: RegExp
  /** Reads a request without a body. */
  readonly fromNothing: () => Outcome<A>
  readonly fromBytes: (bytes: Uint8Array) => Outcome<A>
  /** Reads a value already parsed by the host. */
  readonly fromValue: (value: unknown) => Outcome<A>
}

// The body must be UTF-8 (RFC 8259, 8.1). A byte order mark is ignored.
const requestBodyUtf8 = new TextDecoder("utf-8", { fatal: true })

const requestBodyMalformed = (message: string): Outcome<never> =>
  failOutcome({ _tag: "MalformedRequest", message })

const unsupported = (message: string): Outcome<never> =>
  failOutcome({ _tag: "UnsupportedMediaType", message })

/** Decodes UTF-8. Returns `undefined` if the bytes are none. */
const requestBodyDecode = (bytes: Uint8Array): string | undefined => {
  try {
    return requestBodyUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Parses JSON. Returns `undefined` if the text is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const asObject = (value: unknown): Outcome<JsonObject> =>
  Predicate.isObject(value)
    ? Result.succeed(value)
    : requestBodyMalformed("The body must be a JSON object.")

const objectWithout = (
  faultOf: (text: string) => InvalidInput | undefined,
): BodyFormat<JsonObject> => ({
  mediaType: "application/json",
  contentType: /^application\/json[ \t]*(;|$)/i,
  fromNothing: () => requestBodyMalformed("The request has no body."),
  fromBytes: (bytes) => {
    const text = requestBodyDecode(bytes)
    const value = text === undefined ? undefined : parseJson(text)
    if (text === undefined || value === undefined)
      return requestBodyMalformed("The body is not valid JSON.")
    const fault = Predicate.isObject(value) ? faultOf(text) : undefined
    return fault === undefined ? asObject(value) : Result.fail(fault)
  },
  fromValue: asObject,
})

/** A JSON object that parsing does not change. */
export const jsonObject = objectWithout(faultOfJson)

/** The same, or nothing. */
export const optionalObject: BodyFormat<JsonObject> = {
  ...jsonObject,
  fromNothing: () => Result.succeed({}),
}

// The body in nearly all extensions.
const singleField = /^\s*\{\s*"\w+"\s*:\s*(?:"[^"\\]*"|\d+)\s*\}\s*$/

/**
 * A JSON object with only some fields read. These must not be duplicate; others may contain anything,
 * because the contract allows them.
 */
export const objectWith = (...fields: ReadonlyArray<string>): BodyFormat<JsonObject> =>
  objectWithout((text) => (singleField.test(text) ? undefined : repeatedFields(text, fields)))

/** Text with JSON in each line. */
export const jsonLines: BodyFormat<string> = {
  mediaType: "application/x-ndjson",
  contentType: /^application\/x-ndjson[ \t]*(;|$)/i,
  fromNothing: () => Result.succeed(""),
  fromBytes: (bytes) => {
    const text = requestBodyDecode(bytes)
    return text === undefined
      ? requestBodyMalformed("The body is not valid UTF-8.")
      : Result.succeed(text)
  },
  fromValue: () =>
    requestBodyMalformed(
      "The body was parsed before it came to the API, which takes it as text or bytes.",
    ),
}

const hasType = ({ contentType }: BodyFormat<unknown>, type: Single): boolean =>
  type._tag === "Value" && contentType.test(type.value)

const wrongType = ({ mediaType }: BodyFormat<unknown>): string =>
  `The content type must be ${mediaType}.`

const isEncoded = (headers: HeaderFields): boolean => {
  const encoding = singleHeader(headers, "content-encoding")
  return (
    encoding._tag === "Repeated" ||
    (encoding._tag === "Value" && !/^identity$/i.test(encoding.value))
  )
}

/**
 * Returns the problem with a body according to its header fields, or `undefined` for one in the format.
 *
 * @param isRead - whether the host has read the body: a body it made itself may have no type
 */
const mediaFault = (
  headers: HeaderFields,
  format: BodyFormat<unknown>,
  isRead: boolean,
): string | undefined => {
  if (isEncoded(headers)) return "The body must be sent without a content encoding."
  const type = singleHeader(headers, "content-type")
  return hasType(format, type) || (isRead && type._tag === "Absent") ? undefined : wrongType(format)
}

/** Reads a body already read by the host, if its header fields allow it. */
const ofHost = <A>(
  headers: HeaderFields,
  format: BodyFormat<A>,
  read: () => Outcome<A>,
): Outcome<A> => {
  const fault = mediaFault(headers, format, true)
  return fault === undefined ? read() : unsupported(fault)
}

/**
 * Reads a request's body.
 *
 * @param limit - the longest body, in bytes
 */
export const readBodyAs = <A>(
  body: ArrivedBody,
  headers: HeaderFields,
  limit: number,
  format: BodyFormat<A>,
): Outcome<A> => {
  switch (body._tag) {
    case "TooLarge":
      return failOutcome({ _tag: "PayloadTooLarge", limit })
    case "Consumed":
      return ofHost(headers, format, () =>
        requestBodyMalformed(
          "The body was read before it came to the API, and nothing of it was kept.",
        ),
      )
    case "Unreadable":
      return failOutcome(body.error)
    case "Parsed":
      return ofHost(headers, format, () => format.fromValue(body.value))
    case "Bytes": {
      if (body.bytes.length > limit) return failOutcome({ _tag: "PayloadTooLarge", limit })
      if (body.bytes.length === 0) return format.fromNothing()
      const fault = mediaFault(headers, format, false)
      return fault === undefined ? format.fromBytes(body.bytes) : unsupported(fault)
    }
  }
}
