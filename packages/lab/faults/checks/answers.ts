/** What clients are answered, and how fast. */

import type { Check, Operation, Run } from "../history.ts"
import { isExcused } from "../trouble.ts"

const unavailable = 503
const limited = 429

const describe = ({ action, end, problem, process, projectId, start, status }: Operation): string =>
  `${action} ${projectId} at ${process} was ${status === 0 ? "not answered" : `answered ${status}`}` +
  ` after ${(end - start).toFixed(0)} ms${problem === undefined ? "" : ` (${problem})`}`

/** Checks statuses. */
export const statuses: Check = {
  name: "beside what was expected, only 429 and 503",
  find: ({ operations }) =>
    operations
      .filter(
        ({ expected, problem, status }) =>
          status !== 0 &&
          status !== unavailable &&
          (problem !== undefined || !(status === limited || expected.includes(status))),
      )
      .map((operation) => ({ text: describe(operation), at: operation.end })),
}

const longestMillis = 15_000

const stoppedFor = ({ faults }: Run, { end, process, start }: Operation): number =>
  faults
    .filter(({ kind, target }) => kind === "serverStopped" && target === process)
    .map((fault) => Math.min(end, fault.end) - Math.max(start, fault.start))
    .reduce((sum, millis) => sum + Math.max(0, millis), 0)

/** Checks how long answers take. The time in which their process stands still is not theirs. */
export const waits: Check = {
  name: "every answer within 15 seconds",
  find: (run) =>
    run.operations
      .filter(
        (operation) =>
          operation.end - operation.start >
          longestMillis + run.slackMillis + stoppedFor(run, operation),
      )
      .map((operation) => ({ text: describe(operation), at: operation.end })),
}

/** From here on, an answer is so late that somebody notices. */
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
export const healing: Check = {
  name: "all is well again 3 seconds after a fault",
  find: (run) =>
    run.operations
      .filter(
        (operation) =>
          isDisturbed(run, operation) &&
          !isDraining(run, operation) &&
          !isExcused(run, operation, operation.start, operation.end),
      )
      .map((operation) => ({ text: describe(operation), at: operation.end })),
}
