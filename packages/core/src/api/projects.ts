/** The operations on projects. */

import { brandedText } from "../base/input.ts"
import { projectPath } from "../base/input.ts"
import { ofProject } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { ProjectId } from "../base/values.ts"
import { memberPath, projectUpdate } from "../memberships/inputs.ts"
import { type AuditRow, auditPage } from "./audit.ts"
import { declareOperations, pageFields, paged, plain } from "./declaration.ts"
import type { ActivityCell, Instant, Int, WithAnnouncements } from "./types.ts"

export interface ListedProject {
  /**
   * The project's id.
   * @example "demo"
   */
  readonly id: string
  /**
   * The membership count, including expired ones.
   * @minimum 0
   * @example 1
   */
  readonly memberships: Int
  /**
   * The webhook count.
   * @minimum 0
   * @example 1
   */
  readonly webhooks: Int
}

export interface Project extends ListedProject {
  /** The last date all memberships were extended to. */
  readonly last_bulk_end_date: Instant | null
  /**
   * The IANA time zone in which whole days begin and end.
   * @example "UTC"
   */
  readonly time_zone: string
  /**
   * For how long memberships are still active after their end dates; null for none.
   * @example "P7D"
   */
  readonly grace: string | null
}

/** A project after a change of its settings. */
export interface ChangedProject extends Project, WithAnnouncements {
  /** After a dry run: the number of expired memberships that would be active again. */
  readonly would_reactivate?: Int
  /** After a dry run: the number of active memberships that would be expired. */
  readonly would_expire?: Int
}

export interface ProjectActivity {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<ActivityCell>
}

const all = "/v2/projects"
const one = `${all}/:project_id` as const

/** A project to create. */
const newProject = input(
  {
    /**
     * Your own id: 1 to 255 characters, no control characters.
     * @example "demo"
     */
    projectId: projectPath.projectId,
  },
  {},
)

/** A page from a project's audit trail. */
const auditQuery = input(projectPath, {
  ...auditPage,
  /**
   * Only changes to this user's membership, including the bulk extensions applied to it.
   * @example "1001"
   */
  userId: Setting.optional(memberPath.userId),
})

/** A page from the project list. */
const projectsQuery = input(
  {},
  {
    ...pageFields,
    /** The previous page's `next`; without it, the first page. */
    after: Setting.optional(brandedText(ProjectId)),
  },
)

/**
 * Projects
 *
 * Projects group memberships and webhooks, and keys give access to them.
 */
export const projectOperations = declareOperations({
  /**
   * List projects
   *
   * Returns the projects in the key's scope, ordered by id, compared as text.
   */
  list: {
    method: "GET",
    pattern: all,
    role: "client",
    input: projectsQuery,
    reply: paged<ReadonlyArray<ListedProject>>("The projects."),
    errors: [],
  },
  /**
   * Create a project
   *
   * Creates a project. Does nothing if it exists.
   */
  create: {
    method: "PUT",
    pattern: one,
    role: "admin",
    input: newProject,
    reply: plain<Project>("The project exists."),
    errors: [],
  },
  /**
   * Get a project
   *
   * Returns a project.
   */
  get: {
    method: "GET",
    pattern: one,
    role: "client",
    input: ofProject,
    reply: plain<Project>("The project."),
    errors: [],
  },
  /**
   * Change a project
   *
   * Changes settings of a project. What is not in the body stays as it is. A new time zone moves no end date.
   * A new grace counts at once, for past ends too, and nothing is announced twice.
   */
  update: {
    method: "PATCH",
    pattern: one,
    role: "operator",
    input: projectUpdate,
    reply: plain<ChangedProject>("The project was changed."),
    errors: [],
  },
  /**
   * Delete a project
   *
   * Deletes a project with its memberships, webhooks, events and deliveries. API keys do not open it any more, even if it is
   * created again.
   */
  delete: {
    method: "DELETE",
    pattern: one,
    role: "admin",
    input: ofProject,
    reply: plain<null>("The project was deleted."),
    errors: [],
  },
  /**
   * List a project's changes
   *
   * Returns the changes to a project's memberships and webhooks with their principals, newest first,
   * for as long as the server keeps them. With parameters that select changes, a page may have fewer than
   * `limit`, or none, before the last.
   */
  audit: {
    method: "GET",
    pattern: `${one}/audit`,
    role: "operator",
    input: auditQuery,
    reply: paged<ReadonlyArray<AuditRow>>("The audit trail of the project, newest first."),
    errors: [],
  },
  /**
   * Get a project's last hour
   *
   * Counts a project's delivery attempts by the minute, over all servers. Another server's attempts may
   * be missing for up to 10 seconds.
   */
  activity: {
    method: "GET",
    pattern: `${one}/activity`,
    role: "operator",
    input: ofProject,
    reply: plain<ProjectActivity>("What was delivered for the project in the last hour."),
    errors: [],
  },
})
