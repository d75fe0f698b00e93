/** The operations on events. */

import { projectPath } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { EventType, eventTypePattern } from "../events/event.ts"
import { eventPath } from "../webhooks/inputs.ts"
import { continued, declareOperations, pageFields, plain } from "./declaration.ts"
import type { Instant, Uuid } from "./types.ts"
import type { Delivery } from "./webhooks.ts"

export interface FeedEvent {
  /** The event's id. */
  readonly id: Uuid
  /**
   * The event's type.
   * @pattern ^(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$
   * @example "payment.completed"
   */
  readonly type: string
  readonly timestamp: Instant
  /**
   * Any JSON value.
   * @example {"invoice":"2099-117"}
   */
  readonly data: unknown
}

interface DeliveryOfEvent extends Pick<Delivery, "state" | "due_at" | "attempts"> {
  /** The webhook's id. */
  readonly webhook_id: Uuid
}

export interface PublishedEvent extends FeedEvent {
  readonly deliveries: ReadonlyArray<DeliveryOfEvent>
}

const all = "/v2/projects/:project_id/events"

/** An event to publish. */
const publication = input(
  projectPath,
  {
    /**
     * Any type not published by Tenure itself.
     * @example "payment.completed"
     */
    type: Setting.inJson(
      Setting.guarded<EventType>(
        EventType.expected,
        (given) => typeof given === "string" && EventType.is(given),
      ),
      { type: "string", pattern: eventTypePattern.source },
    ),
    /**
     * Any JSON value.
     * @example {"invoice":"2099-117"}
     */
    data: Setting.inJson(
      Setting.guarded<unknown>("a JSON value", () => true),
      {},
    ),
  },
  { isOpen: true },
)

const parseTypes = (given: unknown): ReadonlyArray<string> | undefined => {
  const parsed = typeof given === "string" ? given.split(",") : []
  return parsed.length > 0 && parsed.every(EventType.is) ? parsed : undefined
}

const typesField = {
  /**
   * Only events with these types, joined by commas.
   * @example "membership.extended,membership.ended"
   */
  types: Setting.optional(
    Setting.inJson(
      Setting.custom<string, ReadonlyArray<string>>(
        `event types, each ${EventType.expected}, joined by commas`,
        parseTypes,
      ),
      { type: "string" },
    ),
  ),
}

const ticketField = {
  /**
   * A ticket, in place of a key.
   * @example "tkt_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
   */
  ticket: Setting.optional(
    Setting.inJson(
      Setting.string("a ticket", () => true),
      { type: "string" },
    ),
  ),
}

/** A page from the feed, or from the latest events. */
const feedQuery = input(projectPath, {
  ...pageFields,
  ...typesField,
  /**
   * How many seconds to wait when there is no event yet: 0 to 20. Default: 0.
   * @example "20"
   */
  wait: Setting.withDefault(
    Setting.inJson(
      Setting.custom<string, number>("a whole number of seconds from 0 to 20", (given) =>
        typeof given === "string" && /^(1?\d|20)$/.test(given) ? Number(given) : undefined,
      ),
      { type: "string" },
    ),
    "0",
  ),
  ...ticketField,
  /**
   * Whether the response has the events' data, or null. With `summary`, events about memberships have
   * `user_id` and `end_date` alone, and others null. Default: true.
   */
  data: Setting.withDefault(Setting.oneOf(["true", "summary", "false"]), "true"),
  /**
   * `newest`: the latest events first, for a list. `next` is the page with older ones, and `start`
   * after the oldest. Not with `types` and `wait`. Default: oldest.
   */
  order: Setting.withDefault(Setting.oneOf(["oldest", "newest"]), "oldest"),
})

/** The feed as a stream. `Last-Event-ID` resumes it. */
export const streamQuery = input(projectPath, {
  after: pageFields.after,
  ...typesField,
  ...ticketField,
})

const eventQuery = input(eventPath, {
  /** Whether the response has the events' data, and not null. Default: true. */
  data: Setting.withDefault(Setting.boolean, true),
})

/**
 * Events
 *
 * Events in a project, and their deliveries to webhooks.
 */
export const eventOperations = declareOperations({
  /**
   * Read the feed
   *
   * Returns a project's events after a cursor, without skipping any: the next page continues at the end
   * of this one, whenever it is requested. `after=start` begins at the oldest kept event; without
   * `after`, the feed begins now. With `Accept: text/event-stream`, it is a stream, resumed by
   * `Last-Event-ID`.
   */
  list: {
    method: "GET",
    pattern: all,
    role: "client",
    takesTicket: true,
    input: feedQuery,
    reply: continued<ReadonlyArray<FeedEvent>>("The events after the cursor."),
    errors: ["CursorExpired"],
  },
  /**
   * Publish an event
   *
   * Publishes your own event to a project's webhooks.
   */
  publish: {
    method: "POST",
    pattern: all,
    role: "operator",
    input: publication,
    reply: plain<{
      /** The event's id. */
      readonly id: Uuid
    }>("The event was published."),
    errors: [],
  },
  /**
   * Find an event
   *
   * Returns an event, and its deliveries with every attempt. The audit trail records the disclosure,
   * unless `data=false` leaves out the event's data.
   */
  get: {
    method: "GET",
    pattern: `${all}/:event_id`,
    role: "operator",
    input: eventQuery,
    reply: plain<PublishedEvent>("The event and its deliveries."),
    errors: ["EventNotFound"],
  },
})
