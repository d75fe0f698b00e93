/** The operations on API keys. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { routes } from "../http/routes.ts"
import { roles } from "../keys/api-key.ts"
import {
  Authorization,
  commonFailures,
  endDate,
  exampleId,
  failure,
  idempotencyFailures,
  instant,
  pageParameters,
  paged,
  projectFailures,
  success,
  uuid,
} from "./schemas.ts"

const { "apiKeys.issue": issue, "apiKeys.list": list, "apiKeys.revoke": revoke } = routes

const keyId = uuid.annotateKey({ description: "The id of the key." })

/** A role. */
const role = Schema.Literals(roles).annotate({
  identifier: "Role",
  description: "What the holder of a key may do; each role may also do what those before it may.",
  examples: ["client"],
})

/** The projects that a key opens. */
const keyProjects = Schema.Union([Schema.Literal("all"), Schema.Array(Schema.String)]).annotate({
  description: "Ids of the projects that the key opens; `all` for those there are and will be.",
  examples: [["demo"]],
})

const name = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255)).annotate({
  description: "What people call the key.",
  examples: ["nightly import"],
})

const apiKey = Schema.Struct({
  id: keyId,
  name: Schema.NullOr(name),
  role,
  projects: keyProjects,
  created_at: instant,
  expires_at: Schema.NullOr(instant),
  revoked_at: Schema.NullOr(instant),
  last_used_at: Schema.NullOr(instant).annotateKey({
    description: "When the key was last used, to about a minute.",
  }),
}).annotate({ identifier: "ApiKey" })

const newKey = Schema.Struct({
  projects: keyProjects,
  role,
  name: Schema.optionalKey(name),
  expires_at: Schema.optionalKey(endDate).annotateKey({
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
      query: pageParameters,
      success: paged(Schema.Array(apiKey), "The API keys."),
      error: [...commonFailures, failure("InvalidInput")],
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
      error: [...projectFailures, ...idempotencyFailures, failure("InvalidInput")],
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
        ...commonFailures,
        ...idempotencyFailures,
        failure("ApiKeyNotFound"),
        failure("InvalidInput"),
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

/** The operation that tells who sends a request. */

const { "identity.get": get } = routes

const identity = Schema.Struct({
  key_id: Schema.String.annotate({
    description: "The id of the API key, or of whom else the host named.",
    examples: [exampleId],
  }),
  role,
  projects: keyProjects,
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
      error: [...commonFailures, failure("InvalidInput")],
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
