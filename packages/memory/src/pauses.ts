/** Ends the pauses of a project's members in time, in memory. */

import { endAfterPause, hostOrigin } from "@tenure/core/store"
import { addRow } from "./audit-trail.ts"
import type { Project } from "./projects.ts"
import type { State } from "./state.ts"

/**
 * Ends pauses at an instant, in milliseconds since the epoch, if they are over by then. Called before members are read
 * or changed. A sweep announces it.
 */
export const endPauses = (
  { alarms }: Pick<State, "alarms">,
  project: Project,
  now: number,
): void => {
  const { history, id, members } = project
  for (const { pause, until, userId } of members.pausesOver(now)) {
    const from = members.get(userId)
    const member = members.watched(userId)
    if (from === undefined || member === undefined) continue
    const to = endAfterPause(from, pause, until)
    members.resume(userId, to, until)
    member.endedPause = pause
    alarms.arm(project, userId, to)
    addRow(history, {
      action: "resumed",
      userId,
      from,
      to,
      projectId: id,
      origin: hostOrigin,
      reason: undefined,
      at: now,
      by: undefined,
      subject: undefined,
      changes: [],
      state: { ...members.form(userId), pause: undefined, isUnasked: true },
    })
  }
}
