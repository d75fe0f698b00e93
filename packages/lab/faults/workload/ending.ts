/** Hosts whose members end soon, in projects in which nobody else changes anything. */

import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { now } from "../clock.ts"
import type { Operation } from "../history.ts"
import { random } from "../random.ts"
import { type World, endingProject, host, rushProjects, userIds } from "../world/world.ts"
import { answered } from "./local.ts"
import type { Recorder } from "./recorder.ts"

// Each change of all members announces the ends of all of them, which must not become more and more.
const mostUsers = 40

// With that, all reminders have their time.
const longestAheadMillis = 6000

// A date may have come before it is set. Grants take that.
const expected = [200, 422]

type Asked = Pick<Operation, "action" | "endDate" | "isNeverShortening" | "projectId" | "userId">

/** Returns changes of end dates, which are recorded. */
const changing = ({ tenure: { memberships } }: World, recorder: Recorder) => {
  const ask = (
    asked: Asked,
    change: (origin: { readonly requestId: string }) => Promise<unknown>,
  ): Promise<Operation> => {
    const requestId = randomUUID()
    return recorder.record({ ...asked, process: host, requestId, expected }, () =>
      answered(async () => {
        await change({ requestId })
      }),
    )
  }
  return {
    grant: (projectId: string, userId: string, endDate: number) =>
      ask({ action: "grant", projectId, userId, endDate }, (origin) =>
        memberships.grant({ projectId, userId, endDate }, origin),
      ),
    extend: (projectId: string, userId: string, endDate: number) =>
      ask({ action: "extend", projectId, userId, endDate }, (origin) =>
        memberships.extend({ projectId, userId, endDate }, origin),
      ),
    extendAll: (projectId: string, endDate: number, isNeverShortening: boolean) =>
      ask({ action: "extendAll", projectId, endDate, isNeverShortening }, (origin) => {
        const mode = isNeverShortening ? "neverShorten" : "set"
        return memberships.extendAll({ projectId, endDate, mode }, origin)
      }),
  }
}

/**
 * Grants memberships, and sets the end dates of single members and of all, until it is told to stop. Most of
 * them are so near that they come before the next change.
 */
export const runEnding = async (
  world: World,
  recorder: Recorder,
  seed: number,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, "ending")
  const { extend, extendAll, grant } = changing(world, recorder)
  const nearDate = () => recorder.dateAhead(choose.between(0, longestAheadMillis))
  const anyUserId = () => String(3_000_000 + choose.below(mostUsers))

  while (!isOver()) {
    const dice = choose.next()
    if (dice < 0.5) await grant(endingProject, anyUserId(), nearDate())
    else if (dice < 0.8) await extend(endingProject, choose.pick(userIds), nearDate())
    else if (dice < 0.93) await extend(endingProject, choose.pick(userIds), recorder.nextDate())
    else await extendAll(endingProject, nearDate(), choose.chance(0.5))
    await world.rest(choose, 50, 400)
  }
}

// Less than the shortest reminder, so that only the end of each member is announced.
const rushAheadMillis = 700

// Longer than the processes take until each has looked for ends.
const rushMillis = 700

/**
 * Has the members of many projects end at the same moment, and extends all of them while that is announced,
 * without shortening any. Repeats this until it is told to stop.
 */
export const runRush = async (
  world: World,
  recorder: Recorder,
  seed: number,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, "rush")
  const { extend, extendAll } = changing(world, recorder)
  const [userId] = userIds

  while (!isOver()) {
    const end = now() + rushAheadMillis
    await Promise.all(
      rushProjects.map((id) => extend(id, userId, recorder.dateAhead(rushAheadMillis))),
    )
    await Promise.all(
      rushProjects.map(async (id) => {
        await sleep(Math.max(0, end - now()) + choose.between(0, rushMillis))
        await extendAll(id, recorder.nextDate(), true)
      }),
    )
    await world.rest(choose, 200, 1000)
  }
}
