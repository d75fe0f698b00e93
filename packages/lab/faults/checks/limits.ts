/** All processes together admit no more than the limits allow, and refuse nobody else. */

import { groupBy } from "effect/Array"
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
  { faults, processes, slackMillis }: Run,
  { capacity, perSecond }: Limit,
  from: number,
  to: number,
): number => {
  const disturbing = faults.filter((fault) => {
    const trouble = troubleOf(fault)
    return fault.kind !== "projectLocked" && trouble.from <= to && trouble.to + slackMillis >= from
  })
  const shares = disturbing.length === 0 ? 1 : processes.length + disturbing.length
  return shares * (capacity + (perSecond * (to - from)) / 1000)
}

/** The last request, and the number of those until then, with which a key was admitted too often since the first. */
interface Excess {
  readonly last: Operation
  readonly count: number
}

const excessOf = (
  run: Run,
  limit: Limit,
  { start: from }: Operation,
  following: Iterable<Operation>,
): Excess | undefined => {
  const { capacity, perSecond } = limit
  let count = 0
  for (const last of following) {
    // The token was taken between the request and the answer.
    if (last.start < from) continue
    count++
    // No fault allows less.
    if (count <= capacity + (perSecond * (last.end - from)) / 1000) continue
    if (count > mostAdmitted(run, limit, from, last.end) + 1e-6) return { last, count }
  }
  return undefined
}

/** Finds the first time that a key was admitted too often. */
const findOf = (run: Run, limit: Limit, key: string, admitted: ReadonlyArray<Operation>) => {
  for (const [index, first] of admitted.entries()) {
    const excess = excessOf(run, limit, first, admitted.slice(index))
    if (excess === undefined) continue
    const { count, last } = excess
    const millis = (last.end - first.start).toFixed(0)
    const text = `${key} was admitted ${count} times within ${millis} ms, with ${limit.capacity} at once and ${limit.perSecond} a second`
    return [{ text, at: last.end }]
  }
  return []
}

/** Checks limits. */
export const limits: Check = {
  name: "limits hold over all processes",
  find: (run) => {
    const keys = groupBy(run.operations, ({ key = "" }) => key)
    return Object.entries(keys).flatMap(([key, operations]) => {
      const admitted = admittedOf(operations)
      return run.limits.flatMap((limit) => findOf(run, limit, key, admitted))
    })
  },
}

/** Whether a request is counted for its key only: those that follow the feed have limits of their own, too. */
const isCounted = ({ action, key }: Operation): boolean =>
  key !== undefined &&
  action !== "poll" &&
  action !== "listen" &&
  action !== "subscribe" &&
  action !== "follow"

/**
 * Whether the requests of a key, in the order of their starts, can have emptied its bucket when one of them
 * was refused. Each process counts for itself while the database is away, and none of them counts more.
 */
const isExplained = (
  { capacity, perSecond }: Limit,
  requests: ReadonlyArray<Operation>,
  { end, start }: Operation,
): boolean => {
  const taking = requests.filter((one) => one.status !== 429 && one.start <= end)
  // One of them was the first to find the bucket full.
  return taking.some((first) => {
    const most = taking.filter((one) => one.end >= first.start).length
    const refilled = (perSecond * Math.max(0, start - first.end)) / 1000
    return most > capacity - 1 + refilled
  })
}

// All sessions of the database know a new time by then.
const newsMillis = 2000

// In this time, the bucket for bursts is full again.
const refillMillis = 1000

/**
 * Whether the clock of the database has jumped before a key was refused. The first request afterwards may find a
 * bucket empty that was filled by another clock.
 */
const isAfterJump = (
  { faults }: Run,
  requests: ReadonlyArray<Operation>,
  { end, start }: Operation,
): boolean =>
  faults
    .filter(({ kind }) => kind === "databaseClockJumped")
    .flatMap((fault) => [fault.start, fault.end])
    .some((jump) => {
      const later = requests.filter(
        (one) => one.start >= jump + newsMillis && one.status !== 0 && one.status !== 503,
      )
      const first = Math.min(...later.map((one) => one.end))
      return jump <= end && start <= first + refillMillis
    })

/** Checks refusals. */
export const refusals: Check = {
  name: "nobody is refused who keeps to the limits",
  find: (run) => {
    const requests = groupBy(
      run.operations.filter(isCounted).toSorted((one, other) => one.start - other.start),
      ({ key = "" }) => key,
    )
    return Object.entries(requests).flatMap(([key, all]) =>
      all
        .filter(
          (operation) =>
            operation.status === 429 &&
            !isAfterJump(run, all, operation) &&
            !run.limits.some((limit) => isExplained(limit, all, operation)),
        )
        .map(({ end, process }) => ({ text: `${key} was refused at ${process}`, at: end })),
    )
  },
}
