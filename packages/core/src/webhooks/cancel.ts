/** Cancels what waits for a webhook: which deliveries, and the act. */

import * as Effect from "effect/Effect"
import {
  type ChangeContext,
  type FieldChange,
  isReplayedResponse,
  notifyReplay,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { Decoded } from "../base/operation-input.ts"
import type { Event, EventType } from "../events/event.ts"
import { userOf } from "../events/user.ts"
import type { cancellation } from "./inputs.ts"
import type { Outbox } from "./outbox.ts"

/** Which waiting deliveries to cancel: those whose events match all given fields. */
export interface CancelSelection {
  /** Only events from then on, in milliseconds since the epoch. */
  readonly since: number | undefined
  /** Only events before then, in milliseconds since the epoch. */
  readonly until: number | undefined
  readonly types: ReadonlyArray<EventType> | undefined
  /** Only events about this user, as `userOf` says. */
  readonly userId: string | undefined
  /** Whether to count deliveries without cancelling any. */
  readonly isDryRun: boolean
}

/** Tells whether a waiting delivery for an event is to be cancelled. */
export const isSelected = (
  { at, body, type }: Pick<Event, "at" | "body" | "type">,
  { since = -Infinity, types, until = Infinity, userId }: CancelSelection,
): boolean =>
  at >= since &&
  at < until &&
  (types === undefined || types.includes(type)) &&
  (userId === undefined || userOf(body) === userId)

/** Returns what the audit row of a cancellation has. */
export const cancelledChanges = (deliveries: number): ReadonlyArray<FieldChange> => [
  { field: "deliveries", from: null, to: deliveries },
]

const untilNotAfterSince = new InvalidInput({ field: "until", problem: "must be after since" })

/** Makes the act `cancel`. */
export const makeCancel = (outbox: Pick<Outbox["Service"], "cancel">) =>
  Effect.fnUntraced(function* (
    { dryRun, projectId, webhookId, ...fields }: Decoded<typeof cancellation>,
    context: ChangeContext,
  ) {
    const { since = -Infinity, until = Infinity } = fields
    if (until <= since) return yield* untilNotAfterSince
    const idempotency = dryRun ? undefined : context.idempotency
    const cancelled = yield* outbox.cancel(
      { projectId, webhookId },
      { ...fields, isDryRun: dryRun },
      { ...context, idempotency },
    )
    yield* notifyReplay({ idempotency }, cancelled)
    return isReplayedResponse(cancelled) ? Number(cancelled.answer) : cancelled
  })
