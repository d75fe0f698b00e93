/** Performs the operations on webhooks. */

import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ofResource } from "../api/declaration.ts"
import { webhookOperations } from "../api/webhooks.ts"
import { type ChangeContext, withReplayFlag } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { Decoded } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { Millis } from "../base/time.ts"
import { EventId, EventNotFound, eventTraceparent } from "../events/event.ts"
import { signedRequestHeaders } from "../webhooks/attempt.ts"
import {
  type ActivityCell,
  type DeliveryProgress,
  attemptData,
} from "../webhooks/delivery-activity.ts"
import { type deliveriesPage, eventIdSetting } from "../webhooks/inputs.ts"
import type { Attempt, AttemptPosition, Delivery } from "../webhooks/outbox.ts"
import { Events } from "../webhooks/published-events.ts"
import { describeAttemptError } from "../webhooks/verdict.ts"
import type { Health, PublicWebhook, ShownWebhook } from "../webhooks/webhook.ts"
import { WebhookActs } from "../webhooks/webhooks.ts"
import { dryRunMessage } from "./extensions.ts"
import {
  type Call,
  type OperationsOn,
  isoOrNull,
  makeDisclosureAudit,
  perform,
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

/** Returns a delivery's state and its attempts, without the receivers' responses. */
export const deliveryData = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map(attemptOf),
})

/** Returns a delivery's state and its attempts, with the receiver's responses. */
const deliveryDataWithResponses = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map((attempt) => ({
    ...attemptOf(attempt),
    response_body: responseOf(attempt),
  })),
})

/** The prefix for a placeholder in place of an unreadable secret. */
const unreadable = "unreadable_"

const dataOf = ({ id, secret, url }: { id: string; secret: string; url: string }) => ({
  url,
  id,
  secret,
})

/** Returns a webhook's latest attempt. */
export const latestAttemptOf = ({ latestAttempt }: DeliveryProgress) =>
  latestAttempt === undefined ? null : attemptData(latestAttempt)

/** Returns the counts by time span. */
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

/** Names the webhooks with an unreadable secret. */
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

const orders = { created: "created", latest_attempt: "latestAttempt" } as const

/** The cursor in the list by latest attempt. */
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

const createdCursor = Setting.optional(eventIdSetting)

/** Reads a page's cursor. It belongs to the page's order. */
const cursorIn = (
  order: keyof typeof orders,
  after: string | undefined,
): Result.Result<
  Pick<Decoded<typeof deliveriesPage>, "attemptedBefore" | "olderThan">,
  InvalidInput
> =>
  order === "created"
    ? Result.map(createdCursor.read(after, "after"), (olderThan) => ({
        olderThan,
        attemptedBefore: undefined,
      }))
    : Result.map(attemptCursor.read(after, "after"), (attemptedBefore) => ({
        olderThan: undefined,
        attemptedBefore,
      }))

/** Names the query parameter behind the act's error. */
const named = (error: InvalidInput): InvalidInput =>
  error.field === "olderThan" ? new InvalidInput({ field: "after", problem: error.problem }) : error

