/** An audit trail. */

import { changesOf } from "@tenure/core/History"
import { AuditCursor, type AuditRow, type UserId } from "@tenure/core/Membership"
import * as Ring from "../collections/Ring.ts"

/** The newest rows of a trail. */
export interface Trail {
  readonly rows: Ring.Ring<AuditRow>
  /** How many rows were added. */
  count: number
}

/** Makes an empty trail that keeps `capacity` rows. */
export const make = (capacity: number): Trail => ({ rows: Ring.make(capacity), count: 0 })

const cursorOf = (number: number): AuditCursor => AuditCursor(`0.${number}`)

const numberOf = (cursor: AuditCursor): number => Number(cursor.slice(2))

/** Adds a row. */
export const add = (trail: Trail, row: Omit<AuditRow, "cursor">): void => {
  trail.rows.push({ ...row, cursor: cursorOf(++trail.count) })
}

/** Returns a page of a trail, newest first; with a user, only changes of this one's membership. */
export const page = (
  { rows }: Trail,
  user: { readonly id: UserId; readonly isMember: boolean } | undefined,
  { after, limit }: { readonly after?: AuditCursor | undefined; readonly limit: number },
): ReadonlyArray<AuditRow> => {
  const all = [...rows.newestFirst()].toReversed()
  const found = user === undefined ? all : changesOf(all, user.id, user.isMember)
  const end = after === undefined ? Infinity : numberOf(after)
  return found
    .filter(({ cursor }) => numberOf(cursor) < end)
    .toReversed()
    .slice(0, limit)
}
