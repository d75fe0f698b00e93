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
  /** The id of the event. */
  readonly id: Uuid
  /**
   * The type of an event.
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
  /** The id of the webhook. */
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
     * Any type but those of the events that Tenure itself publishes.
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
   * Only events of these types, joined by commas.
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

/** A page of the feed, or of the latest events. */
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
   * Whether the response has the data of events, or null. With `summary`, events about memberships have `user_id` and
   * `end_date` alone, and others null. Default: true.
   */
  data: Setting.withDefault(Setting.oneOf(["true", "summary", "false"]), "true"),
  /**
   * `newest`: the latest events first, for a list. `next` is the page of older ones, and `start` after the oldest. Not with
   * `types` and `wait`. Default: oldest.
   */
  order: Setting.withDefault(Setting.oneOf(["oldest", "newest"]), "oldest"),
})

/** The feed as a stream, which `Last-Event-ID` resumes. */
export const streamQuery = input(projectPath, {
  after: pageFields.after,
  ...typesField,
  ...ticketField,
})

const eventQuery = input(eventPath, {
  /** Whether the response has the data of events, and not null. Default: true. */
  data: Setting.withDefault(Setting.boolean, true),
})

/**
 * Events
 *
 * What happened in a project, and who was notified of it.
 */
export const eventOperations = declareOperations({
  /**
   * Read the feed
   *
   * Returns the events of a project after a cursor, in an order in which none is skipped: the next page begins where this
   * one ends, whenever it is asked for. `after=start` begins at the oldest event that is kept; without `after`, the feed
   * begins now. With `Accept: text/event-stream`, it is a stream, which `Last-Event-ID` resumes.
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
   * Publishes an event of your own to the webhooks of a project.
   */
  publish: {
    method: "POST",
    pattern: all,
    role: "operator",
    input: publication,
    reply: plain<{
      /** The id of the event. */
      readonly id: Uuid
    }>("The event was published."),
    errors: [],
  },
  /**
   * Find an event
   *
   * Returns an event, and where it was delivered, with every attempt. The audit trail says who has asked for it, unless
   * `data=false` leaves out what the event says.
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
