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

/** Returns the state of a delivery and its attempts, without what receivers have responded. */
export const of = ({ attempts, dueAt, state }: Delivery) => ({
  state,
  due_at: timeOf(state === "waiting" ? dueAt : undefined),
  attempts: attempts.map(attemptOf),
})
