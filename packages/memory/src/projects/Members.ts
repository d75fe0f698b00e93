/** The end dates of a project's members. */

import type { EndDate } from "@tenure/core/EndDate"
import type { UserId } from "@tenure/core/Membership"

/** The members of a project. */
export interface Members {
  readonly size: () => number
  /** Returns a member's current end date, or `undefined` if the user is no member. */
  readonly get: (userId: UserId) => EndDate | undefined
  readonly set: (userId: UserId, endDate: EndDate) => void
  /** Sets the end date of all members, in constant time. */
  readonly setAll: (endDate: EndDate) => void
  readonly delete: (userId: UserId) => void
  /** Returns the number of members whose current end date passes a test. */
  readonly count: (test: (endDate: EndDate) => boolean) => number
  /** Returns all user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
}

interface Dated {
  readonly endDate: EndDate
  /** The position among all changes: a bulk change overrides the dates that were set before it. */
  readonly order: number
}

/** Makes an empty set of members. */
export const make = (): Members => {
  const own = new Map<UserId, Dated>()
  let bulk: Dated | undefined
  let changes = 0
  let sorted: ReadonlyArray<UserId> | undefined

  const dated = (endDate: EndDate): Dated => ({ endDate, order: ++changes })

  /** Returns the date that holds: the member's own, or that of a later bulk change. */
  const current = (date: Dated): EndDate =>
    bulk !== undefined && bulk.order > date.order ? bulk.endDate : date.endDate

  return {
    size: () => own.size,
    get: (userId) => {
      const date = own.get(userId)
      return date && current(date)
    },
    count: (test) => {
      let count = 0
      for (const date of own.values()) if (test(current(date))) count++
      return count
    },
    set: (userId, endDate) => {
      if (!own.has(userId)) sorted = undefined
      own.set(userId, dated(endDate))
    },
    setAll: (endDate) => {
      bulk = dated(endDate)
    },
    delete: (userId) => {
      own.delete(userId)
      sorted = undefined
    },
    sorted: () => {
      sorted ??= [...own.keys()].toSorted()
      return sorted
    },
  }
}
