/** Inputs for the methods on projects and memberships. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { type Noun, namesOf, originFields as origin } from "../base/field-names.ts"
import {
  brandedText,
  makeInstantSetting,
  pageSize,
  projectId,
  projectPath,
  shownEndDate,
  shownInstant,
} from "../base/input.ts"
import { type Decoded, type HostInputOf, chosenBy, input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput, type Millis, isDayText } from "../base/time.ts"
import {
  type BrandConstructor,
  ProjectId,
  copyOwn,
  identifierFormat,
  isIdentifier,
} from "../base/values.ts"
import { EventId } from "../events/event.ts"
import { Day, timeZoneSetting } from "./calendar.ts"
import { DurationText, fixedDurationFormat, fixedMillis } from "./duration.ts"
import {
  type BulkMode,
  EndDate,
  type InvalidEndDate,
  bulkModeNames,
  bulkModes,
  decodeEndDate,
  endBoundSetting,
  endDateSetting,
  orForLife,
} from "./end-date.ts"
import { dayText } from "./ends.ts"
import { durationStarts } from "./extensions.ts"
import {
  AuditCursor,
  Reason,
  UserId,
  UserIdPrefix,
  disclosureActions,
  importSetting,
  membershipStates,
  reasonPattern,
  userIdPattern,
  userIdsOption,
} from "./membership.ts"
import { metadataPatchSetting, metadataSetting } from "./metadata.ts"
import { EndingCursor } from "./store.ts"

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

const text = <A extends string>(
  brand: BrandConstructor<string, A>,
  json?: Setting.JsonSchema,
): Setting.Setting<string, A> => Setting.bySource(brandedText(brand), requestText(brand, json))

const makeDateSetting = (
  shown: (given: unknown) => string,
): Setting.Setting<InstantInput, EndDate> =>
  Setting.refine(makeInstantSetting(shown), (millis) => Result.succeed(EndDate(millis)))

/** An end date. Errors name the field. */
export const dateSetting = makeDateSetting(shownEndDate)

/** An extension's date. Its errors name no field, for hosts and requests. */
const extensionDate = Setting.named(
  "extend",
  Setting.bySource(endDateSetting, { ...dateSetting, read: decodeEndDate }),
)

const absent = Result.succeed(undefined)

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

const beside = (field: string, other: string): InvalidInput =>
  new InvalidInput({ field, problem: `must be left out: there is ${other}` })

const besideDuration = "left out beside extend_by"

const besideDay = "left out beside through"

