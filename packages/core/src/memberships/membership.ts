/** Memberships: a user belongs to a project until an end date. */

import type { Branded } from "effect/Brand"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"
import type { InstantInput } from "../base/time.ts"
import { type ProjectId, brandedWhere, copyOwn } from "../base/values.ts"
import {
  Day,
  type TimeZone,
  dayEndedAt,
  endOfDay,
  keptDaySetting,
  timeZoneSetting,
} from "./calendar.ts"
import {
  type BulkMode,
  EndDate,
  type EndDateInput,
  formatEndDate,
  endDateSetting,
  orForLife,
  type DateForm,
  type OptionalForm,
  isSameForm,
  lastEndDate,
} from "./end-date.ts"
import { type Metadata, metadataSetting } from "./metadata.ts"
import { type Pause, readPause } from "./pause.ts"
import type { ProjectSettings } from "./project-settings.ts"

/**
 * A user id: 1 to 128 visible ASCII characters, but not `.` or `..`: URL parsers remove these from a
 * path, even encoded. Compared as text: `7` and `07` are two users, and so are `Ada` and `ada`.
 */
export type UserId = Branded<string, "@tenure/core/UserId">

/** The pattern for user ids. It also matches `.` and `..`, because many regular expressions cannot look ahead. */
export const userIdPattern = /^[!-~]{1,128}$/u

/** Brands text as a user id. Throws a `TypeError` if it is invalid. */
export const UserId = brandedWhere<string, UserId>(
  "user id",
  "1 to 128 visible characters of ASCII, and not . or ..",
  (id) => userIdPattern.test(id) && id !== "." && id !== "..",
)

/** How user ids may begin, also with `.` and `..`. */
export type UserIdPrefix = Branded<string, "@tenure/core/UserIdPrefix">

/** Brands text as a prefix. Throws a `TypeError` if no user id can begin so. */
export const UserIdPrefix = brandedWhere<string, UserIdPrefix>(
  "prefix",
  "1 to 128 visible characters of ASCII",
  (text) => userIdPattern.test(text),
)

const userIdRules = ["text", "digits"] as const

/** The rule for user ids that can become members. */
export interface UserIdRule {
  readonly expected: string
  readonly is: (id: UserId) => boolean
}

const ruleOf = (given: unknown): UserIdRule | undefined => {
  if (given === "text") return { expected: UserId.expected, is: () => true }
  if (given === "digits") return { expected: "digits", is: (id) => /^[0-9]+$/.test(id) }
  if (!(given instanceof RegExp)) return undefined
  // With the flag g or y, it would begin after its last match.
  const pattern = new RegExp(given.source, given.flags.replace(/[gy]/g, ""))
  return { expected: `text that matches ${String(pattern)}`, is: (id) => pattern.test(id) }
}

/** The option for this rule. */
export const userIdRuleOption = Setting.custom<(typeof userIdRules)[number] | RegExp, UserIdRule>(
  '"text", "digits" or a regular expression',
  ruleOf,
)

/** A user in a project. */
export interface Member {
  /** 1 to 255 characters, no control characters. */
  readonly projectId: string
  /**
   * The host's own id: 1 to 128 visible ASCII characters, such as `auth0|2ab` or `ada@example.com`; not
   * `.` or `..`.
   */
  readonly userId: string
}

/** A user's membership in a project, and when it ends. */
export interface MembershipEnd {
  /** The project's id. */
  readonly projectId: ProjectId
  /** The host's own user id. */
  readonly userId: UserId
  /** When it ends, or has ended, in milliseconds since the epoch. */
  readonly endDate: EndDate
}

/** A user's membership in a project, as stores return it, with the project's settings. */
export interface Membership extends MembershipEnd, DateForm, ProjectSettings {
  /** The host's notes on it: texts by name, such as `{ plan: "gold" }`. */
  readonly metadata: Metadata
  /** The pause it is in, by the store's clock; `undefined` without one. The end date stands meanwhile. */
  readonly pause: Pause | undefined
}

/** Whether a membership is active, paused or has expired. */
export const membershipStates = ["active", "paused", "expired"] as const

/** Whether a membership is active, paused or has expired. */
export type MembershipState = (typeof membershipStates)[number]

/** When a membership ends, for how long it is still active then, and whether it is paused. */
type Lasting = Pick<Membership, "endDate" | "grace" | "pause">

/** Returns a membership's state at an instant, in milliseconds since the epoch. It has expired when its grace is over. */
export const stateAt = ({ endDate, grace, pause }: Lasting, at: number): MembershipState => {
  if (pause !== undefined) return "paused"
  return endDate + grace > at ? "active" : "expired"
}

/** Returns when a membership's grace is over, in the year 9999 at the latest. */
export const graceEnd = ({ endDate, grace }: Pick<Membership, "endDate" | "grace">): EndDate =>
  EndDate(Math.min(endDate + grace, lastEndDate))

