/** Tells about runs. */

import { announcementsOf } from "./checks/announcements.ts"
import { missedBy } from "./checks/feed.ts"
import { ageOf, livesOf, medianOf } from "./checks/processes.ts"
import {
  type Operation,
  type Run,
  type Sample,
  type Violation,
  beginOf,
  largest,
} from "./history.ts"

const count = (operations: ReadonlyArray<Operation>, status: number): number =>
  operations.filter((operation) => operation.status === status).length

const secondsOf = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

export const line = (run: Run, planned: string, violations: ReadonlyArray<Violation>): string => {
  const { arrivals, drainedMillis, faults, naive, operations, readers, seed, slackMillis } = run
  const longest = largest(operations.map(({ end, start }) => end - start))
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

/** What is told about a life. */
const told: ReadonlyArray<readonly [of: (sample: Sample) => number, unit: string]> = [
  [({ heapBytes }) => heapBytes / 2 ** 20, "MiB of heap"],
  [({ bytes }) => bytes / 2 ** 20, "MiB resident"],
  [({ handles }) => handles, "open files"],
]

const toldMillis = 60_000

/** Returns a line for each process that has run for a while: what it held first, in the middle and last. */
export const livesIn = ({ samples }: Run): ReadonlyArray<string> =>
  livesOf(samples)
    .filter((life) => ageOf(life) >= toldMillis)
    .map((life) => {
      const figures = told.map(([of, unit]) => {
        const first = life.samples.slice(0, 1).map(of)
        const all = [...first, medianOf(life, 1, of), medianOf(life, 2, of)]
        return `${all.map((one) => one.toFixed(0)).join(", ")} ${unit}`
      })
      return `  ${life.process} ran for ${secondsOf(ageOf(life))}: ${figures.join("; ")}`
    })

const aroundMillis = 400

// Longer than a fault has consequences.
const faultMillis = 60_000

const maxShown = 20

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
    ...run.faults
      .filter(({ end, start }) => end >= from - faultMillis && start <= to)
      .map(
        ({ end, kind, start, target }) =>
          `    fault ${kind} ${target ?? "all"} from ${secondsOf(start - begin)} to ${secondsOf(end - begin)}`,
      ),
    ...run.operations
      .filter(({ end, start }) => end >= from && start <= to)
      .toSorted((a, b) => a.start - b.start)
      .slice(0, maxShown)
      .map((operation) => describe(begin, operation)),
  ]
}

const maxTold = 5

/** Returns what is wrong in a run: every check's first findings, with what happened around. */
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
          .slice(0, maxTold)
          .map(
            ({ at, text }) => `  - ${at === undefined ? "" : `${secondsOf(at - begin)}: `}${text}`,
          ),
        ...(first === undefined ? [] : ["    around the first:", ...excerpt(run, first)]),
      ]
    })
    .join("\n")
}
