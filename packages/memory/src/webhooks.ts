/** The stores of webhooks and of their deliveries in memory. */

import { currentMoment, currentUnixMillis } from "@tenure/core/internal"
import {
  type ChangeContext,
  EventNotFound,
  type KeyUse,
  type NonMembershipAction,
  type Outbox,
  type StoredSecret,
  type StoredWebhook,
  WebhookConflict,
  WebhookLimitReached,
  WebhookNotFound,
  type WebhookRef,
  type WebhookStore,
  cancelledChanges,
  compareTroubles,
  encryptionKeyOf,
  formatReplayPage,
  maxKeySamples,
  maxKeyUses,
  maxSampleLength,
  settingChanges,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { claimDue, healthOf, listDeliveries, settleDelivery } from "./deliveries.ts"
import { lastDayOf, listAttempted, progressOf, troubleOf } from "./delivery-progress.ts"
import { cancel, replayMany, replayOne } from "./replays.ts"
import {
  type State,
  addAuditRow,
  announceFailure,
  countBacklog,
  enabledWebhookOf,
  findEvent,
  projectOf,
  publish,
  publishTo,
  removeWebhook,
  setWebhook,
  webhookOf,
} from "./state.ts"

/** Changes an existing webhook. Returns the same object if nothing changes. */
const change = (
  state: State,
  ref: WebhookRef,
  update: (webhook: StoredWebhook) => StoredWebhook,
  action: NonMembershipAction,
  context: ChangeContext,
): Effect.Effect<StoredWebhook, WebhookNotFound> =>
  Effect.map(webhookOf(state, ref), (webhook) => {
    const changed = update(webhook)
    if (changed === webhook) return webhook
    setWebhook(state, changed)
    const changes = settingChanges(webhook, changed)
    addAuditRow(state, ref.projectId, action, ref.webhookId, context, changes)
    return changed
  })

/** Returns the secrets and keys that a webhook signs with, and its headers. */
const secretsAt = (
  { headers, previous, secret, signingKey }: StoredWebhook,
  now: number,
): ReadonlyArray<StoredSecret> => [
  secret,
  ...(previous === undefined || previous.until <= now ? [] : [previous.secret]),
  ...(signingKey === undefined ? [] : [signingKey]),
  ...(headers === undefined ? [] : [headers.sealed]),
]

const withHealth = ({ deliveries }: State, webhook: StoredWebhook) => ({
  ...webhook,
  ...healthOf(deliveries, webhook.id),
})

/** Makes the store. */
export const makeMemoryWebhookStore = (state: State): WebhookStore["Service"] => ({
  ping: Effect.void,

  encryptionKeys: (now) =>
    Effect.sync(() => {
      const uses = new Map<string, Array<KeyUse["samples"][number]>>()
      for (const { webhooks } of state.projects.values()) {
        for (const webhook of webhooks.values()) {
          for (const secret of secretsAt(webhook, now)) {
            const keyId = encryptionKeyOf(secret)
            if (keyId === undefined || secret.length > maxSampleLength) continue
            const samples = uses.get(keyId) ?? []
            if (samples.length === 0 && uses.size === maxKeyUses) continue
            if (samples.length === maxKeySamples) continue
            samples.push({ projectId: webhook.projectId, webhookId: webhook.id, secret })
            uses.set(keyId, samples)
          }
        }
      }
      return [...uses].map(([keyId, samples]) => ({ keyId, samples }))
    }),

  add: (webhook, limit, context) =>
    state.answers.change(
      context.idempotency,
      webhook.projectId,
      Effect.flatMap(projectOf(state, webhook.projectId), ({ webhooks }) => {
        if (webhooks.size >= limit) return Effect.fail(new WebhookLimitReached({ limit }))
        webhooks.set(webhook.id, webhook)
        addAuditRow(state, webhook.projectId, "webhook_created", webhook.id, context)
        return Effect.void
      }),
      () => webhook.id,
    ),

  list: (projectId) =>
    Effect.map(projectOf(state, projectId), ({ webhooks }) =>
      [...webhooks.values()].map((webhook) => withHealth(state, webhook)),
    ),

  find: (projectId, webhookId) =>
    Effect.map(webhookOf(state, { projectId, webhookId }), (webhook) => withHealth(state, webhook)),

  rotateSecret: (projectId, webhookId, { previousUntil, secret }, context) =>
    state.answers.change(
      context.idempotency,
      projectId,
      Effect.asVoid(
        change(
          state,
          { projectId, webhookId },
          (webhook) => ({
            ...webhook,
            secret,
            previous: { secret: webhook.secret, until: previousUntil },
          }),
          "secret_rotated",
          context,
        ),
      ),
      () => String(previousUntil),
    ),

  addSigningKey: (projectId, webhookId, key, context) =>
    Effect.map(
      change(
        state,
        { projectId, webhookId },
        (webhook) => (webhook.signingKey === undefined ? { ...webhook, signingKey: key } : webhook),
        "signing_key_added",
        context,
      ),
      ({ signingKey }) => signingKey ?? key,
    ),

  update: (ref, { changes, expected, settings }, context) =>
    state.answers.change(
      context.idempotency,
      ref.projectId,
      Effect.suspend(() => {
        const webhook = state.projects.get(ref.projectId)?.webhooks.get(ref.webhookId)
        if (webhook === undefined || settingChanges(webhook, expected).length > 0) {
          return Effect.fail(new WebhookConflict())
        }
        setWebhook(state, { ...webhook, ...settings })
        if (changes.length > 0) {
          const { projectId, webhookId } = ref
          addAuditRow(state, projectId, "webhook_changed", webhookId, context, changes)
        }
        return Effect.void
      }),
    ),

  enable: (projectId, webhookId, context) =>
    state.answers.change(
      context.idempotency,
      projectId,
      Effect.asVoid(
        change(
          state,
          { projectId, webhookId },
          (webhook) =>
            webhook.disabled === undefined ? webhook : { ...webhook, disabled: undefined },
          "webhook_changed",
          context,
        ),
      ),
    ),

  remove: (projectId, webhookId, context) =>
    state.answers.change(
      context.idempotency,
      projectId,
      Effect.suspend(() => {
        if (!removeWebhook(state, { projectId, webhookId })) {
          return Effect.fail(new WebhookNotFound({ webhookId }))
        }
        addAuditRow(state, projectId, "webhook_deleted", webhookId, context)
        return Effect.void
      }),
    ),
})

/** Makes the outbox. */
export const makeMemoryOutbox = (state: State): Outbox["Service"] => ({
  ping: Effect.void,

  publish: (event, idempotency) =>
    state.answers.change(
      idempotency,
      event.projectId,
      Effect.flatMap(projectOf(state, event.projectId), (project) =>
        Effect.map(currentMoment, (now) => publish(state, project, event, now)),
      ),
      () => event.id,
    ),

  publishTo: (event, webhookId, idempotency) =>
    state.answers.change(
      idempotency,
      event.projectId,
      Effect.flatMap(
        enabledWebhookOf(state, { projectId: event.projectId, webhookId }),
        (webhook) => Effect.map(currentMoment, (now) => publishTo(state, webhook, event, now)),
      ),
      () => event.id,
    ),

  claim: (options) => Effect.map(currentMoment, (now) => claimDue(state.deliveries, options, now)),

  settle: (claim, settlement) =>
    Effect.map(currentMoment, (now) => {
      const settled = settleDelivery(state.deliveries, claim, settlement, now)
      if (settled === undefined) return "Lapsed"
      if (settled.hasNext || settlement._tag === "Released") state.changed.openUnsafe()
      return announceFailure(state, settled.webhook, settlement, now)
    }),

  nextChange: Effect.map(state.changed.await, () => {
    state.changed.closeUnsafe()
    return { _tag: "Due" } as const
  }),

  deliveries: (webhook, page) => Effect.sync(() => listDeliveries(state.deliveries, webhook, page)),

  attempted: (webhook, page) => Effect.sync(() => listAttempted(state.deliveries, webhook, page)),

  progress: (projectId, webhookIds) =>
    Effect.map(currentMoment, (now) => {
      const webhooks = state.projects.get(projectId)?.webhooks
      return new Map(
        webhookIds.flatMap((id) =>
          webhooks?.has(id) === true ? [[id, progressOf(state.deliveries, id, now)] as const] : [],
        ),
      )
    }),

  activity: (ref) =>
    Effect.flatMap(webhookOf(state, ref), ({ id }) =>
      Effect.map(currentUnixMillis, (now) => lastDayOf(state.deliveries, id, now)),
    ),

  minutes: (projectId) =>
    Effect.andThen(
      projectId === undefined ? Effect.void : projectOf(state, projectId),
      Effect.map(currentUnixMillis, (now) => state.deliveries.hour.cells(projectId, now)),
    ),

  troubled: (most) =>
    Effect.map(currentMoment, (now) =>
      [...state.projects.values()]
        .flatMap(({ webhooks }) => [...webhooks.values()])
        .flatMap((webhook) => troubleOf(state.deliveries, webhook) ?? [])
        .toSorted(compareTroubles)
        .slice(0, most)
        .map((one) => ({ ...one, ...progressOf(state.deliveries, one.webhookId, now) })),
    ),

  find: (projectId, eventId) =>
    Effect.suspend(() => {
      const found = findEvent(state, projectId, eventId)
      return found === undefined
        ? Effect.fail(new EventNotFound({ eventId }))
        : Effect.succeed(found)
    }),

  replay: (ref, eventId, idempotency) =>
    state.answers.change(
      idempotency,
      ref.projectId,
      Effect.flatMap(enabledWebhookOf(state, ref), (webhook) =>
        Effect.map(currentMoment, (now) => replayOne(state, webhook, eventId, now)),
      ),
      String,
    ),

  replayMany: (ref, selection, idempotency) =>
    state.answers.change(
      idempotency,
      ref.projectId,
      Effect.gen(function* () {
        const webhook = yield* enabledWebhookOf(state, ref)
        const page = replayMany(state, webhook, selection, yield* currentMoment)
        return page ?? (yield* new EventNotFound({ eventId: selection.position?.after ?? "" }))
      }),
      formatReplayPage,
    ),

  cancel: (ref, selection, context) =>
    state.answers.change(
      context.idempotency,
      ref.projectId,
      Effect.map(webhookOf(state, ref), (webhook) => {
        const cancelled = cancel(state, webhook, selection)
        if (cancelled > 0 && !selection.isDryRun) {
          const changes = cancelledChanges(cancelled)
          addAuditRow(state, ref.projectId, "deliveries_cancelled", ref.webhookId, context, changes)
          state.changed.openUnsafe()
        }
        return cancelled
      }),
      String,
    ),

  backlog: (most) => Effect.map(currentMoment, (now) => countBacklog(state, most, now)),
})
