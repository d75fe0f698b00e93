/** The operation on the audit trail of what belongs to no project. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import * as AuditRows from "./AuditRows.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { paged } from "./Successes.ts"

const { "audit.list": list } = table

/** The operation on the audit trail of what belongs to no project. */
export class Audit extends HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      query: Fields.page,
      success: paged(
        Schema.Array(AuditRows.row),
        "The audit trail of projects and API keys, newest first.",
      ),
      error: [...Failures.common, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List changes of projects and keys",
        description:
          "Returns who created and deleted projects, and who issued and revoked API keys, newest first. Needs a key that opens all projects.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Audit trail")
  .annotate(OpenApi.Description, "Who changed what, beside the changes of a project.") {}
