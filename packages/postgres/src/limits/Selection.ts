/** Which of the clients that wait share the next statement. */

import type { Bucket } from "./Bucket.ts"

/** A client that waits. */
export interface Candidate {
  readonly buckets: ReadonlyArray<Bucket>
  /** How many statements in a row have left some of its takes undecided. */
  readonly rounds: number
}

/** The bounds. */
export interface Bounds {
  /** The most clients in a statement. */
  readonly clients: number
  /** The most clients that are examined for a statement. */
  readonly examined: number
  /** After this many statements that left takes of a client undecided, it has one for itself. */
  readonly rounds: number
}

/** Those in the next statement, and those that go on waiting, both in order. */
export interface Selected<C> {
  readonly chosen: ReadonlyArray<C>
  readonly rest: ReadonlyArray<C>
}

/**
 * Selects the clients in the order of their coming. A client one of whose buckets is busy, in a statement
 * that is under way, would wait there for a lock: it waits here, and nobody overtakes it at its buckets.
 */
export const select = <C extends Candidate>(
  candidates: ReadonlyArray<C>,
  busy: { readonly has: (key: string) => boolean },
  bounds: Bounds,
): Selected<C> => {
  const chosen: Array<C> = []
  const skipped: Array<C> = []
  const reserved = new Set<string>()
  let examined = 0

  const isApart = ({ rounds }: C): boolean => rounds >= bounds.rounds
  const isFull = (): boolean => chosen.length === bounds.clients || chosen.slice(0, 1).some(isApart)
  const canJoin = (candidate: C): boolean =>
    (chosen.length === 0 || !isApart(candidate)) &&
    !candidate.buckets.some(({ key }) => busy.has(key) || reserved.has(key))

  for (const candidate of candidates) {
    if (isFull() || examined === bounds.examined) break
    examined++
    if (canJoin(candidate)) {
      chosen.push(candidate)
      continue
    }
    skipped.push(candidate)
    for (const { key } of candidate.buckets) reserved.add(key)
  }
  return { chosen, rest: [...skipped, ...candidates.slice(examined)] }
}
