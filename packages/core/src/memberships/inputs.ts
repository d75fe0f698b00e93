/** Inputs for the methods on projects and memberships. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import {
  brandedText,
  instantSetting,
  makeInstantSetting,
  pageSize,
  projectId,
  projectPath,
  shownEndDate,
} from "../base/input.ts"
import { chosenBy, input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput } from "../base/time.ts"
import {
  ApiKeyId,
  type BrandConstructor,
  ProjectId,
  identifierFormat,
  isIdentifier,
} from "../base/values.ts"
import { AuditCursor, auditActions, disclosureActions } from "./audit-trail.ts"
import { Day, timeZoneSetting } from "./calendar.ts"
import { EndDate, endBoundSetting, endDateSetting, orForLife } from "./end-date.ts"
import { EndingCursor } from "./ending-page.ts"
import {
  Reason,
  UserId,
  UserIdPrefix,
  importSetting,
  membershipStates,
  reasonPattern,
  userIdPattern,
  userIdsOption,
} from "./membership.ts"
import { metadataPatchSetting, metadataSetting } from "./metadata.ts"
import { graceSetting } from "./project-settings.ts"

/** Text with a refined type in requests. Errors show the received value. */
export const requestText = <A extends string>(
  { expected, is }: BrandConstructor<string, A>,
  json: Setting.JsonSchema = { type: "string" },
): Setting.Setting<string, A> =>
  Setting.inJson(
    Setting.custom(expected, (given) =>
      typeof given === "string" && is(given) ? given : undefined,
    ),
    json,
  )

export const text = <A extends string>(
  brand: BrandConstructor<string, A>,
  json?: Setting.JsonSchema,
): Setting.Setting<string, A> => Setting.bySource(brandedText(brand), requestText(brand, json))

export const makeDateSetting = (
  shown: (given: unknown) => string,
): Setting.Setting<InstantInput, EndDate> =>
  Setting.refine(makeInstantSetting(shown), (millis) => Result.succeed(EndDate(millis)))

/** An end date. Errors name the field. */
export const dateSetting = makeDateSetting(shownEndDate)

export const absent = Result.succeed(undefined)

/**
 * A field for other calls only, and not documented.
 *
 * @param host - the error for a host; without it, the field is ignored
 * @param expected - describes the right field in the error for a request; without it, the field is
 *   ignored
 */
export const leftOut = (
  host?: InvalidInput,
  expected?: string,
): Setting.Setting<undefined, undefined> => ({
  expected: "left out",
  isOptional: true,
  read: (given, field, source = "host") => {
    if (given === undefined) return absent
    if (source === "host") return host === undefined ? absent : Result.fail(host)
    if (expected === undefined) return absent
    const problem = `must be ${expected}; received ${Setting.shown(given)}`
    return Result.fail(new InvalidInput({ field, problem }))
  },
})

export const beside = (field: string, other: string): InvalidInput =>
  new InvalidInput({ field, problem: `must be left out: there is ${other}` })

export const zoneFields = {
  /**
   * The IANA time zone in which days begin and months count. Default: the project's.
   * @example "Europe/Berlin"
   */
  timeZone: Setting.optional(timeZoneSetting),
}

/** Fields for a last whole day. */
export const lastDayFields = {
  /**
   * In place of a date: the last whole day, which the member still has.
   * @example "2099-01-31"
   */
  through: text(Day, { $ref: "Day" }),
  ...zoneFields,
}

/** A time zone beside a date, which has no use for it: a returned project has one. */
export const zoneBesideDate: Setting.Setting<string | undefined, undefined> = {
  expected: "left out",
  isOptional: true,
  read: () => absent,
}

export const flag = Setting.withDefault(Setting.boolean, false)

/** The path parameters for operations on a member. */
export const memberPath = {
  ...projectPath,
  /**
   * The host's own user id. Neither . nor ..
   * @example "1001"
   */
  userId: brandedText(UserId, { type: "string", pattern: userIdPattern.source }),
}

/** The reason for a change. */
export const reasonFields = {
  /**
   * The reason, in 1 to 500 characters. The audit trail and the event keep it.
   * @example "Compensation for the outage of 3 May"
   */
  reason: Setting.optional(text(Reason, { type: "string", pattern: reasonPattern.source })),
}

