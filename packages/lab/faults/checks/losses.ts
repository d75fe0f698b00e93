/** What was lost between clients, receivers and followers, and for how long nothing happened. */

import type { Operation, Run } from "../history.ts"
import type { Follower } from "../workload/extending.ts"
import { missedBy, repeatedBy } from "./feed.ts"
import { join } from "./histories.ts"

/** Whether a change was acknowledged. */
export const isAcknowledged = ({ problem, status }: Operation): boolean =>
  status === 200 && problem === undefined

/** Returns the answers other than 200, or why there is none, with how often. */
export const refusalsOf = (operations: ReadonlyArray<Operation>): ReadonlyMap<string, number> => {
  const refused = operations.filter((one) => !isAcknowledged(one))
  const groups = Map.groupBy(refused, ({ problem, status }) => problem ?? String(status))
  return new Map([...groups].map(([refusal, all]) => [refusal, all.length]))
}

/** What must all be zero. */
export interface Losses {
  /** Acknowledged changes that the audit trail does not have. */
  readonly lost: number
  /** Events that were delivered to nobody. */
  readonly undelivered: number
  /** Events that a follower has not got. */
  readonly missed: number
  /** Events that a follower has got again. */
  readonly repeated: number
  /** Cursors that had expired. */
  readonly resets: number
}

/** Compares what was acknowledged, delivered and followed with what the database holds. */
export const lossesOf = (
  { arrivals, operations, state }: Pick<Run, "arrivals" | "operations" | "state">,
  followers: ReadonlyArray<Follower>,
): Losses => {
  const made = new Set(join(state.audit, operations).map(({ operation }) => operation))
  const delivered = new Set(arrivals.map(({ headers }) => headers["webhook-id"]))
  const sum = (count: (follower: Follower) => number): number =>
    followers.reduce((total, follower) => total + count(follower), 0)
  return {
    lost: operations.filter((one) => isAcknowledged(one) && !made.has(one)).length,
    // Projects are filled before they have a webhook.
    undelivered: state.events.filter(
      ({ id, type }) => type === "membership.extended" && !delivered.has(id),
    ).length,
    missed: sum((follower) => missedBy(follower, { state }).length),
    repeated: sum((follower) => repeatedBy(follower).length),
    resets: sum(({ resets }) => resets),
  }
}

/** Whether nothing was lost. */
export const isNothing = (losses: Losses): boolean =>
  Object.values(losses).every((count) => count === 0)

/** Returns the longest time without an instant, from one to another. The instants are in order. */
export const longestSilence = (
  instants: ReadonlyArray<number>,
  from: number,
  to: number,
): number => {
  const within = instants.filter((at) => at > from && at < to)
  const ends = [...within, to]
  return Math.max(...ends.map((at, index) => at - (within[index - 1] ?? from)))
}
