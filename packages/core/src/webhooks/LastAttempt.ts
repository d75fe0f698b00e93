/** What the log tells an operator of deliveries and webhooks that get no further attempts. */

import * as Effect from "effect/Effect"
import type { Attempt } from "./Outbox.ts"

/** The last attempt of a delivery. */
export interface LastAttempt {
  readonly projectId: string
  readonly webhookId: string
  readonly eventId: string
  /** Its number, from 1. */
  readonly attemptNumber: number
  readonly result: Attempt["result"]
}

const logging =
  (message: string) =>
  ({ attemptNumber, eventId, projectId, result, webhookId }: LastAttempt): Effect.Effect<void> =>
    Effect.annotateLogs(Effect.logWarning(message), {
      project_id: projectId,
      webhook_id: webhookId,
      event_id: eventId,
      attempts: attemptNumber,
      ...(result._tag === "Answered" ? { status: result.status } : { reason: result.reason }),
    })

/** Logs that the attempt was the last one of its delivery. */
export const logGivenUp = logging("A delivery was given up")

/** Logs that the attempt has disabled its webhook. */
export const logDisabled = logging("A webhook was disabled")
