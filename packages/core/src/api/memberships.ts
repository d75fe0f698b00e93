/** The operations on memberships. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { brandedText, requestInstantFormat, shownEndDate, shownInstant } from "../base/input.ts"
import { projectPath } from "../base/input.ts"
import {
  type Input,
  type RequestInput,
  chosenBy,
  input,
  lettersOf,
  ownOf,
} from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { instantPattern } from "../base/time.ts"
import { EventId } from "../events/event.ts"
import type { BulkExtensionNotFound } from "../memberships/bulk-extension.ts"
import {
  type EndDate,
  type InvalidEndDate,
  bulkModeNames,
  decodeEndDate,
  orForLife,
  parseEndDate,
} from "../memberships/end-date.ts"
import { dayText } from "../memberships/ends.ts"
import {
  bulkDateFields,
  bulkDurationGoal,
  bulkLastDayOptions,
  dateFields,
  dateGoal,
  durationFields,
  durationGoal,
  fixedDuration,
  lastDayGoal,
  lastDayOptions,
  modeSetting,
  segmentExtension,
} from "../memberships/extension-inputs.ts"
import {
  lastDayFields,
  leftOut,
  memberPath,
  grantFields,
  reasonFields,
  dateSetting,
  requestText,
  targetFields,
  trialFields,
  pausedThroughFields,
  untilFields,
  updateFields,
} from "../memberships/inputs.ts"
import {
  type MembershipNotFound,
  UserId,
  UserIdPrefix,
  membershipStates,
  parseUserIds,
  userIdPattern,
  userIdsFormat,
} from "../memberships/membership.ts"
import { type MembershipChange, auditPage } from "./audit.ts"
import { counted, declareOperations, pageFields, paged, plain } from "./declaration.ts"
import type {
  Membership,
  Moved,
  Granted,
  Extended,
  BulkExtensionUndoing,
  BulkExtended,
  BulkExtensionRecord,
  EndCounts,
  ImportPreview,
  SegmentExtended,
} from "./membership-replies.ts"

const project = "/v2/projects/:project_id"
const all = `${project}/memberships` as const
const one = `${all}/:user_id` as const
const bulk = `${project}/bulk-extensions` as const

const userIdJson = { type: "string", pattern: userIdPattern.source }

/** A user id in a path. No member has an id in another form. */
const memberId: Setting.Setting<string, UserId, Pick<MembershipNotFound, "_tag">> = {
  expected: UserId.expected,
  json: userIdJson,
  read: (given) =>
    typeof given === "string" && UserId.is(given)
      ? Result.succeed(given)
      : Result.fail({ _tag: "MembershipNotFound" }),
}

/** The path parameters for operations on a member. */
const membershipPath = {
  ...projectPath,
  /**
   * The host's own user id. Neither . nor ..
   * @example "1001"
   */
  userId: memberId,
}

/** A member, without further fields. */
const ofMembership = input(membershipPath, {})

/** An extension's path parameters. A date in the past is an error before a user id in the wrong form. */
const extensionPath = {
  ...projectPath,
  /**
   * The host's own user id. Neither . nor ..
   * @example "1001"
   */
  userId: Setting.inJson(
    Setting.string(UserId.expected, () => true),
    userIdJson,
  ),
}

// A client that sends it would hope in vain for a protection.
const forOne = leftOut(undefined, "left out: it is for one membership")

/**
 * Makes the function that returns the error for another spelling, such as `dryRun`: the client would
 * hope in vain for a protection.
 */
const makeMisspelled = (names: ReadonlyArray<string>) => {
  const known = new Set(names)
  // The contract has only `extend`, and `from` can be written in one way only.
  const rightNames = new Map([
    ...names
      .filter((name) => name !== "extend" && name !== "from")
      .map((name) => [lettersOf(name), name] as const),
    [lettersOf(bulkModeNames.neverShorten), `mode": "${bulkModeNames.neverShorten}`] as const,
  ])
  return (body: object): InvalidInput | undefined => {
    for (const name of Object.keys(body)) {
      const right = known.has(name) ? undefined : rightNames.get(lettersOf(name))
      if (right !== undefined)
        return new InvalidInput({ field: name, problem: `must be written "${right}"` })
    }
    return undefined
  }
}