/** Returns when a membership's grace is over; `undefined` unless it has ended, and is still active. */
const graceUntilAt = (lasting: Lasting, at: number): EndDate | undefined =>
  lasting.endDate <= at && stateAt(lasting, at) === "active" ? graceEnd(lasting) : undefined

/** A membership, and its state when it was read. */
export interface CurrentMembership extends MembershipEnd {
  /** The last whole day, if the end date was given as a day, and ends one in the project's time zone. */
  readonly through: Day | undefined
  /** The day of the month that months count with, if the end date does not tell it. */
  readonly keptDay: number | undefined
  /** The host's notes on it: texts by name, such as `{ plan: "gold" }`. */
  readonly metadata: Metadata
  /** `"paused"` in a pause; `"expired"` if its end date was over, and the project's grace, too. */
  readonly state: MembershipState
  /** When its pause began, in milliseconds since the epoch, if it is paused. The end date stands meanwhile. */
  readonly pausedAt: number | undefined
  /** When its pause ends, in milliseconds since the epoch; `undefined` if it is not paused, or until it is resumed. */
  readonly resumesAt: number | undefined
  /** When it expires, in milliseconds since the epoch, if it has ended, and is still active. */
  readonly graceUntil: EndDate | undefined
}

/** Returns a membership as hosts get it, with its state at an instant, in milliseconds since the epoch. */
export const currentMembership = (
  { endDate, grace, inDays, keptDay, metadata, pause, projectId, timeZone, userId }: Membership,
  at: number,
): CurrentMembership => ({
  projectId,
  userId,
  endDate,
  through: inDays ? dayEndedAt(endDate, timeZone) : undefined,
  keptDay,
  metadata,
  state: stateAt({ endDate, grace, pause }, at),
  pausedAt: pause?.since,
  resumesAt: pause?.until,
  graceUntil: graceUntilAt({ endDate, grace, pause }, at),
})

/** Parses a membership from the JSON that repeats an answer. */
export const parseMembership = (answer: string): CurrentMembership => JSON.parse(answer)

/** A project, its settings, and how much it has. */
export interface ProjectSummary extends ProjectSettings {
  /** The project's id. */
  readonly id: ProjectId
  /** The membership count, including expired ones. */
  readonly memberships: number
  /** The webhook count, including disabled ones. */
  readonly webhooks: number
  /** The last bulk extension's end date, if there was one. */
  readonly lastBulkEndDate: EndDate | undefined
}

/** The project has other settings than expected, or does not exist any more. */
export class ProjectConflict extends TaggedError("ProjectConflict") {}

/** A member and its end date, as listed in an import. */
export interface DatedMembership extends OptionalForm {
  readonly userId: UserId
  readonly endDate: EndDate
  /** `undefined` leaves the membership's metadata. */
  readonly metadata?: Metadata | undefined
  /** `undefined` leaves the membership's pause, if it is in one. */
  readonly pause?: Pause | undefined
}

/** A member and its last whole day, as listed in an import. */
interface MemberThrough extends Pick<DatedMembership, "userId" | "keptDay" | "metadata" | "pause"> {
  readonly through: Day
  /** The day's time zone, in place of the project's. */
  readonly timeZone: TimeZone | undefined
}

/** A membership in an import. */
export type ImportedMembership =
  | MemberThrough
  | (DatedMembership & { readonly through?: undefined })

/** Returns a membership in an import with its end date. */
export const datedIn = (membership: ImportedMembership, zone: TimeZone): DatedMembership => {
  if (membership.through === undefined) return membership
  const { keptDay, metadata, pause, through, timeZone = zone, userId } = membership
  return { userId, endDate: endOfDay(through, timeZone), inDays: true, keptDay, metadata, pause }
}

/** The user has no membership in the project. */
export class MembershipNotFound extends TaggedError("MembershipNotFound")<{
  /** The project's id. */
  readonly projectId: string
  /** The user's id. */
  readonly userId: string
}> {
  override get message(): string {
    return `The user "${this.userId}" has no membership in the project "${this.projectId}".`
  }
}

/** A grant changed nothing, because the user has a membership already. */
export interface AlreadyMember {
  readonly _tag: "AlreadyMember"
  readonly membership: Membership
}

/** Tells whether a grant left the membership as it is. */
export const isAlreadyMember = (result: object): result is AlreadyMember =>
  "_tag" in result && result._tag === "AlreadyMember"

/** Returns the result for a grant without effect. */
export const alreadyMember = (membership: Membership): AlreadyMember => ({
  _tag: "AlreadyMember",
  membership,
})

