/** Performs the operations on projects, and the one on the audit trail outside them. */

import * as Effect from "effect/Effect"
import { auditOperations } from "../api/audit.ts"
import { ofResource } from "../api/declaration.ts"
import { projectOperations } from "../api/projects.ts"
import type { AuditPage } from "../memberships/audit-search.ts"
import type { AuditAction, AuditRow } from "../memberships/audit-trail.ts"
import { formatDuration } from "../memberships/duration.ts"
import { MembershipActs, type UpdatedProject } from "../memberships/membership-acts.ts"
import type { ProjectSummary } from "../memberships/membership.ts"
import { formatGrace } from "../memberships/project-settings.ts"
import { WebhookActs } from "../webhooks/webhooks.ts"
import { announcementsData, dryRunMessage } from "./extensions.ts"
import {
  type Call,
  type OperationsOn,
  isoOrNull,
  perform,
  requireAllProjects,
} from "./operation.ts"
import { pageReply } from "./response.ts"
import { cellsOf } from "./webhooks.ts"

/** Returns a change's principal, time and reason, and its old and new date. */
export const auditChangeData = <Action extends AuditAction>(
  row: AuditRow & { readonly action: Action },
) => ({
  at: isoOrNull(row.at),
  action: row.action,
  from: isoOrNull(row.from),
  to: isoOrNull(row.to),
  extend_by: row.by === undefined ? null : formatDuration(row.by),
  key_id: row.origin.keyId ?? null,
  key_name: row.keyName ?? null,
  request_id: row.origin.requestId ?? null,
  reason: row.reason ?? null,
})

const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Returns a row with the changed member or other subject. */
const auditRowData = (row: AuditRow) => ({
  ...auditChangeData(row),
  user_id: row.userId ?? null,
  subject: row.subject ?? null,
  changes: row.changes.map(({ field, from, to }) => ({ field: snakeCase(field), from, to })),
})

/** Makes the response for a page from a search. */
export const auditReply = <Data extends object>(
  { next }: Pick<AuditPage, "next">,
  data: ReadonlyArray<Data>,
) => ({ total: data.length, next: next ?? null, data })

const listed = ({ id, memberships, webhooks }: ProjectSummary) => ({ id, memberships, webhooks })

const projectData = (project: ProjectSummary) => ({
  ...listed(project),
  last_bulk_end_date: isoOrNull(project.lastBulkEndDate),
  time_zone: project.timeZone,
  grace: formatGrace(project.grace),
})

const projectReply = (project: ProjectSummary) => ({ data: projectData(project) })

const updatedReply = ({
  announcements,
  wouldExpire,
  wouldReactivate,
  ...project
}: UpdatedProject) =>
  wouldExpire === undefined || wouldReactivate === undefined
    ? projectReply(project)
    : {
        message: dryRunMessage,
        data: {
          ...projectData(project),
          would_reactivate: wouldReactivate,
          would_expire: wouldExpire,
          ...announcementsData(announcements),
        },
      }

/**
 * Makes the operations on projects.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeProjectOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const acts = yield* MembershipActs
  const webhooks = yield* WebhookActs
  const { activity, audit, create, get, list, update, delete: deletion } = projectOperations

  return ofResource("projects", {
    list: perform(list, maxBodyBytes, ({ after, limit }, _context, { principal }) =>
      Effect.map(
        acts.listProjects({ after, limit: limit + 1, within: principal.projects }),
        (found) => pageReply(found, limit, ({ id }) => id, listed),
      ),
    ),

    create: perform(create, maxBodyBytes, (project, context) =>
      Effect.map(acts.createProject(project, context), projectReply),
    ),

    get: perform(get, maxBodyBytes, (project) =>
      Effect.map(acts.findProject(project), projectReply),
    ),

    update: perform(update, maxBodyBytes, (change, context) =>
      Effect.map(acts.updateProject(change, context), updatedReply),
    ),

    delete: perform(deletion, maxBodyBytes, (project, context) =>
      Effect.as(acts.deleteProject(project, context), { data: null }),
    ),

    audit: perform(audit, maxBodyBytes, (search) =>
      Effect.map(acts.searchHistory(search), (page) =>
        auditReply(page, page.rows.map(auditRowData)),
      ),
    ),

    activity: perform(activity, maxBodyBytes, (project) =>
      Effect.map(webhooks.projectActivity(project), (cells) => ({
        data: { minutes: cellsOf(cells) },
      })),
    ),
  }) satisfies OperationsOn<"projects">
})

/**
 * Makes the operation on the audit trail outside projects.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeAuditOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const acts = yield* MembershipActs

  const list = perform(auditOperations.list, maxBodyBytes, (search) =>
    Effect.map(acts.searchHistory({ ...search, projectId: undefined, userId: undefined }), (page) =>
      auditReply(page, page.rows.map(auditRowData)),
    ),
  )

  return ofResource("audit", {
    list: (call: Call) => Effect.andThen(requireAllProjects(call), list(call)),
  }) satisfies OperationsOn<"audit">
})
