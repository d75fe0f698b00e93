/** Events in the format of Standard Webhooks 1.0. */

import type { Branded } from "effect/Brand"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { sha256 } from "../base/bytes.ts"
import { type HostCallback, callHost } from "../base/faults.ts"
import { type Traceparent, parseTraceparent } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"
import { Transactions } from "../base/transactions.ts"
import {
  type ProjectId,
  branded,
  brandedWhere,
  isUuid,
  memoizeLatest,
  v7,
  v8,
} from "../base/values.ts"

/** An event's id: a UUID, sent as `webhook-id` in every attempt. */
export type EventId = Branded<string, "@tenure/core/EventId">

/** Brands text as an event id. Throws a `TypeError` unless it is a lower-case UUID. */
export const EventId = brandedWhere<string, EventId>("event id", "a UUID in lower case", isUuid)

const brand = branded<string, EventId>()

/**
 * Generates an id. Ids sort by their events' times.
 *
 * @param at - when the event happened, in milliseconds since the epoch
 */
export const newEventId = (crypto: { readonly randomUUID: () => string }, at: number): EventId =>
  brand(v7(crypto, at))

const utf8 = new TextEncoder()

/**
 * Derives an id from text: the same time and text have the same id. It differs from others as fresh ids do.
 *
 * @param at - when the event happened, in milliseconds since the epoch
 */
export const derivedEventId = (text: string, at: number): EventId =>
  brand(v7({ randomUUID: () => v8(sha256(utf8.encode(text))) }, at))

/** An event type, for example `payment.completed`: at most 128 characters. */
export type EventType = Branded<string, "@tenure/core/EventType">

/** The pattern for event types. */
export const eventTypePattern = /^(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/

/** Brands text as an event type. Throws a `TypeError` if it is invalid. */
export const EventType = brandedWhere<string, EventType>(
  "event type",
  "words of letters, digits, _ and -, joined by dots, at most 128 characters",
  (type) => eventTypePattern.test(type),
)

/** The types published by Tenure itself. */
export const knownEventTypes = {
  granted: EventType("membership.granted"),
  imported: EventType("memberships.imported"),
  extended: EventType("membership.extended"),
  bulkExtended: EventType("memberships.extended"),
  extensionUndone: EventType("memberships.extension_undone"),
  ended: EventType("membership.ended"),
  updated: EventType("membership.updated"),
  paused: EventType("membership.paused"),
  resumed: EventType("membership.resumed"),
  expiring: EventType("membership.expiring"),
  overdue: EventType("membership.overdue"),
  expired: EventType("membership.expired"),
  ping: EventType("webhook.ping"),
  failing: EventType("webhook.failing"),
  disabled: EventType("webhook.disabled"),
} as const

const reserved: ReadonlySet<EventType> = new Set(Object.values(knownEventTypes))

/** Tells whether a type is published by Tenure itself. */
export const isReservedEventType = (type: EventType): boolean => reserved.has(type)

// Names `EventSource` dispatches itself, and the one for the end of a stream with a gap.
const ofStreams: ReadonlySet<string> = new Set(["error", "open", "reset"])

/** Tells whether clients could confuse a type with a stream's own events. */
export const isFeedEventType = (type: EventType): boolean => ofStreams.has(type)

/** An event. Its body is the signed and sent text, identical in every attempt. */
export interface Event {
  /** The id, which all its notifications have. */
  readonly id: EventId
  /** The project in which it happened. */
  readonly projectId: ProjectId
  /** What happened, such as `membership.extended`. */
  readonly type: EventType
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** The JSON text `{ "type", "timestamp", "data" }`, with a `traceparent` before the data if it has one. */
  readonly body: string
}

/** The project has no such event, or it is not kept any more. */
export class EventNotFound extends TaggedError("EventNotFound")<{
  /** The id that no event has. */
  readonly eventId: string
}> {
  override get message(): string {
    return `There is no event "${this.eventId}".`
  }
}

const timestampOf = memoizeLatest((at: number): string => new Date(at).toISOString())

// A publisher cannot forge the fields before the data.
const traced = /^\{"type":"[^"]*","timestamp":"[^"]*","traceparent":"([^"]*)"/

/** Returns the trace in an event's body, if any. */
export const eventTraceparent = (body: string): Traceparent | undefined => {
  const text = traced.exec(body)?.[1]
  return text === undefined ? undefined : parseTraceparent(text)
}

/** Returns the data in an event's body. */
export const eventData = ({ body }: Event): unknown => {
  const { data }: { readonly data: unknown } = JSON.parse(body)
  return data
}

interface Traced {
  /** The trace of the request behind the event. */
  readonly traceparent?: Traceparent | undefined
}

const bodyOf = (
  type: EventType,
  at: number,
  traceparent: Traceparent | undefined,
  data: unknown,
): string => JSON.stringify({ type, timestamp: timestampOf(at), traceparent, data })

