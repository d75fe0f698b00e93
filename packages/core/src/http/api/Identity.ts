/** The operation that tells who sends a request. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import { projects, role } from "./ApiKeys.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { success } from "./Successes.ts"

const { "identity.get": get } = table

const identity = Schema.Struct({
  key_id: Schema.String.annotate({
    description: "The id of the API key, or of whom else the host named.",
    examples: [Fields.exampleId],
  }),
  role,
  projects,
  read_only: Schema.Boolean.annotate({
    description: "Whether the sender may change nothing.",
    examples: [false],
  }),
}).annotate({ identifier: "Identity" })

/** The operation that tells who sends a request. */
export class Identity extends HttpApiGroup.make("identity")
  .add(
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      success: success(identity, "Who sent the request."),
      error: [...Failures.common, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the identity",
        description: "Returns who sends the request, and what they may do.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Identity")
  .annotate(OpenApi.Description, "Who sends a request.") {}
