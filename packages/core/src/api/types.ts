/**
 * Types for values in replies: the compiler checks replies by them, and documents take their names and
 * words.
 */

import type { DeliveryState } from "../webhooks/outbox.ts"

/**
 * A UUID.
 * @format uuid
 * @example "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
 */
export type Uuid = string

/**
 * A time in UTC, with milliseconds.
 * @pattern ^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$
 * @example "2099-01-01T00:00:00.000Z"
 */
export type Instant = string

/**
 * A whole number.
 * @integer
 */
export type Int = number

/** Attempts in a minute or in 15 minutes. */
export interface ActivityCell {
  /** When it began. */
  readonly at: Instant
  /**
   * Successful attempts.
   * @example 0
   */
  readonly delivered: Int
  /**
   * Failed attempts.
   * @example 0
   */
  readonly failed: Int
}

/** An attempt to deliver an event. */
export interface Attempt {
  readonly at: Instant
  /** @example 84 */
  readonly duration_ms: Int
  /**
   * The response status from the receiver; null if there was none.
   * @example 204
   */
  readonly status: Int | null
  /**
   * Why the attempt failed; null if it succeeded.
   * @example null
   */
  readonly error: string | null
}

/** An attempt, with the receiver's response. */
export interface AnsweredAttempt extends Attempt {
  /**
   * The receiver's response, up to its first kilobyte; null if there was none.
   * @example ""
   */
  readonly response_body: string | null
}

/** How far a delivery is. */
export interface DeliveryProgress {
  /**
   * Whether it waits for an attempt, or how it has ended.
   * @example "delivered"
   */
  readonly state: DeliveryState
  /**
   * When the next attempt is due; null if the delivery has ended.
   * @example null
   */
  readonly due_at: Instant | null
}

/** The latest attempt for a webhook. */
export interface LastAttempt {
  readonly at: Instant
  /** The event's id. */
  readonly event_id: Uuid
  /**
   * The response status from the receiver; null if there was none.
   * @example 204
   */
  readonly status: Int | null
  /**
   * Why there was no response: a code such as `Timeout` or `ECONNREFUSED`; null if there was one.
   * @example null
   */
  readonly error: string | null
  /** @example 84 */
  readonly duration_ms: Int
}

export interface WithAnnouncements {
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: Int
    /** Ends that are followed by grace. */
    readonly overdue: Int
    /** Expiries. */
    readonly expired: Int
    /** Those in 24 hours. */
    readonly next_24_hours: Int
  }
}
