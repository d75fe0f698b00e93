/**
 * Snapshots of PostgreSQL: which transactions had ended when a statement began. Their numbers follow the
 * order in which transactions begin to write, and not the one in which they commit.
 */

/** A snapshot. What it sees are the transactions before `xmin`, and those before `xmax` not in `running`. */
export interface Snapshot {
  readonly xmin: bigint
  readonly xmax: bigint
  /** The transactions that had not ended, in ascending order. */
  readonly running: ReadonlyArray<bigint>
}

/** The snapshot that sees nothing. */
export const nothing: Snapshot = { xmin: 1n, xmax: 1n, running: [] }

/** Whether a snapshot sees a transaction. */
export const sees = ({ running, xmax }: Snapshot, xid: bigint): boolean =>
  xid < xmax && !running.includes(xid)

/**
 * Returns the snapshot that sees what `base` sees and, of what the later snapshot `now` sees, the
 * transactions up to `last`.
 */
export const advance = (base: Snapshot, now: Snapshot, last: bigint): Snapshot => {
  const xmax = [base.xmax, last < now.xmax ? last + 1n : now.xmax].reduce((a, b) => (a > b ? a : b))
  const running = [...base.running, ...now.running.filter((xid) => xid >= base.xmax)].filter(
    (xid) => xid < xmax && (xid > last || !sees(now, xid)),
  )
  return { xmin: running[0] ?? xmax, xmax, running }
}

/** Writes a snapshot as PostgreSQL does. */
export const format = ({ running, xmax, xmin }: Snapshot): string =>
  `${xmin}:${xmax}:${running.join(",")}`

/** Reads what PostgreSQL writes. */
export const parse = (text: string): Snapshot => {
  const [xmin = "1", xmax = "1", running = ""] = text.split(":")
  return {
    xmin: BigInt(xmin),
    xmax: BigInt(xmax),
    running: running === "" ? [] : running.split(",").map(BigInt),
  }
}
