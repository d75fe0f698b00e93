/** The lines of a file with members: which of them are members, and what is wrong with the others. */

import { UserId } from "@tenure/core/Membership"
import * as Predicate from "effect/Predicate"
import * as dates from "../../input/dates.ts"
import { parseExact } from "../../input/json.ts"

/** A line that can be sent. */
export interface Member {
  readonly _tag: "Member"
  /** The number of the line in the file; the first one is 1. */
  readonly line: number
  readonly user_id: string
  readonly end_date: string
}

/** A line that is refused, with its text or fields. */
export interface Refused {
  readonly _tag: "Refused"
  readonly line: number
  readonly problem: string
  readonly given: unknown
}

/** A line. */
export type Line = Member | Refused

// A number that is no safe integer may have been rounded: another user's id.
const asText = (value: unknown): string => {
  if (Number.isSafeInteger(value)) return String(value)
  return typeof value === "string" ? value.trim() : ""
}

/** Judges the fields of a line. Fields with other names are left out. */
export const ofFields = (line: number, given: unknown): Line => {
  const refuse = (problem: string): Refused => ({ _tag: "Refused", line, problem, given })
  if (!Predicate.isObject(given)) return refuse("it must be a JSON object")
  const user_id = asText(Reflect.get(given, "user_id"))
  if (!UserId.is(user_id)) return refuse(`user_id must be ${UserId.expected}`)
  const end_date = dates.toIso(asText(Reflect.get(given, "end_date")))
  return end_date === undefined
    ? refuse(`end_date must be a date: ${dates.expected}`)
    : { _tag: "Member", line, user_id, end_date }
}

/** Judges a line of JSON. */
export const ofJson = (line: number, text: string): Line => {
  try {
    return ofFields(line, parseExact(text))
  } catch {
    return { _tag: "Refused", line, problem: "it must be JSON", given: text }
  }
}