/** Declares an extension to a date, by a duration or through a day. Misspelled fields are refused, after an invalid date. */
const extending = <I1, O1, E1, I2, O2, E2, I3, O3, E3>(
  toDate: Input<I1, O1, E1>,
  byDuration: Input<I2, O2, E2>,
  throughDay: Input<I3, O3, E3>,
): RequestInput<O1 | O2 | O3, E1 | E2 | E3 | InvalidEndDate> => {
  const declared = chosenBy(["by", "through"], toDate, byDuration, throughDay)
  const misspelledIn = makeMisspelled(declared.wireNames)
  return {
    ...declared,
    fromRequest: (path, body, source) => {
      const misspelled = misspelledIn(body)
      if (misspelled === undefined) return declared.fromRequest(path, body, source)
      return Object.hasOwn(body, "extend_by") || Object.hasOwn(body, "through")
        ? Result.fail(misspelled)
        : Result.flatMap(decodeEndDate(ownOf(body, "extend")), () => Result.fail(misspelled))
    },
  }
}

// By the contract, fields that are not declared are ignored.
const open = { isOpen: true }

/**
 * How a membership is extended.
 * @example { "extend": 4070908800000 }
 */
const extension = extending(
  input(extensionPath, { ...dateGoal, ...dateFields }, open),
  input(extensionPath, { ...durationGoal, ...durationFields }, open),
  input(extensionPath, { ...lastDayGoal, ...lastDayOptions }, open),
)

/**
 * Extends all memberships in a project.
 * @example { "extend": 4070908800000 }
 */
const bulkExtension = extending(
  input(
    projectPath,
    {
      ...dateGoal,
      expectedEndDate: forOne,
      ...trialFields,
      ...reasonFields,
      ...bulkDateFields,
    },
    open,
  ),
  input(
    projectPath,
    {
      ...bulkDurationGoal,
      ...trialFields,
      ...reasonFields,
      from: forOne,
      expectedEndDate: forOne,
    },
    open,
  ),
  input(
    projectPath,
    {
      ...lastDayGoal,
      expectedEndDate: forOne,
      ...trialFields,
      ...reasonFields,
      ...bulkLastDayOptions,
    },
    open,
  ),
)

/** A bulk extension's id. Its form is always the same as an event id's. */
const bulkExtensionId: Setting.Setting<string, EventId, Pick<BulkExtensionNotFound, "_tag">> = {
  expected: EventId.expected,
  json: { type: "string" },
  wire: "bulk_extension_id",
  read: (given) =>
    typeof given === "string" && EventId.is(given)
      ? Result.succeed(given)
      : Result.fail({ _tag: "BulkExtensionNotFound" }),
}

const undo = input(
  {
    ...projectPath,
    /** @example "6ba7b810-9dad-41d1-80b4-00c04fd430c8" */
    id: bulkExtensionId,
  },
  { ...reasonFields, ...trialFields },
)

/** A page from a project's bulk extensions. */
const bulkExtensionsQuery = input(projectPath, {
  ...pageFields,
  /** The previous page's `next`; without it, the first page. */
  after: Setting.optional(brandedText(EventId)),
})

/** A date in a query: 13 digits are text there. */
const dateInQuery = Setting.inJson(
  Setting.custom<string, EndDate>(
    requestInstantFormat,
    (given) =>
      parseEndDate(typeof given === "string" && /^\d{13}$/.test(given) ? Number(given) : given),
    shownEndDate,
  ),
  { type: "string" },
)

