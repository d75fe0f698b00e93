/** The operations on API keys. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { roles } from "../../keys/Role.ts"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { paged, success } from "./Successes.ts"

const { "apiKeys.issue": issue, "apiKeys.list": list, "apiKeys.revoke": revoke } = table

const keyId = Fields.uuid.annotateKey({ description: "The id of the key." })

/** A role. */
export const role = Schema.Literals(roles).annotate({
  identifier: "Role",
  description: "What the holder of a key may do; each role may also do what those before it may.",
  examples: ["client"],
})

/** The projects that a key opens. */
export const projects = Schema.Union([Schema.Literal("all"), Schema.Array(Schema.String)]).annotate(
  {
    description: "Ids of the projects that the key opens; `all` for those there are and will be.",
    examples: [["demo"]],
  },
)

const name = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255)).annotate({
  description: "What people call the key.",
  examples: ["nightly import"],
})

const apiKey = Schema.Struct({
  id: keyId,
  name: Schema.NullOr(name),
  role,
  projects,
  created_at: Fields.instant,
  expires_at: Schema.NullOr(Fields.instant),
  revoked_at: Schema.NullOr(Fields.instant),
  last_used_at: Schema.NullOr(Fields.instant).annotateKey({
    description: "When the key was last used, to about a minute.",
  }),
}).annotate({ identifier: "ApiKey" })

const newKey = Schema.Struct({
  projects,
  role,
  name: Schema.optionalKey(name),
  expires_at: Schema.optionalKey(Fields.endDate).annotateKey({
    description: "A future date. By default, the key never expires.",
  }),
}).annotate({ identifier: "NewApiKey" })

const issued = Schema.Struct({
  id: keyId,
  token: Schema.NullOr(
    Schema.String.annotate({ examples: ["tnr_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"] }),
  ).annotateKey({
    description: "The bearer token, which is shown this once; null in the answer to a repetition.",
  }),
}).annotate({ identifier: "IssuedApiKey" })

/** The operations on API keys. */
export class ApiKeys extends HttpApiGroup.make("apiKeys")
  .add(
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      query: Fields.page,
      success: paged(Schema.Array(apiKey), "The API keys."),
      error: [...Failures.common, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List API keys",
        description:
          "Returns API keys, also revoked and expired ones, oldest first: those that open no project that the own key does not open.",
      }),
    ),
    HttpApiEndpoint.make(issue.method)("issue", issue.pattern, {
      payload: newKey,
      success: success(issued, "The API key was issued. Its token will not be shown again."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Issue an API key",
        description: "Issues a key, which may open no project that the own key does not open.",
      }),
    ),
    HttpApiEndpoint.make(revoke.method)("revoke", revoke.pattern, {
      params: { key_id: keyId },
      success: success(Schema.Null, "The API key was revoked."),
      error: [
        ...Failures.common,
        ...Failures.once,
        Failures.failure("ApiKeyNotFound"),
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Revoke an API key",
        description: "Revokes a key for good. Revoking it again changes nothing.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "API keys")
  .annotate(OpenApi.Description, "Who may call the API, and what they may do.") {}
