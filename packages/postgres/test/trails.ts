/** Trails with changes that may concern a membership. */

import { UserId } from "@tenure/core/store"
import fc from "fast-check"

/** The membership's user. */
export const userId = UserId("7")

const actions = [
  "granted",
  "extended",
  "expired",
  "ended",
  "bulk_extended",
  "bulk_lengthened",
  "bulk_extended_by",
  "bulk_undone",
] as const

/** A trail row, with dates as days. */
interface TrailRow {
  readonly user_id: string | null
  readonly subject: string | null
  readonly seq: number
  readonly action: (typeof actions)[number]
  readonly from_date: number | null
  readonly to_date: number | null
  readonly extend_by: number | null
}

/** Changes in order, each with a number: a date's day, how many days, or which bulk extension is undone. */
export type Changes = ReadonlyArray<readonly [action: TrailRow["action"], number: number]>

/** What changes do one after another to a membership that does not exist at first. */
export const trailOf = (changes: Changes) => {
  const rows: Array<TrailRow> = []
  const bulk: Array<string> = []
  let isMember = false
  let seq = 0
  for (const [action, number] of changes) {
    const isBulk = action.startsWith("bulk_")
    // Somebody who is no member can only be granted a membership.
    if (!isBulk && action !== "granted" && !isMember) continue
    const undone = bulk.at(-number)
    if (action === "bulk_undone" && undone === undefined) continue
    if (isBulk) seq++
    const isUndo = action === "bulk_undone"
    const subject = isUndo ? (undone ?? null) : `bulk ${rows.length}`
    if (isBulk && !isUndo) bulk.push(`bulk ${rows.length}`)
    rows.push({
      user_id: isBulk ? null : userId,
      subject: isBulk ? subject : null,
      seq,
      action,
      // Only whether there was a membership counts.
      from_date: !isBulk && isMember ? 0 : null,
      to_date: isUndo || action === "ended" || action === "bulk_extended_by" ? null : number,
      extend_by: action === "bulk_extended_by" ? number : null,
    })
    if (!isBulk) isMember = action !== "ended"
  }
  return { rows, isMember }
}

/** A change in a trail. */
export const change = fc.tuple(fc.constantFrom(...actions), fc.integer({ min: 1, max: 4 }))
