/** A project's settings, which an operator can change. */

import type { FieldChange } from "../base/change-context.ts"
import { branded } from "../base/values.ts"
import { type TimeZone, utc } from "./calendar.ts"

/** A project's settings. */
export interface ProjectSettings {
  /** The IANA time zone in which the project's days begin and end, such as `Europe/Berlin`. Default: `UTC`. */
  readonly timeZone: TimeZone
}

/** Brands a stored time zone. It was valid where it was set, but an older runtime may not know its name. */
export const storedTimeZone = branded<string, TimeZone>()

/** A change. Settings stay as they are if `undefined`. */
type ProjectPatch = { readonly [Name in keyof ProjectSettings]: ProjectSettings[Name] | undefined }

/** The settings of a new project. */
export const defaultProjectSettings: ProjectSettings = { timeZone: utc }

/** Changes settings. */
export const applyProjectPatch = (
  before: ProjectSettings,
  patch: ProjectPatch,
): ProjectSettings => ({
  timeZone: patch.timeZone ?? before.timeZone,
})

const auditedSettings = ["timeZone"] as const

/** Compares settings, for the audit trail. */
export const projectChanges = (
  before: ProjectSettings,
  after: ProjectSettings,
): ReadonlyArray<FieldChange> =>
  auditedSettings.flatMap((field) => {
    const [from, to] = [before[field], after[field]]
    return from === to ? [] : [{ field, from, to }]
  })
