/** Places in a list by end dates, and the texts of their cursors. */

import { EndingCursor } from "@tenure/core/EndingPage"
import { toMillis } from "../connection/results.ts"
import type { WalkRow } from "./walk.sql.ts"

/** A place in the index: the one of a membership that was the last. */
interface Last {
  /** The `ends_from`, in milliseconds since the epoch. */
  readonly from: number
  readonly userId: string
}

/** A place among the memberships whose bounds say when they end: by the end, and by user. */
interface OwnPlace extends Last {
  readonly _tag: "Own"
}

/** A place among those that have not changed since the last bulk extension, which end at its date. */
interface BulkPlace extends Last {
  readonly _tag: "Bulk"
  /** The `ends_seq`. */
  readonly seq: number
  /** The date, in milliseconds since the epoch. */
  readonly date: number
}

/** A place. */
export type Place = OwnPlace | BulkPlace

// The first instant of the year 0000.
const earliest = -62_167_219_200_000

const beginning = { from: earliest, userId: "" } as const

/** The place before all memberships. */
export const start: Place = { _tag: "Own", ...beginning }

/** Returns the text of a place. */
export const cursorOf = (place: Place): EndingCursor => {
  const { from, userId } = place
  switch (place._tag) {
    case "Own":
      return EndingCursor(`${from}.${userId}`)
    case "Bulk":
      return EndingCursor(`${place.date}.${userId}.${place.seq}.${from}`)
  }
}

/** Returns the place of a text. */
export const fromCursor = (cursor: EndingCursor): Place => {
  const [date, userId = "", seq, from] = cursor.split(".")
  return from === undefined
    ? { _tag: "Own", from: Number(date), userId }
    : { _tag: "Bulk", date: Number(date), seq: Number(seq), from: Number(from), userId }
}

/** Returns the place beyond the date of a bulk extension. */
const beyond = (date: number): Place => ({ _tag: "Own", from: date + 1, userId: "" })

/** Returns where to go on if nothing is left of the part of the list that a place is in, if there is more. */
const nextPart = (
  place: Place,
  bulkDate: number | undefined,
  before: number,
): Place | undefined => {
  if (place._tag === "Bulk") return beyond(place.date)
  return bulkDate === undefined || place.from > bulkDate || before <= bulkDate
    ? undefined
    : { _tag: "Bulk", ...beginning, seq: -1, date: bulkDate }
}

/** What a walk from a place has found. */
export interface Walked {
  readonly rows: ReadonlyArray<WalkRow>
  /** Where to go on; `undefined` at the end of the list. */
  readonly next: Place | undefined
}

/**
 * Decides what counts of the rows of a walk from a place, and where to go on.
 *
 * @param limit - the most memberships that it could return
 */
export const judge = (
  place: Place,
  [first, ...others]: readonly [WalkRow, ...ReadonlyArray<WalkRow>],
  { before, limit }: { readonly before: number; readonly limit: number },
): Walked => {
  const bulkDate = toMillis(first.bulk_date)
  // Another bulk extension has come in between: what was left of this one is behind it.
  if (place._tag === "Bulk" && (bulkDate !== place.date || before <= place.date)) {
    return { rows: [], next: beyond(place.date) }
  }
  const rows = [first, ...others].filter(({ user_id }) => user_id !== null)
  const last = rows.length === limit ? rows.at(-1) : undefined
  if (last === undefined && first.is_whole) return { rows, next: nextPart(place, bulkDate, before) }
  const at =
    last === undefined
      ? { seq: first.far_seq, from: first.far_from, userId: first.far_user }
      : {
          seq: last.ends_seq,
          from: place._tag === "Own" ? last.end_date : last.ends_from,
          userId: last.user_id,
        }
  if (at.userId === null) return { rows, next: place }
  const from = Number(at.from)
  return {
    rows,
    next:
      place._tag === "Own"
        ? { _tag: "Own", from, userId: at.userId }
        : { ...place, seq: Number(at.seq), from, userId: at.userId },
  }
}
