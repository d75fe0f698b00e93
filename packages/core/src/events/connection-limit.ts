/** How many connections may follow the feed or wait for it: slots by client, by project and in all. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ErrorReporter } from "../base/faults.ts"
import { invariant } from "../base/values.ts"

/** The most who may wait. */
export interface ConnectionLimits {
  readonly perClient: number
  readonly perProject: number
  readonly inAll: number
}

/** The defaults. */
export const connectionLimits: ConnectionLimits = { perClient: 10, perProject: 100, inAll: 10_000 }

/** The slots of those who wait. */
export interface ConnectionLimit {
  /** Takes a slot. Returns `false` when all are taken. */
  readonly take: (client: string, project: string) => boolean
  readonly giveBack: (client: string, project: string) => void
}

/** Counts by name. What is back at 0 takes no memory. */
const counter = () => {
  const counts = new Map<string, number>()
  const of = (name: string): number => counts.get(name) ?? 0
  return {
    of,
    add: (name: string, change: 1 | -1): void => {
      const count = of(name) + change
      invariant(count >= 0, "a connection slot was given back twice")
      if (count === 0) counts.delete(name)
      else counts.set(name, count)
    },
  }
}

/** Makes the slots, all of them free. */
export const makeConnectionLimit = ({
  inAll,
  perClient,
  perProject,
}: ConnectionLimits): ConnectionLimit => {
  const clients = counter()
  const projects = counter()
  let taken = 0

  const change = (client: string, project: string, by: 1 | -1): void => {
    clients.add(client, by)
    projects.add(project, by)
    taken += by
  }

  return {
    take: (client, project) => {
      const isFree =
        taken < inAll && clients.of(client) < perClient && projects.of(project) < perProject
      if (isFree) change(client, project, 1)
      return isFree
    },
    giveBack: (client, project) => change(client, project, -1),
  }
}

/** Returns a slot. A defect is reported here, because the callers only have a connection that is gone. */
export const giveSlotBack = (
  slots: ConnectionLimit,
  faults: ErrorReporter,
  client: string,
  project: string,
): Effect.Effect<void> =>
  Effect.catchDefect(
    Effect.sync(() => slots.giveBack(client, project)),
    (defect) => faults.defect("A connection slot cannot be given back", Cause.die(defect)),
  )
