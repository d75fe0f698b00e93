/**
 * Instants kept under ids: bounded, and swept without a timer. A row of instants that have all
 * passed is as good as none, and is forgotten.
 */

/**
 * A table of instants: a row for each id, of as many columns as it was made with. Rows are known by
 * their numbers until one is added.
 */
export interface Instants {
  readonly find: (id: string) => number | undefined
  /** Adds a row of instants in the past, and forgets some that have passed at `now`. */
  readonly add: (id: string, now: number) => number
  readonly get: (row: number, column: number) => number
  readonly set: (row: number, column: number, instant: number) => void
  /** The number of rows. */
  readonly size: () => number
}

// How many rows are looked at for each that is added, to forget those that have passed. More than
// one, or the table would grow faster than it is swept.
const sweepWidth = 4

// How many rows compete for being evicted when the table is at its limit.
const evictionWidth = 8

const initialRows = 256

/**
 * Makes a table of at most `limit` rows. At the limit the row that passes soonest of a few goes first.
 *
 * @param columns - the number of instants in a row
 */
export const make = (columns: number, limit: number): Instants => {
  // Rows are dense: the last one moves into the place of one removed.
  const rows = new Map<string, number>()
  const ids: Array<string> = []
  let instants = new Float64Array(columns * Math.min(initialRows, limit))
  let hand = 0

  const at = (index: number): number => instants[index] ?? 0

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

  /** The row under the clock hand, which moves on. */
  const turn = (): number => {
    hand = hand + 1 < ids.length ? hand + 1 : 0
    return hand
  }

  const sweep = (now: number): void => {
    for (let look = 0; look < sweepWidth && ids.length > 0; look++) {
      const row = turn()
      if (end(row) <= now) remove(row)
    }
  }

  const evict = (): void => {
    let soonest = turn()
    for (let look = 1; look < evictionWidth; look++) {
      const row = turn()
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
