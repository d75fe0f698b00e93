/** Memberships: a user belongs to a project until an end date. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { Origin } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectId, brandedWhere, copyOwn } from "../base/values.ts"
import type { Event } from "../events/event.ts"
import {
  type BulkMode,
  type EndDate,
  type EndDateInput,
  formatEndDate,
  readEndDate,
} from "./end-date.ts"

/** Identifier of a user: 1 to 64 decimal digits, compared as text (`7` and `07` are two users). */
export type UserId = Branded<string, "@tenure/core/UserId">

/** What a user id looks like. */
export const userIdPattern = /^[0-9]{1,64}$/u

/** Brands text as a user id. Throws a `TypeError` if it is invalid. */
export const UserId = brandedWhere<string, UserId>("user id", "1 to 64 decimal digits", (id) =>
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
export interface DatedMembership {
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
    return `The membership of the user "${this.userId}" in the project "${this.projectId}" ends at ${formatEndDate(this.currentEndDate)}.`
  }
}

/** Returns the error of a change that expects a membership to have another end date than it has. */
export const endDateConflict = (
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
  { endDate, mode }: { readonly endDate: EndDate; readonly mode?: BulkMode | undefined },
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
} as const satisfies Record<BulkMode, MembershipAction>

/** A place in the audit trail: two numbers, which only the store understands. */
export type AuditCursor = Branded<string, "@tenure/core/AuditCursor">

/** Brands a cursor. Throws a `TypeError` if it is invalid. */
export const AuditCursor = brandedWhere<string, AuditCursor>(
  "cursor",
  "a cursor of the trail",
  (text) => /^\d{1,18}\.\d{1,18}$/u.test(text),
)

/** What somebody was shown who asked for it: the secret of a webhook, or the data of an event. */
export const disclosureActions = ["secret_shown", "data_shown"] as const

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
  ...disclosureActions,
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
export type NonMembershipAction = (typeof projectActions | typeof globalActions)[number]

/** What somebody was shown, as the audit trail keeps it. */
export interface Disclosure {
  readonly action: (typeof disclosureActions)[number]
  /** The id of the webhook or the event. */
  readonly subject: string
}

/** What happened, as the audit trail keeps it. */
export type AuditAction = MembershipAction | NonMembershipAction

