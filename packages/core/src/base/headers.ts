/** HTTP header fields as hosts pass them, and the trace context in `traceparent` (W3C). */

import type { Branded } from "effect/Brand"
import { branded } from "./values.ts"

/** Header fields by lower-case name. A repeated field is an array, if the host keeps the values apart. */
export type HeaderFields = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** Header fields as hosts keep them: with names in any case, also in a `Map` or `Headers`. */
export type HostHeaders = HeaderFields | Iterable<readonly [string, HeaderFields[string]]>

const isIterable = (
  headers: HostHeaders,
): headers is Iterable<readonly [string, HeaderFields[string]]> => Symbol.iterator in headers

/** Returns header fields by lower-case name. Names differing only in case are one repeated field. */
export const readHeaderFields = (headers: HostHeaders): HeaderFields => {
  if (!isIterable(headers) && !Object.keys(headers).some((name) => /[A-Z]/.test(name))) {
    return headers
  }
  const fields: Record<string, Array<string>> = Object.create(null)
  for (const entry of isIterable(headers) ? headers : Object.entries(headers)) {
    const [name, value = []] = Array.isArray(entry) ? entry : []
    if (typeof name !== "string") continue
    const values = (fields[name.toLowerCase()] ??= [])
    values.push(...[value].flat())
  }
  return fields
}

/** A header field allowed at most once. */
export type Single =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Repeated" }
  | { readonly _tag: "Value"; readonly value: string }

const absent: Single = { _tag: "Absent" }
const repeated: Single = { _tag: "Repeated" }

/** Reads a field allowed at most once. Inherited fields and values other than text do not count. */
export const singleHeader = (headers: HeaderFields, name: string): Single => {
  const field = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (typeof field === "string") return { _tag: "Value", value: field }
  if (!Array.isArray(field) || field.length === 0) return absent
  if (field.length > 1) return repeated
  const [value] = field
  return typeof value === "string" ? { _tag: "Value", value } : absent
}

/**
 * Returns all values in a field.
 *
 * @param rawHeaders - the fields as they were sent: names and values in turns
 * @param name - the field name in lower case
 */
export const headerValues = (
  rawHeaders: ReadonlyArray<string>,
  name: string,
): ReadonlyArray<string> => {
  const values: Array<string> = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [field, value] = [rawHeaders[index], rawHeaders[index + 1]]
    if (field?.length !== name.length || field.toLowerCase() !== name) continue
    if (value !== undefined) values.push(value)
  }
  return values
}

/**
 * Restores repeated `Authorization` and `Content-Type` fields in a host's headers, because the host
 * keeps only the first value.
 *
 * @param rawHeaders - the fields as they were sent: names and values in turns
 */
export const keepRepeatedHeaders = (
  headers: HeaderFields,
  rawHeaders: ReadonlyArray<string>,
): HeaderFields => {
  const authorization = headerValues(rawHeaders, "authorization")
  const contentType = headerValues(rawHeaders, "content-type")
  return authorization.length > 1 || contentType.length > 1
    ? { ...headers, authorization, "content-type": contentType }
    : headers
}

/** A valid trace context, version 00. */
export type Traceparent = Branded<string, "@tenure/core/Traceparent">

const brand = branded<string, Traceparent>()

// Ids with only zeros are invalid. Later versions may have more at the end.
const format =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]([0-9a-f])(-.*)?$/

/** Describes a valid one. */
export const traceparentFormat = "a trace context as W3C's traceparent has it"

/** Reads a trace context. Returns `undefined` if it is invalid. */
export const parseTraceparent = (text: string): Traceparent | undefined => {
  // The greatest length expected from a later version.
  const found = text.length <= 255 ? format.exec(text) : null
  if (found === null) return undefined
  const [, version, traceId, parentId, flags = "", rest] = found
  if (version === "00" && rest !== undefined) return undefined
  const sampled = Number.parseInt(flags, 16) & 1
  return brand(`00-${traceId}-${parentId}-0${sampled}`)
}

/** The span named by a trace context. */
export interface SpanContext {
  readonly traceId: string
  readonly spanId: string
  /** Whether the trace is recorded. */
  readonly sampled: boolean
}

/** Returns the span named by a trace context. */
export const spanContextOf = (traceparent: Traceparent): SpanContext => {
  const [, traceId = "", spanId = "", flags] = traceparent.split("-")
  return { traceId, spanId, sampled: flags === "01" }
}

/** Writes a span's trace context. Returns `undefined` if its ids are invalid. */
export const nextTraceparent = ({
  sampled,
  spanId,
  traceId,
}: SpanContext): Traceparent | undefined =>
  parseTraceparent(`00-${traceId}-${spanId}-0${Number(sampled)}`)

/** Reads a request's trace context. Ignores an invalid or repeated one. */
export const traceparentOfHeaders = (headers: HeaderFields): Traceparent | undefined => {
  const field = singleHeader(headers, "traceparent")
  return field._tag === "Value" ? parseTraceparent(field.value) : undefined
}
