/** The operations on projects. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import * as AuditRows from "./AuditRows.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { paged, success } from "./Successes.ts"

const {
  "projects.audit": audit,
  "projects.create": create,
  "projects.delete": deletion,
  "projects.get": get,
  "projects.list": list,
} = table

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ examples: [1] })

const listed = Schema.Struct({
  id: Fields.projectId,
  memberships: count.annotateKey({
    description: "The number of memberships, with those that have expired.",
  }),
  webhooks: count.annotateKey({ description: "The number of webhooks." }),
}).annotate({ identifier: "ListedProject" })

const project = Schema.Struct({
  ...listed.fields,
  last_bulk_end_date: Schema.NullOr(Fields.instant).annotateKey({
    description: "The date that all memberships were last extended to.",
  }),
}).annotate({ identifier: "Project" })

/** The operations on projects. */
export class Projects extends HttpApiGroup.make("projects")
  .add(
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      query: Fields.page,
      success: paged(Schema.Array(listed), "The projects."),
      error: [...Failures.common, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List projects",
        description:
          "Returns the projects that the key opens, in the order of their ids, compared as text.",
      }),
    ),
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: {
        project_id: Fields.projectId.annotate({
          description: "An id of your own: 1 to 255 characters, none of them a control character.",
        }),
      },
      success: success(project, "The project exists."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Create a project",
        description: "Creates a project. Does nothing if it exists.",
      }),
    ),
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      params: { project_id: Fields.projectId },
      success: success(project, "The project."),
      error: [...Failures.inProject, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({ summary: "Get a project", description: "Returns a project." }),
    ),
    HttpApiEndpoint.make(deletion.method)("delete", deletion.pattern, {
      params: { project_id: Fields.projectId },
      success: success(Schema.Null, "The project was deleted."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Delete a project",
        description:
          "Deletes a project with its memberships, webhooks, events and deliveries. API keys do not open it any more, even if it is created again.",
      }),
    ),
    HttpApiEndpoint.make(audit.method)("audit", audit.pattern, {
      params: { project_id: Fields.projectId },
      query: Fields.page,
      success: paged(Schema.Array(AuditRows.row), "The audit trail of the project, newest first."),
      error: [...Failures.inProject, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List the changes of a project",
        description:
          "Returns who changed memberships and webhooks of a project, newest first, for as long as the server keeps it.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Projects")
  .annotate(OpenApi.Description, "What memberships, webhooks and keys belong to.") {}
