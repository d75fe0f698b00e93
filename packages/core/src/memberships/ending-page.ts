/** Pages, positions and cursors of lists by end date. */

import type { Branded } from "effect/Brand"
import { brandedWhere } from "../base/values.ts"
import type { Membership } from "./membership.ts"

/**
 * A position in an ending list: an end date and a user id, and the store's own data to continue from
 * there.
 */
export type EndingCursor = Branded<string, "@tenure/core/EndingCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const EndingCursor = brandedWhere<string, EndingCursor>(
  "cursor",
  "a cursor of a list by end dates",
  (text) => /^(-\d{1,14}|\d{1,15})(\.-?\d{1,18}){0,2}\.[!-~]{0,128}$/u.test(text),
)

/** A page in an ending list. */
export interface EndingPage<Listed = Membership> {
  /** The memberships, soonest end first. */
  readonly memberships: ReadonlyArray<Listed>
  /** The next page's start; `undefined` on the last page. */
  readonly next: EndingCursor | undefined
}

/** A position in the order by end date and then by user id in code units. */
export interface EndingPosition {
  readonly endDate: number
  readonly userId: string
}

/** Compares two positions for sorting. */
export const comparePositions = (one: EndingPosition, other: EndingPosition): number =>
  one.endDate - other.endDate ||
  (one.userId < other.userId ? -1 : Number(one.userId > other.userId))

/** Returns a position's cursor. */
const cursorOfPosition = ({ endDate, userId }: EndingPosition): EndingCursor =>
  EndingCursor(`${endDate}.${userId}`)

/** Returns a cursor's position. */
export const positionOfCursor = (cursor: EndingCursor): EndingPosition => {
  const end = cursor.indexOf(".")
  return { endDate: Number(cursor.slice(0, end)), userId: cursor.slice(end + 1) }
}

/**
 * Creates a page from ordered memberships. If there is a next page, there is one more membership than
 * fits.
 */
export const endingPage = (memberships: ReadonlyArray<Membership>, limit: number): EndingPage => {
  const page = memberships.slice(0, limit)
  const last = memberships.length > limit ? page.at(-1) : undefined
  return { memberships: page, next: last && cursorOfPosition(last) }
}
