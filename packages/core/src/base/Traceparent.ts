/** Trace contexts of the W3C: which trace a request is part of, as the header field `traceparent` says. */

import type { Branded } from "effect/Brand"
import { type HeaderFields, single } from "./HeaderFields.ts"
import { nominal } from "./Refined.ts"

/** A valid trace context of version 00. */
export type Traceparent = Branded<string, "@tenure/core/Traceparent">

const brand = nominal<string, Traceparent>()

// Ids of zeros alone are invalid. Later versions may have more at the end.
const format =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]([0-9a-f])(-.*)?$/

/** Describes a valid one. */
export const expected = "a trace context as W3C's traceparent has it"

/** Reads a trace context. Returns `undefined` if it is invalid. */
export const parse = (text: string): Traceparent | undefined => {
  // The longest that a later version may be expected to have.
  const found = text.length <= 255 ? format.exec(text) : null
  if (found === null) return undefined
  const [, version, traceId, parentId, flags = "", rest] = found
  if (version === "00" && rest !== undefined) return undefined
  const sampled = Number.parseInt(flags, 16) & 1
  return brand(`00-${traceId}-${parentId}-0${sampled}`)
}

/** What a trace context names: a span. */
export interface Place {
  readonly traceId: string
  readonly spanId: string
  /** Whether the trace is recorded. */
  readonly sampled: boolean
}

/** Returns what a trace context names. */
export const placeOf = (traceparent: Traceparent): Place => {
  const [, traceId = "", spanId = "", flags] = traceparent.split("-")
  return { traceId, spanId, sampled: flags === "01" }
}

/** Writes the trace context of a span. Returns `undefined` if its ids are invalid. */
export const of = ({ sampled, spanId, traceId }: Place): Traceparent | undefined =>
  parse(`00-${traceId}-${spanId}-0${Number(sampled)}`)

/** Reads the trace context of a request. Ignores one that is invalid or repeated. */
export const ofHeaders = (headers: HeaderFields): Traceparent | undefined => {
  const field = single(headers, "traceparent")
  return field._tag === "Value" ? parse(field.value) : undefined
}
