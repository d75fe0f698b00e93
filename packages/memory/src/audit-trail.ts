/** Audit trails in memory. */

import { type Ring, makeRing } from "@tenure/core/internal"
import {
  type ApiKeyId,
  AuditCursor,
  type AuditRow,
  type Extended,
  type RecordedState,
  type UserId,
  changesOfUser,
  type TimeZone,
  dayOf,
  extendingActions,
} from "@tenure/core/store"

/** A row; its cursor is known by how many rows were added after it, and the name by the key. */
interface Row extends Omit<AuditRow, "cursor" | "keyName"> {
  /** As in a `RecordedChange`. */
  readonly state?: RecordedState | undefined
}

/** A trail's newest rows. */
export interface AuditTrail {
  /** Its number: no other trail has it, also if its project was deleted and created again. */
  readonly number: number
  readonly rows: Ring<Row>
  /** How many rows were added. */
  count: number
}

/** Creates an empty trail for `capacity` rows. */
export const makeAuditTrail = (number: number, capacity: number): AuditTrail => ({
  number,
  rows: makeRing(capacity),
  count: 0,
})

/** Returns a row's position in a trail; 0, before the first row, for an unknown cursor. */
const placeOf = ({ count, number }: AuditTrail, cursor: AuditCursor): number => {
  const [trail, place = 0] = cursor.split(".").map(Number)
  return trail === number && place <= count ? place : 0
}

// Reading so many takes a few milliseconds.
const maxCounted = 100_000

/** Counts the extended memberships by day in a time zone, from the first day on whose rows are all kept and read. */
export const countExtended = ({ count, rows }: AuditTrail, timeZone: TimeZone): Extended => {
  const byDay = new Map<number, number>()
  let read = 0
  let oldest = -Infinity
  for (const { action, at } of rows.newestFirst()) {
    if (read === maxCounted) break
    read++
    oldest = dayOf(at, timeZone)
    if (extendingActions.has(action)) byDay.set(oldest, (byDay.get(oldest) ?? 0) + 1)
  }
  return { byDay, knownFrom: read < count ? oldest + 1 : -Infinity }
}

/** Adds a row. */
export const addRow = (trail: AuditTrail, row: Row): void => {
  trail.rows.push(row)
  trail.count++
}

/**
 * Returns a page from a trail, newest first; with a user, only changes to this user's membership. Empty
 * after an unknown cursor.
 *
 * @param nameOf - returns an API key's name
 */
export const readAuditPage = (
  trail: AuditTrail,
  nameOf: (keyId: ApiKeyId | undefined) => string | undefined,
  user: { readonly id: UserId; readonly isMember: boolean } | undefined,
  { after, limit }: { readonly after?: AuditCursor | undefined; readonly limit: number },
): ReadonlyArray<AuditRow> => {
  const { count, number, rows } = trail
  const all = [...rows.newestFirst()]
    .map(({ state: _, ...row }, age) => ({
      ...row,
      keyName: nameOf(row.origin.keyId),
      cursor: AuditCursor(`${number}.${count - age}`),
    }))
    .toReversed()
  const found = user === undefined ? all : changesOfUser(all, user.id, user.isMember)
  const end = after === undefined ? Infinity : placeOf(trail, after)
  return found
    .filter(({ cursor }) => placeOf(trail, cursor) < end)
    .toReversed()
    .slice(0, limit)
}