const dryRunField = {
  /** If true, nothing is changed. The response is the same as without it. */
  dryRun: flag,
}

/** Fields that make a change a dry run. */
export const trialFields = {
  ...dryRunField,
  /** If true, a dry run also returns the webhook notifications the request would send. */
  events: flag,
}

export const hostPage = {
  /** The most items to return, 1 to 10,000; 100 by default. */
  limit: Setting.withDefault(pageSize, 100),
}

/** A member, without further fields. */
export const ofMember = input(memberPath, {})

export const projectSettings = {
  /**
   * The name of an IANA time zone, in which whole days begin and end; no offset. No end date moves.
   * @example "Europe/Berlin"
   */
  timeZone: Setting.optional(timeZoneSetting),
  /**
   * For how long memberships are still active after their end dates: an ISO 8601 duration in weeks, days, hours, minutes and
   * seconds, up to 90 days; null for none. It counts at once, for past ends too.
   * @example "P7D"
   */
  grace: Setting.optional(graceSetting),
}

/**
 * A change of a project's settings. Others stay as they are.
 * @example { "time_zone": "Europe/Berlin" }
 */
export const projectUpdate = input(
  projectPath,
  {
    ...projectSettings,
    /**
     * Why, in 1 to 500 characters. The audit trail keeps it.
     * @example "The shop has moved"
     */
    reason: reasonFields.reason,
    ...dryRunField,
  },
  { needsField: Object.keys(projectSettings) },
)

/** A page from the project list. */
export const projectsPage = input(
  {},
  {
    /** Lists only projects with these ids; `"all"` by default. */
    within: Setting.withDefault(
      Setting.guarded<ReadonlySet<string> | "all">("a set of ids", () => true),
      "all",
    ),
    /** Lists the projects after this id; from the first one by default. */
    after: Setting.optional(brandedText(ProjectId)),
    ...hostPage,
  },
)

/** A grant's fields besides the date. */
export const grantFields = {
  /**
   * Replaces the membership's metadata. Without it, the metadata stays.
   * @example {"plan":"gold"}
   */
  metadata: Setting.optional(metadataSetting),
  ...reasonFields,
  /** If true, a membership that exists stays as it is, even an expired one. `created` tells. */
  ifAbsent: flag,
}

/** A membership to create or to set. */
export const newMembership = chosenBy(
  ["through"],
  input(
    {},
    {
      /** When it is to end, or has ended; `null` for life. */
      endDate: orForLife(endDateSetting),
      ...memberPath,
      ...grantFields,
      /** Not with a date. */
      through: leftOut(),
      /** Not with a date. */
      timeZone: zoneBesideDate,
    },
  ),
  input(
    {},
    {
      ...lastDayFields,
      ...memberPath,
      ...grantFields,
      /** Not with a day. */
      endDate: leftOut(beside("endDate", "a day")),
    },
  ),
)

/** Memberships to create or to set in a project. */
export const imported = input(projectPath, {
  /** Up to 10,000 memberships, each for a different user. */
  memberships: importSetting,
  ...reasonFields,
  ...trialFields,
})

/** A metadata change. */
export const updateFields = {
  /**
   * New texts by name, and null to remove a name. Other names stay.
   * @example {"plan":"gold","seat":null}
   */
  metadata: metadataPatchSetting,
  ...reasonFields,
}

/** A change to a membership's metadata. */
export const membershipUpdate = input(memberPath, updateFields)

/** A membership to remove. */
export const ending = input(memberPath, reasonFields)

/** When a pause ends by itself. */
export const untilFields = {
  /**
   * When the pause ends by itself, at most two years ahead: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ.
   * Without it and `through`, the membership is paused until it is resumed.
   */
  until: Setting.optional(dateSetting),
  ...reasonFields,
  /** Not with an instant. */
  through: leftOut(),
  /** Not with an instant. */
  timeZone: zoneBesideDate,
}

/** The last whole day of a pause. */
export const pausedThroughFields = {
  ...lastDayFields,
  ...reasonFields,
  /** Not with a day. */
  until: leftOut(beside("until", "a day"), "left out beside through"),
}

/** A membership to pause. */
export const pausing = chosenBy(
  ["through"],
  input(memberPath, untilFields),
  input(memberPath, pausedThroughFields),
)

