/** The inputs of the methods on webhooks and events. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { type Noun, namesOf, originFields as origin } from "../base/field-names.ts"
import { brandedText, instantSetting, ofProject, pageSize, projectPath } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type BrandConstructor, getOwn } from "../base/values.ts"
import { EventId, EventNotFound, EventType, eventTypesOption } from "../events/event.ts"
import { type AttemptPosition, type Delivery, deliveryStates } from "./outbox.ts"
import { replayChoices, replayCursor } from "./replay.ts"
import { webhookUrl } from "./transport.ts"
import { headersPatchSetting, headersSetting } from "./webhook-headers.ts"
import { descriptionSetting, rateSetting } from "./webhook-settings.ts"
import { WebhookId, WebhookNotFound } from "./webhook.ts"

const uuidJson = { $ref: "Uuid" }

/** An id. Text other than a UUID is the id of nothing. */
const idOf = <Id extends string, E>(
  expected: string,
  { is }: BrandConstructor<string, Id>,
  notFound: (id: string) => E,
): Setting.Setting<string, Id, InvalidInput | E> => ({
  expected,
  json: uuidJson,
  read: (given, field) => {
    if (typeof given !== "string")
      return Result.fail(new InvalidInput({ field, problem: `must be ${expected}` }))
    const id = given.toLowerCase()
    return is(id) ? Result.succeed(id) : Result.fail(notFound(given))
  },
})

/** Text that may be the id of an event. */
export const possibleEventId = Setting.inJson(
  Setting.string("the id of an event", () => true),
  uuidJson,
)

/** The ids in the path of a webhook's operations. */
export const webhookPath = {
  ...projectPath,
  /** The id of the webhook. */
  webhookId: idOf(
    "the id of a webhook",
    WebhookId,
    (webhookId) => new WebhookNotFound({ webhookId }),
  ),
}

/** The ids in the path of an event's operations. */
export const eventPath = {
  ...projectPath,
  /** The id of the event. */
  eventId: idOf("the id of an event", EventId, (eventId) => new EventNotFound({ eventId })),
}

/** The input of what concerns an event. */
export const ofEvent = input(eventPath, {})

/** An event to publish. */
export const newEvent = input(projectPath, {
  /** `payment.completed`, or any other type that Tenure does not publish itself. */
  type: brandedText(EventType),
  data: Setting.optional(
    Setting.guarded<unknown>("a value that can be written as JSON", () => true),
  ),
})

/** The input of what concerns a webhook. */
export const ofWebhook = input(webhookPath, {})

/** A webhook to register. */
export const newWebhook = input(
  projectPath,
  {
    /**
     * Where events are sent: a public http or https URL without credentials.
     * @example "https://receiver.example/hooks"
     */
    url: webhookUrl,
    /** The types of events to send, 1 to 100. Default: all. */
    eventTypes: eventTypesOption,
    /**
     * Whether a member's events are sent one after another: none is attempted before the earlier ones were delivered or given
     * up, which may take three days. Default: `false`. Receivers that can compare the `sequence` of events need no order.
     */
    ordered: Setting.withDefault(Setting.boolean, false),
    /** How many attempts start in a second at most, 1 to 10,000; `null`, the default, for no limit. What exceeds it waits. */
    rate: rateSetting,
    /**
     * What the webhook is for: 1 to 200 characters without control characters.
     * @example "The shop's mails"
     */
    description: Setting.optional(descriptionSetting),
    /**
     * Request headers to send with every notification, for example for the receiver's gateway: at most 10 texts of 1 to 1,000
     * visible ASCII characters and inner spaces, by names that are HTTP tokens of at most 64 characters. Their values are
     * kept like secrets, and nothing shows them.
     */
    headers: Setting.optional(headersSetting),
  },
  { isOpen: true },
)

/**
 * A change of a webhook's settings. Others stay as they are.
 * @example { "description": "The shop's mails", "disabled": false }
 */
