/** The operations on webhooks. */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { maxEventTypes } from "../events/event.ts"
import { routes } from "../http/routes.ts"
import { replayChoices } from "../webhooks/replay.ts"
import { maxWebhookUrlLength } from "../webhooks/transport.ts"
import { headersFormat, maxHeaders } from "../webhooks/webhook-headers.ts"
import { maxDescriptionLength, maxRate } from "../webhooks/webhook-settings.ts"
import { disablers } from "../webhooks/webhook.ts"
import {
  Authorization,
  activityCell,
  counted,
  endDate,
  eventId,
  eventType,
  failure,
  deliveredEvent,
  deliveryFields,
  idempotencyFailures,
  instant,
  lastAttempt,
  pageParameters,
  paged,
  projectFailures,
  projectId,
  shownFields,
  state,
  success,
  waiting,
  webhookId,
} from "./schemas.ts"

const {
  "webhooks.activity": activityOf,
  "webhooks.create": create,
  "webhooks.delete": remove,
  "webhooks.delivery": delivered,
  "webhooks.deliveries": deliveries,
  "webhooks.enable": enable,
  "webhooks.get": get,
  "webhooks.health": healthOfAll,
  "webhooks.list": list,
  "webhooks.ping": ping,
  "webhooks.replay": replay,
  "webhooks.rotate": rotate,
  "webhooks.update": update,
} = routes

const url = Schema.String.check(Schema.isMaxLength(maxWebhookUrlLength)).annotate({
  description: "Where events are sent: a public http or https URL without credentials.",
  examples: ["https://receiver.example/hooks"],
})

const secret = Schema.String.annotate({
  description:
    "The secret that signs notifications: `whsec_` and base64. `unreadable_` and a UUID, which nobody signs with, stand for one that the server cannot read.",
  examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
})

const eventTypes = Schema.Array(eventType).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(maxEventTypes),
)

const description = Schema.String.check(
  Schema.isMinLength(1),
  Schema.isMaxLength(maxDescriptionLength),
).annotate({
  description: "What the webhook is for: 1 to 200 characters without control characters.",
  examples: ["The shop's mails"],
})

const rate = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxRate }))

const headerValue = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(1000))

const newWebhook = Schema.Struct({
  url,
  event_types: Schema.optionalKey(eventTypes).annotate({
    description: "The types of events to send; all by default.",
  }),
  ordered: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "Whether a member's events are sent one after another: none is attempted before the earlier ones were delivered or given up, which may take three days. `false` by default; receivers that can compare the `sequence` of events need no order.",
  }),
  rate: Schema.optionalKey(Schema.NullOr(rate)).annotate({
    description:
      "How many attempts start in a second at most; null, the default, for no limit. What exceeds it waits.",
  }),
  description: Schema.optionalKey(description),
  headers: Schema.optionalKey(
    Schema.Record(Schema.String, headerValue).check(Schema.isMaxProperties(maxHeaders)),
  ).annotate({
    description: `Request headers to send with every notification: ${headersFormat}. Nothing shows their values.`,
  }),
}).annotate({ identifier: "NewWebhook" })

const webhookUpdate = Schema.Struct({
  url: Schema.optionalKey(url),
  event_types: Schema.optionalKey(Schema.NullOr(eventTypes)).annotate({
    description:
      "The types of events to send from now on; null for all. Events that wait are sent whatever their type.",
  }),
  ordered: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "Whether a member's events are sent one after another, of those that are published from now on.",
  }),
  rate: Schema.optionalKey(Schema.NullOr(rate)).annotate({
    description: "How many attempts start in a second at most; null for no limit.",
  }),
  description: Schema.optionalKey(Schema.NullOr(description)).annotate({
    description: "What the webhook is for; null for nothing.",
  }),
  headers: Schema.optionalKey(
    Schema.NullOr(
      Schema.Record(Schema.String, Schema.NullOr(headerValue)).check(
        Schema.isMaxProperties(maxHeaders),
      ),
    ),
  ).annotate({
    description:
      "Request headers to set, and null for those to remove; others stay (RFC 7396). Null removes all.",
  }),
  disabled: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "True aborts attempts in flight, and starts none until the webhook is enabled: what waits stays waiting, and events from then on are not for it. False enables the webhook, and goes on with what waits.",
  }),
})
  .check(Schema.isMinProperties(1))
  .annotate({
    identifier: "WebhookUpdate",
    examples: [{ description: "The shop's mails", disabled: false }],
  })

const webhook = Schema.Struct({ url, id: webhookId, secret }).annotate({
  identifier: "Webhook",
})

