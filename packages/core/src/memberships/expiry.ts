/** When the end of a membership is announced: at reminders before it, and when it has come. */

import { Millis } from "../base/time.ts"
import type { ProjectId } from "../base/values.ts"
import { type EventDraft, derivedEventId, draftEvent, knownEventTypes } from "../events/event.ts"
import { type EndDate, formatEndDate } from "./end-date.ts"
import type { MembershipAction, UserId } from "./membership.ts"

/** An announcement of an end date. */
export interface LastAnnouncement {
  readonly endDate: EndDate
  /** How long before the end: a reminder; 0 for the end itself. */
  readonly lead: Millis
}

/** What is known of a membership whose end may have to be announced. */
export interface DueMembership {
  readonly projectId: ProjectId
  readonly userId: UserId
  /** The end date that holds. */
  readonly endDate: EndDate
  /** The last announcement, of this end date or of an earlier one; `undefined` if there was none. */
  readonly announced: LastAnnouncement | undefined
}

/** What is announced, and when. */
export interface AnnouncementRules {
  /** The reminders, longest first, and then 0 for the end itself. */
  readonly leads: ReadonlyArray<Millis>
  /** Since when ends are announced, in milliseconds since the epoch: what ended before is not. */
  readonly since: number
}

/** Returns the leads of reminders, which may come in any order and more than once. */
export const reminderLeads = (reminders: ReadonlyArray<Millis>): ReadonlyArray<Millis> =>
  [...new Set([...reminders, Millis(0)])].toSorted((one, other) => other - one)

/** What follows for a membership at some time. */
export interface ExpiryDecision {
  /** What is announced now, if anything. */
  readonly announced: LastAnnouncement | undefined
  /** When to decide again, in milliseconds since the epoch; `undefined` if everything was announced. */
  readonly alarm: number | undefined
}

/** Whether an end date was announced with this lead, or with a shorter one. */
const covers = (last: LastAnnouncement | undefined, { endDate, lead }: LastAnnouncement): boolean =>
  last?.endDate === endDate && last.lead <= lead

/**
 * Decides what is announced of a membership. Of several leads that have come, only the shortest counts: the
 * others are late.
 *
 * @param now - milliseconds since the epoch
 */
export const decideExpiry = (
  { leads, since }: AnnouncementRules,
  { announced: last, endDate }: Pick<DueMembership, "announced" | "endDate">,
  now: number,
): ExpiryDecision => {
  const reached = leads.findLast((lead) => endDate - lead <= now)
  const next = leads.find((lead) => endDate - lead > now)
  const announced =
    reached === undefined || endDate <= since ? undefined : { endDate, lead: reached }
  return {
    announced: announced === undefined || covers(last, announced) ? undefined : announced,
    alarm: next === undefined ? undefined : endDate - next,
  }
}

/** An announcement to store, with the draft of its event and the action of its audit row. */
export interface Announcement extends LastAnnouncement {
  readonly action: Extract<MembershipAction, "expiring" | "expired">
  readonly event: EventDraft
}

/** What a store does with a membership whose alarm has come, all in one step. */
export interface AnnouncementOutcome {
  /** What to publish and audit, and to keep as the last announcement; `undefined` for nothing. */
  readonly announcement: Announcement | undefined
  /** The new alarm, in milliseconds since the epoch; `undefined` for none. */
  readonly alarm: number | undefined
}

/** Decides what a store does with a membership at some time, in milliseconds since the epoch. */
export type DecideAnnouncement = (candidate: DueMembership, now: number) => AnnouncementOutcome

const announcementOf = (
  { projectId, userId }: DueMembership,
  { endDate, lead }: LastAnnouncement,
  at: number,
): Announcement => {
  const action = lead === 0 ? "expired" : "expiring"
  const event = draftEvent({
    id: derivedEventId(`${projectId} ${userId} ${endDate} ${lead}`, at),
    projectId,
    type: knownEventTypes[action],
    at,
    data: {
      project_id: projectId,
      user_id: userId,
      end_date: formatEndDate(endDate),
      // JSON has no reminder where it is undefined.
      reminder: lead === 0 ? undefined : lead / 1000,
    },
  })
  return { endDate, lead, action, event }
}

/** Makes the function by which a store decides. */
export const makeDecideAnnouncement =
  (rules: AnnouncementRules): DecideAnnouncement =>
  (candidate, now) => {
    const { alarm, announced } = decideExpiry(rules, candidate, now)
    return { alarm, announcement: announced && announcementOf(candidate, announced, now) }
  }
