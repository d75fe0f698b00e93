/** The verdict on an attempt: whether and when the delivery is repeated, and whether its webhook waits. */

import * as RetryAfter from "./RetryAfter.ts"
import * as RetrySchedule from "./RetrySchedule.ts"
import type { Health } from "./Webhook.ts"

/** What happens to a delivery after an attempt. */
export type Verdict =
  | { readonly _tag: "Delivered" }
  /** It is attempted again after `delayMillis`. Its webhook gets nothing for `holdMillis`. */
  | { readonly _tag: "Retry"; readonly delayMillis: number; readonly holdMillis: number }
  /** It is given up, because the schedule has ended. */
  | { readonly _tag: "Failed"; readonly holdMillis: number }
  /** It is given up and its webhook disabled: the receiver is gone, or has failed for too long. */
  | { readonly _tag: "Disabled"; readonly reason: "gone" | "failing" }

/** The rules for all verdicts. */
export interface Rules {
  /** The delays between attempts, in milliseconds. */
  readonly retrySchedule: RetrySchedule.RetrySchedule
  /** How long a webhook may fail before it is disabled, in milliseconds. */
  readonly disableAfter: number
}

/** The delivery and its webhook before the attempt. */
export interface Standing extends Health {
  /** The number of the attempt, from 1. */
  readonly attemptNumber: number
}

/** How the attempt ended. */
export interface Outcome {
  /** When it ended, in milliseconds since the epoch. */
  readonly endedAt: number
  /** The status of the response; `undefined` if there was none. */
  readonly status: number | undefined
  /** The `Retry-After` field of the response, as sent. */
  readonly retryAfter: string | undefined
}

// The statuses of overloaded receivers.
const busy = new Set<number | undefined>([429, 502, 503, 504])

const busyPauseMillis = 1000

// After this many failures in a row, a webhook gets an attempt a minute.
const failuresToBreak = 10

const longestBreakMillis = 60_000

/** Returns how long a webhook is held that did not send `Retry-After`. */
const pauseMillis = (status: number | undefined, failures: number): number => {
  if (failures >= failuresToBreak) return longestBreakMillis
  return busy.has(status) ? busyPauseMillis : 0
}

/**
 * Judges a failed attempt. `Retry-After` never shortens the delay of the delivery, and holds the
 * webhook.
 */
const judgeFailure = (
  { retrySchedule }: Rules,
  { attemptNumber, failures }: Standing,
  { endedAt, retryAfter, status }: Outcome,
  random: number,
): Verdict => {
  const scheduled = RetrySchedule.delay(retrySchedule, attemptNumber, random)
  const longest =
    scheduled === undefined
      ? longestBreakMillis
      : Math.max(scheduled, RetrySchedule.longestAsked(retrySchedule, attemptNumber))
  const asked = RetryAfter.millis(retryAfter, endedAt, longest)
  const pause = asked > 0 ? asked : pauseMillis(status, failures + 1)
  if (scheduled === undefined) return { _tag: "Failed", holdMillis: pause }
  const delayMillis = Math.max(scheduled, asked)
  return { _tag: "Retry", delayMillis, holdMillis: Math.min(pause, delayMillis) }
}

/** Tells whether a response means that the receiver has the notification. */
export const isSuccess = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status <= 299

/**
 * Judges an attempt.
 *
 * @param random - a number from 0 to 1, which spreads the delays
 */
export const judge = (
  rules: Rules,
  standing: Standing,
  outcome: Outcome,
  random: number,
): Verdict => {
  const { endedAt, status } = outcome
  const { failingSince } = standing
  if (isSuccess(status)) return { _tag: "Delivered" }
  if (status === 410) return { _tag: "Disabled", reason: "gone" }
  if (failingSince !== undefined && endedAt - failingSince >= rules.disableAfter) {
    return { _tag: "Disabled", reason: "failing" }
  }
  return judgeFailure(rules, standing, outcome, random)
}
