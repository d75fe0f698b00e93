/** The announcements of ends in memory. */

import * as Event from "@tenure/core/Event"
import type { Announcement, Judge } from "@tenure/core/Expiry"
import type { ExpiryStore } from "@tenure/core/ExpiryStore"
import * as Moment from "@tenure/core/Moment"
import * as Origin from "@tenure/core/Origin"
import * as Effect from "effect/Effect"
import type * as Alarms from "../expiry/Alarms.ts"
import * as Trail from "../projects/Trail.ts"
import * as State from "../State.ts"

/** Makes that part of the store of memberships. A sweep is one synchronous step. */
export const make = (state: State.State): ExpiryStore => {
  const publish = (
    { project, userId }: Alarms.Member,
    { action, endDate, event: draft }: Announcement,
    now: Moment.Moment,
  ): Event.Event => {
    // The announcement has a sequence as a change of the member.
    project.members.set(userId, endDate)
    const event = Event.complete(draft, project.members.changes())
    Trail.add(project.history, {
      projectId: project.id,
      userId,
      action,
      subject: undefined,
      origin: Origin.host,
      reason: undefined,
      from: endDate,
      to: endDate,
      at: now.unix,
    })
    State.publish(state, project, event, now)
    return event
  }

  /** Looks at a member. Returns what is to be published, if anything. */
  const look = (
    member: Alarms.Member,
    judge: Judge,
    now: Moment.Moment,
  ): Announcement | undefined => {
    const { project, userId } = member
    const endDate = project.members.get(userId)
    const watched = project.members.watched(userId)
    if (endDate === undefined || watched === undefined) return undefined
    const candidate = { projectId: project.id, userId, endDate, announced: watched.announced }
    const { alarm, announcement } = judge(candidate, now.unix)
    state.alarms.set(member, alarm)
    if (announcement === undefined) return undefined
    watched.announced = { endDate, lead: announcement.lead }
    return announcement
  }

  return {
    watch: (leads) =>
      Effect.map(Moment.unix, (now) => state.alarms.watch(leads, now, state.projects.values())),

    sweep: (limit, judge) =>
      Effect.map(Moment.now, (now) => {
        const due: Array<{ readonly member: Alarms.Member; readonly announcement: Announcement }> =
          []
        let looked = 0
        for (const member of state.alarms.due(now.unix)) {
          const announcement = look(member, judge, now)
          if (announcement !== undefined) due.push({ member, announcement })
          looked++
          if (looked === limit) break
        }
        const inOrder = due.toSorted((one, other) =>
          one.announcement.event.id < other.announcement.event.id ? -1 : 1,
        )
        const events = inOrder.map(({ announcement, member }) => publish(member, announcement, now))
        return { events, isMore: looked === limit }
      }),
  }
}
