/** An audit trail. */

import type { ApiKeyId } from "@tenure/core/ApiKey"
import { changesOf } from "@tenure/core/History"
import { AuditCursor, type AuditRow, type UserId } from "@tenure/core/Membership"
import * as Ring from "../collections/Ring.ts"

/** A row; its cursor is known by how many rows were added after it, and the name by the key. */
type Row = Omit<AuditRow, "cursor" | "keyName">

/** The newest rows of a trail. */
export interface Trail {
  /** Its number: no other trail has it, also if its project was deleted and created again. */
  readonly number: number
  readonly rows: Ring.Ring<Row>
  /** How many rows were added. */
  count: number
}

/** Makes an empty trail that keeps `capacity` rows. */
export const make = (number: number, capacity: number): Trail => ({
  number,
  rows: Ring.make(capacity),
  count: 0,
})

/** Returns the place of a row in a trail; 0, before which there is no row, for a cursor that no row has had. */
const placeOf = ({ count, number }: Trail, cursor: AuditCursor): number => {
  const [trail, place = 0] = cursor.split(".").map(Number)
  return trail === number && place <= count ? place : 0
}

/** Adds a row. */
export const add = (trail: Trail, row: Row): void => {
  trail.rows.push(row)
  trail.count++
}

/**
 * Returns a page of a trail, newest first; with a user, only changes of this one's membership. It is empty after
 * a cursor that no row has.
 *
 * @param nameOf - returns the name of an API key
 */
export const page = (
  trail: Trail,
  nameOf: (keyId: ApiKeyId | undefined) => string | undefined,
  user: { readonly id: UserId; readonly isMember: boolean } | undefined,
  { after, limit }: { readonly after?: AuditCursor | undefined; readonly limit: number },
): ReadonlyArray<AuditRow> => {
  const { count, number, rows } = trail
  const all = [...rows.newestFirst()]
    .map((row, age) => ({
      ...row,
      keyName: nameOf(row.origin.keyId),
      cursor: AuditCursor(`${number}.${count - age}`),
    }))
    .toReversed()
  const found = user === undefined ? all : changesOf(all, user.id, user.isMember)
  const end = after === undefined ? Infinity : placeOf(trail, after)
  return found
    .filter(({ cursor }) => placeOf(trail, cursor) < end)
    .toReversed()
    .slice(0, limit)
}