/** The membership does not end when the client expected, so it was left as it is. */
export class EndDateConflict extends TaggedError("EndDateConflict")<{
  /** The project's id. */
  readonly projectId: string
  /** The user's id. */
  readonly userId: string
  /** The membership's end date. */
  readonly currentEndDate: EndDate
}> {
  override get message(): string {
    return `The membership of the user "${this.userId}" in the project "${this.projectId}" ends at ${formatEndDate(this.currentEndDate)}.`
  }
}

/** The membership is in another state than the change needs. */
export class StateConflict extends TaggedError("StateConflict")<{
  /** The project's id. */
  readonly projectId: string
  /** The user's id. */
  readonly userId: string
  /** The membership's state. */
  readonly currentState: MembershipState
}> {
  override get message(): string {
    return `The membership of the user "${this.userId}" in the project "${this.projectId}" is ${this.currentState}.`
  }
}

/** Returns the error for a membership in another state than a change needs, at an instant in milliseconds since the epoch. */
export const stateConflict = (membership: Membership, at: number): StateConflict => {
  const { projectId, userId } = membership
  return new StateConflict({ projectId, userId, currentState: stateAt(membership, at) })
}

/** A membership to pause or to resume is not as expected any more. */
export class PauseConflict extends TaggedError("PauseConflict") {}

/** A membership to move, or its target, is not as expected any more. */
export class MoveConflict extends TaggedError("MoveConflict") {}

/** Returns the error for an unexpected current end date. */
export const endDateConflict = (
  current: MembershipEnd & DateForm,
  expected: EndDate | undefined,
  expectedForm?: DateForm,
): EndDateConflict | undefined => {
  const { endDate, projectId, userId } = current
  return (expected === undefined || expected === endDate) &&
    (expectedForm === undefined || isSameForm(current, expectedForm))
    ? undefined
    : new EndDateConflict({ projectId, userId, currentEndDate: endDate })
}

/** An extension in the mode `neverShorten` changed nothing, because the membership ends later. */
export interface EndsLater {
  readonly _tag: "EndsLater"
  /** When it ends. */
  readonly endDate: EndDate
}

/** Tells whether an extension left the membership as it is. */
export const isEndsLater = (result: object): result is EndsLater =>
  "_tag" in result && result._tag === "EndsLater"

/** Returns the result for an extension without effect. */
export const endsLater = (endDate: EndDate): EndsLater => ({ _tag: "EndsLater", endDate })

/** Returns the result for an extension without effect; `undefined` if it sets the date. */
export const laterOf = (
  current: EndDate,
  { endDate, mode }: { readonly endDate: EndDate; readonly mode?: BulkMode | undefined },
): EndsLater | undefined =>
  mode === "neverShorten" && current > endDate ? endsLater(current) : undefined

/** The reason for a change: 1 to 500 characters. */
export type Reason = Branded<string, "@tenure/core/Reason">

/** The pattern for reasons. PostgreSQL cannot store NUL, and a lone surrogate has no UTF-8 encoding. */
export const reasonPattern = /^[^\0\p{Cs}]{1,500}$/u

/** Brands text as a reason. Throws a `TypeError` if it is invalid. */
export const Reason = brandedWhere<string, Reason>("reason", "1 to 500 characters", (text) =>
  reasonPattern.test(text),
)

// The most user ids in a filter.
const most = 1000

const isUserId = (given: unknown): given is UserId => typeof given === "string" && UserId.is(given)

/** Returns the user ids, or `undefined` if one is invalid. */
export const parseUserIds = (given: unknown): ReadonlyArray<UserId> | undefined =>
  Array.isArray(given) && given.length <= most && given.every(isUserId) ? given : undefined

/** Describes valid user ids, for error messages. */
export const userIdsFormat = `at most ${Setting.grouped(most)} user ids, each ${UserId.expected}`

/** The filter by users; omitted for all. */
export const userIdsOption = Setting.optional(
  Setting.custom<ReadonlyArray<string>, ReadonlyArray<UserId>>(
    `an array of ${userIdsFormat}`,
    parseUserIds,
  ),
)

/** A membership as a host passes it. */
export interface ImportRow {
  /**
   * The host's own id: 1 to 128 visible ASCII characters, such as `auth0|2ab` or `ada@example.com`; not
   * `.` or `..`.
   */
  readonly userId: string
  /** When it is to end, or has ended; `null` for life. Needed without `through`. */
  readonly endDate?: EndDateInput | null | undefined
  /** In place of a date: the last whole day, such as `"2027-01-31"`. */
  readonly through?: string | undefined
  /** The IANA time zone for `through`; by default, the project's. */
  readonly timeZone?: string | undefined
  /** The day of the month that months count with, as a returned membership has it: 1 to 31. By default, the date tells it. */
  readonly keptDay?: number | undefined
  /** Up to 16 texts by name, to replace the membership's metadata. By default, it stays. */
  readonly metadata?: Metadata | undefined
  /** When its pause began, if it is to be paused, as a returned membership has it. By default, a pause stays. */
  readonly pausedAt?: InstantInput | undefined
  /** When its pause ends, if it is to be paused until then. */
  readonly resumesAt?: InstantInput | undefined
}

