/** Tenure for [Kysely](https://kysely.dev). Generated from the migrations: `npm run generate`. */

import type { ColumnType } from "kysely"

type ReadOnly<A> = ColumnType<A, never, never>

/** The memberships of all projects with their effective end dates, for joins with tables of the host. */
export interface MembershipsCurrent {
  /** The id of the project. */
  readonly project_id: ReadOnly<string>
  /** The number that the function `project_number` returns for the project, for pages in the order of user ids. */
  readonly project_number: ReadOnly<string>
  /** The user id, as text. */
  readonly user_id: ReadOnly<string>
  /** The end date, after all bulk extensions. In a pause, the date that stands. */
  readonly end_date: ReadOnly<Date>
  /** Whether there is no pause, and the end date, with the grace of the project, is later than the beginning of the transaction. */
  readonly is_active: ReadOnly<boolean>
  /** The metadata: texts by name; an empty object without any. */
  readonly metadata: ReadOnly<Readonly<Record<string, string>>>
  /** Whether the end date was given as a day. Then it is the end of that day in time_zone, unless that was changed. */
  readonly in_days: ReadOnly<boolean>
  /** The day of the month that months count with, if the end date hides it. */
  readonly kept_day: ReadOnly<number | null>
  /** The time zone of the project: a name of IANA. */
  readonly time_zone: ReadOnly<string>
  /** For how many seconds memberships of the project are still active after their end dates. */
  readonly grace_seconds: ReadOnly<number>
  /** When the pause began, if there is one. */
  readonly paused_at: ReadOnly<Date>
  /** When the pause ends by itself. */
  readonly resumes_at: ReadOnly<Date>
}

/**
 * What hosts may join, by the name of the schema.
 *
 * @example
 * ```ts
 * import type { Kysely } from "kysely"
 * import type { Database } from "tenure/kysely"
 *
 * interface Tables extends Database {
 *   readonly users: { readonly id: string; readonly name: string }
 * }
 *
 * const findUser = (db: Kysely<Tables>, projectId: string, userId: string) =>
 *   db
 *     .selectFrom("users")
 *     .leftJoin("tenure.memberships_current as m", (join) =>
 *       join.onRef("m.user_id", "=", "users.id").on("m.project_id", "=", projectId),
 *     )
 *     .select(["users.name", "m.end_date"])
 *     .where("users.id", "=", userId)
 *     .executeTakeFirst()
 * ```
 */
export type Database<Schema extends string = "tenure"> = {
  readonly [Name in `${Schema}.memberships_current`]: MembershipsCurrent
}
