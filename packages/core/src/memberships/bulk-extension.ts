/** Bulk extensions as a project lists them, and what undoing one needs. */

import type { Origin } from "../base/change-context.ts"
import { TaggedError } from "../base/tagged-error.ts"
import type { EventId } from "../events/event.ts"
import type { BulkChange, EndDate } from "./end-date.ts"
import type { Reason, UserId } from "./membership.ts"

/** How many bulk extensions of a project are kept apart, so that each can be undone. Older ones are settled. */
export const maxBulkExtensions = 64

/** Who undid a bulk extension, and when. */
interface Undone {
  /** Who undid it. */
  readonly by: Origin
  /** In milliseconds since the epoch. */
  readonly at: number
}

/** A bulk extension as the project's list shows it. */
export interface BulkExtensionRecord {
  /** The id of its event. */
  readonly id: EventId
  /** What it did to the end dates. */
  readonly change: BulkChange
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  /** Why it was made; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** Who made it. */
  readonly origin: Origin
  /** The project's number of memberships then. */
  readonly total: number
  /** Who undid it, and when; `undefined` if nobody did. */
  readonly undone: Undone | undefined
}

/** The project has no such bulk extension. */
export class BulkExtensionNotFound extends TaggedError("BulkExtensionNotFound")<{
  /** The id that no bulk extension has. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `There is no bulk extension "${this.bulkExtensionId}".`
  }
}

/** The bulk extension is undone already. */
export class BulkExtensionUndone extends TaggedError("BulkExtensionUndone")<{
  /** The id of the bulk extension. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `The bulk extension "${this.bulkExtensionId}" is undone already.`
  }
}

/** The bulk extension is too old to be undone. */
export class BulkExtensionSettled extends TaggedError("BulkExtensionSettled")<{
  /** The id of the bulk extension. */
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `The bulk extension "${this.bulkExtensionId}" is too old to be undone.`
  }
}

/** What a change of all memberships would do. */
export interface BulkPreview {
  /** The project's number of memberships. */
  readonly total: number
  /** How many would end earlier than they do now. */
  readonly shortened: number
  /** How many have ended, and would be active again. */
  readonly reactivated: number
  /** How many would end at the last instant of the year 9999, and do not now. */
  readonly capped: number
  /** Up to ten memberships with another end date than now, by user id. */
  readonly examples: ReadonlyArray<BulkExample>
}

/** A membership in a preview. */
export interface BulkExample {
  /** The id of the user. */
  readonly userId: UserId
  /** The end date now. */
  readonly endDate: EndDate
  /** The end date after the change. */
  readonly wouldEnd: EndDate
}

/** The number of memberships that a preview shows. */
export const maxExamples = 10
