/** An audit trail. */

import type { ApiKeyId } from "@tenure/core/ApiKey"
import { changesOf } from "@tenure/core/History"
import { AuditCursor, type AuditRow, type UserId } from "@tenure/core/Membership"
import * as Ring from "../collections/Ring.ts"

/** A row; its cursor is known by how many rows were added after it, and the name by the key. */
type Row = Omit<AuditRow, "cursor" | "keyName">

/** The newest rows of a trail. */
export interface Trail {
  readonly rows: Ring.Ring<Row>
  /** How many rows were added. */
  count: number
}

/** Makes an empty trail that keeps `capacity` rows. */
export const make = (capacity: number): Trail => ({ rows: Ring.make(capacity), count: 0 })

const cursorOf = (number: number): AuditCursor => AuditCursor(`0.${number}`)

const numberOf = (cursor: AuditCursor): number => Number(cursor.slice(2))

/** Adds a row. */
export const add = (trail: Trail, row: Row): void => {
  trail.rows.push(row)
  trail.count++
}

/**
 * Returns a page of a trail, newest first; with a user, only changes of this one's membership.
 *
 * @param nameOf - returns the name of an API key
 */
export const page = (
  { count, rows }: Trail,
  nameOf: (keyId: ApiKeyId | undefined) => string | undefined,
  user: { readonly id: UserId; readonly isMember: boolean } | undefined,
  { after, limit }: { readonly after?: AuditCursor | undefined; readonly limit: number },
): ReadonlyArray<AuditRow> => {
  const all = [...rows.newestFirst()]
    .map((row, age) => ({
      ...row,
      keyName: nameOf(row.origin.keyId),
      cursor: cursorOf(count - age),
    }))
    .toReversed()
  const found = user === undefined ? all : changesOf(all, user.id, user.isMember)
  const end = after === undefined ? Infinity : numberOf(after)
  return found
    .filter(({ cursor }) => numberOf(cursor) < end)
    .toReversed()
    .slice(0, limit)
}
