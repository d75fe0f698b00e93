/** All processes together admit no more than the limits allow. */

import type { Check, Limit, Operation, Run } from "../history.ts"
import { troubleOf } from "../trouble.ts"

/** What was admitted of one key, in the order of the answers. */
const admittedOf = (operations: ReadonlyArray<Operation>): ReadonlyArray<Operation> =>
  operations
    .filter(({ key, status }) => key !== undefined && status !== 0 && status !== 429)
    .toSorted((a, b) => a.end - b.end)

/**
 * The most that a key may be admitted from one instant to another. While the database does not answer,
 * each process keeps limits of its own, and a crash of the database or of a process refills buckets.
 */
const mostAdmitted = (
  { faults, processes }: Run,
  { capacity, perSecond }: Limit,
  from: number,
  to: number,
): number => {
  const disturbing = faults.filter((fault) => {
    const trouble = troubleOf(fault)
    return fault.kind !== "projectLocked" && trouble.from <= to && trouble.to >= from
  })
  const shares = disturbing.length === 0 ? 1 : processes.length + disturbing.length
  return shares * (capacity + (perSecond * (to - from)) / 1000)
}

const findOf = (run: Run, limit: Limit, key: string, admitted: ReadonlyArray<Operation>) =>
  admitted.flatMap((first, index) => {
    // The token was taken between the request and the answer.
    const from = first.start
    const within = admitted.slice(index).filter(({ start }) => start >= from)
    const excess = within.findIndex(
      ({ end }, position) => position + 1 > mostAdmitted(run, limit, from, end) + 1e-6,
    )
    const last = within[excess]
    if (last === undefined) return []
    const millis = (last.end - from).toFixed(0)
    const text = `${key} was admitted ${excess + 1} times within ${millis} ms, with ${limit.capacity} at once and ${limit.perSecond} a second`
    return [{ text, at: last.end }]
  })

/** Checks limits. */
export const limits: Check = {
  name: "limits hold over all processes",
  find: (run) => {
    const keys = new Set(run.operations.flatMap(({ key }) => key ?? []))
    return [...keys].flatMap((key) => {
      const admitted = admittedOf(run.operations.filter((operation) => operation.key === key))
      return run.limits.flatMap((limit) => findOf(run, limit, key, admitted).slice(0, 1))
    })
  },
}
