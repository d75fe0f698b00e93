/** Announcements of ends in memory. */

import { type Moment, currentMoment, currentUnixMillis } from "@tenure/core/internal"
import {
  type Announcement,
  type DecideAnnouncement,
  type EndDate,
  type Event,
  type ExpiryStore,
  completeEvent,
  expiredLead,
  hostOrigin,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type AlarmMember } from "./alarms.ts"
import { addRow } from "./audit-trail.ts"
import { endPauses } from "./pauses.ts"
import { type Watched, metadataOf } from "./projects.ts"
import { type State, publish } from "./state.ts"

/** Whether a member's end was told, and bulk extensions since then have not made the member active again. */
const isLongOver = (
  { changedAt, project }: AlarmMember,
  { alarm, announced }: Watched,
  endDate: EndDate,
): boolean =>
  alarm === undefined &&
  announced?.lead === expiredLead &&
  endDate + project.settings.grace <= changedAt

/** Creates the expiry part of the membership store. A sweep is one synchronous step. */
export const makeMemoryExpiryStore = (state: State): ExpiryStore => {
  const ownPublish = (
    { project, userId }: AlarmMember,
    { action, endDate, event: draft }: Announcement,
    now: Moment,
  ): Event => {
    const metadata = metadataOf(project.members, userId)
    if (action === "resumed") {
      // The date was changed and recorded when the pause ended.
      const sequence = project.members.own(userId)?.order ?? project.members.changes()
      const resumed = completeEvent(draft, sequence, metadata)
      publish(state, project, resumed, now)
      return resumed
    }
    // The announcement takes a sequence number, as a change to the member does, but leaves the date to bulk extensions.
    project.members.countChange()
    const event = completeEvent(draft, project.members.changes(), metadata)
    addRow(project.history, {
      projectId: project.id,
      userId,
      action,
      subject: undefined,
      origin: hostOrigin,
      reason: undefined,
      from: endDate,
      to: endDate,
      by: undefined,
      changes: [],
      at: now.unix,
    })
    publish(state, project, event, now)
    return event
  }

  /** Checks a member. Returns the announcement to publish, if any. */
  const checkMember = (
    member: AlarmMember,
    decide: DecideAnnouncement,
    now: Moment,
  ): Announcement | undefined => {
    const { project, userId } = member
    endPauses(state, project, now.unix)
    const endDate = project.members.get(userId)
    const watched = project.members.watched(userId)
    const origin = project.members.dateOrigin(userId)
    const own = project.members.own(userId)
    if (endDate === undefined || origin === undefined) return undefined
    if (watched === undefined || own === undefined) return undefined
    if (isLongOver(member, watched, endDate)) return undefined
    const { announced } = watched
    const {
      graceSetAt,
      id: projectId,
      settings: { grace },
    } = project
    const pause = watched.pause ?? watched.endedPause
    const candidate = {
      projectId,
      userId,
      // Later bulk extensions apply to the date in the event about a pause.
      endDate: watched.endedPause === undefined ? endDate : own.endDate,
      grace,
      graceSetAt,
      ...origin,
      announced,
      pause,
    }
    const { alarm, announcement } = decide(candidate, now.unix)
    state.alarms.set(project, userId, alarm)
    if (announcement === undefined) return undefined
    if (announcement.action === "resumed") watched.endedPause = undefined
    else watched.announced = { endDate, lead: announcement.lead }
    return announcement
  }

  return {
    watch: (leads) =>
      Effect.map(currentUnixMillis, (now) =>
        state.alarms.watch(leads, now, state.projects.values()),
      ),

    watchedSince: Effect.sync(state.alarms.watchedSince),

    sweep: (limit, decide) =>
      Effect.map(currentMoment, (now) => {
        const due: Array<{ readonly member: AlarmMember; readonly announcement: Announcement }> = []
        let looked = 0
        for (const member of state.alarms.due(now.unix)) {
          const announcement = checkMember(member, decide, now)
          if (announcement !== undefined) due.push({ member, announcement })
          looked++
          if (looked === limit) break
        }
        const inOrder = due.toSorted((one, other) =>
          one.announcement.event.id < other.announcement.event.id ? -1 : 1,
        )
        const events = inOrder.map(({ announcement, member }) =>
          ownPublish(member, announcement, now),
        )
        return { events, isMore: looked === limit }
      }),

    nextCheckAt: state.alarms.nextAt,
  }
}
