/** The outbox in memory. */

import type { Outbox } from "@tenure/core/Outbox"
import { WebhookDisabled, WebhookNotFound } from "@tenure/core/Webhook"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { State } from "./state.ts"

/** Makes the outbox. */
export const make = (state: State): Outbox["Service"] => ({
  publish: (event) =>
    Effect.map(state.project(event.projectId), (project) => state.publish(project, event)),

  publishTo: Effect.fnUntraced(function* (event, webhookId) {
    const webhook = state.findProject(event.projectId)?.webhooks.get(webhookId)
    if (webhook === undefined) return yield* new WebhookNotFound({ webhookId })
    if (webhook.disabledAt !== undefined) return yield* new WebhookDisabled({ webhookId })
    state.deliveries.add(event, webhook)
    state.changed.openUnsafe()
  }),

  claim: (options) =>
    Effect.map(Clock.currentTimeMillis, (now) => state.deliveries.claim(options, now)),

  settle: (claim, settlement) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const webhook = state.deliveries.settle(claim, settlement, now)
      if (webhook !== undefined && settlement._tag === "Disabled") {
        state.disable(webhook, settlement.announcement, now)
      }
      if (settlement._tag === "Released") state.changed.openUnsafe()
      return webhook !== undefined
    }),

  changes: Effect.map(state.changed.await, () => {
    state.changed.closeUnsafe()
    return { _tag: "Due" } as const
  }),

  deliveries: (webhook, page) => Effect.sync(() => state.deliveries.list(webhook, page)),

  replay: Effect.fnUntraced(function* (ref, which) {
    const { projectId, webhookId } = ref
    const webhook = state.findProject(projectId)?.webhooks.get(webhookId)
    if (webhook === undefined) return yield* new WebhookNotFound({ webhookId })
    if (webhook.disabledAt !== undefined) return yield* new WebhookDisabled({ webhookId })
    const count = state.deliveries.replay(ref, which, yield* Clock.currentTimeMillis)
    state.changed.openUnsafe()
    return count
  }),
})
