/** Lists of the memberships that end before some time, by their ends. */

import type { Branded } from "effect/Brand"
import { refined } from "../base/Refined.ts"
import type { Membership } from "./Membership.ts"

/** A place in such a list: an end date and a user id, and what else the store needs to go on from there. */
export type EndingCursor = Branded<string, "@tenure/core/EndingCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const EndingCursor = refined<string, EndingCursor>(
  "cursor",
  "a cursor of a list by end dates",
  (text) => /^(-\d{1,14}|\d{1,15})\.\d{0,64}(\.-?\d{1,18}){0,3}(\.\d{0,64})?$/u.test(text),
)

/** A page of memberships, by their ends. */
export interface EndingPage<Listed = Membership> {
  readonly memberships: ReadonlyArray<Listed>
  /** Where the next page begins; `undefined` if there is none. */
  readonly next: EndingCursor | undefined
}

/** A place in the order of end dates and, among the same ones, of user ids by code unit. */
export interface Place {
  readonly endDate: number
  readonly userId: string
}

/** Compares two places, as functions that sort expect it. */
export const compare = (one: Place, other: Place): number =>
  one.endDate - other.endDate ||
  (one.userId < other.userId ? -1 : Number(one.userId > other.userId))

/** Returns the cursor of a place. */
export const cursorOf = ({ endDate, userId }: Place): EndingCursor =>
  EndingCursor(`${endDate}.${userId}`)

/** Returns the place of a cursor. */
export const placeOf = (cursor: EndingCursor): Place => {
  const [endDate, userId = ""] = cursor.split(".")
  return { endDate: Number(endDate), userId }
}

/**
 * Makes a page of memberships in this order, of which there is one more than the page may have if there is a
 * next page.
 */
export const of = (memberships: ReadonlyArray<Membership>, limit: number): EndingPage => {
  const page = memberships.slice(0, limit)
  const last = memberships.length > limit ? page.at(-1) : undefined
  return { memberships: page, next: last && cursorOf(last) }
}
