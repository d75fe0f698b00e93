/** The service with which a host publishes events. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Argument from "../base/Argument.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import { owned } from "../base/Own.ts"
import type { ProjectNotFound } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import { Outbox } from "./Outbox.ts"

/** An event to publish. */
export interface Publication {
  readonly projectId: string
  /** `payment.completed`, or any other type that Tenure does not publish itself. */
  readonly type: string
  /** A value that can be written as JSON. */
  readonly data: unknown
}

/** Decodes the type of a host's event. Receivers rely on the reserved types to come from Tenure. */
const decodeType = (text: string): Effect.Effect<Event.EventType, InvalidInput> =>
  Effect.filterOrFail(
    Argument.decode("type", Event.EventType, text),
    (type) => !Event.isReserved(type),
    (type) =>
      new InvalidInput({
        field: "type",
        problem: `must not be ${type}: only Tenure itself publishes events of this type`,
      }),
  )

/**
 * Publishes events of the host to the webhooks of a project.
 *
 * @example
 * ```ts
 * import { Events } from "@tenure/core/Events"
 * import * as Effect from "effect/Effect"
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
     * `InvalidInput`, `ProjectNotFound` or `StoreUnavailable`.
     */
    readonly publish: (
      publication: Publication,
    ) => Effect.Effect<Event.EventId, InvalidInput | ProjectNotFound | StoreUnavailable>
  }
>()("@tenure/core/Events") {
  static readonly layer: Layer.Layer<Events, never, Outbox> = Layer.effect(
    Events,
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const hooks = yield* Hooks
      const crypto = yield* WebCrypto
      return {
        publish: Effect.fnUntraced(function* (publication) {
          const at = yield* Clock.currentTimeMillis
          const { data, ...named } = owned(publication)
          const projectId = yield* Argument.projectId(named.projectId)
          const type = yield* decodeType(named.type)
          const id = Event.freshId(crypto, at)
          const event = yield* Effect.try({
            try: () => Event.make({ id, projectId, type, at, data }),
            catch: (cause) =>
              new InvalidInput({
                field: "data",
                problem: `must be a value that can be written as JSON: ${String(cause)}`,
              }),
          })
          yield* outbox.publish(event)
          yield* hooks.event(event)
          return event.id
        }),
      }
    }),
  )
}
