/** The rule for announcements: reminders before a membership ends, and a notice when it has ended. */

import { Millis } from "../base/time.ts"
import type { ProjectId } from "../base/values.ts"
import { type EventDraft, derivedEventId, draftEvent, knownEventTypes } from "../events/event.ts"
import type { MembershipAction } from "./audit-trail.ts"
import {
  EndDate,
  type LoggedBulkExtension,
  type OrderedEndDate,
  adjust,
  formatEndDate,
} from "./end-date.ts"
import { type UserId, graceEnd } from "./membership.ts"
import { type Pause, isOver } from "./pause.ts"

/** The `lead` of the announcement that a membership has expired. It comes last, and when depends on the project's grace. */
export const expiredLead = Millis(-1000)

/** An announcement for an end date. */
export interface LastAnnouncement {
  readonly endDate: EndDate
  /** How long before the end: a reminder; 0 for the end itself, if there is grace; and `expiredLead`. */
  readonly lead: Millis
}

/**
 * Returns an end date change's time, in milliseconds since the epoch: by the store's clock or the
 * process's, whichever is later. So a date seven days ahead by either clock gets no seven-day reminder.
 */
export const changeTime = (asked: number, now: number): number => Math.max(asked, now)

/** The last date for this member alone, and when it was set. */
export interface OwnEndDate extends OrderedEndDate {
  /** As `changeTime` says. */
  readonly setAt: number
  /** As that of a `DateOrigin`. */
  readonly isSetWithOthers: boolean
}

/** The change that gave a member its current end date. */
export interface DateOrigin {
  /** When it was made, as `changeTime` says. */
  readonly dateSetAt: number
  /** Whether it was a change of many: a bulk extension, its undo, or an import. */
  readonly isSetWithOthers: boolean
}

/** A bulk extension in a log, and when it was made and undone. */
export interface TimedBulkExtension extends LoggedBulkExtension {
  /** As `changeTime` says. */
  readonly setAt: number
  /** As `changeTime` says; `undefined` unless it was undone. */
  readonly undoneAt: number | undefined
}

/**
 * Returns the change that gave a member its current end date: its own, a bulk extension or an undo.
 *
 * @param log - the project's bulk extensions, oldest first
 */
export const dateOrigin = (log: ReadonlyArray<TimedBulkExtension>, own: OwnEndDate): DateOrigin => {
  const later = log.filter(({ order }) => order > own.order)
  const steps = later
    .flatMap((one) => [
      { one, time: one.setAt, isUndo: false },
      ...(one.undoneAt === undefined ? [] : [{ one, time: one.undoneAt, isUndo: true }]),
    ])
    .toSorted((a, b) => a.time - b.time || Number(a.isUndo) - Number(b.isUndo))
  const active = new Set<TimedBulkExtension>()
  let date = Number(own.endDate)
  let last: DateOrigin = { dateSetAt: own.setAt, isSetWithOthers: own.isSetWithOthers }
  for (const { isUndo, one, time } of steps) {
    if (isUndo) active.delete(one)
    else active.add(one)
    const next = later
      .filter((extension) => active.has(extension))
      .reduce((to, { adjustment }) => adjust(to, adjustment), Number(own.endDate))
    if (next !== date) last = { dateSetAt: Math.max(last.dateSetAt, time), isSetWithOthers: true }
    date = next
  }
  return last
}

/** A membership with an announcement possibly due. */
export interface DueMembership extends DateOrigin {
  readonly projectId: ProjectId
  readonly userId: UserId
  /** The effective end date. */
  readonly endDate: EndDate
  /** The project's, in milliseconds. */
  readonly grace: Millis
  /** When the project got this grace, in milliseconds since the epoch; `undefined` if it always had it. */
  readonly graceSetAt: number | undefined
  /** The last announcement, for this or an earlier end date; `undefined` if there was none. */
  readonly announced: LastAnnouncement | undefined
  /** The pause it is in, or one that has ended by itself and was not announced; `undefined` without one. */
  readonly pause?: Pause | undefined
}

