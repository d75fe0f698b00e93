/** The operations on projects. */

import { brandedText } from "../base/input.ts"
import { projectPath } from "../base/input.ts"
import { ofProject } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { ProjectId } from "../base/values.ts"
import { type AuditRow, auditPage } from "./audit.ts"
import { declareOperations, pageFields, paged, plain } from "./declaration.ts"
import type { ActivityCell, Instant, Int } from "./types.ts"

export interface ListedProject {
  /**
   * The id of the project.
   * @example "demo"
   */
  readonly id: string
  /**
   * The number of memberships, with those that have expired.
   * @minimum 0
   * @example 1
   */
  readonly memberships: Int
  /**
   * The number of webhooks.
   * @minimum 0
   * @example 1
   */
  readonly webhooks: Int
}

export interface Project extends ListedProject {
  /** The date that all memberships were last extended to. */
  readonly last_bulk_end_date: Instant | null
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
     * An id of your own: 1 to 255 characters, none of them a control character.
     * @example "demo"
     */
    projectId: projectPath.projectId,
  },
  {},
)

/** A page of the projects. */
const projectsQuery = input(
  {},
  {
    ...pageFields,
    /** The cursor that the page before has as `next`; without it, the first page. */
    after: Setting.optional(brandedText(ProjectId)),
  },
)

/**
 * Projects
 *
 * What memberships, webhooks and keys belong to.
 */
export const projectOperations = declareOperations({
  /**
   * List projects
   *
   * Returns the projects that the key opens, in the order of their ids, compared as text.
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
   * List the changes of a project
   *
   * Returns who changed memberships and webhooks of a project, newest first, for as long as the server keeps it.
   */
  audit: {
    method: "GET",
    pattern: `${one}/audit`,
    role: "operator",
    input: input(projectPath, auditPage),
    reply: paged<ReadonlyArray<AuditRow>>("The audit trail of the project, newest first."),
    errors: [],
  },
  /**
   * Get a project's last hour
   *
   * Counts the attempts to deliver events of a project by the minute, over all servers. Attempts that another server made may
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
