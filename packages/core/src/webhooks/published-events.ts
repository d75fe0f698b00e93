/** The service for events, which hosts and the API call. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type ChangeContext,
  type IdempotencyConflict,
  notifyReplay,
} from "../base/change-context.ts"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import { checkNames } from "../base/field-names.ts"
import { type Traceparent, parseTraceparent, traceparentFormat } from "../base/headers.ts"
import { type Repeatable, changingMethod, readingMethod } from "../base/host-method.ts"
import { invalidArgument } from "../base/input.ts"
import { faultOfJson } from "../base/json-text.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type ProjectNotFound, copyOwn } from "../base/values.ts"
import {
  type Event,
  EventId,
  type EventNotFound,
  type EventType,
  Hooks,
  isFeedEventType,
  isReservedEventType,
  makeEvent,
  newEventId,
} from "../events/event.ts"
import { eventNames, newEvent, ofEvent } from "./inputs.ts"
import { Outbox, type PublishedEvent } from "./outbox.ts"

/** The options of events. */
export const eventsOptions = Setting.object({
  /**
   * The most bytes of an event that the host publishes, as the JSON text that is sent. Up to
   * `maxInFlight` of them are in memory at the same time. Default: `262144`.
   */
  maxEventBytes: Setting.withDefault(Setting.integer({ most: 4_194_304 }), 262_144),
})

/** The options as a host passes them. */
export interface EventsOptions extends Setting.InputOf<typeof eventsOptions> {}

/** The options as the library uses them. */
export interface EventsSettings extends Setting.OutputOf<typeof eventsOptions> {}

/** An event to publish. */
export interface EventInput extends HostInputOf<typeof newEvent>, Repeatable {
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
}

/** The ids of an event, as a host has them. */
export interface EventIds extends HostInputOf<typeof ofEvent> {}

const utf8 = new TextEncoder()

/** Tells whether text takes more than a number of bytes in UTF-8. */
const isLonger = (text: string, bytes: number): boolean =>
  // A code unit takes one to three bytes: most texts need not be encoded.
  text.length > bytes || (3 * text.length > bytes && utf8.encode(text).length > bytes)

const invalidData = (problem: string): InvalidInput => new InvalidInput({ field: "data", problem })

/** How deep the data of an event may be nested: no reader of JSON has a limit below. */
const maxLevels = 100

const brackets = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]/gs

/** Tells whether JSON is nested too deeply. What is in its strings does not count. */
const isTooDeep = (json: string): boolean => {
  let level = 0
  for (const [token] of json.matchAll(brackets)) {
    if (token === "[" || token === "{") level++
    if (token === "]" || token === "}") level--
    if (level > maxLevels) return true
  }
  return false
}

const tooDeep = new InvalidInput({
  field: "data",
  problem: `must not be nested deeper than ${maxLevels - 1} levels`,
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
const eventsMakeEvent = (
  fields: Parameters<typeof makeEvent>[0],
  { maxEventBytes }: EventsSettings,
): Effect.Effect<Event, InvalidInput> =>
  Effect.try({
    try: () => makeEvent(fields),
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
      const fault = mayBeInexact.test(event.body) ? faultOfJson(event.body) : undefined
      return fault === undefined ? Effect.succeed(event) : Effect.fail(fault)
    }),
  )

/** Says why a host's event may not have a type, if it may not. Receivers rely on the reserved types to come from Tenure. */
const refusalOf = (type: EventType): string | undefined => {
  if (isReservedEventType(type)) return "only Tenure itself publishes events of this type"
  return isFeedEventType(type) ? "in a stream of events, it has another meaning" : undefined
}

const decodeTrace = (
  text: string | undefined,
): Effect.Effect<Traceparent | undefined, InvalidInput> => {
  if (text === undefined) return Effect.undefined
  const trace = parseTraceparent(text)
  return trace === undefined
    ? invalidArgument("traceparent", traceparentFormat)
    : Effect.succeed(trace)
}

/**
 * Publishes events of the host to the webhooks of a project, and shows what became of any event. Every
 * method fails with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store
 * does not answer.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { Events } from "tenure/effect"
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
      publication: EventInput,
    ) => Effect.Effect<
      EventId,
      InvalidInput | ProjectNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Returns an event of the host or of Tenure, and its deliveries with every attempt, also those to
     * webhooks that were deleted. Fails with `EventNotFound`.
     */
    readonly find: (
      event: EventIds,
    ) => Effect.Effect<PublishedEvent, InvalidInput | EventNotFound | StoreUnavailable>
  }
>()("@tenure/core/Events") {
  static readonly layer = (
    settings: EventsSettings = Setting.parse(eventsOptions),
  ): Layer.Layer<Events | EventActs, never, Outbox> =>
    Layer.provideMerge(
      Layer.effect(Events, Effect.map(EventActs, makeMethods)),
      Layer.effect(EventActs, makeActs(settings)),
    )
}

const makeActs = Effect.fnUntraced(function* (settings: EventsSettings) {
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const crypto = yield* WebCrypto
  return {
    publish: Effect.fnUntraced(function* (
      { data, projectId, type }: Decoded<typeof newEvent>,
      { at, idempotency, origin: { traceparent } }: ChangeContext,
    ) {
      const reason = refusalOf(type)
      if (reason !== undefined) {
        return yield* new InvalidInput({ field: "type", problem: `must not be ${type}: ${reason}` })
      }
      const id = newEventId(crypto, at)
      const event = yield* eventsMakeEvent({ id, projectId, type, at, data, traceparent }, settings)
      const replayed = yield* outbox.publish(event, idempotency)
      if (replayed !== undefined) {
        yield* notifyReplay({ idempotency }, replayed)
        return EventId(replayed.answer)
      }
      yield* hooks.event(event)
      return event.id
    }),

    find: ({ eventId, projectId }: Decoded<typeof ofEvent>) => outbox.find(projectId, eventId),
  }
})

/** What the methods do once their arguments are read. The HTTP API reads them from requests. */
export class EventActs extends Context.Service<
  EventActs,
  Effect.Success<ReturnType<typeof makeActs>>
>()("@tenure/core/EventActs") {}

const makeMethods = (acts: EventActs["Service"]): Events["Service"] => {
  const publish = changingMethod("publish", newEvent, acts.publish)
  return checkNames<Events["Service"]>(eventNames, {
    publish: (publication) =>
      Effect.suspend(() => {
        const given = copyOwn(publication)
        // A repetition may belong to another trace.
        return Effect.flatMap(decodeTrace(given.traceparent), (traceparent) =>
          publish(given, { traceparent }),
        )
      }),
    find: readingMethod(ofEvent, acts.find),
  })
}