const zoneFields = {
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
const zoneBesideDate: Setting.Setting<string | undefined, undefined> = {
  expected: "left out",
  isOptional: true,
  read: () => absent,
}

/** Fields that a date has no use for. */
const notBesideDate = {
  /** Not with a date. */
  by: Setting.named("extend_by", leftOut()),
  /** Not with a date. */
  through: leftOut(),
  /** Not with a date. */
  timeZone: zoneBesideDate,
}

/** Whether an extension also sets later dates. */
export const modeSetting: Setting.Setting<BulkMode, BulkMode> = Setting.bySource(
  Setting.oneOf(bulkModes),
  Setting.inJson(
    Setting.custom<string, BulkMode>(
      Setting.oneOf(Object.values(bulkModeNames)).expected,
      (given) => bulkModes.find((one) => bulkModeNames[one] === given),
    ),
    { type: "string", enum: Object.values(bulkModeNames) },
  ),
)

/** A duration without years and months, as text and in milliseconds. */
export interface FixedDuration {
  readonly text: DurationText
  readonly millis: Millis
}

const parseFixed = (given: unknown): FixedDuration | undefined => {
  if (typeof given !== "string" || !DurationText.is(given)) return undefined
  const millis = fixedMillis(given)
  return millis === undefined ? undefined : { text: given, millis }
}

const fixedFromHost: Setting.Setting<string, FixedDuration> = Setting.refine(
  brandedText(DurationText),
  (given, field) => {
    const fixed = parseFixed(given)
    return fixed === undefined
      ? Result.fail(new InvalidInput({ field, problem: `must be ${fixedDurationFormat}` }))
      : Result.succeed(fixed)
  },
)

/** The duration to add to all end dates in a project. */
export const fixedDuration = Setting.named(
  "extend_by",
  Setting.bySource(
    fixedFromHost,
    Setting.inJson(Setting.custom<string, FixedDuration>(fixedDurationFormat, parseFixed), {
      type: "string",
    }),
  ),
)

const flag = Setting.withDefault(Setting.boolean, false)

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

const hostPage = {
  /** The most items to return, 1 to 10,000; 100 by default. */
  limit: Setting.withDefault(pageSize, 100),
}

/** A member, without further fields. */
export const ofMember = input(memberPath, {})

const projectSettings = {
  /**
   * The name of an IANA time zone, in which whole days begin and end; no offset. No end date moves.
   * @example "Europe/Berlin"
   */
  timeZone: Setting.optional(timeZoneSetting),
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

/** An extension's date. */
export const dateGoal = {
  /**
   * A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Needed without `extend_by` and `through`.
   * @example "2099-01-01T00:00:00.000Z"
   */
  endDate: extensionDate,
}

/** An extension's last whole day. */
export const lastDayGoal = {
  ...lastDayFields,
  /** Not with a day. */
  endDate: Setting.named("extend", leftOut(beside("endDate", "a day"), besideDay)),
  /** Not with a day. */
  by: Setting.named("extend_by", leftOut(beside("by", "a day"), besideDay)),
}

const shownExpected = (given: unknown): string =>
  isDayText(given)
    ? `${Setting.shown(given)}: a day is no instant; take the end date that the membership has beside its through`
    : shownInstant(given)

const expectedEndDate = Setting.optional(orForLife(makeDateSetting(shownExpected)))

const createField = {
  /**
   * If true, a user without a membership gets one, as if it ended now; `created` tells. Needs the role `operator`. Not with
   * `expected_end_date`.
   */
  create: flag,
}

/** Fields besides the day for one membership. */
export const lastDayOptions = {
  /**
   * If given, the membership is changed only if it has this end date; null for one for life.
   * @example "2099-01-01T00:00:00.000Z"
   */
  expectedEndDate,
  ...createField,
  ...trialFields,
  ...reasonFields,
  /** Whether a membership with a later end date is set, too (the default), or left as it is. */
  mode: Setting.optional(modeSetting),
  /** Not with a date. */
  from: leftOut(beside("from", "an end date")),
}

/** Fields besides the date for one membership. */
export const dateFields = { ...lastDayOptions, ...notBesideDate }

/** Fields excluded by a duration. */
const noDateGoal = {
  /** Not with a duration. */
  endDate: Setting.named("extend", leftOut(beside("by", "an end date"), besideDuration)),
  /** Not with a duration. */
  mode: leftOut(beside("mode", "a duration"), besideDuration),
  /** Not with a duration. */
  through: leftOut(beside("through", "a duration"), besideDuration),
}

/** An extension's duration. */
export const durationGoal = {
  /**
   * In place of `extend`: an ISO 8601 duration to add to the end date, by the calendar of the time zone. Needs the
   * header `Idempotency-Key` or `expected_end_date`.
   * @example "P1M"
   */
  by: Setting.named("extend_by", text(DurationText)),
  ...noDateGoal,
}

/** Fields besides the duration for one membership. */
export const durationFields = {
  ...zoneFields,
  ...trialFields,
  ...reasonFields,
  /** The start for `extend_by`: the end date, now, or the later of both (the default). */
  from: Setting.withDefault(Setting.oneOf(durationStarts), "later"),
  ...createField,
  /**
   * If given, the membership is changed only if it has this end date; null for one for life.
   * @example "2099-01-01T00:00:00.000Z"
   */
  expectedEndDate,
}

/** How a membership is extended. */
export const extension = chosenBy(
  ["by", "through"],
  input({}, { ...dateGoal, ...memberPath, ...dateFields }),
  input({}, { ...durationGoal, ...memberPath, ...durationFields }),
  input({}, { ...lastDayGoal, ...memberPath, ...lastDayOptions }),
)

/** Fields besides the day for all memberships. */
export const bulkLastDayOptions = {
  /**
   * Whether memberships with a later end date are set, too, or left as they are. The default is the
   * server's.
   */
  mode: Setting.optional(modeSetting),
}

/** Fields besides the date for all memberships. */
export const bulkDateFields = { ...bulkLastDayOptions, ...notBesideDate }

/** The duration for extending all memberships. */
export const bulkDurationGoal = {
  /**
   * In place of `extend`: an ISO 8601 duration to add to every end date, in weeks, days, hours, minutes
   * and seconds, up to ten years. Needs the header `Idempotency-Key`.
   * @example "P3D"
   */
  by: fixedDuration,
  ...noDateGoal,
  /** Not with a duration for all: a day has 24 hours there. */
  timeZone: zoneBesideDate,
}

/** Extends all memberships in a project. */
export const bulkExtension = chosenBy(
  ["by", "through"],
  input({}, { ...dateGoal, ...projectPath, ...reasonFields, ...trialFields, ...bulkDateFields }),
  input({}, { ...bulkDurationGoal, ...projectPath, ...reasonFields, ...trialFields }),
  input(
    {},
    { ...lastDayGoal, ...projectPath, ...reasonFields, ...trialFields, ...bulkLastDayOptions },
  ),
)

/** A bulk extension to undo. */
export const undoing = input(
  {
    ...projectPath,
    /** The bulk extension's id: its event's id. */
    id: brandedText(EventId),
  },
  { ...reasonFields, ...trialFields },
)

/** A page from a project's bulk extensions. */
export const bulkExtensionsPage = input(projectPath, {
  /** A bulk extension's `id`: lists only older ones. */
  after: Setting.optional(brandedText(EventId)),
  ...hostPage,
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

/** A membership to move to another user id. */
export const moving = input(
  {
    ...memberPath,
    /** The user id to move it to, with or without a membership. */
    to: brandedText(UserId),
  },
  reasonFields,
)

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

/** An extension for all memberships, without the project. */
const bulkGoal = chosenBy(
  ["by", "through"],
  input({}, { ...dateGoal, ...bulkDateFields }),
  input({}, bulkDurationGoal),
  input({}, { ...lastDayGoal, ...bulkLastDayOptions }),
)

/** An extension for all memberships, once it is read. */
export type BulkGoal = Decoded<typeof bulkGoal>

const isGoal = (given: unknown): given is HostInputOf<typeof bulkGoal> => given !== undefined

/** The extension assumed by a count. */
const extensionOfAll: Setting.Setting<
  HostInputOf<typeof bulkGoal> | undefined,
  BulkGoal | undefined,
  InvalidInput | InvalidEndDate
> = {
  expected: "an extension of all memberships",
  isOptional: true,
  // Errors name only the extension's fields.
  read: (given) => (isGoal(given) ? bulkGoal.fromHost(copyOwn(given)) : absent),
}

/** A count by the day memberships end on, in the project's time zone. */
export const endsCount = input(projectPath, {
  /**
   * The first day, such as `"2027-01-31"`. By default, 59 days before `to`, or 14 days before
   * today without `to`.
   */
  from: Setting.optional(dayText),
  /**
   * The last day, less than 400 days later. By default, 59 days after `from`, or 45 days after today
   * without `from`.
   */
  to: Setting.optional(dayText),
  /** Counts as if all memberships had been extended so. Nothing is changed. */
  extension: extensionOfAll,
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

/** A page from the audit trail. */
export const historyPage = input(
  {
    /** The project; `null` for changes to API keys, and for created or deleted projects. */
    projectId: projectOrNone,
  },
  {
    /** Lists only changes to this user's membership, including applied bulk extensions. */
    userId: Setting.optional(brandedText(UserId)),
    /** A row's `cursor`: lists only older rows. */
    after: Setting.optional(brandedText(AuditCursor)),
    ...hostPage,
  },
)

const repeatable = { idempotencyKey: true }

// Rows and returned objects may have their project's id.
const ofAny = { projectId: false }

const goal = {
  endDate: "extend",
  by: "extend_by",
  through: true,
  mode: ["never_shorten", 'mode: "neverShorten"'],
} as const

const changing = { ...ofAny, ...repeatable }

const resultFields = new Set(["endDate", "metadata", "state"])
const readers = new Set(["find", "isActive", "history"])
const takers = new Set(["grant", "import.memberships", "extend", "update", "end", "move", "erase"])

const projectFields = new Set(["memberships", ...Object.keys(projectSettings)])

/** Tells whether a field is that of a returned project, which has a membership count. */
const isOfProject = (field: string, given: object): boolean =>
  projectFields.has(field) && typeof Reflect.get(given, "memberships") === "number"

/** Argument names by method. A returned membership or project can be passed to another method. */
export const membershipNames: Noun = {
  methods: {
    createProject: [null, origin, repeatable],
    updateProject: [namesOf(projectUpdate, changing), origin],
    deleteProject: [null, origin, repeatable],
    findProject: [null],
    listProjects: [namesOf(projectsPage)],
    grant: [namesOf(newMembership, changing), origin],
    import: [
      namesOf(imported, {
        ...changing,
        memberships: {
          userId: true,
          endDate: true,
          through: true,
          timeZone: true,
          keptDay: true,
          metadata: true,
        },
      }),
      origin,
    ],
    // A returned membership may have `created`.
    extend: [namesOf(extension, { ...changing, ...goal, created: false }), origin],
    extendAll: [namesOf(bulkExtension, { ...changing, ...goal }), origin],
    undoBulkExtension: [namesOf(undoing, { ...changing, id: false }), origin],
    bulkExtensions: [namesOf(bulkExtensionsPage, ofAny)],
    update: [namesOf(membershipUpdate, changing), origin],
    // The API erases by a parameter in the same request.
    end: [namesOf(ending, { ...changing, userId: ["erase", "as the method erase"] }), origin],
    move: [namesOf(moving, changing), origin],
    erase: [namesOf(ofMember, changing), origin],
    find: [namesOf(ofMember, ofAny)],
    isActive: [namesOf(possibleMember, ofAny)],
    list: [namesOf(membershipsPage, ofAny)],
    listEnding: [namesOf(endingPage, { ...ofAny, before: "ending_before" })],
    countEnds: [
      namesOf(endsCount, { ...ofAny, extension: { ...goal, through: true, timeZone: true } }),
    ],
    recordShown: [namesOf(disclosure, { ...ofAny, action: false, subject: false }), origin],
    history: [namesOf(historyPage, ofAny)],
  },
  ignores: (place, field, given) =>
    isOfProject(field, given) ||
    (resultFields.has(field) &&
      (readers.has(place) || (takers.has(place) && Object.hasOwn(given, "state")))),
}
