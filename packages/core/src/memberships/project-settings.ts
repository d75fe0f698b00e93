/** A project's settings, which an operator can change. */

import * as Struct from "effect/Struct"
import type { FieldChange } from "../base/change-context.ts"
import * as Setting from "../base/setting.ts"
import { Millis } from "../base/time.ts"
import { branded } from "../base/values.ts"
import { type TimeZone, utc } from "./calendar.ts"
import { formatDuration, parseFixedMillis } from "./duration.ts"

/** A project's settings. */
export interface ProjectSettings {
  /** The IANA time zone in which the project's days begin and end, such as `Europe/Berlin`. Default: `UTC`. */
  readonly timeZone: TimeZone
  /** For how long a membership is still active after its end date, in milliseconds. Default: `0`. */
  readonly grace: Millis
}

/** Without grace, a membership is active until its end date. */
export const noGrace = Millis(0)

const longestGrace = 90 * 86_400_000

const graceFormat =
  "a duration in weeks, days, hours, minutes and seconds of at most 90 days, such as P7D, or null for none"

const parseGrace = (given: unknown): Millis | undefined => {
  const millis = given === null ? noGrace : parseFixedMillis(given)
  return millis !== undefined && millis <= longestGrace ? millis : undefined
}

/** Grace, as a duration without years and months; `null` for none. */
export const graceSetting = Setting.inJson(
  Setting.custom<string | null, Millis>(graceFormat, parseGrace),
  { anyOf: [{ type: "string" }, { const: null }] },
)

/** Formats grace for a response: `null` for none. */
export const formatGrace = (grace: Millis): string | null =>
  grace === noGrace ? null : formatDuration(grace)

/** Brands a stored time zone. It was valid where it was set, but an older runtime may not know its name. */
export const storedTimeZone = branded<string, TimeZone>()

/** A change. Settings stay as they are if `undefined`. */
type ProjectPatch = { readonly [Name in keyof ProjectSettings]: ProjectSettings[Name] | undefined }

/** The settings of a new project. */
export const defaultProjectSettings: ProjectSettings = { timeZone: utc, grace: noGrace }

/** Changes settings. */
export const applyProjectPatch = (
  before: ProjectSettings,
  patch: ProjectPatch,
): ProjectSettings => ({
  timeZone: patch.timeZone ?? before.timeZone,
  grace: patch.grace ?? before.grace,
})

const auditedSettings = {
  timeZone: ({ timeZone }: ProjectSettings) => timeZone,
  grace: ({ grace }: ProjectSettings) => formatGrace(grace),
}

/** Compares settings, for the audit trail. */
export const projectChanges = (
  before: ProjectSettings,
  after: ProjectSettings,
): ReadonlyArray<FieldChange> =>
  Struct.keys(auditedSettings).flatMap((field) => {
    const [from, to] = [auditedSettings[field](before), auditedSettings[field](after)]
    return from === to ? [] : [{ field, from, to }]
  })

/** When memberships have ended: at least `from` ago, and less than `to`, in milliseconds; negative for a time to come. */
export interface EndedAgo {
  readonly from: Millis
  readonly to: Millis
}

/** Returns which ends are announced within a time after a change of grace. */
export const movedEnds = (
  before: ProjectSettings,
  after: ProjectSettings,
  within: Millis,
): Readonly<Record<"overdue" | "expired", EndedAgo>> => ({
  overdue: { from: Millis(-within), to: Millis(after.grace > 0 ? 0 : -within) },
  expired: { from: Millis(after.grace - within), to: before.grace },
})

/**
 * Returns when memberships must have ended to have another state after a change of grace. `undefined` if there is no
 * difference.
 */
export const graceChange = (
  before: ProjectSettings,
  after: ProjectSettings,
): (EndedAgo & { readonly state: "active" | "expired" }) | undefined => {
  if (before.grace === after.grace) return undefined
  return before.grace < after.grace
    ? { state: "active", from: before.grace, to: after.grace }
    : { state: "expired", from: after.grace, to: before.grace }
}
