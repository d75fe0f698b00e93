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

  return {
    size: () => own.size,
    get: (userId) => {
      const date = own.get(userId)
      const isOverridden = date !== undefined && bulk !== undefined && bulk.order > date.order
      return isOverridden ? bulk?.endDate : date?.endDate
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