/** A row of the audit trail: who changed what, in which request and why, from and to which end date. */
export interface AuditRow {
  /** Where the row is in the trail; the rows after it are older. */
  readonly cursor: AuditCursor
  /** `undefined` for what belongs to no project: API keys, and projects themselves. */
  readonly projectId: ProjectId | undefined
  /** `undefined` if all memberships of the project were changed, or something else, or if the user was erased. */
  readonly userId: UserId | undefined
  readonly action: AuditAction
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

/** Why a membership was changed, in the words of whoever asked for it. */

/** The reason for a change: 1 to 500 characters. */
export type Reason = Branded<string, "@tenure/core/Reason">

/** What a reason looks like. PostgreSQL cannot store NUL, and a lone surrogate has no UTF-8 encoding. */
export const reasonPattern = /^[^\0\p{Cs}]{1,500}$/u

/** Brands text as a reason. Throws a `TypeError` if it is invalid. */
export const Reason = brandedWhere<string, Reason>("reason", "1 to 500 characters", (text) =>
  reasonPattern.test(text),
)

/** The users whose memberships a list is to have. */

// The most users that can be named.
const most = 1000

const isUserId = (given: unknown): given is UserId => typeof given === "string" && UserId.is(given)

/** Returns what are user ids, or `undefined`. */
export const parseUserIds = (given: unknown): ReadonlyArray<UserId> | undefined =>
  Array.isArray(given) && given.length <= most && given.every(isUserId) ? given : undefined

/** What user ids look like, for error messages. */
export const userIdsFormat = `at most ${Setting.grouped(most)} user ids, each ${UserId.expected}`

/** The definition of the users, which may be left out for all. */
export const userIdsOption = Setting.optional(
  Setting.custom<ReadonlyArray<string>, ReadonlyArray<UserId>>(
    `an array of ${userIdsFormat}`,
    parseUserIds,
  ),
)

/** The history of one membership, from the audit trail of its project. */

const isBulk = ({ action }: AuditRow): boolean =>
  action === "bulk_extended" || action === "bulk_lengthened"

/**
 * Selects the changes of a membership: its own, and the bulk extensions that applied to it. For stores
 * that read a whole trail.
 *
 * @param rows - the trail of the project, oldest first
 * @param isMember - whether the membership exists now
 */
export const changesOfUser = (
  rows: ReadonlyArray<AuditRow>,
  userId: UserId,
  isMember: boolean,
): ReadonlyArray<AuditRow> => {
  const first = rows.find((row) => row.userId === userId)
  const existed = first === undefined ? isMember : first.from !== undefined
  // A date that the trail does not tell any more is taken to be earlier than any other.
  let date = existed ? -Infinity : undefined
  return rows.filter((row) => {
    if (row.userId === userId) {
      date = row.to
      return true
    }
    const { to = -Infinity } = row
    const applies =
      isBulk(row) && date !== undefined && (row.action === "bulk_extended" || date < to)
    if (applies) date = to
    return applies
  })
}

/** What events say of a person who is erased. */

const isOfMembership = ({ type }: Event): boolean => type.startsWith("membership.")

/** Matches, in the body of an event, each `user_id` that is this user. The digits of an id need no escape. */
const userIn = (userId: UserId): RegExp =>
  new RegExp(`"user_id":(?:"${userId}"|${userId})(?=[,}])`, "g")

const reason = /"reason":"(?:[^"\\]|\\.)*"/

/** Tells whether an event has a user id. */
export const mentionsUser = ({ body }: Event, userId: UserId): boolean => userIn(userId).test(body)

/**
 * Returns an event without a user id: each `user_id` that is this user is null then, at any depth of the
 * data, and so is the reason of a change of the membership, which may name the person.
 */
export const eraseUser = (event: Event, userId: UserId): Event => {
  const body = event.body.replace(userIn(userId), '"user_id":null')
  return {
    ...event,
    body: isOfMembership(event) ? body.replace(reason, '"reason":null') : body,
  }
}

/** The list that an import takes. */

/** A membership as a host passes it. */
export interface ImportRow {
  readonly userId: string
  readonly endDate: EndDateInput
}

/** The most memberships of one import. */
export const maxMemberships = 10_000

const invalid = (field: string, problem: string): Result.Result<never, InvalidInput> =>
  Result.fail(new InvalidInput({ field, problem }))

const readOne = (given: ImportRow, field: string): Result.Result<DatedMembership, InvalidInput> => {
  const { endDate: date, userId } = copyOwn(given)
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return invalid(`${field}.userId`, `must be ${UserId.expected}`)
  }
  return Result.mapBoth(readEndDate(date), {
    onFailure: ({ message }) => new InvalidInput({ field: `${field}.endDate`, problem: message }),
    onSuccess: (endDate) => ({ userId, endDate }),
  })
}

/** Checks and converts the list. Fails at the first membership that is invalid or repeats a user. */
export const readImport = (
  given: ReadonlyArray<ImportRow>,
): Result.Result<ReadonlyArray<DatedMembership>, InvalidInput> => {
  if (!Array.isArray(given) || given.length > maxMemberships) {
    return invalid("memberships", "must be an array of at most 10,000 memberships")
  }
  const byUser = new Map<UserId, DatedMembership>()
  for (let index = 0; index < given.length; index++) {
    const field = `memberships[${index}]`
    const dated = readOne(given[index], field)
    if (Result.isFailure(dated)) return Result.fail(dated.failure)
    const { userId } = dated.success
    if (byUser.has(userId)) return invalid(`${field}.userId`, "must not be that of another one")
    byUser.set(userId, dated.success)
  }
  return Result.succeed([...byUser.values()])
}