export const webhookUpdate = input(
  webhookPath,
  {
    /**
     * Where events are sent from now on: a public http or https URL without credentials.
     * @example "https://receiver.example/hooks"
     */
    url: Setting.optional(webhookUrl),
    /**
     * The types of events to send from now on, 1 to 100; `null` for all. Events that wait are sent whatever their type.
     */
    eventTypes: Setting.orNull(eventTypesOption),
    /** Whether a member's events are sent one after another, of those that are published from now on. */
    ordered: Setting.optional(Setting.boolean),
    /** How many attempts start in a second at most, 1 to 10,000; `null` for no limit. */
    rate: rateSetting,
    /**
     * What the webhook is for: 1 to 200 characters without control characters; `null` for nothing.
     * @example "The shop's mails"
     */
    description: Setting.optional(Setting.orNull(descriptionSetting)),
    /** Request headers to set, and `null` for those to remove; others stay (RFC 7396). `null` removes all. */
    headers: Setting.optional(Setting.orNull(headersPatchSetting)),
    /**
     * `true` aborts attempts in flight, and starts none until the webhook is enabled: what waits stays waiting, and events
     * from then on are not for it. `false` enables the webhook, and goes on with what waits.
     */
    disabled: Setting.optional(Setting.boolean),
  },
  { needsField: true },
)

/** A webhook whose secret is rotated. */
export const rotation = input(webhookPath, {
  /** How long the old secret also signs, at most 30 days. Default: `"24 hours"`. */
  keepOldFor: Setting.withDefault(
    Setting.duration({ least: 0, most: 30 * 86_400_000 }),
    "24 hours",
  ),
})

/** The orders in which deliveries are listed. */
const deliveryOrders = ["created", "latestAttempt"] as const

const attemptPositionOf = (given: unknown): AttemptPosition | undefined => {
  if (!Predicate.isObject(given)) return undefined
  const [attemptedAt, eventId] = [getOwn(given, "attemptedAt"), getOwn(given, "eventId")]
  return typeof attemptedAt === "number" &&
    Number.isSafeInteger(attemptedAt) &&
    typeof eventId === "string" &&
    EventId.is(eventId)
    ? { attemptedAt, eventId }
    : undefined
}

/** A page of a webhook's deliveries. */
export const deliveriesPage = input(webhookPath, {
  /** `"latestAttempt"` lists only attempted deliveries, the latest attempted first. Default: `"created"`, the newest first. */
  order: Setting.withDefault(Setting.oneOf(deliveryOrders), "created"),
  /** Lists only deliveries in this state. */
  state: Setting.optional(Setting.oneOf(deliveryStates)),
  /** The most deliveries to return, 1 to 10,000; 100 by default. */
  limit: Setting.withDefault(pageSize, 100),
  /** With the order `"latestAttempt"`: lists only deliveries after this one, the last one of the page before. */
  attemptedBefore: Setting.optional(
    Setting.custom<Pick<Delivery, "attemptedAt" | "eventId">, AttemptPosition>(
      "a delivery that was attempted",
      attemptPositionOf,
    ),
  ),
  /** With the order `"created"`: an event's id. Lists only deliveries older than the webhook's delivery for this event. */
  olderThan: Setting.optional(brandedText(EventId)),
})

/** The id of an event that has to be right. */
export const eventIdSetting = Setting.inJson(
  Setting.custom<string, EventId>("the id of an event", (given) => {
    const id = typeof given === "string" ? given.toLowerCase() : ""
    return EventId.is(id) ? id : undefined
  }),
  uuidJson,
)

/** A delivery to send again. */
export const oneReplay = input(webhookPath, {
  /** The id of the event. */
  eventId: eventIdSetting,
})

