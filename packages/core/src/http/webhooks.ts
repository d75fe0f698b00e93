/** What responses show of a delivery. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import { withReplayFlag } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { getOwn } from "../base/values.ts"
import { EventId, EventNotFound, eventTraceparent, eventTypesOption } from "../events/event.ts"
import { signedRequestHeaders } from "../webhooks/attempt.ts"
import {
  type ActivityCell,
  type DeliveryProgress,
  attemptData,
} from "../webhooks/delivery-activity.ts"
import {
  type Attempt,
  type AttemptPosition,
  type Delivery,
  deliveryStates,
} from "../webhooks/outbox.ts"
import { Events } from "../webhooks/published-events.ts"
import { replayChoices } from "../webhooks/replay.ts"
import { parseWebhookUrl } from "../webhooks/transport.ts"
import { describeAttemptError } from "../webhooks/verdict.ts"
import { headersSetting } from "../webhooks/webhook-headers.ts"
import type { RepeatableIds } from "../webhooks/webhook-registry.ts"
import {
  descriptionSetting,
  orderedSetting,
  rateSetting,
  webhookPatchSettings,
} from "../webhooks/webhook-settings.ts"
import type { Health, PublicWebhook, ShownWebhook } from "../webhooks/webhook.ts"
import { Webhooks } from "../webhooks/webhooks.ts"
import type { ApiError } from "./errors.ts"
import { dryRunMessage, endDateField } from "./extensions.ts"
import {
  type Call,
  type JsonObject,
  type OperationsOn,
  bodyOf,
  decodePathParam,
  isoOrNull,
  makeDisclosureAudit,
  objectWith,
  originOf,
  pageQuery,
  projectOf,
  readField,
  readQuery,
} from "./operation.ts"
import { pageReply } from "./response.ts"

const attemptOf = ({ at, durationMillis, result }: Attempt) => ({
  at: isoOrNull(at),
  duration_ms: Math.round(durationMillis),
  status: result._tag === "Answered" ? result.status : null,
  error: describeAttemptError(result) ?? null,
})

const responseOf = ({ result }: Attempt): string | null =>
  result._tag === "Answered" ? result.body : null

const stateOf = ({ dueAt, state }: Delivery) => ({
  state,
  due_at: isoOrNull(state === "waiting" ? dueAt : undefined),
})

/** Returns the state of a delivery and its attempts, without what receivers have responded. */
export const deliveryData = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map(attemptOf),
})

/** Returns the state of a delivery and its attempts, with what the receiver has responded. */
const deliveryDataWithResponses = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map((attempt) => ({
    ...attemptOf(attempt),
    response_body: responseOf(attempt),
  })),
})

/** The operations on webhooks. */

/** What stands for a secret that cannot be read begins with this. */
const unreadable = "unreadable_"

const dataOf = ({ id, secret, url }: { id: string; secret: string; url: string }) => ({
  url,
  id,
  secret,
})

/** Returns a webhook's latest attempt. */
export const latestAttemptOf = ({ latestAttempt }: DeliveryProgress) =>
  latestAttempt === undefined ? null : attemptData(latestAttempt)

/** Returns the counts in spans of time. */
export const cellsOf = (cells: ReadonlyArray<ActivityCell>) =>
  cells.map(({ at, delivered, failed }) => ({ at: isoOrNull(at), delivered, failed }))

const healthOf = (webhook: PublicWebhook & Health & DeliveryProgress) => ({
  id: webhook.id,
  url: webhook.url,
  event_types: webhook.eventTypes ?? null,
  ordered: webhook.ordered,
  rate: webhook.rate ?? null,
  description: webhook.description ?? null,
  header_names: webhook.headerNames,
  created_at: isoOrNull(webhook.createdAt),
  disabled_at: isoOrNull(webhook.disabled?.at),
  disabled_by: webhook.disabled?.by ?? null,
  failing_since: isoOrNull(webhook.failingSince),
  failures: webhook.failures,
  last_attempt: latestAttemptOf(webhook),
  waiting: webhook.waiting,
  next_attempt_at: isoOrNull(webhook.nextAttemptAt),
})

