/** What clients are answered, how fast, and how often: within their keys' limits. */

import { groupBy } from "effect/Array"
import type { Check, Finding, Limit, Operation, Run } from "../history.ts"
import { isExcused, troubleOf } from "../trouble.ts"

const unavailable = 503
const limited = 429

const describe = (operation: Operation): Finding => {
  const { action, end, problem, process, projectId, start, status } = operation
  const answer = status === 0 ? "not answered" : `answered ${status}`
  const why = problem === undefined ? "" : ` (${problem})`
  const millis = (end - start).toFixed(0)
  return {
    text: `${action} ${projectId} at ${process} was ${answer} after ${millis} ms${why}`,
    at: end,
  }
}

const finding = (name: string, isWrong: (operation: Operation, run: Run) => boolean): Check => ({
  name,
  find: (run) => run.operations.filter((one) => isWrong(one, run)).map(describe),
})

export const statuses = finding(
  "beside what was expected, only 429 and 503",
  ({ expected, problem, status }) =>
    status !== 0 &&
    status !== unavailable &&
    (problem !== undefined || !(status === limited || expected.includes(status))),
)

const longestMillis = 15_000

const stoppedFor = ({ faults }: Run, { end, process, start }: Operation): number =>
  faults
    .filter(({ kind, target }) => kind === "serverStopped" && target === process)
    .map((fault) => Math.min(end, fault.end) - Math.max(start, fault.start))
    .reduce((sum, millis) => sum + Math.max(0, millis), 0)

/** Checks how long answers take. The time in which their process stands still is not theirs. */
export const waits = finding(
  "every answer within 15 seconds",
  (operation, run) =>
    operation.end - operation.start > longestMillis + run.slackMillis + stoppedFor(run, operation),
)

// From here on, an answer is so late that somebody notices.
const slowMillis = 2000

// A server is not ready while the database takes longer for an answer. On a busy machine, it may.
const overdueMillis = 500

const isDisturbed = ({ slackMillis }: Run, { action, end, start, status }: Operation): boolean =>
  status === 0 ||
  (status === unavailable && !(action === "ready" && slackMillis > overdueMillis)) ||
  end - start > slowMillis + slackMillis

/** Whether a server says that it is not ready because it is about to end. */
const isDraining = ({ faults }: Run, { action, end, process, start }: Operation): boolean =>
  action === "ready" &&
  faults.some(
    (fault) =>
      fault.kind === "serverTerminated" &&
      fault.target === process &&
      fault.start <= end &&
      fault.end >= start,
  )

/** Checks that faults disturb only what they hit, and that everything heals within 3 seconds. */
export const healing = finding(
  "all is well again 3 seconds after a fault",
  (operation, run) =>
    isDisturbed(run, operation) &&
    !isDraining(run, operation) &&
    !isExcused(run, operation, operation.start, operation.end),
)

/**
 * The most that a key may be admitted from one instant to another. While the database does not answer,
 * each process keeps its own limits, and a crash refills buckets.
 */
const maxAdmitted = (
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

/** Finds the first time that a key was admitted too often. */
const excessOf = (
  run: Run,
  limit: Limit,
  key: string,
  admitted: ReadonlyArray<Operation>,
): ReadonlyArray<Finding> => {
  const { capacity, perSecond } = limit
  for (const [index, { start: from }] of admitted.entries()) {
    let count = 0
    for (const { end, start } of admitted.slice(index)) {
      // The token was taken between the request and the answer.
      if (start < from) continue
      count++
      // No fault allows less.
      if (count <= capacity + (perSecond * (end - from)) / 1000) continue
      if (count <= maxAdmitted(run, limit, from, end) + 1e-6) continue
      const millis = (end - from).toFixed(0)
      const text = `${key} was admitted ${count} times within ${millis} ms, with ${capacity} at once and ${perSecond} a second`
      return [{ text, at: end }]
    }
  }
  return []
}

export const limits: Check = {
  name: "limits hold over all processes",
  find: (run) => {
    const keys = groupBy(run.operations, ({ key = "" }) => key)
    return Object.entries(keys).flatMap(([key, operations]) => {
      const admitted = operations
        .filter((one) => one.key !== undefined && one.status !== 0 && one.status !== limited)
        .toSorted((one, other) => one.end - other.end)
      return run.limits.flatMap((limit) => excessOf(run, limit, key, admitted))
    })
  },
}

// Followers have further limits.
const uncounted: ReadonlySet<string> = new Set(["poll", "listen", "subscribe", "follow"])

/**
 * Whether a key's requests, ordered by their starts, can have emptied its bucket when one
 * was refused. Each process counts for itself while the database is away, and none counts more.
 */
const isExplained = (
  { capacity, perSecond }: Limit,
  requests: ReadonlyArray<Operation>,
  { end, start }: Operation,
): boolean => {
  const taking = requests.filter((one) => one.status !== limited && one.start <= end)
  // One was the first to find the bucket full.
  return taking.some((first) => {
    const most = taking.filter((one) => one.end >= first.start).length
    const refilled = (perSecond * Math.max(0, start - first.end)) / 1000
    return most > capacity - 1 + refilled
  })
}

// All database sessions know a new time by then.
const newsMillis = 2000

// In this time, the bucket for bursts is full again.
const refillMillis = 1000

/**
 * Whether the database's clock has jumped before a key was refused. The first request afterwards may find a
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
        (one) => one.start >= jump + newsMillis && one.status !== 0 && one.status !== unavailable,
      )
      const first = Math.min(...later.map((one) => one.end))
      return jump <= end && start <= first + refillMillis
    })

export const refusals: Check = {
  name: "nobody is refused who keeps to the limits",
  find: (run) => {
    const requests = groupBy(
      run.operations
        .filter(({ action, key }) => key !== undefined && !uncounted.has(action))
        .toSorted((one, other) => one.start - other.start),
      ({ key = "" }) => key,
    )
    return Object.entries(requests).flatMap(([key, all]) =>
      all
        .filter(
          (operation) =>
            operation.status === limited &&
            !isAfterJump(run, all, operation) &&
            !run.limits.some((limit) => isExplained(limit, all, operation)),
        )
        .map(({ end, process }) => ({ text: `${key} was refused at ${process}`, at: end })),
    )
  },
}
