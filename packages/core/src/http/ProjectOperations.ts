/** The operations on projects. */

import * as Effect from "effect/Effect"
import type { ProjectSummary } from "../memberships/Membership.ts"
import { Memberships } from "../memberships/Memberships.ts"
import * as AuditData from "./AuditData.ts"
import { type OperationsOn, originOf, projectOf, timeOf } from "./Operation.ts"
import * as Page from "./Page.ts"
import * as Query from "./Query.ts"

const listed = ({ id, memberships, webhooks }: ProjectSummary) => ({ id, memberships, webhooks })

const dataOf = (project: ProjectSummary) => ({
  ...listed(project),
  last_bulk_end_date: timeOf(project.lastBulkEndDate),
})

/** Makes the operations. */
export const make = Effect.gen(function* () {
  const memberships = yield* Memberships

  return {
    "projects.list": Effect.fnUntraced(function* (call) {
      const { after, limit } = yield* Query.read(call.request, Query.page)
      const within = call.principal.projects
      const found = yield* memberships.listProjects({ after, limit: limit + 1, within })
      return { message: "The projects.", ...Page.of(found, limit, ({ id }) => id, listed) }
    }),

    "projects.create": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      yield* memberships.createProject(projectId, originOf(call), { idempotencyKey: call.once })
      return {
        message: "The project exists.",
        data: dataOf(yield* memberships.findProject(projectId)),
      }
    }),

    "projects.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      return { message: "The project.", data: dataOf(yield* memberships.findProject(projectId)) }
    }),

    "projects.delete": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      yield* memberships.deleteProject(projectId, originOf(call), { idempotencyKey: call.once })
      return { message: "The project was deleted.", data: null }
    }),

    "projects.audit": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const { after, limit } = yield* Query.read(call.request, Query.page)
      const found = yield* memberships.history({ projectId, after, limit: limit + 1 })
      return {
        message: "The audit trail of the project, newest first.",
        ...Page.of(found, limit, ({ cursor }) => cursor, AuditData.of),
      }
    }),
  } satisfies OperationsOn<"projects">
})
