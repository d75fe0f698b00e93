/** What responses show of a delivery. */

import * as AttemptError from "../webhooks/AttemptError.ts"
import type { Attempt, Delivery } from "../webhooks/Outbox.ts"
import { timeOf } from "./Operation.ts"

const attemptOf = ({ at, durationMillis, result }: Attempt) => ({
  at: timeOf(at),
  duration_ms: Math.round(durationMillis),
  status: result._tag === "Answered" ? result.status : null,
  error: AttemptError.describe(result) ?? null,
})

const responseOf = ({ result }: Attempt): string | null =>
  result._tag === "Answered" ? result.body : null

const stateOf = ({ dueAt, state }: Delivery) => ({
  state,
  due_at: timeOf(state === "waiting" ? dueAt : undefined),
})

/** Returns the state of a delivery and its attempts, without what receivers have responded. */
export const of = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map(attemptOf),
})

/** Returns the state of a delivery and its attempts, with what the receiver has responded. */
export const withResponses = (delivery: Delivery) => ({
  ...stateOf(delivery),
  attempts: delivery.attempts.map((attempt) => ({
    ...attemptOf(attempt),
    response_body: responseOf(attempt),
  })),
})
