/** The service for events, which hosts and the API call. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Argument from "../base/Argument.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as JsonText from "../base/JsonText.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import type { ProjectNotFound } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Traceparent from "../base/Traceparent.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import { Outbox, type PublishedEvent } from "./Outbox.ts"

/** The options of events. */
export const options = Setting.struct({
  /**
   * The most bytes of an event that the host publishes, as the JSON text that is sent. Up to
   * `maxInFlight` of them are in memory at the same time. Default: `262144`.
   */
  maxEventBytes: Setting.withDefault(Setting.count({ most: 4_194_304 }), 262_144),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** An event to publish. */
export interface Publication {
  readonly projectId: string
  /** `payment.completed`, or any other type that Tenure does not publish itself. */
  readonly type: string
  /**
   * A value that can be written as JSON, no longer than the option `maxEventBytes` allows. Whole numbers beyond
   * `Number.MAX_SAFE_INTEGER` are refused, because they may have been rounded: pass them as text.
   */
  readonly data: unknown
  /**
   * The trace that the event is part of, as W3C's header field `traceparent` has it. The requests of
   * webhooks carry it.
   */
  readonly traceparent?: string | undefined
  /**
   * Publishes the event once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** The ids of an event, as a host has them. */
export interface EventIds {
  readonly projectId: string
  /** A UUID, in upper or lower case. */
  readonly eventId: string
}

const utf8 = new TextEncoder()

/** Tells whether text takes more than a number of bytes in UTF-8. */
const isLonger = (text: string, bytes: number): boolean =>
  // A code unit takes one to three bytes: most texts need not be encoded.
  text.length > bytes || (3 * text.length > bytes && utf8.encode(text).length > bytes)

const invalidData = (problem: string): InvalidInput => new InvalidInput({ field: "data", problem })

/** How deep the data of an event may be nested: no reader of JSON has a limit below. */
const mostLevels = 100

const brackets = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]/gs

/** Tells whether JSON is nested too deeply. What is in its strings does not count. */
const isTooDeep = (json: string): boolean => {
  let level = 0
  for (const [token] of json.matchAll(brackets)) {
    if (token === "[" || token === "{") level++
    if (token === "]" || token === "}") level--
    if (level > mostLevels) return true
  }
  return false
}

const tooDeep = new InvalidInput({
  field: "data",
  problem: `must not be nested deeper than ${mostLevels - 1} levels`,
})

// Nearly all events have no such number, and need not be looked at closely.
const mayBeInexact = /\d{16}/

/** Describes what was thrown. Data with code of its own may throw what is no text either. */
const textOf = (thrown: unknown): string => {
  try {
    return String(thrown)
  } catch {
    return "it throws"
  }
}

/** Makes the event, or fails if its data is not JSON, too long, or has a number that was rounded. */
const makeEvent = (
  fields: Parameters<typeof Event.make>[0],
  { maxEventBytes }: Settings,
): Effect.Effect<Event.Event, InvalidInput> =>
  Effect.try({
    try: () => Event.make(fields),
    catch: (thrown) =>
      // The stack is too small to write it.
      thrown instanceof RangeError
        ? tooDeep
        : invalidData(`must be a value that can be written as JSON: ${textOf(thrown)}`),
  }).pipe(
    Effect.filterOrFail(
      ({ body }) => !isLonger(body, maxEventBytes),
      () => invalidData(`must be short enough for an event of ${maxEventBytes} bytes of JSON`),
    ),
    Effect.filterOrFail(
      ({ body }) => !isTooDeep(body),
      () => tooDeep,
    ),
    Effect.flatMap((event) => {
      const fault = mayBeInexact.test(event.body) ? JsonText.faultOf(event.body) : undefined
      return fault === undefined ? Effect.succeed(event) : Effect.fail(fault)
    }),
  )

/** Says why a host's event may not have a type, if it may not. */
const refusalOf = (type: Event.EventType): string | undefined => {
  if (Event.isReserved(type)) return "only Tenure itself publishes events of this type"
  return Event.isOfStreams(type) ? "in a stream of events, it has another meaning" : undefined
}

/** Decodes the type of a host's event. Receivers rely on the reserved types to come from Tenure. */
const decodeType = (text: string): Effect.Effect<Event.EventType, InvalidInput> =>
  Effect.flatMap(Argument.decode("type", Event.EventType, text), (type) => {
    const reason = refusalOf(type)
    return reason === undefined
      ? Effect.succeed(type)
      : Effect.fail(new InvalidInput({ field: "type", problem: `must not be ${type}: ${reason}` }))
  })

const decodeTrace = (
  text: string | undefined,
): Effect.Effect<Traceparent.Traceparent | undefined, InvalidInput> => {
  if (text === undefined) return Effect.undefined
  const trace = Traceparent.parse(text)
  return trace === undefined
    ? Argument.invalid("traceparent", Traceparent.expected)
    : Effect.succeed(trace)
}

/** Decodes the id of an event. Text that is not a UUID cannot be the id of any. */
const decodeEventId = (
  text: string,
): Effect.Effect<Event.EventId, Event.EventNotFound | InvalidInput> => {
  if (typeof text !== "string") return Argument.invalid("eventId", "the id of an event")
  const id = text.toLowerCase()
  return Event.EventId.is(id)
    ? Effect.succeed(id)
    : Effect.fail(new Event.EventNotFound({ eventId: text }))
}

/**
 * Publishes events of the host to the webhooks of a project, and shows what became of any event. Every
 * method fails with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store
 * does not answer.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Events } from "tenure/Events"
 *
 * const completed = Effect.flatMap(Events, (events) =>
 *   events.publish({ projectId: "p1", type: "payment.completed", data: { amount: 5 } }),
 * )
 * ```
 */
export class Events extends Context.Service<
  Events,
  {
    /**
     * Publishes an event. Returns its id, which receivers get as `webhook-id`. Fails with
     * `ProjectNotFound`, and if it has an idempotency key with `IdempotencyMismatch` or
     * `IdempotencyInProgress`.
     */
    readonly publish: (
      publication: Publication,
    ) => Effect.Effect<
      Event.EventId,
      InvalidInput | ProjectNotFound | Once.Conflict | StoreUnavailable
    >

    /**
     * Returns an event of the host or of Tenure, and its deliveries with every attempt, also those to
     * webhooks that were deleted. Fails with `EventNotFound`.
     */
    readonly find: (
      event: EventIds,
    ) => Effect.Effect<PublishedEvent, InvalidInput | Event.EventNotFound | StoreUnavailable>
  }
>()("@tenure/core/Events") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<Events, never, Outbox> => Layer.effect(Events, make(settings))
}

const make = Effect.fnUntraced(function* (settings: Settings) {
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const crypto = yield* WebCrypto
  return Events.of({
    publish: Effect.fnUntraced(function* (publication) {
      const at = yield* Clock.currentTimeMillis
      const { data, idempotencyKey, ...named } = owned(publication)
      const projectId = yield* Argument.projectId(named.projectId)
      const type = yield* decodeType(named.type)
      const id = Event.freshId(crypto, at)
      const traceparent = yield* decodeTrace(named.traceparent)
      const event = yield* makeEvent({ id, projectId, type, at, data, traceparent }, settings)
      const occasion = { origin: Origin.host, at }
      const { once } = yield* Once.on(occasion, idempotencyKey, type, projectId, data)
      const replayed = yield* outbox.publish(event, once)
      if (replayed !== undefined) {
        yield* Once.tell({ once }, replayed)
        return Event.EventId(replayed.answer)
      }
      yield* hooks.event(event)
      return event.id
    }),

    find: Effect.fnUntraced(function* (ids) {
      const { eventId, projectId } = owned(ids)
      const id = yield* decodeEventId(eventId)
      return yield* outbox.find(yield* Argument.projectId(projectId), id)
    }),
  })
})
