/** The operations that tell how Tenure is doing. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { routes } from "../http/routes.ts"
import { maxCountedBacklog } from "../webhooks/outbox.ts"
import { ActivityCell, WebhookHealth } from "./groups.generated.ts"
import {
  Authorization,
  commonFailures,
  failure,
  instant,
  projectId,
  success,
  waiting,
  webhookId,
  withoutKey,
} from "./schemas.ts"

const { "status.activity": activityOf, "status.get": get } = routes

const count = Schema.Int.check(
  Schema.isBetween({ minimum: 0, maximum: maxCountedBacklog }),
).annotate({
  description: "A number up to 10,000, which stands for as many or more.",
  examples: [0],
})

const answers = Schema.Boolean.annotate({
  description: "Whether the store answers and takes changes.",
  examples: [true],
})

const status = Schema.Struct({
  versions: Schema.Struct({
    tenure: Schema.String.annotate({ examples: ["1.0.0"] }),
    api: Schema.Literal("v2"),
  }),
  stores: Schema.Struct({
    memberships: answers,
    webhooks: answers,
    api_keys: answers,
    deliveries: answers,
    rate_limits: answers,
  }),
  backlog: Schema.NullOr(
    Schema.Struct({
      waiting: count.annotateKey({
        description:
          "The deliveries that wait for an attempt, or for the result of one, up to 10,000, which stands for as many or more.",
      }),
      due_for_ms: Schema.NullOr(Schema.Int).annotate({
        description:
          "For how many milliseconds the oldest due delivery has been due; null if none is. It is looked for among the first 10,000 webhooks with due deliveries.",
        examples: [null],
      }),
      late_for_ms: Schema.NullOr(Schema.Int).annotate({
        description:
          "For how many milliseconds the oldest of them has waited for nothing but a server that sends it; null if none does. It does not grow because receivers fail, are slow or have a rate.",
        examples: [null],
      }),
    }),
  ).annotate({ description: "What is left to deliver; null if the store does not answer." }),
  failed_deliveries: Schema.NullOr(count).annotateKey({
    description:
      "The deliveries that were given up, are kept and can be replayed, up to 10,000, which stands for as many or more; null if the store does not answer.",
  }),
  disabled_webhooks: Schema.NullOr(count).annotateKey({
    description:
      "The webhooks that are disabled, up to 10,000, which stands for as many or more; null if the store does not answer.",
  }),
  webhooks_needing_attention: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        project_id: projectId,
        id: webhookId,
        url_host: Schema.String.annotate({
          description: "The host of its URL, with the port if that is not the usual one.",
          examples: ["receiver.example"],
        }),
        description: Schema.NullOr(Schema.String).annotate({
          description: "What the webhook is for; null if nobody said.",
          examples: [null],
        }),
        reason: Schema.Literals(["unreadable_secret", "failing", "disabled"]).annotate({
          description:
            "Whether nothing can be signed, the latest attempts have failed, or nothing is sent until somebody enables it.",
        }),
        since: instant.annotateKey({
          description: "When the first of the attempts failed, or it was disabled.",
        }),
        last_attempt: WebhookHealth.fields.last_attempt,
        waiting,
      }).annotate({ identifier: "WebhookNeedingAttention" }),
    ),
  ).annotate({
    description:
      "Up to 50 webhooks of all projects: failing ones by how long they fail, then disabled ones, the latest first; among these, unreadable secrets first. null if the store does not answer.",
    examples: [[]],
  }),
  rate_limiting: Schema.Literals(["store", "local", "open", "closed"]).annotate({
    description:
      "How the server that answers limits requests: by the store, or, because the store does not answer or has failed in the last 10 seconds, by itself alone, not at all, or by answering all 503.",
    examples: ["store"],
  }),
  suspended_keys: Schema.Array(Schema.String).annotate({
    description: "The ids of the API keys that the server which answers has suspended.",
    examples: [[]],
  }),
  missing_encryption_keys: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description:
      "The ids of the encryption keys that stored secrets need, but which the answering server lacks or has with another value: nothing is sent to their webhooks. They are those of up to 20 seconds ago; null if the store does not answer.",
    examples: [[]],
  }),
}).annotate({ identifier: "Status" })

const times = Schema.Int.annotate({ examples: [0] })

const activity = Schema.Struct({
  minutes: Schema.Array(
    Schema.Struct({
      ...ActivityCell.fields,
      refused: times.annotateKey({
        description: "Requests that this server refused by a rate limit.",
      }),
    }),
  ).annotate({ description: "Sixty minutes, oldest first; the last one goes on." }),
  refusals: Schema.Array(
    Schema.Struct({
      key_id: Schema.NullOr(Schema.String).annotate({
        description:
          "The id of the API key; null for requests without a valid key, and for those of further keys.",
      }),
      refused: times,
    }),
  ).annotate({
    description:
      "Who was refused, most often first. In each minute, a hundred keys are told from others.",
  }),
}).annotate({ identifier: "Activity" })

/** The operations that tell how Tenure is doing. */
export class Status extends HttpApiGroup.make("status")
  .add(
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      success: success(status, "The status of this server."),
      error: [...commonFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the status",
        description:
          "Returns how the server and its stores are doing. Needs a key that opens all projects.",
      }),
    ),
    HttpApiEndpoint.make(activityOf.method)("activity", activityOf.pattern, {
      success: success(
        activity,
        "What was delivered in the last hour, and what this server refused.",
      ),
      error: [...commonFailures, failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the last hour",
        description:
          "Returns how many attempts to deliver succeeded and failed on all servers, and how many requests the server that answers refused, by the minute. Attempts that another server made may be missing for up to 10 seconds. Needs a key that opens all projects.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Status")
  .annotate(OpenApi.Description, "How the server is doing, for its operators.") {}

/** The operations that show how the API is called. */

const { "docs.asyncDocument": asyncDocument, "docs.document": document, "docs.page": page } = routes

/** The operations that show how the API is called. */
export class Docs extends HttpApiGroup.make("docs")
  .add(
    HttpApiEndpoint.make(document.method)("document", document.pattern, {
      success: Schema.Record(Schema.String, Schema.Unknown).annotate({
        description: "An OpenAPI 3.1 document.",
      }),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the OpenAPI document",
        description: "Returns this document, without an envelope.",
      }),
    ),
    HttpApiEndpoint.make(asyncDocument.method)("asyncDocument", asyncDocument.pattern, {
      success: Schema.Record(Schema.String, Schema.Unknown).annotate({
        description: "An AsyncAPI 3 document.",
      }),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get the AsyncAPI document",
        description: "Returns what the feed and webhooks send, without an envelope.",
      }),
    ),
    HttpApiEndpoint.make(page.method)("page", page.pattern, {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" })),
      error: withoutKey,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Read the documentation",
        description: "Returns this document as a page to read.",
      }),
    ),
  )
  .annotate(OpenApi.Title, "Documentation")
  .annotate(OpenApi.Description, "How the API is called.") {}
