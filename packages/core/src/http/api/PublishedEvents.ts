/** The operations on events. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { table } from "../Route.ts"
import { Authorization } from "./Authorization.ts"
import * as Deliveries from "./Deliveries.ts"
import * as Failures from "./Failures.ts"
import * as Fields from "./Fields.ts"
import { exampleTicket } from "./Realtime.ts"
import { readOn, success } from "./Successes.ts"

const { "events.get": get, "events.list": list, "events.publish": publish } = table

const data = Schema.Unknown.annotate({
  description: "Any JSON value.",
  examples: [{ invoice: "2099-117" }],
})

const publication = Schema.Struct({
  type: Fields.eventType.annotate({
    description: "Any type but those of the events that Tenure itself publishes.",
  }),
  data,
}).annotate({ identifier: "Publication" })

const fields = {
  id: Fields.eventId,
  type: Fields.eventType,
  timestamp: Fields.instant,
  data,
}

const hasData = Schema.optionalKey(
  Schema.Literals(["true", "false"]).annotate({
    description: "Whether the response has the data of events, and not null. Default: true.",
  }),
)

const feedEvent = Schema.Struct(fields).annotate({ identifier: "FeedEvent" })

const event = Schema.Struct({
  ...fields,
  deliveries: Schema.Array(
    Schema.Struct({ webhook_id: Fields.webhookId, ...Deliveries.fields }).annotate({
      identifier: "DeliveryOfEvent",
    }),
  ),
}).annotate({ identifier: "PublishedEvent" })

/** The operations on events. */
export class Events extends HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.make(publish.method)("publish", publish.pattern, {
      params: { project_id: Fields.projectId },
      payload: publication,
      success: success(Schema.Struct({ id: Fields.eventId }), "The event was published."),
      error: [...Failures.inProject, ...Failures.once, Failures.failure("InvalidInput")],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Publish an event",
        description: "Publishes an event of your own to the webhooks of a project.",
      }),
    ),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: Fields.projectId },
      query: {
        ...Fields.page,
        types: Schema.optionalKey(Schema.String).annotate({
          description: "Only events of these types, joined by commas.",
          examples: ["membership.extended,membership.ended"],
        }),
        wait: Schema.optionalKey(Schema.String).annotate({
          description: "How many seconds to wait when there is no event yet: 0 to 20. Default: 0.",
          examples: ["20"],
        }),
        data: hasData,
        ticket: Schema.optionalKey(Schema.String).annotate({
          description: "A ticket, in place of a key.",
          examples: [exampleTicket],
        }),
      },
      success: readOn(Schema.Array(feedEvent), "The events after the cursor."),
      error: [
        ...Failures.inProject,
        Failures.failure("CursorExpired"),
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Read the feed",
        description:
          "Returns the events of a project after a cursor, in an order in which none is skipped: the next page begins where this one ends, whenever it is asked for. `after=start` begins at the oldest event that is kept; without `after`, the feed begins now. With `Accept: text/event-stream`, it is a stream, which `Last-Event-ID` resumes.",
      }),
    ),
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      params: { project_id: Fields.projectId, event_id: Fields.eventId },
      query: { data: hasData },
      success: success(event, "The event and its deliveries."),
      error: [
        ...Failures.inProject,
        Failures.failure("EventNotFound"),
        Failures.failure("InvalidInput"),
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Find an event",
        description:
          "Returns an event, and where it was delivered, with every attempt. The audit trail says who has asked for it, unless `data=false` leaves out what the event says.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Events")
  .annotate(OpenApi.Description, "What happened in a project, and who was notified of it.") {}
