/** The settings of a project in statements that return them. */

import { Millis, type ProjectSettings, storedTimeZone } from "@tenure/core/store"

/** Returns the columns with the settings of a project, from a table or a common table expression. */
export const settingsColumns = (project: string): string =>
  `${project}.time_zone, ${project}.grace_seconds`

/** The columns from `settingsColumns`. */
export interface SettingsRow {
  readonly time_zone: string
  readonly grace_seconds: number
}

/** Converts grace from a row. */
export const toGrace = ({ grace_seconds }: Pick<SettingsRow, "grace_seconds">): Millis =>
  Millis(grace_seconds * 1000)

/** Converts a row with settings. */
export const toSettings = (row: SettingsRow): ProjectSettings => ({
  timeZone: storedTimeZone(row.time_zone),
  grace: toGrace(row),
})

/** Returns grace as a statement takes it. */
export const graceSeconds = ({ grace }: Pick<ProjectSettings, "grace">): number => grace / 1000

/** An expression for the grace of a project. */
export const graceOf = (project: string): string => `${project}.grace_seconds * interval '1 second'`

/** An expression for the latest end date of expired memberships in a project: what ends later is active. */
export const activeAfter = (project: string): string =>
  `(statement_timestamp() - ${graceOf(project)})`
