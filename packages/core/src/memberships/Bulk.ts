/** The end dates of members after bulk extensions, which change no member's own date. */

import type { EndDate } from "./EndDate.ts"

/** How a bulk extension treats memberships that end later: it sets them, too, or leaves them as they are. */
export const modes = ["set", "neverShorten"] as const

/** How a bulk extension treats memberships that end later. */
export type Mode = (typeof modes)[number]

/** The modes as JSON has them. */
export const modeNames = {
  set: "set",
  neverShorten: "never_shorten",
} as const satisfies Record<Mode, string>

/** An end date, and its place among all that were set in the project: later ones are greater. */
export interface Placed {
  readonly endDate: EndDate
  readonly order: number
}

/** The bulk extensions of a project that matter for the end dates of its members. */
export interface Bulk {
  /** The last one that set every membership. */
  readonly set: Placed | undefined
  /**
   * Those since then that left later dates as they were, oldest first. Each has an earlier date than the
   * one before: others make no difference. So of those after a member's date, the first has the latest date.
   */
  readonly floors: ReadonlyArray<Placed>
}

/** No bulk extensions. */
export const none: Bulk = { set: undefined, floors: [] }

/** Adds a bulk extension, which comes after all others. */
export const add = ({ floors, set }: Bulk, mode: Mode, placed: Placed): Bulk => {
  switch (mode) {
    case "set":
      return { set: placed, floors: [] }
    case "neverShorten":
      return { set, floors: [...floors.filter((one) => one.endDate > placed.endDate), placed] }
  }
}

/** Returns the earliest of the dates that members may have by bulk extensions, if there is one. */
export const earliest = ({ floors, set }: Bulk): EndDate | undefined =>
  // Each floor has an earlier date than the one before.
  [set, floors.at(-1)].reduce<Placed | undefined>(
    (one, other) => (one === undefined || (other && other.endDate < one.endDate) ? other : one),
    undefined,
  )?.endDate

/** Returns the end date of a member. */
export const dateOf = ({ floors, set }: Bulk, own: Placed): EndDate => {
  const base = set !== undefined && set.order > own.order ? set : own
  const floor = floors.find(({ order }) => order > base.order)
  return floor !== undefined && floor.endDate > base.endDate ? floor.endDate : base.endDate
}
