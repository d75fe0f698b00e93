/** When and where a fault may disturb requests and deliveries. */

import type { Fault, Run } from "./history.ts"
import { kinds } from "./kinds.ts"

/** Within this time after a fault, everything works again. */
const healMillis = 3000

/** How long a server that is asked to end takes requests as before: less than its `DRAIN_DELAY`. */
export const drainMillis = 300

/** A time in which a process, a project or everything may be disturbed. */
export interface Trouble {
  readonly from: number
  readonly to: number
  /** Whether it disturbs only what begins in this time. */
  readonly isForLater: boolean
  readonly process?: string | undefined
  readonly projectId?: string | undefined
}

/**
 * What a fault may disturb, and when it has healed at the latest. A server that is asked to end answers
 * what it is asked until its port closes.
 */
export const troubleOf = ({ end, kind, start, target }: Fault): Trouble => {
  const { healsFromStart, hits } = kinds[kind]
  const isOrderly = kind === "serverTerminated"
  return {
    from: isOrderly ? start + drainMillis : start,
    to: (healsFromStart === true ? start : end) + healMillis,
    isForLater: isOrderly,
    process: hits === "server" || hits === "link" ? target : undefined,
    projectId: hits === "project" ? target : undefined,
  }
}

/** Where something happened. */
export interface Place {
  readonly process?: string | undefined
  readonly projectId?: string | undefined
}

/** Tells whether trouble concerns a place. */
export const concerns = (trouble: Trouble, place: Place): boolean =>
  (trouble.process === undefined || trouble.process === place.process) &&
  (trouble.projectId === undefined || trouble.projectId === place.projectId)

const known = new WeakMap<Run["faults"], ReadonlyArray<Trouble>>()

/**
 * What a run's faults may disturb, in the order in which it begins: worked out once for all that is judged. While
 * the limiter is away, limits are only less strict.
 */
const troublesOf = ({ faults }: Run): ReadonlyArray<Trouble> => {
  const found =
    known.get(faults) ??
    faults
      .filter(({ kind }) => kinds[kind].hits !== "limiter")
      .map(troubleOf)
      .toSorted((one, other) => one.from - other.from)
  known.set(faults, found)
  return found
}

/** Tells whether a fault excuses what happened at a place from one instant to another. */
export const isExcused = (run: Run, place: Place, from: number, to: number): boolean =>
  troublesOf(run).some(
    (trouble) =>
      concerns(trouble, place) &&
      from <= trouble.to + run.slackMillis &&
      (trouble.isForLater ? from + run.slackMillis : to) >= trouble.from,
  )

/**
 * Returns when something that begins at an instant and takes so many milliseconds at most has to be over.
 * A fault that meets it postpones this until the fault has healed. Any process may be the one that is
 * at work, so that every fault counts.
 */
export const deadline = (run: Run, at: number, millis: number): number =>
  troublesOf(run).reduce(
    (latest, { from, to }) => (from <= latest ? Math.max(latest, to + run.slackMillis) : latest),
    at + millis + run.slackMillis,
  )
