/** Memberships: a user belongs to a project until an end date. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import type { Origin } from "../base/Origin.ts"
import type { ProjectId } from "../base/Project.ts"
import { refined } from "../base/Refined.ts"
import type { Mode } from "./Bulk.ts"
import { type EndDate, format } from "./EndDate.ts"
import type { Reason } from "./Reason.ts"

/** Identifier of a user: 1 to 64 decimal digits, compared as text (`7` and `07` are two users). */
export type UserId = Branded<string, "@tenure/core/UserId">

/** What a user id looks like. */
export const userIdPattern = /^[0-9]{1,64}$/u

/** Brands text as a user id. Throws a `TypeError` if it is invalid. */
export const UserId = refined<string, UserId>("user id", "1 to 64 decimal digits", (id) =>
  userIdPattern.test(id),
)

/** A user's membership in a project. It has expired once its end date has passed. */
export interface Membership {
  readonly projectId: ProjectId
  readonly userId: UserId
  readonly endDate: EndDate
}

/** Whether a membership has expired. */
export const membershipStates = ["active", "expired"] as const

/** Whether a membership has expired. */
export type MembershipState = (typeof membershipStates)[number]

/** Returns the state of a membership at an instant, in milliseconds since the epoch. */
export const stateAt = ({ endDate }: Pick<Membership, "endDate">, at: number): MembershipState =>
  endDate > at ? "active" : "expired"

/** A membership, and whether it had expired when it was read. */
export interface CurrentMembership extends Membership {
  readonly state: MembershipState
}

/** A project, and how much it has. */
export interface ProjectSummary {
  readonly id: ProjectId
  /** The number of memberships, with those that have expired. */
  readonly memberships: number
  readonly webhooks: number
  /** The end date of the last bulk extension, if there was one. */
  readonly lastBulkEndDate: EndDate | undefined
}

/** A member of a project and its end date, as an import lists them. */
export interface Dated {
  readonly userId: UserId
  readonly endDate: EndDate
}

/** The user has no membership in the project. */
export class MembershipNotFound extends Data.TaggedError("MembershipNotFound")<{
  readonly projectId: string
  readonly userId: string
}> {
  override get message(): string {
    return `The user "${this.userId}" has no membership in the project "${this.projectId}".`
  }
}

/** The membership does not end when the client expected, so it was left as it is. */
export class EndDateConflict extends Data.TaggedError("EndDateConflict")<{
  readonly projectId: string
  readonly userId: string
  readonly currentEndDate: EndDate
}> {
  override get message(): string {
    return `The membership of the user "${this.userId}" in the project "${this.projectId}" ends at ${format(this.currentEndDate)}.`
  }
}

/** Returns the error of a change that expects a membership to have another end date than it has. */
export const conflictOf = (
  { endDate, projectId, userId }: Membership,
  expected: EndDate | undefined,
): EndDateConflict | undefined =>
  expected === undefined || expected === endDate
    ? undefined
    : new EndDateConflict({ projectId, userId, currentEndDate: endDate })

/** An extension in the mode `neverShorten` left a membership as it is, because that ends later. */
export interface EndsLater {
  readonly _tag: "EndsLater"
  /** When it ends. */
  readonly endDate: EndDate
}

/** Tells whether an extension left the membership as it is. */
export const isEndsLater = (result: object): result is EndsLater =>
  "_tag" in result && result._tag === "EndsLater"

/** Makes the result of an extension that leaves a membership as it is. */
export const endsLater = (endDate: EndDate): EndsLater => ({ _tag: "EndsLater", endDate })

/** Returns the result of an extension that leaves a membership as it is; `undefined` if it sets the date. */
export const laterOf = (
  current: EndDate,
  { endDate, mode }: { readonly endDate: EndDate; readonly mode?: Mode | undefined },
): EndsLater | undefined =>
  mode === "neverShorten" && current > endDate ? endsLater(current) : undefined

/** What happens to memberships, as the audit trail keeps it. */
export const membershipActions = [
  "granted",
  "imported",
  "extended",
  // All memberships of the project.
  "bulk_extended",
  // All memberships of the project; those that ended later were left as they were.
  "bulk_lengthened",
  "ended",
  // A reminder that the membership will end was published.
  "expiring",
  // The membership has ended by itself, and that was published.
  "expired",
] as const

/** What happened to memberships, as the audit trail keeps it. */
export type MembershipAction = (typeof membershipActions)[number]

/** The action of a bulk extension of each mode. */
export const bulkActions = {
  set: "bulk_extended",
  neverShorten: "bulk_lengthened",
} as const satisfies Record<Mode, MembershipAction>

/** A place in the audit trail: two numbers, which only the store understands. */
export type AuditCursor = Branded<string, "@tenure/core/AuditCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const AuditCursor = refined<string, AuditCursor>("cursor", "a cursor of the trail", (text) =>
  /^\d{1,18}\.\d{1,18}$/u.test(text),
)

/** What somebody was shown who asked for it: the secret of a webhook, or the data of an event. */
export const shownActions = ["secret_shown", "data_shown"] as const

/** What happens to other things in a project, as the audit trail keeps it. */
export const projectActions = [
  // Without the user id, which no row has any more.
  "person_erased",
  "webhook_created",
  "webhook_deleted",
  "webhook_enabled",
  // By the dispatcher, because all attempts had failed for too long.
  "webhook_disabled",
  "secret_rotated",
  "signing_key_added",
  ...shownActions,
] as const

/** What happens to what belongs to no project, as the audit trail keeps it. */
export const globalActions = [
  "project_created",
  // With all that belonged to it, its audit trail included.
  "project_deleted",
  "key_issued",
  // A key that existed opens more projects.
  "key_opened",
  "key_revoked",
] as const

/** What happened to other things than memberships, as the audit trail keeps it. */
export type OtherAction = (typeof projectActions | typeof globalActions)[number]

/** What somebody was shown, as the audit trail keeps it. */
export interface Shown {
  readonly action: (typeof shownActions)[number]
  /** The id of the webhook or the event. */
  readonly subject: string
}

/** What happened, as the audit trail keeps it. */
export type Action = MembershipAction | OtherAction

/** A row of the audit trail: who changed what, in which request and why, from and to which end date. */
export interface AuditRow {
  /** Where the row is in the trail; the rows after it are older. */
  readonly cursor: AuditCursor
  /** `undefined` for what belongs to no project: API keys, and projects themselves. */
  readonly projectId: ProjectId | undefined
  /** `undefined` if all memberships of the project were changed, or something else, or if the user was erased. */
  readonly userId: UserId | undefined
  readonly action: Action
  /** The id of the webhook, the event, the API key or the project; `undefined` for memberships. */
  readonly subject: string | undefined
  readonly origin: Origin
  /** The name of the API key of the origin; `undefined` if it has none, or if that is no API key. */
  readonly keyName: string | undefined
  /** Why it was changed; `undefined` if nobody said. */
  readonly reason: Reason | undefined
  /** The end date before; `undefined` if there was none, or if there were many. */
  readonly from: EndDate | undefined
  /** The end date after; `undefined` if the membership was ended. */
  readonly to: EndDate | undefined
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
}
