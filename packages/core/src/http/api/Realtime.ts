/** The operations for connections that stay open. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { success } from "./Successes.ts"

const { "realtime.issueTicket": issueTicket } = table

const newTicket = Schema.Struct({
  projects: Schema.Union([
    Schema.Literal("all"),
    Schema.Array(Schema.String).check(Schema.isMinLength(1), Schema.isMaxLength(100)),
  ]).annotate({
    description:
      "Ids of the projects whose feeds the ticket opens; `all` for those that the key opens.",
    examples: [["demo"]],
  }),
}).annotate({ identifier: "NewTicket" })

/** The ticket that examples have. */
export const exampleTicket = "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"

const ticket = Schema.Struct({
  ticket: Schema.String.annotate({ examples: [exampleTicket] }),
  expires_at: Fields.instant,
}).annotate({ identifier: "Ticket" })

/** The operations for connections that stay open. */
export class Realtime extends HttpApiGroup.make("realtime")
  .add(
    HttpApiEndpoint.make(issueTicket.method)("issueTicket", issueTicket.pattern, {
      payload: newTicket,
      success: success(ticket, "The ticket was issued. It can be used once."),
      error: [...Failures.inProject, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Issue a ticket",
        description:
          "Issues a ticket for a browser, which cannot send the key: within 60 seconds, it opens one connection that follows the feed.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Real time")
  .annotate(OpenApi.Description, "The feed as it happens.") {}