/** A paused membership to resume. */
export const resuming = input(memberPath, reasonFields)

/** The other user id of a move. */
export const targetFields = {
  /**
   * The user id to move it to, with or without a membership.
   * @example "1002"
   */
  to: text(UserId, { type: "string", pattern: userIdPattern.source }),
  ...reasonFields,
}

/** A membership to move to another user id. */
export const moving = input(memberPath, targetFields)

/** An id from an untrusted caller: text that cannot be an id is read as `undefined`. */
const possible = <A extends string>(
  brand: BrandConstructor<string, A>,
): Setting.Setting<string, A | undefined> => {
  const right = brandedText(brand)
  return {
    ...right,
    read: (given, field) =>
      typeof given === "string" && !brand.is(given) ? absent : right.read(given, field),
  }
}

/** A possible member. */
export const possibleMember = input(
  {
    /** The project's id. */
    projectId: possible(ProjectId),
    /** The user's id. */
    userId: possible(UserId),
  },
  {},
)

/** A page from a project's memberships. */
export const membershipsPage = input(projectPath, {
  /** Lists only memberships in this state. */
  state: Setting.optional(Setting.oneOf(membershipStates)),
  /** Lists the memberships after this user id; from the first one by default. */
  after: Setting.optional(brandedText(UserId)),
  ...hostPage,
  /** Lists only these users' memberships, at most 1,000, and finds them by their keys. */
  userIds: userIdsOption,
  /** Lists only user ids with this prefix. Not with `userIds`. */
  prefix: Setting.optional(brandedText(UserIdPrefix)),
})

/** A page from the ending list. */
export const endingPage = input(projectPath, {
  /** Lists memberships ending before this instant. */
  before: endBoundSetting,
  /** `next` from the previous page; by default, starts at the first page. */
  after: Setting.optional(brandedText(EndingCursor)),
  ...hostPage,
})

/** A disclosure in a project. */
export const disclosure = input(projectPath, {
  /** The disclosed data. */
  action: Setting.oneOf(disclosureActions),
  /** The webhook's or the event's id. */
  subject: Setting.string(identifierFormat, isIdentifier),
})

/** A project, or `null`. Explicit, so that forgetting the project does not return other rows. */
const projectOrNone: Setting.Setting<string | null, ProjectId | undefined> = {
  expected: projectId.expected,
  read: (given, field) => (given === null ? absent : projectId.read(given, field)),
}

const historyPath = {
  /** The project; `null` for changes to API keys, and for created or deleted projects. */
  projectId: projectOrNone,
}

/** A page from the audit trail. */
export const historyPage = input(historyPath, {
  /** Lists only changes to this user's membership, including applied bulk extensions. */
  userId: Setting.optional(brandedText(UserId)),
  /** A row's `cursor`: lists only older rows. */
  after: Setting.optional(brandedText(AuditCursor)),
  ...hostPage,
})

/** The fields that select audit rows. A row must match all. */
export const auditFilterFields = {
  /** Only changes by this API key, or by another principal named by the host. */
  keyId: Setting.optional(brandedText(ApiKeyId)),
  /**
   * Only changes of this kind.
   * @example "extended"
   */
  action: Setting.optional(Setting.oneOf(auditActions)),
  /** Only changes by the request with this id. */
  requestId: Setting.optional(
    Setting.inJson(Setting.string(identifierFormat, isIdentifier), { type: "string" }),
  ),
  /**
   * Only changes at this time or later.
   * @example "2099-01-01T00:00:00.000Z"
   */
  since: Setting.optional(instantSetting),
  /**
   * Only changes before this time, which is after `since`.
   * @example "2099-02-01T00:00:00.000Z"
   */
  until: Setting.optional(instantSetting),
  /** `false` leaves out the announcements `expiring`, `overdue` and `expired`. */
  announcements: Setting.withDefault(Setting.boolean, true),
}

/** A page from a search in the audit trail. */
export const historySearch = input(historyPath, {
  /** Only changes to this user's membership, including applied bulk extensions. */
  userId: Setting.optional(brandedText(UserId)),
  ...auditFilterFields,
  /** `next` from the previous page; by default, starts at the first page. */
  after: Setting.optional(brandedText(AuditCursor)),
  ...hostPage,
})
