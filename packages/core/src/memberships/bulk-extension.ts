/** Bulk extensions as a project lists them, and the errors when undoing one. */

import type { Origin } from "../base/change-context.ts"
import { TaggedError } from "../base/tagged-error.ts"
import type { EventId } from "../events/event.ts"
import type { BulkChange, EndDate } from "./end-date.ts"
import type { Reason, UserId } from "./membership.ts"

/** The number of bulk extensions a project keeps apart, so that each can be undone. Older ones are settled. */
export const maxBulkExtensions = 64

/** The principal and time behind an undo. */
interface Undone {
  /** The principal and the request. */
  readonly by: Origin
  /** In milliseconds since the epoch. */
  readonly at: number
}

/** A bulk extension as the project's list shows it. */
export interface BulkExtensionRecord {
  /** Its event's id. */
  readonly id: EventId
  /** Its change to the end dates. */
  readonly change: BulkChange
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  /** Why it was made; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The request behind it. */
  readonly origin: Origin
  /** The project's membership count then. */
  readonly total: number
  /** The undo's origin and time; `undefined` if it was not undone. */
  readonly undone: Undone | undefined
}

/** The project has no such bulk extension. */
export class BulkExtensionNotFound extends TaggedError("BulkExtensionNotFound")<{
  /** The id without a bulk extension. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `There is no bulk extension "${this.bulkExtensionId}".`
  }
}

/** The bulk extension is undone already. */
export class BulkExtensionUndone extends TaggedError("BulkExtensionUndone")<{
  /** The bulk extension's id. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `The bulk extension "${this.bulkExtensionId}" is undone already.`
  }
}

/** The bulk extension is too old to be undone. */
export class BulkExtensionSettled extends TaggedError("BulkExtensionSettled")<{
  /** The bulk extension's id. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `The bulk extension "${this.bulkExtensionId}" is too old to be undone.`
  }
}

/** How many announcements a change sets off in the next seven days, if nothing else happens. */
export interface AnnouncementCounts {
  /** How many reminders. */
  readonly expiring: number
  /** How many ends that are followed by grace. */
  readonly overdue: number
  /** How many expiries. */
  readonly expired: number
  /** How many of all these come in the next 24 hours. */
  readonly next24Hours: number
}

/** The effect a change to all memberships would have, as a store counts it. */
export interface StoredPreview extends Omit<BulkPreview, "announcements"> {
  /**
   * How many memberships would get another end date before the first offset, and then from each on; then the same for those
   * whose last announcement was that they are overdue at this date. Left out are those whose last
   * announcement was the expiry, at this date, or at any if they stay expired. `undefined` if the store announces no ends.
   */
  readonly moved?: ReadonlyArray<number> | undefined
}

/** The effect a change to all memberships would have. */
export interface BulkPreview {
  /** The project's membership count. */
  readonly total: number
  /** How many would end earlier than they do now. */
  readonly shortened: number
  /** How many have ended, and would be active again. */
  readonly reactivated: number
  /** The number of memberships that would newly end at the last instant in the year 9999. */
  readonly capped: number
  /** How many are for life, and would end. */
  readonly lifetimesEnded: number
  /** Up to ten memberships with another end date than now, by user id. */
  readonly examples: ReadonlyArray<BulkExample>
  /** The announcements for memberships with another end date than now; `undefined` if ends are not announced. */
  readonly announcements?: AnnouncementCounts | undefined
}

/** A membership in a preview. */
export interface BulkExample {
  /** The user's id. */
  readonly userId: UserId
  /** The end date now. */
  readonly endDate: EndDate
  /** The end date after the change. */
  readonly wouldEnd: EndDate
}

/** The number of memberships shown in a preview. */
export const maxExamples = 10
