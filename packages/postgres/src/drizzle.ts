/** Tenure for [Drizzle](https://orm.drizzle.team). Generated from the migrations: `npm run generate`. */

import {
  bigint,
  boolean,
  integer,
  jsonb,
  pgSchema,
  pgView,
  smallint,
  text,
  timestamp,
} from "drizzle-orm/pg-core"

/** Returns `membershipsCurrent` for a schema other than `tenure`. */
export const membershipsCurrentIn = (schema: string) => {
  // Drizzle has no name for this schema.
  const view = schema === "public" ? pgView : pgSchema(schema).view
  return view("memberships_current", {
    /** The id of the project. */
    projectId: text("project_id").notNull(),
    /** The number that the function `project_number` returns for the project, for pages in the order of user ids. */
    projectNumber: bigint("project_number", { mode: "bigint" }).notNull(),
    /** The user id, as text. */
    userId: text("user_id").notNull(),
    /** The end date, after all bulk extensions. In a pause, the date that stands. */
    endDate: timestamp("end_date", { withTimezone: true }).notNull(),
    /** Whether there is no pause, and the end date, with the grace of the project, is later than the beginning of the transaction. */
    isActive: boolean("is_active").notNull(),
    /** The metadata: texts by name; an empty object without any. */
    metadata: jsonb("metadata").$type<Readonly<Record<string, string>>>().notNull(),
    /** Whether the end date was given as a day. Then it is the end of that day in time_zone, unless that was changed. */
    inDays: boolean("in_days").notNull(),
    /** The day of the month that months count with, if the end date hides it. */
    keptDay: smallint("kept_day"),
    /** The time zone of the project: a name of IANA. */
    timeZone: text("time_zone").notNull(),
    /** For how many seconds memberships of the project are still active after their end dates. */
    graceSeconds: integer("grace_seconds").notNull(),
    /** When the pause began, if there is one. */
    pausedAt: timestamp("paused_at", { withTimezone: true }).notNull(),
    /** When the pause ends by itself. */
    resumesAt: timestamp("resumes_at", { withTimezone: true }).notNull(),
  }).existing()
}

/**
 * The memberships of all projects with their effective end dates, for joins with tables of the host.
 *
 * @example
 * ```ts
 * import { and, eq } from "drizzle-orm"
 * import type { NodePgDatabase } from "drizzle-orm/node-postgres"
 * import { pgTable, text } from "drizzle-orm/pg-core"
 * import { membershipsCurrent } from "tenure/drizzle"
 *
 * const users = pgTable("users", { id: text().primaryKey(), name: text().notNull() })
 *
 * const findUser = (db: NodePgDatabase, projectId: string, userId: string) =>
 *   db
 *     .select({ name: users.name, endDate: membershipsCurrent.endDate })
 *     .from(users)
 *     .leftJoin(
 *       membershipsCurrent,
 *       and(eq(membershipsCurrent.projectId, projectId), eq(membershipsCurrent.userId, users.id)),
 *     )
 *     .where(eq(users.id, userId))
 * ```
 */
export const membershipsCurrent = membershipsCurrentIn("tenure")
