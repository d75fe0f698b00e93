/** The operations on webhooks. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { maxLength } from "../../webhooks/WebhookUrl.ts"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { counted, success } from "./Successes.ts"

const { "webhooks.create": create, "webhooks.delete": remove, "webhooks.list": list } = table

const url = Schema.String.check(Schema.isMaxLength(maxLength)).annotate({
  description: "Where events are sent: a public http or https URL without credentials.",
  examples: ["https://receiver.example/hooks"],
})

const webhook = Schema.Struct({
  url,
  id: Fields.webhookId,
  secret: Schema.String.annotate({
    description: "The secret that signs notifications: `whsec_` and base64.",
    examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  }),
}).annotate({ identifier: "Webhook" })

/** The operations on webhooks. */
export class Webhooks extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: { project_id: Fields.projectId },
      payload: Schema.Struct({ url }).annotate({ identifier: "NewWebhook" }),
      success: success(webhook, "The webhook was created."),
      error: [
        ...Failures.inProject,
        ...Failures.once,
        Failures.failure("InvalidWebhookUrl"),
        Failures.failure("WebhookLimitReached"),
        Failures.failure("WebhookNotFound"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Register a webhook",
        description: "Registers a URL, which is notified of the events of the project from now on.",
      }),
    ),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: Fields.projectId },
      success: counted(Schema.Array(webhook), "The webhooks of the project."),
      error: Failures.inProject,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List webhooks",
        description: "Returns the webhooks of a project, oldest first.",
      }),
    ),
    HttpApiEndpoint.make(remove.method)("delete", remove.pattern, {
      params: { project_id: Fields.projectId, webhook_id: Fields.webhookId },
      success: success(Schema.Null, "The webhook was deleted."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("WebhookNotFound")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Delete a webhook",
        description: "Deletes a webhook. No further attempt to notify it starts.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Webhooks")
  .annotate(OpenApi.Description, "Who is notified of the events of a project.") {}