/** A membership change's event before the store adds its sequence number. */
export interface EventDraft extends Omit<Event, "body"> {
  /** The body's JSON text up to the end of `data`. The sequence number becomes its last field. */
  readonly head: string
}

/** A change event's data without the sequence number. It can be written as JSON. */
export interface EventDraftData {
  readonly project_id: ProjectId
  readonly [field: string]: unknown
}

/** Creates an event draft. */
export const draftEvent = ({
  at,
  data,
  id,
  projectId,
  traceparent,
  type,
}: Omit<EventDraft, "head"> & Traced & { readonly data: EventDraftData }): EventDraft => ({
  id,
  projectId,
  type,
  at,
  head: bodyOf(type, at, traceparent, data).slice(0, -"}}".length),
})

/**
 * Completes a change's event.
 *
 * @param sequence - a safe integer: see `MembershipStore`
 * @param metadata - the JSON of the membership's metadata, if the event is of one membership
 */
export const completeEvent = (
  { at, head, id, projectId, type }: EventDraft,
  sequence: number,
  metadata = "{}",
): Event => ({
  id,
  projectId,
  type,
  at,
  // Joined into one text. A sum would keep its parts, for as long as a store keeps the event.
  body: [
    head,
    metadata === "{}"
      ? `,"sequence":${sequence}}}`
      : `,"metadata":${metadata},"sequence":${sequence}}}`,
  ].join(""),
})

/**
 * Creates an event with its body.
 *
 * @param fields.data - a value for JSON
 * @throws TypeError if `data` cannot be written as JSON: it is cyclic, a bigint, a function or
 *   `undefined`
 */
export const makeEvent = ({
  at,
  data,
  id,
  projectId,
  traceparent,
  type,
}: Omit<Event, "body"> & Traced & { readonly data: unknown }): Event => {
  const body = bodyOf(type, at, traceparent, data)
  // Neither a type nor a timestamp contains a quotation mark.
  if (!body.includes('"data":')) {
    throw new TypeError(`JSON cannot represent the type ${typeof data}`)
  }
  return { id, projectId, type, at, body }
}

/** The maximum number of types in a filter. */
const maxEventTypes = 100

const isType = (given: unknown): given is EventType =>
  typeof given === "string" && EventType.is(given)

const parse = (given: unknown): ReadonlyArray<EventType> | undefined =>
  Array.isArray(given) && given.length > 0 && given.length <= maxEventTypes && given.every(isType)
    ? given
    : undefined

/** The filter by types; omitted for all. */
export const eventTypesOption = Setting.optional(
  Setting.inJson(
    Setting.custom<ReadonlyArray<string>, ReadonlyArray<EventType>>(
      `an array of 1 to ${maxEventTypes} event types, each ${EventType.expected}`,
      parse,
    ),
    { type: "array", items: { type: "string" }, minItems: 1, maxItems: maxEventTypes },
  ),
)

/** The options for reporting events. */
export const hooksOptions = Setting.object({
  /**
   * Called with each event from this process once it is stored, and committed if the host has an open
   * transaction. Errors from the function are logged and otherwise ignored.
   */
  onEvent: Setting.callback<(event: Event) => void>(),
})

/** The options as a host passes them. */
export interface HooksOptions extends Setting.InputOf<typeof hooksOptions> {}

/** The options as the library uses them. */
export interface HooksSettings extends Setting.OutputOf<typeof hooksOptions> {}

/** Reports events to the host. */
export interface Hooks {
  /** Reports a stored event. */
  readonly event: (event: Event) => Effect.Effect<void>
  /** Waits until an event is stored; not at all if one was since the last time. */
  readonly published: Effect.Effect<void>
}

const silent: Hooks = { event: () => Effect.void, published: Effect.never }

const reporter = (
  onEvent: HostCallback<Event>,
  transactions: Option.Option<Transactions["Service"]>,
): Hooks => {
  const stored = Latch.makeUnsafe()
  const open = Effect.sync(() => void stored.openUnsafe())
  const published = Effect.andThen(stored.await, stored.close)
  if (onEvent === undefined) return { event: () => open, published }
  const callListener = (event: Event) => Effect.andThen(open, callHost("onEvent", onEvent, event))
  return {
    event: Option.match(transactions, {
      onNone: () => callListener,
      onSome:
        ({ afterCommit }) =>
        (event) =>
          afterCommit(event, callListener(event)),
    }),
    published,
  }
}

/** Reports events. By default, nothing is reported. */
export const Hooks = Context.Reference<Hooks>("@tenure/core/Hooks", {
  defaultValue: () => silent,
})

/** Reports events to `onEvent`, and to waiting readers. */
export const hooksLayer = ({ onEvent }: HooksSettings): Layer.Layer<never> =>
  Layer.effect(
    Hooks,
    Effect.map(Effect.serviceOption(Transactions), (transactions) =>
      reporter(onEvent, transactions),
    ),
  )
