/** Sending many events to a webhook again: which, and page by page. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import {
  type IdempotencyKey,
  digestOf,
  isReplayedResponse,
  notifyReplay,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type * as Setting from "../base/setting.ts"
import { type Event, EventId, type EventType, eventData, knownEventTypes } from "../events/event.ts"
import type { DeliveryState, Outbox, WebhookRef } from "./outbox.ts"
import type { WebhookId } from "./webhook.ts"

/** The maximum number of events that a page sends again. */
export const maxReplayed = 10_000

/** The maximum number of events that a page reads from the log. */
export const maxReplayRead = 25_000

/** What became of an event for a webhook: it was never sent, given up, or delivered. */
export type ReplayKind = "missed" | "failed" | "delivered"

/** A place in the log: after an event, up to and with the one that was last when the replay began. */
export interface ReplayPosition {
  readonly after: EventId
  readonly until: EventId
}

/** Which events to send again. */
export interface ReplaySelection {
  /** Only events from then on, in milliseconds since the epoch. */
  readonly since: number
  /** Only events of these types; of those that the webhook takes, if `undefined`. */
  readonly types: ReadonlyArray<EventType> | undefined
  readonly kinds: ReadonlyArray<ReplayKind>
  /** Where to go on; `undefined` to begin. */
  readonly position: ReplayPosition | undefined
  /** Whether to count events without sending any. */
  readonly isDryRun: boolean
}

/** A step of a replay. */
export interface ReplayPage {
  /** The number of events that are sent again. */
  readonly replayed: number
  /** Where to go on; `undefined` at the end. */
  readonly next: ReplayPosition | undefined
}

/** Tells whether an event announces what happened to a webhook: the project's others receive it. */
const isNewsOf = (event: Event, webhookId: WebhookId): boolean => {
  if (event.type !== knownEventTypes.disabled && event.type !== knownEventTypes.failing)
    return false
  const data = eventData(event)
  return Predicate.hasProperty(data, "webhook_id") && data.webhook_id === webhookId
}

/**
 * Returns what became of an event for a webhook, if it can be sent again with others. A ping cannot.
 *
 * @param state - its delivery's; `undefined` without a delivery
 */
export const replayKindOf = (
  event: Event,
  webhookId: WebhookId,
  state: DeliveryState | undefined,
): ReplayKind | undefined => {
  if (event.type === knownEventTypes.ping) return undefined
  if (state === undefined) return isNewsOf(event, webhookId) ? undefined : "missed"
  return state === "failed" || state === "delivered" ? state : undefined
}

/** Writes a position as a cursor. */
export const formatReplayCursor = ({ after, until }: ReplayPosition): string => `${after}.${until}`

/** Reads a cursor. Returns `undefined` for other text. */
const parseReplayCursor = (text: string): ReplayPosition | undefined => {
  const [after = "", until = "", ...others] = text.split(".")
  return EventId.is(after) && EventId.is(until) && others.length === 0
    ? { after, until }
    : undefined
}

/** Writes a page as the answer that a store keeps with an idempotency key. */
export const formatReplayPage = ({ next, replayed }: ReplayPage): string =>
  next === undefined ? String(replayed) : `${replayed}.${formatReplayCursor(next)}`

/** Reads what `formatReplayPage` has written. */
const parseReplayPage = (answer: string): ReplayPage => {
  const [replayed, ...cursor] = answer.split(".")
  return { replayed: Number(replayed), next: parseReplayCursor(cursor.join(".")) }
}

/** Which events a host sends again: those that were missed, or given up, or all. */
export const replayChoices = ["missed", "failed", "all"] as const

const kindsOf = (only: (typeof replayChoices)[number] | undefined): ReadonlyArray<ReplayKind> => {
  if (only === undefined) return ["missed", "failed"]
  return only === "all" ? ["missed", "failed", "delivered"] : [only]
}

const notKept = "must be the `next` of an earlier page whose events are still kept"

/** Where a page begins: the `next` in the page before. */
export const replayCursor: Setting.Setting<string, ReplayPosition> = {
  expected: "the `next` of an earlier page",
  json: { type: "string" },
  read: (given, field) => {
    const position = typeof given === "string" ? parseReplayCursor(given) : undefined
    return position === undefined
      ? Result.fail(new InvalidInput({ field, problem: notKept }))
      : Result.succeed(position)
  },
}

/** Returns which events to send again. */
export const replaySelection = ({
  after,
  dryRun,
  only,
  since,
  types,
}: {
  readonly after?: ReplayPosition | undefined
  readonly dryRun: boolean
  readonly only: (typeof replayChoices)[number] | undefined
  readonly since: number
  readonly types: ReadonlyArray<EventType> | undefined
}): ReplaySelection => ({ since, types, kinds: kindsOf(only), position: after, isDryRun: dryRun })

/** A call that sends events again. */
interface ReplayCall {
  readonly webhook: WebhookRef
  readonly selection: ReplaySelection
  readonly idempotency: IdempotencyKey | undefined
}

/** Sends events again, by one page or all pages. */
export const makeReplays = (outbox: Pick<Outbox["Service"], "replayMany">) => {
  const page = Effect.fnUntraced(function* ({
    idempotency: given,
    selection,
    webhook,
  }: ReplayCall) {
    const idempotency = selection.isDryRun ? undefined : given
    const sent = yield* outbox
      .replayMany(webhook, selection, idempotency)
      .pipe(
        Effect.catchTag(
          "EventNotFound",
          () => new InvalidInput({ field: "after", problem: notKept }),
        ),
      )
    yield* notifyReplay({ idempotency }, sent)
    return isReplayedResponse(sent) ? parseReplayPage(sent.answer) : sent
  })

  const all = Effect.fnUntraced(function* (call: ReplayCall) {
    const { idempotency, selection, webhook } = call
    let { next, replayed } = yield* page(call)
    while (next !== undefined) {
      const following = yield* page({
        webhook,
        selection: { ...selection, position: next },
        // A repetition of the call sends the same pages, so it has the same keys.
        idempotency: idempotency && {
          ...idempotency,
          key: digestOf(`${idempotency.key} ${formatReplayCursor(next)}`),
        },
      })
      replayed += following.replayed
      next = following.next
    }
    return replayed
  })

  return { page, all }
}
