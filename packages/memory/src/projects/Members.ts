/** The end dates of a project's members. */

import * as Bulk from "@tenure/core/Bulk"
import type { EndDate } from "@tenure/core/EndDate"
import type { UserId } from "@tenure/core/Membership"

/** The members of a project. */
export interface Members {
  readonly size: () => number
  /** Returns a member's current end date, or `undefined` if the user is no member. */
  readonly get: (userId: UserId) => EndDate | undefined
  readonly set: (userId: UserId, endDate: EndDate) => void
  /** Extends all members, in constant time. */
  readonly extendAll: (mode: Bulk.Mode, endDate: EndDate) => void
  readonly delete: (userId: UserId) => void
  /** Returns the number of members whose current end date passes a test. */
  readonly count: (test: (endDate: EndDate) => boolean) => number
  /** Returns all user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
}

// How many bulk extensions that never shorten are kept before they become members' own dates. Hardly
// anybody has more than one: each of them would have to set an earlier date than the one before.
const mostFloors = 32

/** Makes an empty set of members. */
export const make = (): Members => {
  const own = new Map<UserId, Bulk.Placed>()
  let bulk = Bulk.none
  let changes = 0
  let sorted: ReadonlyArray<UserId> | undefined

  const placed = (endDate: EndDate): Bulk.Placed => ({ endDate, order: ++changes })

  const current = (date: Bulk.Placed): EndDate => Bulk.dateOf(bulk, date)

  /** Makes what the bulk extensions have made of each date the member's own. */
  const settle = (): void => {
    for (const [userId, date] of own) own.set(userId, { ...date, endDate: current(date) })
    bulk = Bulk.none
  }

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
      own.set(userId, placed(endDate))
    },
    extendAll: (mode, endDate) => {
      bulk = Bulk.add(bulk, mode, placed(endDate))
      if (bulk.floors.length > mostFloors) settle()
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