/** The announcements to make, and when. */
export interface AnnouncementRules {
  /** The reminders, longest first, and then 0 for the end itself. What has expired comes after these. */
  readonly leads: ReadonlyArray<Millis>
  /** When announcements began, in milliseconds since the epoch: earlier ends are not announced. */
  readonly since: number
  /** Whether reminders are announced whose time had come when their end dates were set. Default: `false`. */
  readonly sendsLate?: boolean
  /** How long after a change of many what it sets off is announced at the earliest. Default: 0. */
  readonly hold?: Millis
}

/** Returns the rules that settings say, if announcements began at a time, in milliseconds since the epoch. */
export const announcementRules = (
  {
    holdAfterBulk: hold,
    late,
    reminders,
  }: {
    readonly holdAfterBulk: Millis
    readonly late: "skip" | "send"
    readonly reminders: ReadonlyArray<Millis>
  },
  since: number,
): AnnouncementRules => ({
  leads: reminderLeads(reminders),
  since,
  hold,
  sendsLate: late === "send",
})

/** Sorts reminders' leads and removes duplicates. */
export const reminderLeads = (reminders: ReadonlyArray<Millis>): ReadonlyArray<Millis> =>
  [...new Set([...reminders, Millis(0)])].toSorted((one, other) => other - one)

/** The decision about a membership. */
export interface ExpiryDecision {
  /** The announcement to make now, if any. */
  readonly announced: LastAnnouncement | undefined
  /** When to decide again, in milliseconds since the epoch; `undefined` if everything was announced. */
  readonly alarm: number | undefined
}

/** Whether an end date was announced with this lead, or with a shorter one. */
const covers = (last: LastAnnouncement | undefined, { endDate, lead }: LastAnnouncement): boolean =>
  last?.endDate === endDate && last.lead <= lead

/** Whether a reminder's time had come when its end date was set. */
const isLate = (lead: Millis, { dateSetAt: setAt, endDate }: Candidate): boolean =>
  lead > 0 && endDate - lead <= setAt

type Candidate = Omit<DueMembership, "pause" | "projectId" | "userId">

/** Returns when an announcement is due, in milliseconds since the epoch. */
const dueAt = ({ endDate, grace }: Candidate, lead: Millis): number =>
  lead === expiredLead ? endDate + grace : endDate - lead

/**
 * Returns when an announcement comes at the earliest, if a change of many has set it off: a new grace moves only the ends of
 * dates from before. A change by a clock that was far ahead holds nothing until its time is near.
 */
const heldUntil = (
  { dateSetAt: setAt, graceSetAt = -Infinity, isSetWithOthers }: Candidate,
  lead: Millis,
  hold: Millis,
  now: number,
): number => {
  const isMoved = lead <= 0 && setAt <= graceSetAt
  const changes = [...(isSetWithOthers ? [setAt] : []), ...(isMoved ? [graceSetAt] : [])]
  return Math.max(...changes.filter((at) => at <= now + hold)) + hold
}

/**
 * Decides on a membership's announcement. If several leads are due, only the last counts: the
 * others are late. If its time had come when the end date was set, a reminder is not announced, unless
 * the rules say so. Without grace, the end is not announced apart from the expiry. What a change of many
 * sets off is held for a while, in which it can be undone.
 *
 * @param now - milliseconds since the epoch
 */