/** The days to count, and the extension assumed by the count. */
const endsQuery = input(projectPath, {
  /** The first day. By default, 59 days before `to`, or 14 days before today without `to`. */
  from: Setting.optional(dayText),
  /**
   * The last day, less than 400 days later. By default, 59 days after `from`, or 45 days after today
   * without `from`.
   */
  to: Setting.optional(dayText),
  /**
   * Counts as if all memberships had been extended to this date, in either format allowed for `extend`.
   * Nothing is changed.
   * @example "2099-01-01T00:00:00.000Z"
   */
  extend: Setting.optional(dateInQuery),
  /**
   * Counts as if all memberships had been extended by this duration.
   * @example "P3D"
   */
  extendBy: Setting.optional(fixedDuration),
  /**
   * Counts as if all memberships had been extended through this day, in the project's time zone.
   * @example "2099-01-31"
   */
  through: Setting.optional(lastDayFields.through),
  /**
   * With `extend` or `through`: whether memberships with a later end date are set, too, or left as they are. The
   * default is the server's.
   */
  mode: Setting.optional(modeSetting),
})

const truth = new Map([
  ["true", true],
  ["false", false],
])

/** A query parameter for a change. */
const queryFlag = Setting.withDefault(
  Setting.inJson(
    Setting.custom<boolean>('one of "true", "false"', (given) => truth.get(String(given))),
    { type: "string", enum: ["true", "false"] },
  ),
  false,
)

/** An import's query. Its body has lines. */
const importQuery = input(projectPath, {
  /** With `true`, the lines are judged, and nothing is changed. */
  dryRun: queryFlag,
  /** With `true`, a dry run returns the webhook notifications the import would send. */
  events: queryFlag,
})

/**
 * A JSON object on each line, with `user_id` and `end_date`: a date, possibly past, in either format
 * allowed for `extend`; or in place of that `through` and optionally `time_zone`, as for a grant.
 * Optionally with `metadata`, as for a grant, and with `kept_day`, `paused_at` and `resumes_at` as the
 * membership returned them. At most 10,000 lines and 2 MiB, sent unquoted.
 * @example
 *   "{\"user_id\":\"1001\",\"end_date\":\"2099-01-01T00:00:00.000Z\"}\n{\"user_id\":\"1002\",\"end_date\":4070908800000}\n"
 */
const importLines = { mediaType: "application/x-ndjson", json: { type: "string" } } as const

const parseListedIds = (given: unknown): ReadonlyArray<UserId> | undefined =>
  typeof given === "string"
    ? parseUserIds(given.split(",").map((id) => id.replaceAll(/%2[5c]/gi, decodeURIComponent)))
    : undefined

/** A page from a project's memberships. */
const membershipsQuery = input(projectPath, {
  ...pageFields,
  /** Only memberships in this state. */
  state: Setting.optional(Setting.oneOf(membershipStates)),
  /**
   * Only these users' memberships: at most 1,000 user ids, each 1 to 128 visible ASCII characters, and
   * not . or .., joined by commas. In an id, a comma is written %2C and a percent sign %25.
   * @example "1001,1002"
   */
  userIds: Setting.optional(
    Setting.inJson(
      Setting.custom<string, ReadonlyArray<UserId>>(
        `${userIdsFormat}, joined by commas; in an id, a comma is written %2C and a percent sign %25`,
        parseListedIds,
      ),
      { type: "string" },
    ),
  ),
  /**
   * Only memberships with this user id prefix, also with `state`. Not with `user_ids`.
   * @example "10"
   */
  prefix: Setting.optional(requestText(UserIdPrefix, userIdJson)),
  /**
   * Only active memberships ending before this time, soonest first. Not with `state`, `user_ids` or
   * `prefix`.
   * @example "2099-01-01T00:00:00.000Z"
   */
  endingBefore: Setting.optional(
    Setting.inJson(
      Setting.custom<string, EndDate>(
        "a time such as 2027-01-01T00:00:00.000Z",
        (given) => (typeof given === "string" ? parseEndDate(given) : undefined),
        shownInstant,
      ),
      { type: "string", pattern: instantPattern.source },
    ),
  ),
})

const besideEndDate = "left out beside end_date"

/**
 * A membership to create, or its new end date.
 * @example { "end_date": "2099-01-01T00:00:00.000Z" }
 */
