/** The operations on events. */

import * as Effect from "effect/Effect"
import * as Setting from "../base/Setting.ts"
import * as Event from "../events/Event.ts"
import { Events } from "../webhooks/Events.ts"
import * as DeliveryData from "./DeliveryData.ts"
import { bodyOf, idOf, type OperationsOn, projectOf, timeOf } from "./Operation.ts"
import * as Query from "./Query.ts"
import * as RequestBody from "./RequestBody.ts"

const type = Setting.text(Event.EventType.expected, Event.EventType.is)
const data = Setting.checked<unknown>("a JSON value", () => true)

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const events = yield* Events

  return {
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
        data: {
          id: event.id,
          type: event.type,
          timestamp: timeOf(event.at),
          data: Event.dataOf(event),
          deliveries,
        },
      }
    }),
  } satisfies OperationsOn<"events">
})
