/** Events in the form of Standard Webhooks 1.0. Webhooks are notified of them. */

import type { Branded } from "effect/Brand"
import * as Data from "effect/Data"
import { memoizeLast } from "../base/MemoizeLast.ts"
import type { ProjectId } from "../base/Project.ts"
import { nominal, refined } from "../base/Refined.ts"
import { sha256 } from "../base/Sha256.ts"
import { parse, type Traceparent } from "../base/Traceparent.ts"
import { isUuid, v7, v8 } from "../base/Uuid.ts"

/** The id of an event: a UUID, which is the `webhook-id` of every attempt to deliver it. */
export type EventId = Branded<string, "@tenure/core/EventId">

/** Brands text as the id of an event. Throws a `TypeError` if it is not a UUID in lower case. */
export const EventId = refined<string, EventId>("event id", "a UUID in lower case", isUuid)

const brand = nominal<string, EventId>()

/**
 * Makes a new id. Ids sort by the time of their events.
 *
 * @param at - when the event happened, in milliseconds since the epoch
 */
export const freshId = (crypto: { readonly randomUUID: () => string }, at: number): EventId =>
  brand(v7(crypto, at))

const utf8 = new TextEncoder()

/**
 * Derives an id from text: the same time and text have the same id. It differs from others as fresh ids do.
 *
 * @param at - when the event happened, in milliseconds since the epoch
 */
export const derivedId = (text: string, at: number): EventId =>
  brand(v7({ randomUUID: () => v8(sha256(utf8.encode(text))) }, at))

/** The type of an event, for example `payment.completed`: at most 128 characters. */
export type EventType = Branded<string, "@tenure/core/EventType">

/** What an event type looks like. */
export const pattern = /^(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/

/** Brands text as an event type. Throws a `TypeError` if it is invalid. */
export const EventType = refined<string, EventType>(
  "event type",
  "words of letters, digits, _ and -, joined by dots, at most 128 characters",
  (type) => pattern.test(type),
)

/** The types of the events that Tenure itself publishes. */
export const types = {
  granted: EventType("membership.granted"),
  imported: EventType("memberships.imported"),
  extended: EventType("membership.extended"),
  bulkExtended: EventType("memberships.extended"),
  ended: EventType("membership.ended"),
  expiring: EventType("membership.expiring"),
  expired: EventType("membership.expired"),
  ping: EventType("webhook.ping"),
  disabled: EventType("webhook.disabled"),
} as const

const reserved: ReadonlySet<EventType> = new Set(Object.values(types))

/** Tells whether Tenure itself publishes events of a type. */
export const isReserved = (type: EventType): boolean => reserved.has(type)

// What `EventSource` dispatches of itself, and the end of a stream that cannot go on without a gap.
const ofStreams: ReadonlySet<string> = new Set(["error", "open", "reset"])

/** Tells whether clients that listen to a stream of events would take an event of a type for another. */
export const isOfStreams = (type: EventType): boolean => ofStreams.has(type)

/** An event. Its body is the text that is signed and sent, the same in every attempt. */
export interface Event {
  readonly id: EventId
  readonly projectId: ProjectId
  readonly type: EventType
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** The JSON text `{ "type", "timestamp", "data" }`, with a `traceparent` before the data if it has one. */
  readonly body: string
}

/** The project has no such event, or it is not kept any more. */
export class EventNotFound extends Data.TaggedError("EventNotFound")<{
  readonly eventId: string
}> {
  override get message(): string {
    return `There is no event "${this.eventId}".`
  }
}

const timestampOf = memoizeLast((at: number): string => new Date(at).toISOString())

// What comes before the data cannot be made up by whoever publishes it.
const traced = /^\{"type":"[^"]*","timestamp":"[^"]*","traceparent":"([^"]*)"/

/** Returns the trace in the body of an event, if it has one. */
export const traceparentOf = (body: string): Traceparent | undefined => {
  const text = traced.exec(body)?.[1]
  return text === undefined ? undefined : parse(text)
}

/** Returns the data in the body of an event. */
export const dataOf = ({ body }: Event): unknown => {
  const { data }: { readonly data: unknown } = JSON.parse(body)
  return data
}

interface Traced {
  /** The trace of the request that has led to the event. */
  readonly traceparent?: Traceparent | undefined
}

const bodyOf = (
  type: EventType,
  at: number,
  traceparent: Traceparent | undefined,
  data: unknown,
): string => JSON.stringify({ type, timestamp: timestampOf(at), traceparent, data })

/** The event of a change of memberships, until the store adds the sequence of the change. */
export interface Draft extends Omit<Event, "body"> {
  /** The JSON text of the body up to the end of `data`, whose last field the sequence will be. */
  readonly head: string
}

/** What the event of a change says, without the sequence. It can be written as JSON. */
export interface DraftData {
  readonly project_id: ProjectId
  readonly [field: string]: unknown
}

/** Makes the draft of an event. */
export const draft = ({
  at,
  data,
  id,
  projectId,
  traceparent,
  type,
}: Omit<Draft, "head"> & Traced & { readonly data: DraftData }): Draft => ({
  id,
  projectId,
  type,
  at,
  head: bodyOf(type, at, traceparent, data).slice(0, -"}}".length),
})

/**
 * Completes the event of a change.
 *
 * @param sequence - a safe integer: see `MembershipStore`
 */
export const complete = ({ at, head, id, projectId, type }: Draft, sequence: number): Event => ({
  id,
  projectId,
  type,
  at,
  body: `${head},"sequence":${sequence}}}`,
})

/**
 * Makes an event with its body.
 *
 * @param fields.data - a value that can be written as JSON
 * @throws TypeError if `data` cannot be written as JSON: it is cyclic, a bigint, a function or `undefined`
 */
export const make = ({
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
