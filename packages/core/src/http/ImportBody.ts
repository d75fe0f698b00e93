/** Reads the body of an import: a membership in each line. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as JsonText from "../base/JsonText.ts"
import { own } from "../base/Own.ts"
import * as EndDate from "../memberships/EndDate.ts"
import { type Input, maxMemberships } from "../memberships/Import.ts"
import { UserId } from "../memberships/Membership.ts"
import type { InvalidLines, LineFault } from "./ApiError.ts"
import * as ChangeBody from "./ChangeBody.ts"
import { parse } from "./RequestBody.ts"

// Enough to see what is wrong with all lines.
const mostFaults = 100

// About a millisecond.
const linesPerTurn = 1000

const fields = new Set(["user_id", "end_date"])

/** Reads a line. Returns what is wrong with it in place of a membership. */
const readLine = (line: string): Input | string => {
  const value = parse(line)
  if (!Predicate.isObject(value)) return "the line must be a JSON object"
  if (!Object.keys(value).every((field) => fields.has(field))) {
    return "the line must have no fields but user_id and end_date"
  }
  const fault = JsonText.faultOf(line)
  if (fault !== undefined) return fault.message
  const userId = own(value, "user_id")
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return `user_id must be ${UserId.expected}, as text`
  }
  const endDate = EndDate.parse(own(value, "end_date"))
  return endDate === undefined ? `end_date must be ${ChangeBody.endDates}` : { userId, endDate }
}

/** Splits text into lines, one more than there may be. White space at the end is no line. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.trimEnd().split("\n", maxMemberships + 1)

const fail = (...faults: InvalidLines["faults"]): Effect.Effect<never, InvalidLines> =>
  Effect.fail({ _tag: "InvalidLines", faults })

/**
 * Reads the memberships, in turns with whatever else the process does. Fails with what is wrong with
 * the lines, or with the first hundred of them.
 */
export const read = Effect.fnUntraced(function* (body: string) {
  const lines = linesOf(body)
  if (lines.length > maxMemberships) {
    return yield* fail({ line: lines.length, message: "an import must have at most 10,000 lines" })
  }
  const memberships: Array<Input> = []
  const lineByUser = new Map<string, number>()
  const faults: Array<LineFault> = []
  for (const [index, text] of lines.entries()) {
    if (index % linesPerTurn === 0) yield* Effect.yieldNow
    const line = index + 1
    const membership = readLine(text)
    if (typeof membership === "string") faults.push({ line, message: membership })
    else {
      const earlier = lineByUser.get(membership.userId)
      if (earlier !== undefined) {
        faults.push({ line, message: `user_id must not be that of line ${earlier}` })
      }
      lineByUser.set(membership.userId, earlier ?? line)
      memberships.push(membership)
    }
    if (faults.length === mostFaults) break
  }
  const [first, ...others] = faults
  return first === undefined ? memberships : yield* fail(first, ...others)
})
