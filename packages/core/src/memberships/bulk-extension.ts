/** The bulk extensions of a project as a log, and the end dates of its members that follow from it. */

import * as Data from "effect/Data"
import type { Origin } from "../base/change-context.ts"
import { Millis } from "../base/time.ts"
import type { EventId } from "../events/event.ts"
import {
  type BulkMode,
  EndDate,
  type OrderedEndDate,
  bulkModeNames,
  lastEndDate,
} from "./end-date.ts"
import type { Reason, UserId } from "./membership.ts"

/** What a bulk extension does: give every member a date, at least a date, or more time. */
export type BulkChange =
  | { readonly mode: BulkMode; readonly endDate: EndDate }
  /** In milliseconds. */
  | { readonly mode: "extendBy"; readonly by: Millis }

/** The modes of bulk extensions as JSON has them. */
export const bulkChangeNames = {
  ...bulkModeNames,
  extendBy: "extend_by",
} as const satisfies Record<BulkChange["mode"], string>

/**
 * What bulk extensions make of an end date: they add to it, and then raise it to a minimum. Every bulk extension has
 * this form, and so has any sequence of them.
 */
export interface Adjustment {
  /** In milliseconds; `undefined` if the date before makes no difference. */
  readonly addition: Millis | undefined
  /** `undefined` for no minimum. */
  readonly minimum: EndDate | undefined
}

/** Changes no date. */
const noAdjustment: Adjustment = { addition: Millis(0), minimum: undefined }

/** Returns what a bulk extension makes of end dates. */
export const adjustmentOf = (change: BulkChange): Adjustment => {
  switch (change.mode) {
    case "set":
      return { addition: undefined, minimum: change.endDate }
    case "neverShorten":
      return { addition: Millis(0), minimum: change.endDate }
    case "extendBy":
      return { addition: change.by, minimum: undefined }
  }
}

/** Adds to a date. Nothing ends after the year 9999. An absent part has no sum. */
const plus = (date: number | undefined, addition: number | undefined): number =>
  date === undefined || addition === undefined ? -Infinity : Math.min(date + addition, lastEndDate)

/** Adjusts a date, in milliseconds. `-Infinity` stands for an unknown date, before all others. */
export const adjust = (date: number, { addition, minimum }: Adjustment): number =>
  Math.max(plus(date, addition), minimum ?? -Infinity)

/** Returns the adjustment that is the same as one after the other. */
export const composeAdjustments = (first: Adjustment, second: Adjustment): Adjustment => {
  const minimum = Math.max(plus(first.minimum, second.addition), second.minimum ?? -Infinity)
  return {
    addition:
      first.addition === undefined || second.addition === undefined
        ? undefined
        : Millis(first.addition + second.addition),
    minimum: minimum === -Infinity ? undefined : EndDate(minimum),
  }
}

/** A bulk extension in a log. */
export interface LoggedBulkExtension {
  /** Its sequence number in the project: the greater number is later. */
  readonly order: number
  readonly change: BulkChange
  readonly isUndone: boolean
}

/** A bulk extension with all later ones in the log. */
export interface ComposedBulkExtensions extends Adjustment {
  readonly order: number
}

/** Composes each bulk extension in a log, oldest first, with all later ones. Those that are undone adjust nothing. */
export const composeLog = (
  log: ReadonlyArray<LoggedBulkExtension>,
): ReadonlyArray<ComposedBulkExtensions> => {
  let later = noAdjustment
  return log
    .toReversed()
    .map(({ change, isUndone, order }) => {
      if (!isUndone) later = composeAdjustments(adjustmentOf(change), later)
      return { order, ...later }
    })
    .toReversed()
}

/**
 * Returns a member's end date.
 *
 * @param composed - the project's bulk extensions, oldest first, each composed with all later ones
 * @param own - the date that was last set for this member alone
 */
export const effectiveEndDate = (
  composed: ReadonlyArray<ComposedBulkExtensions>,
  own: OrderedEndDate,
): EndDate => {
  if ((composed.at(-1)?.order ?? -Infinity) <= own.order) return own.endDate
  const first = composed.find(({ order }) => order > own.order)
  return first === undefined ? own.endDate : EndDate(adjust(own.endDate, first))
}

/** How many bulk extensions of a project are kept apart, so that each can be undone. Older ones are settled. */
export const mostBulkExtensions = 64

/** Who undid a bulk extension, and when. */
export interface Undone {
  readonly by: Origin
  /** In milliseconds since the epoch. */
  readonly at: number
}

/** A bulk extension as the project's list shows it. */
export interface BulkExtensionRecord {
  /** The id of its event. */
  readonly id: EventId
  readonly change: BulkChange
  /** When it was made, in milliseconds since the epoch. */
  readonly at: number
  readonly reason: Reason | undefined
  readonly origin: Origin
  /** The project's number of memberships then. */
  readonly total: number
  readonly undone: Undone | undefined
}

/** The project has no such bulk extension. */
export class BulkExtensionNotFound extends Data.TaggedError("BulkExtensionNotFound")<{
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `There is no bulk extension "${this.bulkExtensionId}".`
  }
}

/** The bulk extension is undone already. */
export class BulkExtensionUndone extends Data.TaggedError("BulkExtensionUndone")<{
  readonly bulkExtensionId: string
}> {
  override get message(): string {
    return `The bulk extension "${this.bulkExtensionId}" is undone already.`
  }
}

/** The bulk extension is too old to be undone. */
export class BulkExtensionSettled extends Data.TaggedError("BulkExtensionSettled")<{
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
  readonly userId: UserId
  readonly endDate: EndDate
  readonly wouldEnd: EndDate
}

/** The number of memberships that a preview shows. */
export const mostExamples = 10
