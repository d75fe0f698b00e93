/** A host whose members end soon, in a project in which nobody else changes anything. */

import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import type { Operation } from "../history.ts"
import { random } from "../random.ts"
import { endingProject as projectId, host, userIds, type World } from "../world/World.ts"
import { answered } from "./local.ts"
import type { Recorder } from "./recorder.ts"

// With that, all reminders have their time.
const longestAheadMillis = 6000

// A date may have come before it is set. Grants take that.
const expected = [200, 422]

/**
 * Grants memberships, and sets the end dates of single members and of all, until it is told to stop. Most of
 * them are so near that they come before the next change.
 */
export const runEnding = async (
  { tenure: { memberships } }: World,
  recorder: Recorder,
  seed: number,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, "ending")
  const nearDate = () => recorder.dateAhead(choose.between(0, longestAheadMillis))

  const ask = (
    asked: Pick<Operation, "action" | "endDate" | "userId">,
    change: (origin: { readonly requestId: string }) => Promise<unknown>,
  ): Promise<Operation> => {
    const requestId = randomUUID()
    return recorder.record({ ...asked, process: host, projectId, requestId, expected }, () =>
      answered(async () => {
        await change({ requestId })
      }),
    )
  }

  const grant = (endDate: number): Promise<Operation> => {
    const userId = String(3_000_000 + recorder.nextNumber())
    return ask({ action: "grant", userId, endDate }, (origin) =>
      memberships.grant({ projectId, userId, endDate }, origin),
    )
  }

  const extend = (endDate: number): Promise<Operation> => {
    const userId = choose.pick(userIds)
    return ask({ action: "extend", userId, endDate }, (origin) =>
      memberships.extend({ projectId, userId, endDate }, origin),
    )
  }

  const extendAll = (endDate: number): Promise<Operation> =>
    ask({ action: "extendAll", endDate }, (origin) =>
      memberships.extendAll({ projectId, endDate }, origin),
    )

  while (!isOver()) {
    const dice = choose.next()
    if (dice < 0.5) await grant(nearDate())
    else if (dice < 0.8) await extend(nearDate())
    else if (dice < 0.96) await extend(recorder.nextDate())
    else await extendAll(nearDate())
    await sleep(choose.between(50, 400))
  }
}
