/** How deliveries go over time: counts by minute and by 15 minutes, and answer times. */

import type { ProjectId } from "../base/values.ts"
import type { EventId } from "../events/event.ts"
import type { Attempt } from "./outbox.ts"
import type { WebhookId } from "./webhook.ts"

/** The attempts in a span of time. */
export interface ActivityCell {
  /** When the span began, in milliseconds since the epoch. */
  readonly at: number
  /** Successful attempts. */
  readonly delivered: number
  /** Failed attempts. */
  readonly failed: number
}

/** Consecutive cells with the same length. The last one goes on. */
export interface ActivitySpan {
  readonly cellMillis: number
  readonly cells: number
}

/** The last hour by the minute. */
export const lastHour: ActivitySpan = { cellMillis: 60_000, cells: 60 }

/** The last day by 15 minutes. */
export const lastDay: ActivitySpan = { cellMillis: 900_000, cells: 96 }

/** Returns when an instant's cell begins. */
export const cellStart = ({ cellMillis }: ActivitySpan, at: number): number =>
  at - (at % cellMillis)

/** Returns when the first cell begins, if `now` is in the last one. */
export const spanStart = (span: ActivitySpan, now: number): number =>
  cellStart(span, now) - (span.cells - 1) * span.cellMillis

/**
 * Returns all cells in a span, oldest first. Adds up known cells that begin together, and ignores those outside.
 *
 * @param now - an instant in the last cell
 */
export const fillCells = (
  span: ActivitySpan,
  now: number,
  known: Iterable<ActivityCell>,
): ReadonlyArray<ActivityCell> => {
  const first = spanStart(span, now)
  const cells = Array.from({ length: span.cells }, (_, index) => ({
    at: first + index * span.cellMillis,
    delivered: 0,
    failed: 0,
  }))
  for (const { at, delivered, failed } of known) {
    const cell = cells[(at - first) / span.cellMillis]
    if (cell === undefined) continue
    cell.delivered += delivered
    cell.failed += failed
  }
  return cells
}

// Each bound is 1.41 times the one before, so a percentile is wrong by 19 % at most.
const boundsMillis = Array.from({ length: 25 }, (_, index) => 4 * 2 ** (index / 2))

/** How many counts a histogram has. */
export const answerTimeBuckets = boundsMillis.length + 1

/** A histogram: attempts by duration, the first count up to 4 ms, the last one from 16,384 ms on. */
export type AnswerTimes = ReadonlyArray<number>

/** Returns the index for a duration. */
export const answerTimeBucket = (durationMillis: number): number => {
  const index = boundsMillis.findIndex((bound) => durationMillis <= bound)
  return index === -1 ? boundsMillis.length : index
}

/** Adds up histograms. */
export const sumAnswerTimes = (all: Iterable<AnswerTimes>): AnswerTimes => {
  const sums = Array.from({ length: answerTimeBuckets }, () => 0)
  for (const one of all) {
    for (const [index, count] of one.entries()) sums[index] = (sums[index] ?? 0) + count
  }
  return sums
}

/**
 * Estimates a percentile in whole milliseconds: its bucket's geometric mean. That is wrong by 19 % at most between 4
 * and 16,384 ms, and 4 or 16,384 beyond.
 *
 * @param part - 0.5 for the median
 * @returns `undefined` without any attempts
 */
export const answerTimePercentile = (counts: AnswerTimes, part: number): number | undefined => {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let left = Math.max(1, Math.ceil(part * total))
  const index = counts.findIndex((count) => {
    left -= count
    return left <= 0
  })
  const lower = boundsMillis[index - 1]
  const upper = boundsMillis[index]
  return Math.round(
    lower === undefined || upper === undefined ? (upper ?? lower ?? 0) : Math.sqrt(lower * upper),
  )
}

/** A webhook's last day. */
export interface WebhookActivity {
  /** 96 cells, 15 minutes each, oldest first; the last one goes on. */
  readonly quarters: ReadonlyArray<ActivityCell>
  readonly answerTimes: AnswerTimes
}

/** The latest attempt for a webhook. */
export interface LatestAttempt extends Attempt {
  /** The id of the event. */
  readonly eventId: EventId
}

/**
 * Returns an attempt as responses and events show it, without what the receiver responded. Its error is a
 * code, which programs can tell from others.
 */
export const attemptData = ({ at, durationMillis, eventId, result }: LatestAttempt) => ({
  at: new Date(at).toISOString(),
  event_id: eventId,
  status: result._tag === "Answered" ? result.status : null,
  error: result._tag === "Failed" ? result.reason : null,
  duration_ms: Math.round(durationMillis),
})

/** How far a webhook's deliveries are. */
export interface DeliveryProgress {
  /** The latest recorded attempt whose delivery is kept, without what the receiver responded. */
  readonly latestAttempt: LatestAttempt | undefined
  /** Deliveries waiting for an attempt or its result, counted up to 10,000. */
  readonly waiting: number
  /**
   * When the next attempt is or was due, in milliseconds since the epoch, which is not before the webhook's latest hold
   * ends; `undefined` if none is, because nothing waits, all is being attempted, or the webhook is disabled.
   */
  readonly nextAttemptAt: number | undefined
}

/** A webhook that was disabled because of failures, or one whose latest attempts have failed. */
export interface TroubledWebhook extends DeliveryProgress {
  /** The id of the project. */
  readonly projectId: ProjectId
  /** The id of the webhook. */
  readonly webhookId: WebhookId
  /** Where notifications are sent. */
  readonly url: string
  /** Its description; `undefined` without one. */
  readonly description: string | undefined
  readonly trouble: "disabled" | "failing"
  /** When it was disabled, or the first attempt has failed, in milliseconds since the epoch. */
  readonly since: number
}

/**
 * Orders troubled webhooks by urgency: failing ones first, the longest failing before the others, because they can
 * still be saved; then disabled ones, the latest first, because the oldest are known. Among equals, ids decide.
 */
export const compareTroubles = (
  one: Pick<TroubledWebhook, "since" | "trouble" | "webhookId">,
  other: Pick<TroubledWebhook, "since" | "trouble" | "webhookId">,
): number => {
  if (one.trouble !== other.trouble) return one.trouble === "failing" ? -1 : 1
  const later = one.since - other.since
  if (later !== 0) return one.trouble === "failing" ? later : -later
  return one.webhookId < other.webhookId ? -1 : 1
}