export const decideExpiry = (
  { hold = Millis(0), leads, sendsLate = false, since }: AnnouncementRules,
  candidate: Candidate,
  now: number,
): ExpiryDecision => {
  const { announced: last, endDate, grace } = candidate
  const all = [...leads.filter((lead) => lead > 0 || grace > 0), expiredLead]
  const opensAt = (lead: Millis) =>
    Math.max(dueAt(candidate, lead), heldUntil(candidate, lead, hold, now))
  const reached = all.findLast((lead) => dueAt(candidate, lead) <= now)
  const next = all.find((lead) => opensAt(lead) > now)
  const announced =
    reached === undefined ||
    opensAt(reached) > now ||
    Math.max(endDate, dueAt(candidate, reached)) <= since ||
    (isLate(reached, candidate) && !sendsLate)
      ? undefined
      : { endDate, lead: reached }
  return {
    announced: announced === undefined || covers(last, announced) ? undefined : announced,
    alarm: next === undefined ? undefined : opensAt(next),
  }
}

/** An announcement of an end date to store, with its event draft and its audit row's action. */
export interface EndAnnouncement extends LastAnnouncement {
  readonly action: Extract<MembershipAction, "expiring" | "overdue" | "expired">
  readonly event: EventDraft
}

/** The announcement that a pause has ended by itself. */
interface ResumptionAnnouncement {
  readonly action: Extract<MembershipAction, "resumed">
  /** The end date after the pause. */
  readonly endDate: EndDate
  readonly event: EventDraft
}

/** An announcement to store. */
export type Announcement = EndAnnouncement | ResumptionAnnouncement

/** A store's changes to a membership with a due check, made in one step. */
export interface AnnouncementOutcome {
  /** The announcement to publish, audit and remember; `undefined` for none. */
  readonly announcement: Announcement | undefined
  /** The new alarm, in milliseconds since the epoch; `undefined` for none. */
  readonly alarm: number | undefined
}

/** Decides on a membership at a time, in milliseconds since the epoch. */
export type DecideAnnouncement = (candidate: DueMembership, now: number) => AnnouncementOutcome

/** Returns what is announced with a lead. */
export const actionOf = (lead: Millis): EndAnnouncement["action"] => {
  if (lead === expiredLead) return "expired"
  return lead === 0 ? "overdue" : "expiring"
}

const announcementOf = (
  { grace, projectId, userId }: DueMembership,
  { endDate, lead }: LastAnnouncement,
  at: number,
): EndAnnouncement => {
  const action = actionOf(lead)
  const event = draftEvent({
    id: derivedEventId(`${projectId} ${userId} ${endDate} ${lead}`, at),
    projectId,
    type: knownEventTypes[action],
    at,
    data: {
      project_id: projectId,
      user_id: userId,
      end_date: formatEndDate(endDate),
      // In JSON, undefined fields are omitted.
      reminder: action === "expiring" ? lead / 1000 : undefined,
      grace_until: action === "overdue" ? formatEndDate(graceEnd({ endDate, grace })) : undefined,
    },
  })
  return { endDate, lead, action, event }
}

const resumptionOf = (
  { endDate, projectId, userId }: DueMembership,
  until: number,
  at: number,
): ResumptionAnnouncement => ({
  action: "resumed",
  endDate,
  event: draftEvent({
    id: derivedEventId(`${projectId} ${userId} resumed ${until}`, at),
    projectId,
    type: knownEventTypes.resumed,
    at,
    data: {
      project_id: projectId,
      user_id: userId,
      end_date: formatEndDate(endDate),
      resumes_at: formatEndDate(EndDate(until)),
      request_id: null,
    },
  }),
})

/** Creates the decision function for stores. In a pause, nothing is announced but its end. */
export const makeDecideAnnouncement =
  (rules: AnnouncementRules): DecideAnnouncement =>
  (candidate, now) => {
    const { pause } = candidate
    if (pause !== undefined) {
      return pause.until !== undefined && isOver(pause, now)
        ? // What else is due comes after it.
          { alarm: now + 1, announcement: resumptionOf(candidate, pause.until, now) }
        : { alarm: pause.until, announcement: undefined }
    }
    const { alarm, announced } = decideExpiry(rules, candidate, now)
    return { alarm, announcement: announced && announcementOf(candidate, announced, now) }
  }
