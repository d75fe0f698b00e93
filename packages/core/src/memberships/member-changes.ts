/** Changes of several memberships in one step. */

import { TaggedError } from "../base/tagged-error.ts"
import type { EventDraft } from "../events/event.ts"
import { type FormedEndDate, isSameForm } from "./end-date.ts"
import type { UserId } from "./membership.ts"
import type { Pause } from "./pause.ts"

/** The term of a membership: its end date and its pause. */
export interface Term extends FormedEndDate {
  readonly pause: Pause | undefined
}

/** One of several changes. */
export interface MemberChange {
  readonly userId: UserId
  /** The event for the project's webhooks. */
  readonly event: EventDraft
  /** The expected current term; `undefined` if there is to be no membership. */
  readonly from: Term | undefined
  /** The new term; `undefined` removes the membership. */
  readonly to: Term | undefined
}

/** The most memberships in one step. */
export const maxMemberChanges = 1000

/** A membership is not as expected any more. */
export class MemberChangesConflict extends TaggedError("MemberChangesConflict") {}

/** Tells whether two terms are the same, or both missing. */
export const isSameTerm = (one: Term | undefined, other: Term | undefined): boolean =>
  one === undefined || other === undefined
    ? one === other
    : one.endDate === other.endDate &&
      isSameForm(one, other) &&
      one.pause?.since === other.pause?.since &&
      one.pause?.until === other.pause?.until
