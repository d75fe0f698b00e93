/** The operations on events. */

import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { Faults } from "../base/Faults.ts"
import { type HeaderFields, single } from "../base/HeaderFields.ts"
import * as Setting from "../base/Setting.ts"
import * as Traceparent from "../base/Traceparent.ts"
import * as Event from "../events/Event.ts"
import { Feed, type PageQuery } from "../events/Feed.ts"
import { Cursor } from "../events/FeedStore.ts"
import { Listeners } from "../events/Listeners.ts"
import { Events } from "../webhooks/Events.ts"
import * as Accept from "./Accept.ts"
import * as Access from "./Access.ts"
import type { ApiError } from "./ApiError.ts"
import type { Authentication } from "./Authentication.ts"
import * as DeliveryData from "./DeliveryData.ts"
import * as EventData from "./EventData.ts"
import * as EventStream from "./EventStream.ts"
import { bodyOf, type Call, idOf, type OperationsOn, projectOf } from "./Operation.ts"
import * as Query from "./Query.ts"
import * as RequestBody from "./RequestBody.ts"
import * as Showing from "./Showing.ts"

const parseTypes = (given: unknown): ReadonlyArray<string> | undefined => {
  const parsed = typeof given === "string" ? given.split(",") : []
  return parsed.length > 0 && parsed.every(Event.EventType.is) ? parsed : undefined
}

const types = Setting.optional(
  Setting.make<string, ReadonlyArray<string>>(
    `event types, each ${Event.EventType.expected}, joined by commas`,
    parseTypes,
  ),
)

const wait = Setting.withDefault(
  Setting.make<string, number>("a whole number of seconds from 0 to 20", (given) =>
    typeof given === "string" && /^(1?\d|20)$/.test(given) ? Number(given) : undefined,
  ),
  "0",
)

// Whether responses have the data of events.
const hasData = Setting.withDefault(
  Setting.make<string, boolean>("true or false", (given) =>
    given === "true" || given === "false" ? given === "true" : undefined,
  ),
  "true",
)

const type = Setting.text(Event.EventType.expected, Event.EventType.is)
const data = Setting.checked<unknown>("a JSON value", () => true)

const lastEventIdOf = (headers: HeaderFields): Effect.Effect<string | undefined, ApiError> => {
  const field = single(headers, "last-event-id")
  if (field._tag === "Absent" || (field._tag === "Value" && field.value === "")) {
    return Effect.undefined
  }
  return field._tag === "Value" && Cursor.is(field.value)
    ? Effect.succeed(field.value)
    : Effect.fail({ _tag: "MalformedRequest", message: "The header Last-Event-ID is invalid." })
}

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 * @param renewal - returns what finds out again who sent a request
 */
export const make = Effect.fnUntraced(function* (
  maxBodyBytes: number,
  renewal: Authentication["renewal"],
) {
  const events = yield* Events
  const recordShown = yield* Showing.make
  const feed = yield* Feed
  const listeners = yield* Listeners
  const faults = yield* Faults
  const respond = EventStream.make({ faults, run: Effect.runPromiseWith(yield* Effect.context()) })

  const accessOf = (
    { principal, request, requestId }: Call<"project_id">,
    projectId: string,
  ): Access.Access => ({
    projectId,
    renew: renewal(request, principal),
    requestId,
  })

  /**
   * Reads a page of the feed. A request that waits takes a slot, and its key has to be valid at the end,
   * too.
   */
  const readFeed = (call: Call<"project_id">, query: PageQuery) =>
    query.waitMillis === 0
      ? feed.read(query)
      : Effect.andThen(
          listeners.slot(call.principal.keyId, query.projectId),
          feed.read({ ...query, signal: call.request.signal?.() }),
        ).pipe(
          Effect.scoped,
          Effect.catchTag("NoSlot", () => Effect.fail(Access.noSlot)),
          Effect.tap(() => Access.check(accessOf(call, query.projectId))),
        )

  const listPage = Effect.fnUntraced(function* (call: Call<"project_id">) {
    const projectId = yield* projectOf(call)
    const query = yield* Query.read(call.request, {
      ...Query.page,
      types,
      wait,
      ticket: Query.ticket,
      data: hasData,
    })
    const page = yield* readFeed(call, {
      projectId,
      after: query.after,
      types: query.types,
      limit: query.limit,
      waitMillis: 1000 * query.wait,
    })
    return {
      message: "The events after the cursor.",
      total: page.events.length,
      next: page.cursor,
      data: page.events.map((event) => EventData.shown(event, query.data)),
    }
  })

  const stream = Effect.fnUntraced(function* (call: Call<"project_id">) {
    const projectId = yield* projectOf(call)
    const query = yield* Query.read(call.request, {
      after: Query.page.after,
      types,
      ticket: Query.ticket,
    })
    const lastEventId = yield* lastEventIdOf(call.request.headers)
    const access = accessOf(call, projectId)
    yield* Access.admit(access)
    const listener = yield* listeners
      .open({
        client: call.principal.keyId,
        projectId,
        after: lastEventId ?? query.after,
        types: query.types,
        isAllowed: Access.isGiven(access, faults),
      })
      .pipe(Effect.catchTag("NoSlot", () => Effect.fail(Access.noSlot)))
    return respond({
      listener,
      signal: call.request.signal?.(),
      retryMillis: yield* Random.nextIntBetween(
        EventStream.shortestRetryMillis,
        EventStream.longestRetryMillis,
      ),
      requestId: call.requestId,
    })
  })

  return {
    "events.list": (call) =>
      Accept.prefersEvents(call.request.headers) ? stream(call) : listPage(call),

    "events.publish": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const body = yield* bodyOf(call, maxBodyBytes)
      const id = yield* events.publish({
        projectId,
        type: yield* Effect.fromResult(RequestBody.field(body, "type", type)),
        data: yield* Effect.fromResult(RequestBody.field(body, "data", data)),
        traceparent: Traceparent.ofHeaders(call.request.headers),
        idempotencyKey: call.once,
      })
      return { message: "The event was published.", data: { id } }
    }),

    "events.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* Query.read(call.request, { data: hasData })
      const eventId = yield* idOf(call.params.event_id)
      const event = yield* events.find({ projectId, eventId })
      const deliveries = event.deliveries.map((delivery) => ({
        webhook_id: delivery.webhookId,
        ...DeliveryData.of(delivery),
      }))
      if (query.data) yield* recordShown(call, "data_shown", event.id)
      return {
        message: "The event and its deliveries.",
        data: { ...EventData.shown(event, query.data), deliveries },
      }
    }),
  } satisfies OperationsOn<"events">
})