/** The most memberships in an import. */
export const maxMemberships = 10_000

const invalid = (field: string, problem: string): Result.Result<never, InvalidInput> =>
  Result.fail(new InvalidInput({ field, problem }))

const endDateOption = orForLife(endDateSetting)

const metadataOption = Setting.optional(metadataSetting)

const zoneOption = Setting.optional(timeZoneSetting)

const keptDayOption = Setting.optional(keptDaySetting)

/** Reads when a membership in an import ends. */
const readDate = (
  { endDate: date, through, timeZone }: Pick<ImportRow, "endDate" | "through" | "timeZone">,
  field: string,
): Result.Result<
  Pick<DatedMembership, "endDate"> | Pick<MemberThrough, "through" | "timeZone">,
  InvalidInput
> => {
  if (through === undefined) {
    if (timeZone !== undefined)
      return invalid(`${field}.timeZone`, "must be left out without through")
    return Result.mapBoth(endDateOption.read(date, "endDate"), {
      onFailure: ({ message }) => new InvalidInput({ field: `${field}.endDate`, problem: message }),
      onSuccess: (endDate) => ({ endDate }),
    })
  }
  if (date !== undefined) return invalid(`${field}.endDate`, "must be left out beside through")
  if (!Day.is(through)) return invalid(`${field}.through`, `must be ${Day.expected}`)
  return Result.map(zoneOption.read(timeZone, `${field}.timeZone`), (zone) => ({
    through,
    timeZone: zone,
  }))
}

const readOne = (
  given: ImportRow,
  field: string,
): Result.Result<ImportedMembership, InvalidInput> => {
  const { keptDay: kept, metadata: noted, pausedAt, resumesAt, userId, ...dated } = copyOwn(given)
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return invalid(`${field}.userId`, `must be ${UserId.expected}`)
  }
  const metadata = metadataOption.read(noted, `${field}.metadata`)
  if (Result.isFailure(metadata)) return Result.fail(metadata.failure)
  const keptDay = keptDayOption.read(kept, `${field}.keptDay`)
  if (Result.isFailure(keptDay)) return Result.fail(keptDay.failure)
  const names = { pausedAt: `${field}.pausedAt`, resumesAt: `${field}.resumesAt` }
  const pause = readPause({ pausedAt, resumesAt }, names, "host")
  if (Result.isFailure(pause)) return Result.fail(pause.failure)
  return Result.map(readDate(dated, field), (end) => ({
    userId,
    metadata: metadata.success,
    keptDay: keptDay.success,
    pause: pause.success,
    ...end,
  }))
}

/** An import's memberships. Fails at the first invalid one or repeated user. */
export const importSetting: Setting.Setting<
  ReadonlyArray<ImportRow>,
  ReadonlyArray<ImportedMembership>
> = {
  expected: "an array of at most 10,000 memberships",
  read: (given, name) => {
    if (!Array.isArray(given) || given.length > maxMemberships) {
      return invalid(name, "must be an array of at most 10,000 memberships")
    }
    const byUser = new Map<UserId, ImportedMembership>()
    for (let index = 0; index < given.length; index++) {
      const field = `${name}[${index}]`
      const dated = readOne(given[index], field)
      if (Result.isFailure(dated)) return Result.fail(dated.failure)
      const { userId } = dated.success
      if (byUser.has(userId)) return invalid(`${field}.userId`, "must not be that of another one")
      byUser.set(userId, dated.success)
    }
    return Result.succeed([...byUser.values()])
  },
}

/** Returns the problem with the first pause that begins after an instant, in milliseconds since the epoch. */
export const futurePauseIn = (
  memberships: ReadonlyArray<Pick<DatedMembership, "pause">>,
  at: number,
): InvalidInput | undefined => {
  const index = memberships.findIndex(({ pause }) => pause !== undefined && pause.since > at)
  return index === -1
    ? undefined
    : new InvalidInput({
        field: `memberships[${index}].pausedAt`,
        problem: "must not be in the future",
      })
}

/** Returns the problem with the first user id that may not become a member. */
export const strangerIn = (
  memberships: ReadonlyArray<Pick<DatedMembership, "userId">>,
  { expected, is }: UserIdRule,
): InvalidInput | undefined => {
  const index = memberships.findIndex(({ userId }) => !is(userId))
  return index === -1
    ? undefined
    : new InvalidInput({ field: `memberships[${index}].userId`, problem: `must be ${expected}` })
}
