/** The outbox in memory. */

import { EventNotFound } from "@tenure/core/Event"
import * as Moment from "@tenure/core/Moment"
import type { Outbox } from "@tenure/core/Outbox"
import * as Effect from "effect/Effect"
import * as Deliveries from "../deliveries/Deliveries.ts"
import * as State from "../State.ts"

/** Makes the outbox. */
export const make = (state: State.State): Outbox["Service"] => ({
  ping: Effect.void,

  publish: (event, once) =>
    state.answers.change(
      once,
      event.projectId,
      Effect.flatMap(State.projectOf(state, event.projectId), (project) =>
        Effect.map(Moment.now, (now) => State.publish(state, project, event, now)),
      ),
      () => event.id,
    ),

  publishTo: (event, webhookId, once) =>
    state.answers.change(
      once,
      event.projectId,
      Effect.flatMap(
        State.enabledWebhookOf(state, { projectId: event.projectId, webhookId }),
        (webhook) => Effect.map(Moment.now, (now) => State.publishTo(state, webhook, event, now)),
      ),
      () => event.id,
    ),

  claim: (options) =>
    Effect.map(Moment.now, (now) => Deliveries.claim(state.deliveries, options, now)),

  settle: (claim, settlement) =>
    Effect.map(Moment.now, (now) => {
      const webhook = Deliveries.settle(state.deliveries, claim, settlement, now)
      if (webhook === undefined) return "Lapsed"
      if (settlement._tag === "Released") state.changed.openUnsafe()
      return settlement._tag === "Disabled" &&
        State.disable(state, webhook, settlement.announcement, now)
        ? "WebhookDisabled"
        : "Settled"
    }),

  nextChange: Effect.map(state.changed.await, () => {
    state.changed.closeUnsafe()
    return { _tag: "Due" } as const
  }),

  deliveries: (webhook, page) =>
    Effect.sync(() => Deliveries.list(state.deliveries, webhook, page)),

  find: (projectId, eventId) =>
    Effect.suspend(() => {
      const found = State.findEvent(state, projectId, eventId)
      return found === undefined
        ? Effect.fail(new EventNotFound({ eventId }))
        : Effect.succeed(found)
    }),

  replay: (ref, which, once) =>
    state.answers.change(
      once,
      ref.projectId,
      Effect.gen(function* () {
        const webhook = yield* State.enabledWebhookOf(state, ref)
        const now = yield* Moment.now
        const replayed = Deliveries.replay(state.deliveries, webhook, which, now)
        state.changed.openUnsafe()
        return replayed
      }),
      String,
    ),

  backlog: (most) => Effect.map(Moment.now, (now) => State.backlogOf(state, most, now)),
})
