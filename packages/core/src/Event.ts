/** Events: what webhooks are told, in the form of Standard Webhooks 1.0. */

import type { Branded } from "effect/Brand"
import { refined } from "./internal/refined.ts"
import { rememberLatest } from "./internal/rememberLatest.ts"
import { isUuid } from "./internal/uuid.ts"
import type { ProjectId } from "./Project.ts"

/** Identifier of an event, a UUID: the `webhook-id` of every attempt to deliver it. */
export type EventId = Branded<string, "@tenure/core/EventId">

/** Brands a text as the id of an event. Throws where it is no UUID. */
export const EventId = refined<string, EventId>("event id", isUuid)

/** The type of an event: words of letters, digits, `_` and `-`, joined by dots, 128 at most. */
export type EventType = Branded<string, "@tenure/core/EventType">

const pattern = /^(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/

/** Brands a text as an event type. Throws where it is none. */
export const EventType = refined<string, EventType>("event type", (type) => pattern.test(type))

/** The events that Tenure publishes by itself. */
export const types = {
  granted: EventType("membership.granted"),
  extended: EventType("membership.extended"),
  bulkExtended: EventType("memberships.extended"),
  ended: EventType("membership.ended"),
  ping: EventType("webhook.ping"),
  disabled: EventType("webhook.disabled"),
} as const

/** An event with its body as it will be sent: the bytes that are signed never change. */
export interface Event {
  readonly id: EventId
  readonly projectId: ProjectId
  readonly type: EventType
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** The JSON text `{ "type", "timestamp", "data" }`. */
  readonly body: string
}

const timestampOf = rememberLatest((at: number): string => new Date(at).toISOString())

/**
 * Makes an event and prints its body.
 *
 * @param fields.data - anything that JSON can say
 * @throws TypeError where `data` is nothing that JSON can say: cyclic, a bigint, a function, `undefined`
 */
export const make = ({
  at,
  data,
  id,
  projectId,
  type,
}: Omit<Event, "body"> & { readonly data: unknown }): Event => {
  const json = JSON.stringify(data)
  if (json === undefined) throw new TypeError(`JSON has no ${typeof data}`)
  const body = `{"type":"${type}","timestamp":"${timestampOf(at)}","data":${json}}`
  return { id, projectId, type, at, body }
}