const health = Schema.Struct({
  id: webhookId,
  url,
  event_types: Schema.NullOr(eventTypes).annotate({
    description: "The types of events that are sent; null for all.",
    examples: [null],
  }),
  ordered: Schema.Boolean.annotate({
    description: "Whether a member's events are sent one after another.",
    examples: [false],
  }),
  rate: Schema.NullOr(rate).annotate({
    description: "How many attempts start in a second at most; null without a limit.",
    examples: [null],
  }),
  description: Schema.NullOr(description).annotate({
    description: "What the webhook is for; null if nobody said.",
    examples: [null],
  }),
  header_names: Schema.Array(Schema.String).annotate({
    description: "The names of the webhook's own request headers, in lower case and in order.",
    examples: [["x-tenant"]],
  }),
  created_at: instant,
  disabled_at: Schema.NullOr(instant).annotate({
    description: "When it was disabled; null while it is enabled.",
    examples: [null],
  }),
  disabled_by: Schema.NullOr(Schema.Literals(disablers)).annotate({
    description:
      "`failures` if attempts had failed for too long or the receiver is gone: what waited has failed. `request` if somebody asked for it: what waits stays waiting. Null while the webhook is enabled.",
    examples: [null],
  }),
  failing_since: Schema.NullOr(instant).annotate({
    description: "When an attempt first failed since one succeeded; null if none has.",
    examples: [null],
  }),
  failures: Schema.Int.annotate({
    description: "How many attempts have failed since one succeeded.",
    examples: [0],
  }),
  last_attempt: lastAttempt,
  waiting,
  next_attempt_at: Schema.NullOr(instant).annotate({
    description:
      "When the next attempt is due; null if none is, because nothing waits, all is being attempted, or the webhook is disabled.",
    examples: [null],
  }),
}).annotate({ identifier: "WebhookHealth" })

const details = Schema.Struct({ ...health.fields, secret }).annotate({
  identifier: "WebhookDetails",
})

const delivery = Schema.Struct({
  ...deliveredEvent,
  ...deliveryFields,
}).annotate({ identifier: "Delivery" })

const shownDelivery = Schema.Struct({
  ...deliveredEvent,
  ...shownFields,
}).annotate({ identifier: "ShownDelivery" })

const percentile = Schema.NullOr(Schema.Int)

const activity = Schema.Struct({
  quarters: Schema.Array(activityCell).annotate({
    description: "96 quarters of an hour, oldest first; the last one goes on.",
  }),
  p50_ms: percentile.annotate({
    description:
      "The median duration of these attempts, an estimate that is wrong by 19 % at most between 4 and 16,384 ms, and one of these two beyond; null without any attempts.",
    examples: [84],
  }),
  p99_ms: percentile.annotate({
    description: "The 99th percentile, estimated in the same way.",
    examples: [512],
  }),
}).annotate({ identifier: "WebhookActivity" })

const rotated = Schema.Struct({ secret, previous_until: instant })

const replayed = Schema.Struct({
  replayed: Schema.Int.annotate({
    description: "The number of events that are sent again, up to 10,000 in one call.",
    examples: [1],
  }),
  next: Schema.NullOr(Schema.String).annotate({
    description:
      "Where to go on: the `after` of the next call, with the other fields as they were. Null if all events were looked at.",
    examples: [null],
  }),
})

const which = Schema.Union([
  Schema.Struct({ event_id: eventId }),
  Schema.Struct({
    since: endDate.annotateKey({ description: "Sends only events from this time on." }),
    types: Schema.optionalKey(eventTypes).annotateKey({
      description: "Sends only events of these types; by default, of those that the webhook takes.",
    }),
    only: Schema.optionalKey(Schema.Literals(replayChoices)).annotateKey({
      description:
        "`missed` sends only events that have no delivery to the webhook, `failed` only those whose delivery was given up, `all` also delivered ones. By default, all that were missed or given up.",
    }),
    after: Schema.optionalKey(Schema.String).annotateKey({
      description: "Goes on where an earlier call ended: its `next`.",
    }),
    dry_run: Schema.optionalKey(Schema.Boolean).annotateKey({
      description: "Answers the same, and sends nothing.",
    }),
  }),
]).annotate({ identifier: "Replay" })

const params = { project_id: projectId, webhook_id: webhookId }
const notFound = failure("WebhookNotFound")
const disabled = failure("WebhookDisabled")
const invalid = failure("InvalidInput")