const keptSecretMillis = Millis(86_400_000)

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeWebhookOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const acts = yield* WebhookActs
  const events = yield* Events
  const recordShown = yield* makeDisclosureAudit
  const crypto = yield* WebCrypto

  /**
   * A webhook's secret. The contract has text here. Clients verify signatures with it, so an unreadable
   * secret is replaced by an unguessable text: with an empty secret, everybody could sign.
   */
  const secretOf = ({ secret }: ShownWebhook): string =>
    secret ?? `${unreadable}${crypto.randomUUID()}`

  /** Makes a change. If it was made before, audits the secret in its reply: somebody else may have made it since. */
  const disclosing = Effect.fnUntraced(function* <A, E>(
    context: ChangeContext,
    call: Call,
    change: (context: ChangeContext) => Effect.Effect<A, E>,
    subjectOf: (result: A) => string,
  ) {
    const { isReplay, result } = yield* withReplayFlag(context.idempotency, (idempotency) =>
      change({ ...context, idempotency }),
    )
    if (isReplay) yield* recordShown(call, "secret_shown", subjectOf(result))
    return result
  })

  const { create, list, health, get, update, ping, enable, rotate, ...others } = webhookOperations

  return ofResource("webhooks", {
    list: perform(list, maxBodyBytes, (input) =>
      Effect.map(acts.list(input), (found) => ({
        total: found.length,
        message: `${list.reply.message}${unreadableOf(found)}`,
        data: found.map((webhook) => dataOf({ ...webhook, secret: secretOf(webhook) })),
      })),
    ),

    create: perform(create, maxBodyBytes, (input, context, call) =>
      Effect.map(
        disclosing(
          context,
          call,
          (asked) => acts.create(input, asked),
          ({ id }) => id,
        ),
        (webhook) => ({ data: dataOf(webhook) }),
      ),
    ),

    update: perform(update, maxBodyBytes, (input, context) =>
      Effect.map(acts.update(input, context), (webhook) => ({ data: healthOf(webhook) })),
    ),

    delete: perform(others.delete, maxBodyBytes, (input, context) =>
      Effect.as(acts.delete(input, context), { data: null }),
    ),

    health: perform(health, maxBodyBytes, (input) =>
      Effect.map(acts.health(input), (found) => ({
        total: found.length,
        data: found.map(healthOf),
      })),
    ),

    get: perform(get, maxBodyBytes, (input, _context, call) =>
      Effect.gen(function* () {
        const webhook = yield* acts.find(input)
        if (webhook.secret !== undefined) yield* recordShown(call, "secret_shown", webhook.id)
        return {
          message: `${get.reply.message}${unreadableOf([webhook])}`,
          data: { ...healthOf(webhook), secret: secretOf(webhook) },
        }
      }),
    ),

    ping: perform(ping, maxBodyBytes, (input, context) =>
      Effect.map(acts.ping(input, context), (id) => ({ data: { event_id: id } })),
    ),

    enable: perform(enable, maxBodyBytes, (input, context) =>
      Effect.as(acts.enable(input, context), { data: null }),
    ),

    rotate: perform(rotate, maxBodyBytes, (input, context, call) =>
      Effect.map(
        disclosing(
          context,
          call,
          (asked) => acts.rotateSecret({ ...input, keepOldFor: keptSecretMillis }, asked),
          () => input.webhookId,
        ),
        ({ previousUntil, secret }) => ({
          data: { secret, previous_until: isoOrNull(previousUntil) },
        }),
      ),
    ),

    deliveries: perform(others.deliveries, maxBodyBytes, ({ after, limit, order, state, ...ids }) =>
      Effect.gen(function* () {
        const cursor = yield* Effect.fromResult(cursorIn(order, after))
        const page = { ...ids, ...cursor, state, order: orders[order], limit: limit + 1 }
        const found = yield* Effect.catchTag(acts.deliveries(page), "InvalidInput", (error) =>
          Effect.fail(named(error)),
        )
        // A deleted webhook may have deliveries; one that never existed has none.
        if (found.length === 0) yield* acts.find(ids)
        const isCreated = order === "created"
        return {
          message: `The deliveries to the webhook, ${isCreated ? "newest" : "latest attempt"} first.`,
          ...pageReply(found, limit, isCreated ? (last) => last.eventId : cursorOf, deliveryOf),
        }
      }),
    ),

    activity: perform(others.activity, maxBodyBytes, (input) =>
      Effect.map(acts.activity(input), ({ p50Millis, p99Millis, quarters }) => ({
        data: { quarters: cellsOf(quarters), p50_ms: p50Millis ?? null, p99_ms: p99Millis ?? null },
      })),
    ),

    delivery: perform(others.delivery, maxBodyBytes, ({ eventId, ...webhook }, _context, call) =>
      Effect.gen(function* () {
        const { headerNames, id, url } = yield* acts.find(webhook)
        const event = yield* events.find({ projectId: webhook.projectId, eventId })
        const delivery = event.deliveries.find(({ webhookId }) => webhookId === id)
        if (delivery === undefined) return yield* new EventNotFound({ eventId })
        yield* recordShown(call, "data_shown", event.id)
        const headers = signedRequestHeaders(
          event,
          null,
          null,
          eventTraceparent(event.body),
          headerNames.map((name) => [name, null] as const),
        )
        return {
          data: {
            ...eventOf(delivery),
            ...deliveryDataWithResponses(delivery),
            request: { method: "POST", url, headers, body: event.body } as const,
          },
        }
      }),
    ),

    replay: perform(others.replay, maxBodyBytes, (input, context) =>
      Effect.gen(function* () {
        if ("eventId" in input) {
          const isSent = yield* acts.replay(input, context)
          return { data: { replayed: Number(isSent), next: null } }
        }
        const { next, replayed } = yield* acts.replayPage(input, context)
        return {
          ...(input.dryRun && { message: dryRunMessage }),
          data: { replayed, next: next ?? null },
        }
      }),
    ),

    cancel: perform(others.cancel, maxBodyBytes, (input, context) =>
      Effect.map(acts.cancel(input, context), (total) => ({
        ...(input.dryRun && { message: dryRunMessage }),
        data: { total },
      })),
    ),
  }) satisfies OperationsOn<"webhooks">
})