/** Says which webhooks have a secret that cannot be read. */
const unreadableOf = (webhooks: ReadonlyArray<ShownWebhook>): string =>
  webhooks
    .filter(({ problem }) => problem !== undefined)
    .map(({ id, problem }) => ` A secret of ${id} cannot be read: ${problem}.`)
    .join("")

const eventOf = ({ createdAt, eventId: id, type, userId }: Delivery) => ({
  event_id: id,
  type,
  created_at: isoOrNull(createdAt),
  user_id: userId ?? null,
})

const deliveryOf = (delivery: Delivery) => ({ ...eventOf(delivery), ...deliveryData(delivery) })

const eventId = Setting.custom<string, EventId>("the id of an event", (given) => {
  const id = typeof given === "string" ? given.toLowerCase() : ""
  return EventId.is(id) ? id : undefined
})

const orders = ["created", "latest_attempt"] as const

/** The cursor of the list by latest attempt. */
const cursorOf = ({
  attemptedAt,
  eventId: id,
}: Pick<Delivery, "attemptedAt" | "eventId">): string => `${attemptedAt}_${id}`

const attemptCursor = Setting.optional(
  Setting.custom<string, AttemptPosition>("the cursor of a page in this order", (given) => {
    const [, at, id] = typeof given === "string" ? (/^(\d{1,15})_(.{36})$/.exec(given) ?? []) : []
    return id !== undefined && EventId.is(id) ? { attemptedAt: Number(at), eventId: id } : undefined
  }),
)

const deliveriesQuery = {
  ...pageQuery,
  order: Setting.withDefault(Setting.oneOf(orders), "created"),
  state: Setting.optional(Setting.oneOf(deliveryStates)),
}

const createdCursor = Setting.optional(eventId)

/** Reads a page's order and cursor for the service. */
const pageOf = Effect.fnUntraced(function* (call: Call<"project_id" | "webhook_id">) {
  const { after, limit, order, state } = yield* readQuery(call.request, deliveriesQuery)
  const read = <I, O>(cursor: Setting.Setting<I, O>) =>
    Effect.fromResult(cursor.read(after, "after"))
  return order === "created"
    ? ({ order, state, limit, olderThan: yield* read(createdCursor) } as const)
    : ({
        order: "latestAttempt",
        state,
        limit,
        attemptedBefore: yield* read(attemptCursor),
      } as const)
})

const created = objectWith("url", "event_types", "ordered", "rate", "description", "headers")

const newWebhook = {
  event_types: eventTypesOption,
  ordered: orderedSetting,
  rate: rateSetting,
  description: Setting.optional(descriptionSetting),
  headers: Setting.optional(headersSetting),
}

const updateBody = Setting.object({
  url: Setting.optional(Setting.custom<unknown>("a URL", (given) => given)),
  event_types: webhookPatchSettings.eventTypes,
  ordered: webhookPatchSettings.ordered,
  rate: webhookPatchSettings.rate,
  description: webhookPatchSettings.description,
  headers: webhookPatchSettings.headers,
  disabled: webhookPatchSettings.disabled,
})

/** Reads a change of settings. */
const updateOf = Effect.fnUntraced(function* (body: JsonObject) {
  const {
    event_types: eventTypes,
    headers,
    url,
    ...others
  } = yield* Effect.fromResult(updateBody.read(body, ""))
  return {
    ...others,
    eventTypes,
    headers: headers && Object.fromEntries(headers),
    url: url === undefined ? undefined : yield* Effect.fromResult(parseWebhookUrl(url)),
  }
})

const sentAgain = "The number of events that are sent again."

const oneReplay = Setting.object({ event_id: eventId })

const replayCursor = Setting.string("text: the next of an earlier page", () => true)

// Another field, such as `dryRun`, is refused: the client hopes for a protection that it would not get.
const manyReplays = Setting.object({
  since: endDateField,
  types: eventTypesOption,
  only: Setting.optional(Setting.oneOf(replayChoices)),
  after: Setting.optional(replayCursor),
  dry_run: Setting.withDefault(Setting.boolean, false),
})