const grant = chosenBy(
  ["through"],
  input(memberPath, {
    /**
     * A date, possibly past: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Null for life. Needed without
     * `through`.
     * @example "2099-01-01T00:00:00.000Z"
     */
    endDate: orForLife(dateSetting),
    ...grantFields,
    /** Not with a date. */
    timeZone: leftOut(undefined, besideEndDate),
    /** Not with a date. */
    through: leftOut(),
  }),
  input(memberPath, {
    ...lastDayFields,
    ...grantFields,
    /** Not with a day. */
    endDate: leftOut(undefined, "left out beside through"),
  }),
)

const membershipUpdate = input(membershipPath, updateFields)

/**
 * How long a membership is paused.
 * @example { "reason": "Parental leave" }
 */
const pause = chosenBy(
  ["through"],
  input(membershipPath, {
    ...untilFields,
    /** Not with an instant. */
    timeZone: leftOut(undefined, "left out without through"),
  }),
  input(membershipPath, pausedThroughFields),
)

const end = input(membershipPath, {
  /** Whether to erase the person. Needs the role `admin`. */
  erase: queryFlag,
})

/**
 * Memberships
 *
 * A project's members, and their end dates.
 */
export const membershipOperations = declareOperations({
  /**
   * Extend a membership
   *
   * Sets a membership's end date, even if it has expired. `new_end_date` is the end date afterwards:
   * with the mode `never_shorten`, it may be later than `extend`. With `create`, a user without a membership gets one.
   */
  extend: {
    method: "PATCH",
    pattern: `${one}/extend`,
    role: "client",
    isContract: true,
    input: extension,
    reply: counted<Extended>("The membership was extended."),
    errors: ["MembershipNotFound", "EndDateConflict", "InvalidEndDate", "EndDateNotInFuture"],
  },
  /**
   * Extend all memberships
   *
   * Sets all end dates in a project. `total` is the number of end dates set.
   */
  extendAll: {
    method: "PATCH",
    pattern: `${all}/extend`,
    role: "client",
    isContract: true,
    input: bulkExtension,
    reply: counted<BulkExtended>("All memberships of the project were extended."),
    errors: ["InvalidEndDate", "EndDateNotInFuture"],
  },
  /**
   * Extend some memberships
   *
   * Extends the memberships in a segment, 1,000 in one step, in the order of their user ids; go on with `after` until
   * `next` is null. With `extend_by`, each page needs its own `Idempotency-Key`. It leaves those for life as they are,
   * and those that would still be over. Where few match, a page may have few, or none, before the last.
   */
  extendSome: {
    method: "POST",
    pattern: `${all}/extend-some`,
    role: "operator",
    input: segmentExtension,
    reply: counted<SegmentExtended>("The memberships were extended."),
    errors: ["InvalidEndDate", "EndDateNotInFuture"],
  },
  /**
   * List bulk extensions
   *
   * Returns a project's bulk extensions, newest first, including undone ones.
   */
  bulkExtensions: {
    method: "GET",
    pattern: bulk,
    role: "client",
    input: bulkExtensionsQuery,
    reply: paged<ReadonlyArray<BulkExtensionRecord>>(
      "The bulk extensions of the project, newest first.",
    ),
    errors: [],
  },
  /**
   * Undo a bulk extension
   *
   * Restores the end date that every membership would have without the bulk extension. Later changes to
   * single members are kept.
   */
  undoBulkExtension: {
    method: "POST",
    pattern: `${bulk}/:bulk_extension_id/undo`,
    role: "operator",
    input: undo,
    reply: counted<BulkExtensionUndoing>("The bulk extension was undone."),
    errors: ["BulkExtensionNotFound", "BulkExtensionUndone", "BulkExtensionSettled"],
  },
  /**
   * Count memberships by end date
   *
   * Returns the number of active memberships in a project, and the number ending on each day in its time zone,
   * counted at this moment. It reads all memberships, so a server counts for one request at a time, and
   * equal requests share one count; if too many different ones wait, it responds with 503.
   */
  ends: {
    method: "GET",
    pattern: `${project}/ends`,
    role: "client",
    input: endsQuery,
    reply: plain<EndCounts>("How many memberships end on each day."),
    errors: ["InvalidEndDate", "EndDateNotInFuture"],
  },
  /**
   * Import memberships
   *
   * Creates memberships, each for a different user, or sets the end dates if they exist: all or none.
   * `total` is the line count.
   */
  import: {
    method: "POST",
    pattern: `${all}/import`,
    role: "operator",
    maxBodyBytes: 2_097_152,
    input: importQuery,
    lines: importLines,
    reply: counted<ImportPreview | null>("The memberships were imported."),
    errors: ["InvalidLines"],
  },
  /**
   * List memberships
   *
   * Returns a project's memberships ordered by user id, compared as text; with `state`, only active, paused
   * or expired ones. With `ending_before`, they are ordered by end date, and a page may have fewer
   * than `limit`, or none, before the last.
   */
  list: {
    method: "GET",
    pattern: all,
    role: "client",
    input: membershipsQuery,
    reply: paged<ReadonlyArray<Membership>>("The memberships of the project."),
    errors: [],
  },
  /**
   * Get a membership
   *
   * Returns a membership.
   */
  get: {
    method: "GET",
    pattern: one,
    role: "client",
    input: ofMembership,
    reply: plain<Membership>("The membership."),
    errors: ["MembershipNotFound"],
  },
  /**
   * Grant a membership
   *
   * Creates a membership, or sets an existing one's end date. With `if_absent`, an existing one stays as it is.
   */
  grant: {
    method: "PUT",
    pattern: one,
    role: "operator",
    input: grant,
    reply: plain<Granted>("The membership was granted."),
    errors: [],
  },
  /**
   * Update a membership
   *
   * Changes a membership's metadata, and leaves its end date.
   */
  update: {
    method: "PATCH",
    pattern: one,
    role: "operator",
    input: membershipUpdate,
    reply: plain<Membership>("The membership was updated."),
    errors: ["MembershipNotFound"],
  },
  /**
   * Move a membership
   *
   * Moves a membership to another user id, for a person whose id changes. If both have a membership, the
   * later end date stays. Receivers get `membership.ended` and `membership.granted`.
   */
  move: {
    method: "POST",
    pattern: `${one}/move`,
    role: "operator",
    input: input(membershipPath, targetFields),
    reply: plain<Moved>("The membership was moved."),
    errors: ["MembershipNotFound", "StateConflict"],
  },
  /**
   * Pause a membership
   *
   * Pauses an active membership before its end. It is not active then, and its end date stands; at the end of
   * the pause, it is later by the time paused.
   */
  pause: {
    method: "POST",
    pattern: `${one}/pause`,
    role: "operator",
    input: pause,
    reply: plain<Membership>("The membership was paused."),
    errors: ["MembershipNotFound", "StateConflict"],
  },
  /**
   * Resume a membership
   *
   * Ends a membership's pause.
   */
  resume: {
    method: "POST",
    pattern: `${one}/resume`,
    role: "operator",
    input: input(membershipPath, reasonFields),
    reply: plain<Membership>("The membership was resumed."),
    errors: ["MembershipNotFound", "StateConflict"],
  },
  /**
   * End a membership
   *
   * Removes a membership. The user can be granted another one. With `erase=true`, also removes the user id from the history and
   * from events, and succeeds if the membership has ended.
   */
  end: {
    method: "DELETE",
    pattern: one,
    role: "operator",
    input: end,
    reply: plain<null>("The membership was ended."),
    errors: ["MembershipNotFound"],
  },
  /**
   * List a membership's changes
   *
   * Returns a membership's changes, newest first, even after it has ended; includes the bulk extensions
   * applied to it. With parameters that select changes, a page may have fewer than `limit`, or none, before
   * the last.
   */
  history: {
    method: "GET",
    pattern: `${one}/history`,
    role: "operator",
    input: input(membershipPath, auditPage),
    reply: paged<ReadonlyArray<MembershipChange>>("The changes of the membership, newest first."),
    errors: ["MembershipNotFound"],
  },
})
