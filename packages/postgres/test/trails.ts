/** Trails of changes that may concern a membership. */

import { UserId } from "@tenure/core/store"
import fc from "fast-check"

/** The user of the membership. */
export const userId = UserId("7")

const actions = ["granted", "extended", "ended", "bulk_extended", "bulk_lengthened"] as const

/** A row of the trail, with dates as days. */
interface TrailRow {
  readonly user_id: string | null
  readonly seq: number
  readonly action: (typeof actions)[number]
  readonly from_date: number | null
  readonly to_date: number | null
}

/** Changes in order, each with the day of a date that it may set. */
export type Changes = ReadonlyArray<readonly [action: TrailRow["action"], day: number]>

/** What changes do one after another to a membership that does not exist at first. */
export const trailOf = (changes: Changes) => {
  const rows: Array<TrailRow> = []
  let date: number | null = null
  let seq = 0
  for (const [action, day] of changes) {
    const isBulk = action === "bulk_extended" || action === "bulk_lengthened"
    // Somebody who is no member can only be granted a membership.
    if (!isBulk && action !== "granted" && date === null) continue
    if (action === "bulk_extended") seq++
    const to = action === "ended" ? null : day
    const row = { user_id: isBulk ? null : userId, seq, action, to_date: to }
    rows.push({ ...row, from_date: isBulk ? null : date })
    const isLonger = action !== "bulk_lengthened" || (date !== null && date < day)
    if (!isBulk || (date !== null && isLonger)) date = to
  }
  return { rows, isMember: date !== null }
}

/** A change, from several of which a trail is made. */
export const change = fc.tuple(fc.constantFrom(...actions), fc.integer({ min: 1, max: 4 }))
