/** The operations on webhooks. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { counted, success } from "./Successes.ts"

const { "webhooks.create": create, "webhooks.delete": remove, "webhooks.list": list } = table

const webhook = Schema.Struct({
  url: Schema.String,
  id: Schema.String.check(Schema.isUUID()),
  secret: Schema.String,
}).annotate({ identifier: "Webhook" })

/** The operations on webhooks. */
export class Webhooks extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: { project_id: Fields.projectId },
      payload: Schema.Struct({ url: Schema.String }),
      success: success(webhook),
      error: [
        ...Failures.inProject,
        Failures.failure("InvalidWebhookUrl"),
        Failures.failure("WebhookLimitReached"),
      ],
    }),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: Fields.projectId },
      success: counted(Schema.Array(webhook)),
      error: Failures.inProject,
    }),
    HttpApiEndpoint.make(remove.method)("delete", remove.pattern, {
      params: { project_id: Fields.projectId, webhook_id: Fields.webhookId },
      success: success(Schema.Null),
      error: [...Failures.inProject, Failures.failure("WebhookNotFound")],
    }),
  )
  .middleware(Authorization) {}
