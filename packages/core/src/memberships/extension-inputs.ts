/** The inputs of extensions, of one membership and of all, and of counting ends. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { brandedText, projectPath, shownInstant } from "../base/input.ts"
import { type Decoded, type HostInputOf, chosenBy, input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type Millis, isDayText } from "../base/time.ts"
import { copyOwn } from "../base/values.ts"
import { EventId } from "../events/event.ts"
import { DurationText, fixedDurationFormat, fixedMillis } from "./duration.ts"
import {
  type BulkMode,
  type InvalidEndDate,
  bulkModeNames,
  bulkModes,
  decodeEndDate,
  endDateSetting,
  orForLife,
} from "./end-date.ts"
import { dayText } from "./ends.ts"
import { durationStarts } from "./extensions.ts"
import {
  beside,
  text,
  makeDateSetting,
  dateSetting,
  absent,
  leftOut,
  zoneFields,
  lastDayFields,
  zoneBesideDate,
  flag,
  memberPath,
  reasonFields,
  trialFields,
  hostPage,
} from "./inputs.ts"
import { UserId, userIdPattern } from "./membership.ts"
import { segmentSetting } from "./segment.ts"

/** An extension's date. Its errors name no field, for hosts and requests. */
const extensionDate = Setting.named(
  "extend",
  Setting.bySource(endDateSetting, { ...dateSetting, read: decodeEndDate }),
)

const besideDuration = "left out beside extend_by"

const besideDay = "left out beside through"

const besideDate = "left out beside extend"

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

const forOne = leftOut(undefined, "left out: it is for one membership")

/** Fields for a segment. */
const segmentFields = {
  /**
   * Which memberships: those that match all given fields, one at least. `metadata` has some of theirs, `state` is theirs,
   * `ending_after` and `ending_before` are instants before and after their end dates, and `user_ids` has up to 1,000.
   * @example {"metadata":{"plan":"gold"},"state":"active"}
   */
  where: segmentSetting,
  /**
   * The previous page's `next`; without it, the first page.
   * @example "1001"
   */
  after: Setting.optional(text(UserId, { type: "string", pattern: userIdPattern.source })),
  /** If true, nothing is changed. The response is that of all pages. */
  dryRun: flag,
  ...reasonFields,
  /** Not for many. */
  expectedEndDate: forOne,
  /** Not for many. */
  create: forOne,
}

/** A segment's new date. */
const segmentDateFields = {
  ...segmentFields,
  /** Whether memberships with a later end date are set, too (the default), or left as they are. */
  mode: Setting.optional(modeSetting),
  /** Not with a date. */
  from: leftOut(beside("from", "an end date"), besideDate),
}

/** A segment's duration. */
const segmentDurationFields = {
  ...segmentFields,
  ...zoneFields,
  /** The start for `extend_by`: the end date, now, or the later of both (the default). */
  from: Setting.withDefault(Setting.oneOf(durationStarts), "later"),
}

/**
 * How a segment is extended.
 * @example { "where": { "metadata": { "plan": "gold" } }, "extend": 4070908800000 }
 */
export const segmentExtension = chosenBy(
  ["by", "through"],
  input(projectPath, { ...dateGoal, ...segmentDateFields, ...notBesideDate }),
  input(projectPath, { ...durationGoal, ...segmentDurationFields }),
  input(projectPath, { ...lastDayGoal, ...segmentDateFields }),
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