const eventsToReplay = {
  /** Sends only events from this time on. */
  since: instantSetting,
  /** Sends only events of these types, 1 to 100. Default: those that the webhook takes. */
  types: eventTypesOption,
  /**
   * `"missed"` sends only events without a delivery: published before the webhook existed, while it was disabled, or before
   * it took their type. `"failed"` sends only events that were given up. `"all"` also sends delivered events again. Default:
   * all that were missed or given up. None of them doubles what waits or is being sent.
   */
  only: Setting.optional(Setting.oneOf(replayChoices)),
  /** Counts the events without sending any. Default: `false`. */
  dryRun: Setting.withDefault(Setting.boolean, false),
}

/** Many events to send again. */
export const manyReplays = input(webhookPath, eventsToReplay)

/** Many events to send again, page by page. */
export const replayPage = input(webhookPath, {
  ...eventsToReplay,
  /** Goes on where an earlier page ended: its `next`. The other arguments are the same. */
  after: Setting.optional(replayCursor),
})

/** Waiting deliveries to cancel. */
export const cancellation = input(webhookPath, {
  /** Cancels only deliveries of events of these types, 1 to 100. Default: of all. */
  types: eventTypesOption,
  /**
   * Cancels only deliveries of events from this time on.
   * @example "2026-01-01T00:00:00.000Z"
   */
  since: Setting.optional(instantSetting),
  /**
   * Cancels only deliveries of events before this time, which is after `since`.
   * @example "2099-01-01T00:00:00.000Z"
   */
  until: Setting.optional(instantSetting),
  /**
   * Cancels only deliveries of events about this user.
   * @example "1001"
   */
  userId: Setting.optional(
    Setting.inJson(
      Setting.string("1 to 128 characters", (text) => text.length > 0 && text.length <= 128),
      { type: "string", minLength: 1, maxLength: 128 },
    ),
  ),
  /** Counts the deliveries without cancelling any. Default: `false`. */
  dryRun: Setting.withDefault(Setting.boolean, false),
})

const repeatable = { idempotencyKey: true }

const aliases = { eventTypes: "types" }

const readers = new Set(["find", "activity", "deliveries"])

const settings = new Set(Object.keys(webhookUpdate.fields))

/** The names of the arguments, by method. A returned webhook or delivery can be passed to another method. */
export const webhookNames: Noun = {
  methods: {
    create: [namesOf(newWebhook, { ...repeatable, ...aliases }), origin],
    list: [namesOf(ofProject)],
    health: [namesOf(ofProject)],
    find: [namesOf(ofWebhook)],
    update: [
      namesOf(webhookUpdate, {
        ...repeatable,
        ...aliases,
        disabled: ["enabled", '"disabled", with the opposite value'],
      }),
      origin,
    ],
    delete: [namesOf(ofWebhook, repeatable), origin],
    rotateSecret: [namesOf(rotation, repeatable), origin],
    addSigningKey: [namesOf(ofWebhook), origin],
    enable: [namesOf(ofWebhook, repeatable), origin],
    ping: [namesOf(ofWebhook, repeatable)],
    activity: [namesOf(ofWebhook)],
    projectActivity: [namesOf(ofProject)],
    deliveries: [namesOf(deliveriesPage, { olderThan: "after" })],
    replay: [namesOf(oneReplay, repeatable)],
    cancel: [namesOf(cancellation, { ...repeatable, types: "event_types" }), origin],
    replayMany: [namesOf(manyReplays, { ...repeatable, types: "event_types" })],
    replayPage: [namesOf(replayPage, { ...repeatable, types: "event_types" })],
  },
  ignores: (method, field, given) =>
    (settings.has(field) && (readers.has(method) || Object.hasOwn(given, "createdAt"))) ||
    ((field === "state" || field === "userId") && Object.hasOwn(given, "attempts")),
}

/** The names of the arguments for events, by method. */
export const eventNames: Noun = {
  methods: {
    // Events and deliveries that were returned have a type, too.
    publish: [namesOf(newEvent, { type: false, traceparent: false, ...repeatable })],
    find: [namesOf(ofEvent)],
  },
}
