/** Reads which media types a client accepts (RFC 9110, 12.5.1). */

import { type HeaderFields } from "../base/HeaderFields.ts"

/** The media type of a stream of events. */
export const eventStream = "text/event-stream"

/** A range of media types, and how much the client wants them: 0 for not at all, up to 1. */
interface Range {
  readonly type: string
  readonly weight: number
}

const rangeOf = (element: string): Range => {
  const [type = "", ...parameters] = element.split(";").map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith("q="))
  return { type, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
}

const rangesOf = (headers: HeaderFields): ReadonlyArray<Range> => {
  const field = Object.hasOwn(headers, "accept") ? headers["accept"] : undefined
  const values = typeof field === "string" ? [field] : (field ?? [])
  return values.flatMap((value) => value.split(",")).map(rangeOf)
}

/** Returns the weight of the most specific of the ranges that are given, which end with that of all. */
const weightOf = (ranges: ReadonlyArray<Range>, ...types: ReadonlyArray<string>): number =>
  types.flatMap((type) => ranges.find((range) => range.type === type) ?? [])[0]?.weight ?? 0

/**
 * Tells whether a client asks for a stream of events rather than for JSON. It has to name the media type:
 * a client that accepts everything gets JSON.
 */
export const prefersEvents = (headers: HeaderFields): boolean => {
  const ranges = rangesOf(headers)
  const names = (type: string): boolean => ranges.some((range) => range.type === type)
  if (!names(eventStream)) return false
  const events = weightOf(ranges, eventStream)
  const json = weightOf(ranges, "application/json", "application/*", "*/*")
  return events > json || (events > 0 && events === json && !names("application/json"))
}
