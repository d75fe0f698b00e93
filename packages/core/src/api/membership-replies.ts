/** What the operations on memberships reply. */

import { type MembershipState as State } from "../memberships/membership.ts"
import type { Instant, Int, Uuid, WithAnnouncements } from "./types.ts"

/**
 * Whether the membership is active, paused, or expired: its end date is over, and so is the project's grace.
 */
export type MembershipState = State

export interface Membership {
  /**
   * The host's own user id. Neither . nor ..
   * @pattern ^[!-~]{1,128}$
   * @example "1001"
   */
  readonly user_id: string
  /** Null for life. */
  readonly end_date: Instant | null
  /** The last whole day, if the end date was given as a day, and ends one in the project's time zone. */
  readonly through: Day | null
  /**
   * The day that months count with, if the end date does not tell it: 30 after 30 January and a month.
   * @minimum 1
   * @maximum 31
   * @example null
   */
  readonly kept_day: Int | null
  readonly state: MembershipState
  /** When it expires, if its end date is over, and it is still active by the project's grace. */
  readonly grace_until: Instant | null
  /** When its pause began. The end date stands meanwhile. */
  readonly paused_at: Instant | null
  /** When its pause ends by itself. */
  readonly resumes_at: Instant | null
  /**
   * A membership's metadata: an object with at most 16 texts by name. Texts have 1 to 255 characters.
   * Names have 1 to 40 letters, digits and _.-, a letter first.
   * @maxProperties 16
   * @example {"plan":"gold"}
   */
  readonly metadata: Readonly<Record<string, string>>
}

/** Previewed webhooks. */
export interface EventsPreview {
  readonly total: Int
  /**
   * Webhook counts, by event type.
   * @example {"membership.extended":1}
   */
  readonly by_type: Readonly<Record<string, Int>>
  /**
   * The first ten.
   * @maxItems 10
   */
  readonly first: ReadonlyArray<{
    /** The webhook's id. */
    readonly webhook_id: Uuid
    /** @example "https://receiver.example/" */
    readonly url: string
    /**
     * The event's type.
     * @example "payment.completed"
     */
    readonly type: string
    /** The body to be sent. Its time, request id and sequence number are not final. */
    readonly body: Readonly<Record<string, unknown>>
  }>
}

interface WithEvents {
  /** After a dry run with `events`: the webhook notifications the request would send at once. */
  readonly events?: EventsPreview
}

/** A membership after a move. */
export interface Moved {
  /**
   * The user id to which it was moved.
   * @pattern ^[!-~]{1,128}$
   * @example "1002"
   */
  readonly user_id: string
  /** Null for life. */
  readonly end_date: Instant | null
}

/** A membership after a grant. */
export interface Granted extends Membership {
  /** After a grant with `if_absent`: whether the membership was created, and not left as it was. */
  readonly created?: boolean
}

export interface Extended extends WithEvents, WithAnnouncements {
  readonly new_end_date: Instant
  /** After an extension with `create`: whether the membership was created. */
  readonly created?: boolean
  /** After an extension by a duration: the same date; null for a membership for life, which stays so. */
  readonly end_date?: Instant | null
}

/** A membership that a dry run would extend. */
interface ExtensionExample {
  readonly user_id: Membership["user_id"]
  readonly end_date: Instant | null
  readonly would_end: Instant | null
}

/** A dry run's result for a change to all memberships. */
export interface BulkExtensionUndoing extends WithEvents, WithAnnouncements {
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten?: Int
  /** After a dry run: the number of expired memberships that would be active again. */
  readonly would_reactivate?: Int
  /** After a dry run: the number of memberships that would newly end at the last instant in the year 9999. */
  readonly would_be_capped?: Int
  /** After a dry run: the number of memberships for life that would end. */
  readonly would_end_lifetime?: Int
  /** The project's membership count. */
  readonly total?: Int
  /** After a dry run: up to ten memberships with another end date. */
  readonly examples?: ReadonlyArray<ExtensionExample>
}

export interface BulkExtended extends BulkExtensionUndoing {
  /** After an extension to a date: the new end date. */
  readonly new_end_date?: Instant
  /**
   * After an extension by a duration: the duration.
   * @example "P3D"
   */
  readonly extend_by?: string
}

export interface SegmentExtended extends WithAnnouncements {
  /** The number of extended memberships; after a dry run, on all pages. */
  readonly total: Int
  /**
   * The next page's `after`; null after the last one.
   * @example null
   */
  readonly next: string | null
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten?: Int
  /** After a dry run: up to ten of them. */
  readonly examples?: ReadonlyArray<ExtensionExample>
}

export interface BulkExtensionRecord {
  /**
   * Its event's id.
   * @example "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
   */
  readonly id: string
  readonly mode: "set" | "never_shorten" | "extend_by"
  readonly end_date: Instant | null
  /** @example "P3D" */
  readonly extend_by: string | null
  readonly at: Instant
  readonly reason: string | null
  readonly key_id: string | null
  readonly request_id: string | null
  /** The membership count then. */
  readonly total: Int
  readonly undone_at: Instant | null
  /** The API key's id, or the id of another principal named by the host. */
  readonly undone_by: string | null
}

/**
 * A day of the calendar, without a time zone.
 * @pattern ^\d{4}-\d{2}-\d{2}$
 * @example "2099-01-31"
 */
export type Day = string

/**
 * A membership count.
 * @integer
 * @minimum 0
 */
type Members = number

export interface EndCounts {
  /** When the memberships were counted. */
  readonly at: Instant
  readonly total: Members
  /** Memberships that end later, or are in grace. */
  readonly active: Members
  /** Active memberships in grace: their end date is over. */
  readonly overdue: Members
  /** Paused memberships, which are in no other count but the total. */
  readonly paused: Members
  readonly expired: Members
  /** Memberships ending on the day in `at`, including already ended ones. */
  readonly ends_today: Members
  /** Active memberships ending within seven times 24 hours, as listed with `ending_before`. */
  readonly ends_in_7_days: Members
  /** @maxItems 400 */
  readonly days: ReadonlyArray<{
    readonly day: Day
    /** Memberships ending on this day, including already ended ones. */
    readonly ends: Members
    /**
     * Memberships extended or granted on this day, each by itself, according to the audit trail: null
     * if the trail is not kept any more, or too long to be counted.
     */
    readonly extended: Members | null
  }>
}

export interface ImportPreview extends WithAnnouncements {
  /** After a dry run: the number of memberships that would be created. */
  readonly would_grant: Int
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten: Int
  /** After a dry run: the number of memberships that would keep their end date. */
  readonly would_stay: Int
  readonly events?: EventsPreview
}