/** The operations on webhooks. */
export class Webhooks extends HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.make(create.method)("create", create.pattern, {
      params: { project_id: projectId },
      payload: newWebhook,
      success: success(webhook, "The webhook was created."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        failure("InvalidWebhookUrl"),
        failure("WebhookLimitReached"),
        notFound,
        invalid,
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Register a webhook",
        description: "Registers a URL, which is notified of the events of the project from now on.",
      }),
    ),
    HttpApiEndpoint.make(list.method)("list", list.pattern, {
      params: { project_id: projectId },
      success: counted(Schema.Array(webhook), "The webhooks of the project."),
      error: projectFailures,
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List webhooks",
        description: "Returns the webhooks of a project, oldest first.",
      }),
    ),
    HttpApiEndpoint.make(update.method)("update", update.pattern, {
      params,
      payload: webhookUpdate,
      success: success(health, "The webhook was changed."),
      error: [
        ...projectFailures,
        ...idempotencyFailures,
        notFound,
        failure("InvalidWebhookUrl"),
        invalid,
      ],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Change a webhook",
        description:
          "Changes the settings of a webhook. Its id, its secret and its deliveries stay, and what is not in the body stays, too.",
      }),
    ),
    HttpApiEndpoint.make(remove.method)("delete", remove.pattern, {
      params,
      success: success(Schema.Null, "The webhook was deleted."),
      error: [...projectFailures, ...idempotencyFailures, notFound],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Delete a webhook",
        description: "Deletes a webhook. No further attempt to notify it starts.",
      }),
    ),
    HttpApiEndpoint.make(healthOfAll.method)("health", healthOfAll.pattern, {
      params: { project_id: projectId },
      success: counted(Schema.Array(health), "The webhooks of the project, without their secrets."),
      error: [...projectFailures, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List how webhooks are doing",
        description:
          "Returns the webhooks of a project, oldest first, without their secrets: what they are for, and how their latest attempts went.",
      }),
    ),
    HttpApiEndpoint.make(get.method)("get", get.pattern, {
      params,
      success: success(details, "The webhook."),
      error: [...projectFailures, notFound, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Find a webhook",
        description:
          "Returns a webhook, what it is for, how its latest attempts went, and its secret: the audit trail says who has asked for it.",
      }),
    ),
    HttpApiEndpoint.make(ping.method)("ping", ping.pattern, {
      params,
      success: success(
        Schema.Struct({ event_id: eventId }),
        "The event webhook.ping was published.",
      ),
      error: [...projectFailures, ...idempotencyFailures, notFound, disabled, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Try out a webhook",
        description: "Sends the event webhook.ping to one webhook.",
      }),
    ),
    HttpApiEndpoint.make(enable.method)("enable", enable.pattern, {
      params,
      success: success(Schema.Null, "The webhook is enabled."),
      error: [...projectFailures, ...idempotencyFailures, notFound, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Enable a webhook",
        description:
          "Enables a webhook that was disabled, and goes on with what waits. It does nothing to others.",
      }),
    ),
    HttpApiEndpoint.make(rotate.method)("rotate", rotate.pattern, {
      params,
      success: success(rotated, "The webhook has a new secret."),
      error: [...projectFailures, ...idempotencyFailures, notFound, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Rotate a secret",
        description: "Replaces the secret of a webhook. The previous one also signs for a day.",
      }),
    ),
    HttpApiEndpoint.make(deliveries.method)("deliveries", deliveries.pattern, {
      params,
      query: {
        ...pageParameters,
        state: Schema.optionalKey(state),
        order: Schema.optionalKey(
          Schema.Literals(["created", "latest_attempt"]).annotate({
            description:
              "`created`, the default, lists the newest first; `latest_attempt` lists only deliveries that were attempted, the latest attempted first. A cursor belongs to the order of its page.",
          }),
        ),
      },
      success: paged(Schema.Array(delivery), "The deliveries to the webhook, newest first."),
      error: [...projectFailures, notFound, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "List deliveries",
        description: "Returns what was sent to a webhook, newest first, with every attempt.",
      }),
    ),
    HttpApiEndpoint.make(activityOf.method)("activity", activityOf.pattern, {
      params,
      success: success(activity, "What was sent to the webhook in the last 24 hours."),
      error: [...projectFailures, notFound, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Get a webhook's last day",
        description:
          "Counts the attempts for a webhook in the last 24 hours, by the quarter of an hour, and says how long they took. Attempts that another server made may be missing for up to 10 seconds.",
      }),
    ),
    HttpApiEndpoint.make(delivered.method)("delivery", delivered.pattern, {
      params: { ...params, event_id: eventId },
      success: success(
        shownDelivery,
        "The delivery, with its request and what the receiver responded.",
      ),
      error: [...projectFailures, notFound, failure("EventNotFound"), invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Find a delivery",
        description:
          "Returns the delivery of an event to a webhook: what every attempt sends, and what the receiver has responded. The audit trail says who has asked for it.",
      }),
    ),
    HttpApiEndpoint.make(replay.method)("replay", replay.pattern, {
      params,
      payload: which,
      success: success(replayed, "The number of events that are sent again."),
      error: [...projectFailures, ...idempotencyFailures, notFound, disabled, invalid],
    }).annotateMerge(
      OpenApi.annotations({
        summary: "Replay events",
        description:
          "Sends an event to a webhook again, or now if it waits for its next attempt; or sends the events since a time that the webhook has missed or not accepted. One call reads up to 25,000 events that are kept and sends up to 10,000, after all other events that are due for the webhook. What waits or is being sent is never doubled.",
      }),
    ),
  )
  .middleware(Authorization)
  .annotate(OpenApi.Title, "Webhooks")
  .annotate(OpenApi.Description, "Who is notified of the events of a project.") {}
