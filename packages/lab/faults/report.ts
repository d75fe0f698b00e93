/** Tells of runs. */

import { announcementsOf } from "./checks/announcements.ts"
import { missedBy } from "./checks/feed.ts"
import type { Operation, Run, Violation } from "./history.ts"

const count = (operations: ReadonlyArray<Operation>, status: number): number =>
  operations.filter((operation) => operation.status === status).length

const secondsOf = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** Returns the line of a run. */
export const line = (run: Run, planned: string, violations: ReadonlyArray<Violation>): string => {
  const { arrivals, drainedMillis, faults, naive, operations, readers, seed, slackMillis } = run
  const longest = Math.max(0, ...operations.map(({ end, start }) => end - start))
  return (
    `seed ${seed}: ${faults.length} faults, ${operations.length} requests, ` +
    `${count(operations, 503)} times 503, ${count(operations, 429)} times 429, ` +
    `${count(operations, 0)} without an answer, longest ${secondsOf(longest)}; ` +
    `${arrivals.length} notifications, the last after ${secondsOf(drainedMillis)}; ` +
    `${readers.flatMap(({ got }) => got).length} events to ${readers.length} readers, ` +
    `${missedBy(naive, run).length} missed by a naive one; ` +
    `${announcementsOf(run).length} announcements of ends; ${secondsOf(slackMillis)} of slack; ` +
    `${violations.length} violations (${planned})`
  )
}

const aroundMillis = 400

const mostShown = 20

const beginOf = ({ operations }: Run): number => Math.min(...operations.map(({ start }) => start))

const describe = (
  begin: number,
  { action, end, endDate, problem, process, projectId, start, status, subject, userId }: Operation,
): string =>
  [
    `    ${secondsOf(start - begin)} to ${secondsOf(end - begin)}`,
    process,
    action,
    projectId === "" ? undefined : projectId,
    userId,
    endDate,
    subject,
    status === 0 ? "no answer" : status,
    problem,
  ]
    .filter((part) => part !== undefined)
    .join(" ")

/** The operations and faults around an instant. */
const excerpt = (run: Run, at: number): ReadonlyArray<string> => {
  const begin = beginOf(run)
  const from = at - aroundMillis
  const to = at + aroundMillis
  return [
    ...run.faults.map(
      ({ end, kind, start, target }) =>
        `    fault ${kind} ${target ?? "all"} from ${secondsOf(start - begin)} to ${secondsOf(end - begin)}`,
    ),
    ...run.operations
      .filter(({ end, start }) => end >= from && start <= to)
      .toSorted((a, b) => a.start - b.start)
      .slice(0, mostShown)
      .map((operation) => describe(begin, operation)),
  ]
}

const mostTold = 5

/** Returns what is wrong in a run: of every check the first findings, with what happened around. */
export const explain = (run: Run, violations: ReadonlyArray<Violation>): string => {
  const names = [...new Set(violations.map(({ check }) => check))]
  return names
    .flatMap((name) => {
      const found = violations.filter(({ check }) => check === name)
      const begin = beginOf(run)
      const first = found.find(({ at }) => at !== undefined)?.at
      return [
        `  ${name}: ${found.length}`,
        ...found
          .slice(0, mostTold)
          .map(
            ({ at, text }) => `  - ${at === undefined ? "" : `${secondsOf(at - begin)}: `}${text}`,
          ),
        ...(first === undefined ? [] : ["    around the first:", ...excerpt(run, first)]),
      ]
    })
    .join("\n")
}
