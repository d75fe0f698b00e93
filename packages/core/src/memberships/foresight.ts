/** How many announcements a change of end dates sets off in the next days. */

import { Millis } from "../base/time.ts"
import type { ExpirySettings } from "./announcements.ts"
import type { AnnouncementCounts } from "./bulk-extension.ts"
import type { ChangedEnd } from "./dry-run.ts"
import { EndDate } from "./end-date.ts"
import { cellOf } from "./ends.ts"
import {
  type AnnouncementRules,
  type DueMembership,
  type LastAnnouncement,
  actionOf,
  announcementRules,
  decideExpiry,
} from "./expiry.ts"

const dayMillis = 86_400_000

/** How far it looks. */
const foreseenMillis = 7 * dayMillis

const farMillis = 1000 * 365 * dayMillis

// Any time: end dates count from it.
const now = Date.UTC(2000, 0, 1)

/** An announcement, and when it comes. */
interface Foreseen extends LastAnnouncement {
  readonly at: number
}

/** Returns what is announced for an end date that a change sets now, if nothing else happens. */
const foreseeOne = (
  rules: AnnouncementRules,
  set: Pick<DueMembership, "endDate" | "grace" | "isSetWithOthers">,
  isToldOverdue: boolean,
): ReadonlyArray<Foreseen> => {
  const { endDate } = set
  const found: Array<Foreseen> = []
  const before = isToldOverdue ? { endDate, lead: Millis(0) } : undefined
  const candidate = { ...set, graceSetAt: undefined, dateSetAt: now }
  let at: number | undefined = now
  while (at !== undefined && at <= now + foreseenMillis) {
    const { alarm, announced } = decideExpiry(
      rules,
      { ...candidate, announced: found.at(-1) ?? before },
      at,
    )
    if (announced !== undefined) found.push({ ...announced, at })
    at = alarm
  }
  return found
}

/** Counts announcements by the new end dates of memberships. */
export interface Foresight {
  /** Where ranges of end dates begin in which all memberships get the same, in milliseconds from now, ascending. */
  readonly offsets: ReadonlyArray<number>
  /**
   * Counts the announcements.
   *
   * @param moved - as in a `StoredPreview`
   */
  readonly count: (moved: ReadonlyArray<number>) => AnnouncementCounts
  /**
   * Counts the announcements for memberships one by one.
   *
   * @param at - the time of the change, in milliseconds since the epoch
   */
  readonly countEach: (changed: ReadonlyArray<ChangedEnd>, at: number) => AnnouncementCounts
}

/** What a change is about. */
interface ForeseenChange {
  /** The grace of the project. */
  readonly grace: Millis
  /** Whether it is a change of many. */
  readonly isSetWithOthers: boolean
  /** When announcements began, in milliseconds from now. */
  readonly sinceFromNow: number
}

/** Tells what a change of end dates sets off in the next seven days. */
export const foresee = (
  settings: ExpirySettings,
  { grace, isSetWithOthers, sinceFromNow }: ForeseenChange,
): Foresight => {
  // Clocks may be anything.
  const since = Math.round(Math.min(farMillis, Math.max(-farMillis, sinceFromNow)))
  const rules = announcementRules(settings, now + since)
  const leads = [...rules.leads, -grace]
  // What is due at the end of a span, is announced in it.
  const spans = [0, settings.holdAfterBulk, dayMillis, foreseenMillis]
  const all = [
    ...leads.flatMap((lead) => spans.map((span) => lead + span + 1)),
    // What ended before announcements began, is not announced.
    since + 1,
    since - grace + 1,
  ]
  const offsets = [...new Set(all)].toSorted((one, other) => one - other)
  const each = [false, true].flatMap((isToldOverdue) =>
    [(offsets[0] ?? 0) - 1, ...offsets].map((offset) =>
      foreseeOne(rules, { endDate: EndDate(now + offset), grace, isSetWithOthers }, isToldOverdue),
    ),
  )
  const count = (moved: ReadonlyArray<number>): AnnouncementCounts => {
    const counts = { expiring: 0, overdue: 0, expired: 0, next24Hours: 0 }
    for (const [part, found] of each.entries()) {
      const members = moved[part] ?? 0
      for (const { at, lead } of found) {
        counts[actionOf(lead)] += members
        if (at <= now + dayMillis) counts.next24Hours += members
      }
    }
    return counts
  }
  return {
    offsets,
    count,
    countEach: (changed, at) => {
      const moved = Array.from({ length: offsets.length + 1 }, () => 0)
      for (const { after, before } of changed) {
        if (before === after) continue
        const part = cellOf({ bounds: offsets }, after - at)
        moved[part] = (moved[part] ?? 0) + 1
      }
      return count(moved)
    },
  }
}
