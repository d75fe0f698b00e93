/** Places in a list by end dates, and the texts of their cursors. */

import { EndingCursor } from "@tenure/core/EndingPage"
import { toMillis } from "../connection/results.ts"
import type { WalkRow } from "./walk.sql.ts"

/** A place in an order of dates, and of users among the same ones. */
interface Dated {
  /** In milliseconds since the epoch. */
  readonly from: number
  readonly userId: string
}

/** A place among the memberships whose bounds say when they end: by the end, and by user. */
export interface OwnPlace extends Dated {
  readonly _tag: "Own"
  /** Members with a smaller `ends_seq` are no longer looked for: they are listed, or were given places of their own. */
  readonly passed: number
}

/** A place in the index among those that have not changed since a bulk extension. */
interface Older extends Dated {
  /** The `ends_seq`. */
  readonly seq: number
  /** The `ends_seq` at which the walk ends: the `bulk_seq` when it began. */
  readonly upTo: number
}

/** A place among those that may end at the date of the last bulk extension, and are listed if they do. */
export interface BulkPlace extends Older {
  readonly _tag: "Bulk"
  /** The date, in milliseconds since the epoch. */
  readonly date: number
}

/**
 * A place among those that another bulk extension, to a date that the list has passed, has taken from their places.
 * Those that end later are given new ones.
 */
export interface SortPlace extends Older {
  readonly _tag: "Sort"
  /** The place in the list, where it goes on afterwards. */
  readonly at: Dated
}

/** A place. */
export type Place = OwnPlace | BulkPlace | SortPlace

// The first instants of the years 0000 and 10000: no end date, and no bound, is before or after.
const earliest = -62_167_219_200_000
const latest = 253_402_300_800_000

const beginning: Dated = { from: earliest, userId: "" }

// Less than every `ends_seq`, and more.
const none = -1
const beyondSeqs = 1e17

/** The place before all memberships. */
export const start: Place = { _tag: "Own", ...beginning, passed: none }

/** Returns the text of a place. */
export const cursorOf = (place: Place): EndingCursor => {
  const { from, userId } = place
  switch (place._tag) {
    case "Own":
      return EndingCursor(`${from}.${userId}.${place.passed}`)
    case "Bulk":
      return EndingCursor(`${place.date}.${userId}.${place.seq}.${from}.${place.upTo}`)
    case "Sort": {
      const { at } = place
      return EndingCursor(`${at.from}.${at.userId}.${place.seq}.${from}.${place.upTo}.${userId}`)
    }
  }
}

// A cursor may come from anybody, so what it says is brought into the range that a place can have.
const within = (least: number, text: string, most: number): number =>
  Math.min(Math.max(Number(text), least), most)

const instantOf = (text: string): number => within(earliest, text, latest)

const seqOf = (text = String(none)): number => within(none, text, beyondSeqs)

/** Returns the place of a text. */
export const fromCursor = (cursor: EndingCursor): Place => {
  const [date = "", one = "", seq, from, upTo, other] = cursor.split(".")
  const first: Dated = { from: instantOf(date), userId: one }
  if (from === undefined) return { _tag: "Own", ...first, passed: seqOf(seq) }
  const older = { from: instantOf(from), seq: seqOf(seq), upTo: seqOf(upTo) }
  return other === undefined
    ? { _tag: "Bulk", ...older, userId: one, date: first.from }
    : { _tag: "Sort", ...older, userId: other, at: first }
}

/** Returns where in the order of ends the list goes on after older members. */
export const goalOf = (place: BulkPlace | SortPlace): Dated =>
  place._tag === "Bulk" ? { from: place.date + 1, userId: "" } : place.at

const after = (place: BulkPlace | SortPlace, passed: number): Place => ({
  _tag: "Own",
  ...goalOf(place),
  passed,
})

/** What a walk knows of the project. */
interface Bulk {
  readonly seq: number
  /** The date of the last bulk extension, in milliseconds since the epoch. */
  readonly date: number | undefined
}

/** Returns where to go on if nothing is left of the part of the list that a place is in, if there is more. */
const nextPart = (place: Place, { date, seq }: Bulk, before: number): Place | undefined => {
  if (place._tag !== "Own") return after(place, place.upTo)
  return date === undefined || place.passed === seq || before <= date
    ? undefined
    : { _tag: "Bulk", ...beginning, seq: place.passed, upTo: seq, date }
}

/** What a walk from a place has found. */
export interface Walked {
  readonly rows: ReadonlyArray<WalkRow>
  /** Where to go on; `undefined` at the end of the list. */
  readonly next: Place | undefined
}

/** Returns where to go on if a bulk extension has made what a walk from a place found useless. */
const elsewhere = (place: Place, { date, seq }: Bulk, before: number): Place | undefined => {
  switch (place._tag) {
    case "Own": {
      if (date === undefined || place.passed === seq || date >= place.from) return undefined
      const { from, passed, userId } = place
      return { _tag: "Sort", ...beginning, seq: passed, upTo: seq, at: { from, userId } }
    }
    case "Bulk":
      // What was left of them ends later now.
      return date === undefined || date > place.date || before <= place.date
        ? after(place, none)
        : undefined
    case "Sort":
      return undefined
  }
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
  const bulk = { seq: Number(first.bulk_seq), date: toMillis(first.bulk_date) }
  const other = elsewhere(place, bulk, before)
  if (other !== undefined) return { rows: [], next: other }
  const rows = [first, ...others].filter(({ user_id }) => user_id !== null)
  const last = rows.length === limit ? rows.at(-1) : undefined
  if (last === undefined && first.is_whole) return { rows, next: nextPart(place, bulk, before) }
  const at =
    last === undefined
      ? { seq: first.far_seq, from: first.far_from, userId: first.far_user }
      : {
          seq: last.ends_seq,
          from: place._tag === "Own" ? last.end_date : last.ends_from,
          userId: last.user_id,
        }
  if (at.userId === null) return { rows, next: place }
  const dated = { from: Number(at.from), userId: at.userId }
  return {
    rows,
    next:
      place._tag === "Own" ? { ...place, ...dated } : { ...place, ...dated, seq: Number(at.seq) },
  }
}
