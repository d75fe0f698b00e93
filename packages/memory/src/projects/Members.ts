/** The end dates of a project's members, and what was announced of them. */

import * as Bulk from "@tenure/core/Bulk"
import type { EndDate } from "@tenure/core/EndDate"
import type { Announced } from "@tenure/core/Expiry"
import type { Dated, UserId } from "@tenure/core/Membership"

/** What a member has besides an end date. */
interface Watched {
  /** The last announcement of the member's end; `undefined` if there was none. */
  announced: Announced | undefined
  /** When to look at the member's end again, in milliseconds since the epoch; `undefined` for never. */
  alarm: number | undefined
}

/** The members of a project. */
export interface Members {
  readonly size: () => number
  /** Returns the number of changes so far, which is the sequence of the last one. */
  readonly changes: () => number
  /** Returns a member's current end date, or `undefined` if the user is no member. */
  readonly get: (userId: UserId) => EndDate | undefined
  readonly set: (userId: UserId, endDate: EndDate) => void
  /** Returns what a member has besides the end date, to be changed in place. */
  readonly watched: (userId: UserId) => Watched | undefined
  /** Extends all members, in constant time. */
  readonly extendAll: (mode: Bulk.Mode, endDate: EndDate) => void
  /** Returns the earliest of the dates that bulk extensions have set, if that is known. */
  readonly earliestBulk: () => EndDate | undefined
  readonly delete: (userId: UserId) => void
  /** Returns the number of members whose current end date passes a test. */
  readonly count: (test: (endDate: EndDate) => boolean) => number
  /** Returns the members whose current end date passes a test, in no particular order. */
  readonly select: (test: (endDate: EndDate) => boolean) => ReadonlyArray<Dated>
  /** Returns all user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
  /** Goes through all user ids, whoever joins or leaves meanwhile. */
  readonly userIds: () => Iterator<UserId, unknown>
}

/** A member's own date and what else the member has. */
interface Member extends Watched {
  placed: Bulk.Placed
}

// How many bulk extensions that never shorten are kept before they become members' own dates. Hardly
// anybody has more than one: each of them would have to set an earlier date than the one before.
const mostFloors = 32

/** Makes an empty set of members. */
export const make = (): Members => {
  const members = new Map<UserId, Member>()
  let bulk = Bulk.none
  let changes = 0
  let sorted: ReadonlyArray<UserId> | undefined

  const place = (endDate: EndDate): Bulk.Placed => ({ endDate, order: ++changes })

  const current = ({ placed }: Member): EndDate => Bulk.dateOf(bulk, placed)

  /** Makes what the bulk extensions have made of each date the member's own. */
  const settle = (): void => {
    for (const member of members.values()) {
      member.placed = { ...member.placed, endDate: current(member) }
    }
    bulk = Bulk.none
  }

  return {
    size: () => members.size,
    changes: () => changes,
    get: (userId) => {
      const member = members.get(userId)
      return member && current(member)
    },
    count: (test) => {
      let count = 0
      for (const member of members.values()) if (test(current(member))) count++
      return count
    },
    select: (test) => {
      const selected: Array<Dated> = []
      for (const [userId, member] of members) {
        const endDate = current(member)
        if (test(endDate)) selected.push({ userId, endDate })
      }
      return selected
    },
    set: (userId, endDate) => {
      const placed = place(endDate)
      const member = members.get(userId)
      if (member === undefined) {
        members.set(userId, { placed, announced: undefined, alarm: undefined })
        sorted = undefined
      } else {
        member.placed = placed
      }
    },
    watched: (userId) => members.get(userId),
    extendAll: (mode, endDate) => {
      bulk = Bulk.add(bulk, mode, place(endDate))
      if (bulk.floors.length > mostFloors) settle()
    },
    earliestBulk: () => Bulk.earliest(bulk),
    delete: (userId) => {
      if (members.delete(userId)) changes++
      sorted = undefined
    },
    sorted: () => {
      sorted ??= [...members.keys()].toSorted()
      return sorted
    },
    userIds: () => members.keys(),
  }
}
