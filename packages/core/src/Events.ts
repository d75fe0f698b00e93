/** Events of the host's own. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Event from "./Event.ts"
import { Hooks } from "./Hooks.ts"
import * as Input from "./internal/input.ts"
import * as Uuid from "./internal/uuid.ts"
import { InvalidInput } from "./InvalidInput.ts"
import { Outbox } from "./Outbox.ts"
import type { ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

/** An event to publish. */
export interface Publication {
  readonly projectId: string
  /** `payment.completed`, or any type of the host's own. */
  readonly type: string
  /** Anything that JSON can say. */
  readonly data: unknown
}

/** Publishes events to a project's webhooks. */
export class Events extends Context.Service<
  Events,
  {
    /** Publishes an event; gives its id, the `webhook-id` of its deliveries. */
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
        publish: Effect.fnUntraced(function* ({ data, ...publication }) {
          const at = yield* Clock.currentTimeMillis
          const projectId = yield* Input.projectId(publication.projectId)
          const type = yield* Input.eventType(publication.type)
          const id = Event.EventId(Uuid.v7(crypto, at))
          const event = yield* Effect.try({
            try: () => Event.make({ id, projectId, type, at, data }),
            catch: (cause) =>
              new InvalidInput({ field: "data", message: `data: not JSON: ${String(cause)}` }),
          })
          yield* outbox.publish(event)
          yield* hooks.event(event)
          return event.id
        }),
      }
    }),
  )
}
