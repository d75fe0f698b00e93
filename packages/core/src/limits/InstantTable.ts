/**
 * A bounded table of instants. Each id has a row of them. A row whose instants have all passed
 * carries no information and is removed, without a timer.
 */

import { inMicros, type Micros } from "../base/Units.ts"

/**
 * A table of instants. A row is addressed by its number, which is valid until the next `add`.
 */
export interface InstantTable {
  /** Returns the row of an id. */
  readonly find: (id: string) => number | undefined
  /** Adds a row whose instants are all 0, and removes some rows whose instants have passed at `now`. */
  readonly add: (id: string, now: Micros) => number
  readonly get: (row: number, column: number) => Micros
  readonly set: (row: number, column: number, instant: Micros) => void
  /** The number of rows. */
  readonly size: () => number
}

// Each `add` examines so many rows for removal. With one, the table would grow faster than it is
// swept.
const sweepWidth = 4

// In a full table, `add` evicts the best of so many rows.
const evictionWidth = 8

const initialRows = 256

/**
 * Makes an empty table. In a full one, `add` examines a few rows and evicts the one whose instants
 * pass soonest.
 *
 * @param columns - instants in a row
 * @param limit - the greatest number of rows
 */
export const make = (columns: number, limit: number): InstantTable => {
  // Rows are dense: when one is removed, the last one takes its place.
  const rows = new Map<string, number>()
  const ids: Array<string> = []
  let instants = new Float64Array(columns * Math.min(initialRows, limit))
  let hand = 0

  const at = inMicros((index: number) => instants[index] ?? 0)

  /** The latest instant of a row. */
  const end = (row: number): number => {
    let latest = 0
    for (let column = 0; column < columns; column++) {
      latest = Math.max(latest, at(row * columns + column))
    }
    return latest
  }

  const remove = (row: number): void => {
    const last = ids.length - 1
    const id = ids[row]
    const lastId = ids[last]
    if (id === undefined || lastId === undefined) return
    ids[row] = lastId
    instants.copyWithin(row * columns, last * columns, ids.length * columns)
    rows.set(lastId, row)
    rows.delete(id)
    ids.pop()
  }

  /** Moves the hand, which goes round the rows as that of a clock, and returns the row under it. */
  const nextRow = (): number => {
    hand = hand + 1 < ids.length ? hand + 1 : 0
    return hand
  }

  const sweep = (now: Micros): void => {
    for (let count = 0; count < sweepWidth && ids.length > 0; count++) {
      const row = nextRow()
      if (end(row) <= now) remove(row)
    }
  }

  const evict = (): void => {
    let soonest = nextRow()
    for (let count = 1; count < evictionWidth; count++) {
      const row = nextRow()
      if (end(row) < end(soonest)) soonest = row
    }
    remove(soonest)
  }

  const grow = (): void => {
    const larger = new Float64Array(Math.min(2 * instants.length, columns * limit))
    larger.set(instants)
    instants = larger
  }

  return {
    size: () => ids.length,
    find: (id) => rows.get(id),
    add: (id, now) => {
      sweep(now)
      if (ids.length >= limit) evict()
      const row = ids.length
      if (row * columns === instants.length) grow()
      instants.fill(0, row * columns, (row + 1) * columns)
      ids.push(id)
      rows.set(id, row)
      return row
    },
    get: (row, column) => at(row * columns + column),
    set: (row, column, instant) => {
      instants[row * columns + column] = instant
    },
  }
}
