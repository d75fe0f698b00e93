/** How many announcements a change of many end dates sets off in the next days. */

import { Millis } from "../base/time.ts"
import type { ExpirySettings } from "./announcements.ts"
import type { AnnouncementCounts } from "./bulk-extension.ts"
import { EndDate } from "./end-date.ts"
import {
  type AnnouncementRules,
  type LastAnnouncement,
  announcementRules,
  decideExpiry,
  expiredLead,
} from "./expiry.ts"

const dayMillis = 86_400_000

/** How far it looks. */
const foreseenMillis = 7 * dayMillis

// Any time: end dates count from it.
const now = Date.UTC(2000, 0, 1)

/** An announcement, and when it comes. */
interface Foreseen extends LastAnnouncement {
  readonly at: number
}

/** Returns what is announced for an end date that a change of many sets now, if nothing else happens. */
const foreseeOne = (
  rules: AnnouncementRules,
  grace: Millis,
  endDate: EndDate,
  isToldOverdue: boolean,
): ReadonlyArray<Foreseen> => {
  const found: Array<Foreseen> = []
  const before = isToldOverdue ? { endDate, lead: Millis(0) } : undefined
  const set = { endDate, grace, graceSetAt: undefined, dateSetAt: now, isSetWithOthers: true }
  let at: number | undefined = now
  while (at !== undefined && at <= now + foreseenMillis) {
    const { alarm, announced } = decideExpiry(
      rules,
      { ...set, announced: found.at(-1) ?? before },
      at,
    )
    if (announced !== undefined) found.push({ ...announced, at })
    at = alarm
  }
  return found
}

const countsOf = (found: ReadonlyArray<Foreseen>): AnnouncementCounts => ({
  expiring: found.filter(({ lead }) => lead > 0).length,
  overdue: found.filter(({ lead }) => lead === 0).length,
  expired: found.filter(({ lead }) => lead === expiredLead).length,
  next24Hours: found.filter(({ at }) => at <= now + dayMillis).length,
})

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
}

/**
 * Tells what a bulk extension or its undo sets off in the next seven days.
 *
 * @param grace - the grace of the project
 */
export const foresee = (settings: ExpirySettings, grace: Millis): Foresight => {
  const rules = announcementRules(settings, -Infinity)
  const leads = [...rules.leads, -grace]
  // What is due at the end of a span, is announced in it.
  const spans = [0, settings.holdAfterBulk, dayMillis, foreseenMillis]
  const all = leads.flatMap((lead) => spans.map((span) => lead + span + 1))
  const offsets = [...new Set(all)].toSorted((one, other) => one - other)
  const each = [false, true].flatMap((isToldOverdue) =>
    [-foreseenMillis - grace, ...offsets].map((offset) =>
      countsOf(foreseeOne(rules, grace, EndDate(now + offset), isToldOverdue)),
    ),
  )
  return {
    offsets,
    count: (moved) => {
      const sumOf = (name: keyof AnnouncementCounts): number =>
        each.reduce((sum, counts, cell) => sum + counts[name] * (moved[cell] ?? 0), 0)
      return {
        expiring: sumOf("expiring"),
        overdue: sumOf("overdue"),
        expired: sumOf("expired"),
        next24Hours: sumOf("next24Hours"),
      }
    },
  }
}
