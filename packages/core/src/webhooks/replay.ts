/** Sending many events to a webhook again: which, and page by page. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import {
  type IdempotencyKey,
  digestOf,
  isReplayedResponse,
  notifyReplay,
} from "../base/change-context.ts"
import type { InvalidInput } from "../base/errors.ts"
import { invalidArgument, readArgument, readInstantArgument } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import type { InstantInput } from "../base/time.ts"
import {
  type Event,
  EventId,
  type EventType,
  eventData,
  eventTypesOption,
  knownEventTypes,
} from "../events/event.ts"
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

/** Which events to send again, as hosts pass it. */
export interface ReplayInput {
  /** Sends only events from this instant on. */
  readonly since: InstantInput
  /** Sends only events of these types, 1 to 100. Default: the types that the webhook takes. */
  readonly types?: ReadonlyArray<string> | undefined
  /**
   * `"missed"` sends only events without a delivery: published before the webhook existed, while it was disabled, or
   * before it took their type. `"failed"` sends only events that were given up. `"all"` also sends
   * delivered events again. Default: all that were missed or given up. None of them doubles what waits
   * or is being sent.
   */
  readonly only?: (typeof replayChoices)[number] | undefined
  /** Counts the events without sending any. Default: `false`. */
  readonly dryRun?: boolean | undefined
}

/** A page of a replay, as hosts pass it. */
export interface ReplayPageInput extends ReplayInput {
  /** Goes on where an earlier page ended: its `next`. The other arguments are the same. */
  readonly after?: string | undefined
}

const only = Setting.optional(Setting.oneOf(replayChoices))
const dryRun = Setting.withDefault(Setting.boolean, false)

/** Fails because a replay cannot go on. */
const invalidReplayCursor = invalidArgument(
  "after",
  "the `next` of an earlier page whose events are still kept",
)

const readPosition = (
  after: string | undefined,
): Effect.Effect<ReplayPosition | undefined, InvalidInput> => {
  if (after === undefined) return Effect.undefined
  const position = typeof after === "string" ? parseReplayCursor(after) : undefined
  return position === undefined ? invalidReplayCursor : Effect.succeed(position)
}

/** Reads which events to send again. */
export const readReplay = Effect.fnUntraced(function* (given: ReplayPageInput) {
  return {
    since: yield* readInstantArgument("since", given.since),
    types: yield* readArgument("types", eventTypesOption, given.types),
    kinds: kindsOf(yield* readArgument("only", only, given.only)),
    position: yield* readPosition(given.after),
    isDryRun: yield* readArgument("dryRun", dryRun, given.dryRun),
  } satisfies ReplaySelection
})

/** A call that sends events again. */
interface ReplayCall {
  readonly webhook: WebhookRef
  readonly selection: ReplaySelection
  readonly once: IdempotencyKey | undefined
}

/** Sends events again, by one page or all pages. */
export const makeReplays = (outbox: Pick<Outbox["Service"], "replayMany">) => {
  const page = Effect.fnUntraced(function* ({ once: given, selection, webhook }: ReplayCall) {
    const once = selection.isDryRun ? undefined : given
    const sent = yield* outbox
      .replayMany(webhook, selection, once)
      .pipe(Effect.catchTag("EventNotFound", () => invalidReplayCursor))
    yield* notifyReplay({ once }, sent)
    return isReplayedResponse(sent) ? parseReplayPage(sent.answer) : sent
  })

  const all = Effect.fnUntraced(function* (call: ReplayCall) {
    const { once, selection, webhook } = call
    let { next, replayed } = yield* page(call)
    while (next !== undefined) {
      const following = yield* page({
        webhook,
        selection: { ...selection, position: next },
        // A repetition of the call sends the same pages, so it has the same keys.
        once: once && { ...once, key: digestOf(`${once.key} ${formatReplayCursor(next)}`) },
      })
      replayed += following.replayed
      next = following.next
    }
    return replayed
  })

  return { page, all }
}