/** Reads what is sent again: an event, or those since an instant. */
const replayOf = Effect.fnUntraced(function* (body: JsonObject) {
  const isOne = Object.hasOwn(body, "event_id")
  if (isOne === Object.hasOwn(body, "since")) {
    return yield* new InvalidInput({ field: "event_id", problem: "or since is needed, not both" })
  }
  if (isOne) {
    const { event_id } = yield* Effect.fromResult(oneReplay.read(body, ""))
    return { _tag: "One", eventId: event_id } as const
  }
  const { dry_run: dryRun, ...many } = yield* Effect.fromResult(manyReplays.read(body, ""))
  return { _tag: "Many", events: { dryRun, ...many } } as const
})

/** Names the query parameter that an error of the service is about. */
const named = (error: InvalidInput): InvalidInput =>
  error.field === "olderThan" ? new InvalidInput({ field: "after", problem: error.problem }) : error

/** Reads the webhook in the path. A change of it has the idempotency key of the request. */
const webhookOf = Effect.fnUntraced(function* (
  call: Call<"project_id" | "webhook_id">,
): Effect.fn.Return<RepeatableIds, ApiError> {
  return {
    projectId: yield* projectOf(call),
    webhookId: yield* decodePathParam(call.params.webhook_id),
    idempotencyKey: call.once,
  }
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeWebhookOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const webhooks = yield* Webhooks
  const events = yield* Events
  const recordShown = yield* makeDisclosureAudit
  const crypto = yield* WebCrypto

  /**
   * The secret of a webhook. The contract has text here. Clients verify signatures with it, so that one which
   * cannot be read is replaced by what nobody can guess: with an empty secret, everybody could sign.
   */
  const secretOf = ({ secret }: ShownWebhook): string =>
    secret ?? `${unreadable}${crypto.randomUUID()}`

  return {
    "webhooks.list": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const list = yield* webhooks.list({ projectId })
      return {
        total: list.length,
        message: `The webhooks of the project.${unreadableOf(list)}`,
        data: list.map((webhook) => dataOf({ ...webhook, secret: secretOf(webhook) })),
      }
    }),

    "webhooks.create": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const body = yield* bodyOf(call, maxBodyBytes, created)
      const url = yield* Effect.fromResult(parseWebhookUrl(getOwn(body, "url")))
      const read = <O>(name: string, setting: Setting.Setting<unknown, O>) =>
        Effect.fromResult(readField(body, name, setting))
      const eventTypes = yield* read("event_types", newWebhook.event_types)
      const ordered = yield* read("ordered", newWebhook.ordered)
      const rate = yield* read("rate", newWebhook.rate)
      const description = yield* read("description", newWebhook.description)
      const headers = yield* read("headers", newWebhook.headers)
      const { isReplay, result: webhook } = yield* withReplayFlag(call.once, (idempotencyKey) =>
        webhooks.create(
          {
            projectId,
            url,
            eventTypes,
            ordered,
            rate,
            description,
            headers: headers && Object.fromEntries(headers),
            idempotencyKey,
          },
          originOf(call),
        ),
      )
      // Its secret may be one that somebody else has made since.
      if (isReplay) yield* recordShown(call, "secret_shown", webhook.id)
      return { message: "The webhook was created.", data: dataOf(webhook) }
    }),

    "webhooks.update": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const update = yield* updateOf(yield* bodyOf(call, maxBodyBytes))
      const webhook = yield* webhooks.update({ ...ids, ...update }, originOf(call))
      return { message: "The webhook was changed.", data: healthOf(webhook) }
    }),

    "webhooks.delete": Effect.fnUntraced(function* (call) {
      yield* webhooks.delete(yield* webhookOf(call), originOf(call))
      return { message: "The webhook was deleted.", data: null }
    }),

    "webhooks.health": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      const list = yield* webhooks.health({ projectId })
      return {
        total: list.length,
        message: "The webhooks of the project, without their secrets.",
        data: list.map(healthOf),
      }
    }),

    "webhooks.get": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const webhook = yield* webhooks.find(ids)
      if (webhook.secret !== undefined) yield* recordShown(call, "secret_shown", webhook.id)
      return {
        message: `The webhook.${unreadableOf([webhook])}`,
        data: { ...healthOf(webhook), secret: secretOf(webhook) },
      }
    }),

    "webhooks.ping": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const id = yield* webhooks.ping(ids)
      return { message: "The event webhook.ping was published.", data: { event_id: id } }
    }),

    "webhooks.enable": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      yield* webhooks.enable(ids, originOf(call))
      return { message: "The webhook is enabled.", data: null }
    }),

    "webhooks.rotate": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const { isReplay, result: rotated } = yield* withReplayFlag(call.once, (idempotencyKey) =>
        webhooks.rotateSecret({ ...ids, idempotencyKey }, originOf(call)),
      )
      if (isReplay) yield* recordShown(call, "secret_shown", ids.webhookId.toLowerCase())
      return {
        message: "The webhook has a new secret.",
        data: { secret: rotated.secret, previous_until: isoOrNull(rotated.previousUntil) },
      }
    }),

    "webhooks.deliveries": Effect.fnUntraced(function* (call) {
      const webhook = yield* webhookOf(call)
      const { limit, ...asked } = yield* pageOf(call)
      const page = { ...webhook, ...asked, limit: limit + 1 }
      const deliveries = yield* Effect.mapError(webhooks.deliveries(page), (error) =>
        error._tag === "InvalidInput" ? named(error) : error,
      )
      // A webhook that was deleted may have deliveries, and one that never existed has none.
      if (deliveries.length === 0) yield* webhooks.find(webhook)
      const isCreated = asked.order === "created"
      return {
        message: `The deliveries to the webhook, ${isCreated ? "newest" : "latest attempt"} first.`,
        ...pageReply(deliveries, limit, isCreated ? (last) => last.eventId : cursorOf, deliveryOf),
      }
    }),

    "webhooks.activity": Effect.fnUntraced(function* (call) {
      const ids = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const { p50Millis, p99Millis, quarters } = yield* webhooks.activity(ids)
      return {
        message: "What was sent to the webhook in the last 24 hours.",
        data: {
          quarters: cellsOf(quarters),
          p50_ms: p50Millis ?? null,
          p99_ms: p99Millis ?? null,
        },
      }
    }),

    "webhooks.delivery": Effect.fnUntraced(function* (call) {
      const webhook = yield* webhookOf(call)
      const ids = {
        projectId: webhook.projectId,
        eventId: yield* decodePathParam(call.params.event_id),
      }
      yield* readQuery(call.request, {})
      const { headerNames, id, url } = yield* webhooks.find(webhook)
      const event = yield* events.find(ids)
      const delivery = event.deliveries.find(({ webhookId }) => webhookId === id)
      if (delivery === undefined) return yield* new EventNotFound({ eventId: ids.eventId })
      yield* recordShown(call, "data_shown", event.id)
      return {
        message: "The delivery, with its request and what the receiver responded.",
        data: {
          ...eventOf(delivery),
          ...deliveryDataWithResponses(delivery),
          request: {
            method: "POST",
            url,
            headers: signedRequestHeaders(
              event,
              null,
              null,
              eventTraceparent(event.body),
              headerNames.map((name) => [name, null] as const),
            ),
            body: event.body,
          },
        },
      }
    }),

    "webhooks.replay": Effect.fnUntraced(function* (call) {
      const webhook = yield* webhookOf(call)
      yield* readQuery(call.request, {})
      const which = yield* replayOf(yield* bodyOf(call, maxBodyBytes))
      if (which._tag === "One") {
        const isSent = yield* webhooks.replay({ ...webhook, eventId: which.eventId })
        return { message: sentAgain, data: { replayed: Number(isSent), next: null } }
      }
      const { next, replayed } = yield* webhooks.replayPage({ ...webhook, ...which.events })
      return {
        message: which.events.dryRun ? dryRunMessage : sentAgain,
        data: { replayed, next: next ?? null },
      }
    }),
  } satisfies OperationsOn<"webhooks">
})
