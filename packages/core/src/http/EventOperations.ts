/** The operations on events. */

import * as Effect from "effect/Effect"
import * as Setting from "../base/Setting.ts"
import * as Event from "../events/Event.ts"
import { Feed, type PageQuery } from "../events/Feed.ts"
import * as Seats from "../events/Seats.ts"
import { Events } from "../webhooks/Events.ts"
import type { ApiError } from "./ApiError.ts"
import type { Authentication } from "./Authentication.ts"
import * as DeliveryData from "./DeliveryData.ts"
import { bodyOf, type Call, idOf, type OperationsOn, projectOf, timeOf } from "./Operation.ts"
import * as Query from "./Query.ts"
import * as RequestBody from "./RequestBody.ts"

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

// The longest wait. Whoever waits now has ended then.
const noSeat: Effect.Effect<never, ApiError> = Effect.fail({ _tag: "RateLimited", retryAfter: 20 })

const type = Setting.text(Event.EventType.expected, Event.EventType.is)
const data = Setting.checked<unknown>("a JSON value", () => true)

const eventOf = (event: Event.Event) => ({
  id: event.id,
  type: event.type,
  timestamp: timeOf(event.at),
  data: Event.dataOf(event),
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 * @param identify - finds out who sent a request
 */
export const make = Effect.fnUntraced(function* (
  maxBodyBytes: number,
  identify: Authentication["identify"],
) {
  const events = yield* Events
  const feed = yield* Feed
  const seats = Seats.make(Seats.most)

  /** Fails if the sender may not use the project any more, or if it is another one with the same id. */
  const judgeAgain = (call: Call<"project_id">) =>
    Effect.flatMap(identify(call.request), (principal) => projectOf({ ...call, principal }))

  /**
   * Reads a page of the feed. Whoever may wait for it needs a seat meanwhile, and a key that is still
   * valid then.
   */
  const readFeed = (call: Call<"project_id">, query: PageQuery) =>
    query.waitMillis === 0
      ? feed.read(query)
      : Effect.suspend(() => {
          const giveBack = seats.take(call.principal.keyId, query.projectId)
          return giveBack === undefined
            ? noSeat
            : Effect.tap(Effect.ensuring(feed.read(query), Effect.sync(giveBack)), () =>
                judgeAgain(call),
              )
        })

  return {
    "events.list": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* Query.read(call.request, { ...Query.page, types, wait })
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
        data: page.events.map(eventOf),
      }
    }),

    "events.publish": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const body = yield* bodyOf(call, maxBodyBytes)
      const id = yield* events.publish({
        projectId,
        type: yield* Effect.fromResult(RequestBody.field(body, "type", type)),
        data: yield* Effect.fromResult(RequestBody.field(body, "data", data)),
        idempotencyKey: call.once,
      })
      return { message: "The event was published.", data: { id } }
    }),

    "events.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const eventId = yield* idOf(call.params.event_id)
      const event = yield* events.find({ projectId, eventId })
      const deliveries = event.deliveries.map((delivery) => ({
        webhook_id: delivery.webhookId,
        ...DeliveryData.of(delivery),
      }))
      return {
        message: "The event and its deliveries.",
        data: { ...eventOf(event), deliveries },
      }
    }),
  } satisfies OperationsOn<"events">
})
