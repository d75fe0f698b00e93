/**
 * The operations of the API. Generated from its OpenAPI document:
 * `npm run generate`.
 */

import type { CallOptions, Calls, ImportLine, PageList } from "./calls.ts"
import type { Continued, Counted, Success } from "./response.ts"

export interface Activity {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<{
    /** A time in UTC, with milliseconds. */
    readonly at: string
    /** Successful attempts. */
    readonly delivered: number
    /** Failed attempts. */
    readonly failed: number
    /** Requests this server refused by a rate limit. */
    readonly refused: number
  }>
  /** Refusals by API key, most often refused first. In each minute, a hundred keys are counted separately. */
  readonly refusals: ReadonlyArray<{
    /** The API key's id; null for requests without a valid key, and for further keys. */
    readonly key_id: string | null
    readonly refused: number
  }>
}

export interface ActivityCell {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  /** Successful attempts. */
  readonly delivered: number
  /** Failed attempts. */
  readonly failed: number
}

export interface AnsweredAttempt {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly duration_ms: number
  /** The response status from the receiver; null if there was none. */
  readonly status: number | null
  /** Why the attempt failed; null if it succeeded. */
  readonly error: string | null
  /** The receiver's response, up to its first kilobyte; null if there was none. */
  readonly response_body: string | null
}

export interface ApiKey {
  /** A UUID. */
  readonly id: string
  /** The key's display name. */
  readonly name: string | null
  /** The key's permission; each role includes the permissions before it. */
  readonly role: "client" | "operator" | "admin"
  /** Ids of the projects in the key's scope; `all` for present and future ones. */
  readonly projects: "all" | ReadonlyArray<string>
  /** A time in UTC, with milliseconds. */
  readonly created_at: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  /** When the key was last used, to about a minute. */
  readonly last_used_at: string | null
}

export interface Attempt {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly duration_ms: number
  /** The response status from the receiver; null if there was none. */
  readonly status: number | null
  /** Why the attempt failed; null if it succeeded. */
  readonly error: string | null
}

export interface AuditRow {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly from: string | null
  readonly to: string | null
  /** The ISO 8601 duration added to all end dates, if there was one. */
  readonly extend_by: string | null
  /** The API key's id, or the id of another principal named by the host. */
  readonly key_id: string | null
  /** The API key's name. */
  readonly key_name: string | null
  readonly request_id: string | null
  readonly reason: string | null
  /** The action; `bulk_lengthened` has left memberships with a later end date, `bulk_undone` has undone a bulk extension, `moved` has moved the membership to or from another user id, `updated` has changed metadata, `paused` and `resumed` begin and end a pause, and `expiring`, `overdue` and `expired` announce the date. */
  readonly action:
    | "granted"
    | "imported"
    | "extended"
    | "bulk_extended"
    | "bulk_lengthened"
    | "bulk_extended_by"
    | "bulk_undone"
    | "ended"
    | "moved"
    | "updated"
    | "paused"
    | "resumed"
    | "reverted"
    | "expiring"
    | "overdue"
    | "expired"
    | "person_erased"
    | "webhook_created"
    | "webhook_changed"
    | "webhook_deleted"
    | "webhook_disabled"
    | "secret_rotated"
    | "signing_key_added"
    | "deliveries_cancelled"
    | "project_changed"
    | "secret_shown"
    | "data_shown"
    | "project_created"
    | "project_deleted"
    | "key_issued"
    | "key_opened"
    | "key_revoked"
  /** The changed member; null for a change to all memberships or to another subject, or if the user was erased. */
  readonly user_id: string | null
  /** The changed webhook's, API key's, project's or bulk extension's id; the other user id for a moved membership; null for other changes to one membership. */
  readonly subject: string | null
  /** A webhook's changed settings, with old and new values. */
  readonly changes: ReadonlyArray<{
    readonly field: string
    readonly from: string | number | boolean | ReadonlyArray<string> | null
    readonly to: string | number | boolean | ReadonlyArray<string> | null
  }>
}

export interface BulkExtended {
  /** After a dry run with `events`: the webhook notifications the request would send at once. */
  readonly events?: EventsPreview
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten?: number
  /** After a dry run: the number of expired memberships that would be active again. */
  readonly would_reactivate?: number
  /** After a dry run: the number of memberships that would newly end at the last instant in the year 9999. */
  readonly would_be_capped?: number
  /** After a dry run: the number of memberships for life that would end. */
  readonly would_end_lifetime?: number
  /** The project's membership count. */
  readonly total?: number
  /** After a dry run: up to ten memberships with another end date. */
  readonly examples?: ReadonlyArray<ExtensionExample>
  /** A time in UTC, with milliseconds. */
  readonly new_end_date?: string
  /** After an extension by a duration: the duration. */
  readonly extend_by?: string
}

export interface BulkExtensionRecord {
  /** Its event's id. */
  readonly id: string
  readonly mode: "set" | "never_shorten" | "extend_by"
  readonly end_date: string | null
  readonly extend_by: string | null
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly reason: string | null
  readonly key_id: string | null
  readonly request_id: string | null
  /** The membership count then. */
  readonly total: number
  readonly undone_at: string | null
  /** The API key's id, or the id of another principal named by the host. */
  readonly undone_by: string | null
}

export interface BulkExtensionUndoing {
  /** After a dry run with `events`: the webhook notifications the request would send at once. */
  readonly events?: EventsPreview
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten?: number
  /** After a dry run: the number of expired memberships that would be active again. */
  readonly would_reactivate?: number
  /** After a dry run: the number of memberships that would newly end at the last instant in the year 9999. */
  readonly would_be_capped?: number
  /** After a dry run: the number of memberships for life that would end. */
  readonly would_end_lifetime?: number
  /** The project's membership count. */
  readonly total?: number
  /** After a dry run: up to ten memberships with another end date. */
  readonly examples?: ReadonlyArray<ExtensionExample>
}

export interface CancelledDeliveries {
  /** The number of deliveries. */
  readonly total: number
}

export interface ChangedProject {
  /** The project's id. */
  readonly id: string
  /** The membership count, including expired ones. */
  readonly memberships: number
  /** The webhook count. */
  readonly webhooks: number
  /** The last date all memberships were extended to. */
  readonly last_bulk_end_date: string | null
  /** The IANA time zone in which whole days begin and end. */
  readonly time_zone: string
  /** For how long memberships are still active after their end dates; null for none. */
  readonly grace: string | null
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** After a dry run: the number of expired memberships that would be active again. */
  readonly would_reactivate?: number
  /** After a dry run: the number of active memberships that would be expired. */
  readonly would_expire?: number
}

export interface Delivery {
  /** A UUID. */
  readonly event_id: string
  /** The event's type. */
  readonly type: string
  /** A time in UTC, with milliseconds. */
  readonly created_at: string
  /** The first `user_id` in the event's data: the user it is about. null without one, and after an erasure. */
  readonly user_id: string | null
  /** Whether it waits for an attempt, or how it has ended. */
  readonly state: "waiting" | "delivered" | "failed" | "cancelled"
  /** When the next attempt is due; null if the delivery has ended. */
  readonly due_at: string | null
  readonly attempts: ReadonlyArray<Attempt>
}

export interface DeliveryOfEvent {
  /** Whether it waits for an attempt, or how it has ended. */
  readonly state: "waiting" | "delivered" | "failed" | "cancelled"
  /** When the next attempt is due; null if the delivery has ended. */
  readonly due_at: string | null
  readonly attempts: ReadonlyArray<Attempt>
  /** A UUID. */
  readonly webhook_id: string
}

export interface EndCounts {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly total: number
  /** Memberships that end later, or are in grace. */
  readonly active: number
  /** Active memberships in grace: their end date is over. */
  readonly overdue: number
  /** Paused memberships, which are in no other count but the total. */
  readonly paused: number
  readonly expired: number
  /** Memberships ending on the day in `at`, including already ended ones. */
  readonly ends_today: number
  /** Active memberships ending within seven times 24 hours, as listed with `ending_before`. */
  readonly ends_in_7_days: number
  readonly days: ReadonlyArray<{
    /** A day of the calendar, without a time zone. */
    readonly day: string
    /** Memberships ending on this day, including already ended ones. */
    readonly ends: number
    /** Memberships extended or granted on this day, each by itself, according to the audit trail: null if the trail is not kept any more, or too long to be counted. */
    readonly extended: number | null
  }>
}

export interface EventsPreview {
  readonly total: number
  /** Webhook counts, by event type. */
  readonly by_type: Readonly<Record<string, number>>
  /** The first ten. */
  readonly first: ReadonlyArray<{
    /** A UUID. */
    readonly webhook_id: string
    readonly url: string
    /** The event's type. */
    readonly type: string
    /** The body to be sent. Its time, request id and sequence number are not final. */
    readonly body: {}
  }>
}

export interface Extended {
  /** After a dry run with `events`: the webhook notifications the request would send at once. */
  readonly events?: EventsPreview
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** A time in UTC, with milliseconds. */
  readonly new_end_date: string
  /** After an extension with `create`: whether the membership was created. */
  readonly created?: boolean
  /** After an extension by a duration: the same date; null for a membership for life, which stays so. */
  readonly end_date?: string | null
}

export interface ExtensionExample {
  /** The host's own user id. Neither . nor .. */
  readonly user_id: string
  readonly end_date: string | null
  readonly would_end: string | null
}

export interface FeedEvent {
  /** A UUID. */
  readonly id: string
  /** The event's type. */
  readonly type: string
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  readonly data: unknown
}

export interface Granted {
  /** The host's own user id. Neither . nor .. */
  readonly user_id: string
  /** Null for life. */
  readonly end_date: string | null
  /** The last whole day, if the end date was given as a day, and ends one in the project's time zone. */
  readonly through: string | null
  /** The day that months count with, if the end date does not tell it: 30 after 30 January and a month. */
  readonly kept_day: number | null
  /** Whether the membership is active, paused, or expired: its end date is over, and so is the project's grace. */
  readonly state: "active" | "paused" | "expired"
  /** When it expires, if its end date is over, and it is still active by the project's grace. */
  readonly grace_until: string | null
  /** When its pause began. The end date stands meanwhile. */
  readonly paused_at: string | null
  /** When its pause ends by itself. */
  readonly resumes_at: string | null
  /** A membership's metadata: an object with at most 16 texts by name. Texts have 1 to 255 characters. Names have 1 to 40 letters, digits and _.-, a letter first. */
  readonly metadata: Readonly<Record<string, string>>
  /** After a grant with `if_absent`: whether the membership was created, and not left as it was. */
  readonly created?: boolean
}

export interface Identity {
  /** The key's permission; each role includes the permissions before it. */
  readonly role: "client" | "operator" | "admin"
  /** Ids of the projects in the key's scope; `all` for present and future ones. */
  readonly projects: "all" | ReadonlyArray<string>
  /** The API key's id, or the id of another principal named by the host. */
  readonly key_id: string
  /** Whether the sender may change nothing. */
  readonly read_only: boolean
}

export interface ImportPreview {
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** After a dry run: the number of memberships that would be created. */
  readonly would_grant: number
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten: number
  /** After a dry run: the number of memberships that would keep their end date. */
  readonly would_stay: number
  readonly events?: EventsPreview
}

export interface IssuedApiKey {
  /** A UUID. */
  readonly id: string
  /** The bearer token, shown only once; null in a replayed response. */
  readonly token: string | null
}

export interface LastAttempt {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  /** A UUID. */
  readonly event_id: string
  /** The response status from the receiver; null if there was none. */
  readonly status: number | null
  /** Why there was no response: a code such as `Timeout` or `ECONNREFUSED`; null if there was one. */
  readonly error: string | null
  readonly duration_ms: number
}

export interface ListedProject {
  /** The project's id. */
  readonly id: string
  /** The membership count, including expired ones. */
  readonly memberships: number
  /** The webhook count. */
  readonly webhooks: number
}

export interface Membership {
  /** The host's own user id. Neither . nor .. */
  readonly user_id: string
  /** Null for life. */
  readonly end_date: string | null
  /** The last whole day, if the end date was given as a day, and ends one in the project's time zone. */
  readonly through: string | null
  /** The day that months count with, if the end date does not tell it: 30 after 30 January and a month. */
  readonly kept_day: number | null
  /** Whether the membership is active, paused, or expired: its end date is over, and so is the project's grace. */
  readonly state: "active" | "paused" | "expired"
  /** When it expires, if its end date is over, and it is still active by the project's grace. */
  readonly grace_until: string | null
  /** When its pause began. The end date stands meanwhile. */
  readonly paused_at: string | null
  /** When its pause ends by itself. */
  readonly resumes_at: string | null
  /** A membership's metadata: an object with at most 16 texts by name. Texts have 1 to 255 characters. Names have 1 to 40 letters, digits and _.-, a letter first. */
  readonly metadata: Readonly<Record<string, string>>
}

export interface MembershipChange {
  /** A time in UTC, with milliseconds. */
  readonly at: string
  readonly from: string | null
  readonly to: string | null
  /** The ISO 8601 duration added to all end dates, if there was one. */
  readonly extend_by: string | null
  /** The API key's id, or the id of another principal named by the host. */
  readonly key_id: string | null
  /** The API key's name. */
  readonly key_name: string | null
  readonly request_id: string | null
  readonly reason: string | null
  /** The action; `bulk_lengthened` has left memberships with a later end date, `bulk_undone` has undone a bulk extension, `moved` has moved the membership to or from another user id, `updated` has changed metadata, `paused` and `resumed` begin and end a pause, and `expiring`, `overdue` and `expired` announce the date. */
  readonly action:
    | "granted"
    | "imported"
    | "extended"
    | "bulk_extended"
    | "bulk_lengthened"
    | "bulk_extended_by"
    | "bulk_undone"
    | "ended"
    | "moved"
    | "updated"
    | "paused"
    | "resumed"
    | "reverted"
    | "expiring"
    | "overdue"
    | "expired"
}

export interface MembershipEndedEvent {
  /** The type of the event. */
  readonly type: "membership.ended"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The user; null if the person was erased. */
    readonly user_id: string | null
    /** The user id to which the membership was moved, if it was; null if that person was erased since then. */
    readonly moved_to?: string | null
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipExpiredEvent {
  /** The type of the event. */
  readonly type: "membership.expired"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly end_date: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipExpiringEvent {
  /** The type of the event. */
  readonly type: "membership.expiring"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly end_date: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
    /** Which reminder it is: the number of seconds before the end. */
    readonly reminder: number
  }
}

export interface MembershipExtendedEvent {
  /** The type of the event. */
  readonly type: "membership.extended"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly new_end_date: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipGrantedEvent {
  /** The type of the event. */
  readonly type: "membership.granted"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** The user id from which the membership was moved here, if it was; null if that person was erased since then. */
    readonly moved_from?: string | null
    /** A time in UTC, with milliseconds. */
    readonly new_end_date: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipOverdueEvent {
  /** The type of the event. */
  readonly type: "membership.overdue"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly end_date: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
    /** A time in UTC, with milliseconds. */
    readonly grace_until: string
  }
}

export interface MembershipPausedEvent {
  /** The type of the event. */
  readonly type: "membership.paused"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly end_date: string
    /** When the pause ends by itself; null if somebody has to end it. */
    readonly resumes_at: string | null
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipResumedEvent {
  /** The type of the event. */
  readonly type: "membership.resumed"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** A time in UTC, with milliseconds. */
    readonly end_date: string
    /** A time in UTC, with milliseconds. */
    readonly resumes_at: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipUpdatedEvent {
  /** The type of the event. */
  readonly type: "membership.updated"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the user, as the host has it. Neither . nor .. */
    readonly user_id: string
    /** The metadata of the membership, if it has some; null if a person in the event was erased since then. */
    readonly metadata?: Readonly<Record<string, string>> | null
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipsExtendedEvent {
  /** The type of the event. */
  readonly type: "memberships.extended"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** A time in UTC, with milliseconds. */
    readonly new_end_date?: string
    /** `never_shorten`: memberships that end later were left as they are. `extend_by`: every membership ends later by `extend_by`. Not there: all memberships have the new end date. */
    readonly mode?: "never_shorten" | "extend_by"
    /** How much later every membership ends: a duration of ISO 8601. */
    readonly extend_by?: string
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipsExtension_undoneEvent {
  /** The type of the event. */
  readonly type: "memberships.extension_undone"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The id of the event `memberships.extended` of the extension. */
    readonly bulk_extension_id: string
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface MembershipsImportedEvent {
  /** The type of the event. */
  readonly type: "memberships.imported"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** The number of memberships. */
    readonly total: number
    /** The request that asked for the change; null for a change by the host that names none. */
    readonly request_id: string | null
    /** Why, in the words of whoever asked for the change. */
    readonly reason?: string
    /** The place among the changes of a membership: of two events, the one with the greater sequence is of the later change, in whatever order they come. An event without user_id has that of all memberships it concerns. */
    readonly sequence: number
  }
}

export interface Moved {
  /** The user id to which it was moved. */
  readonly user_id: string
  /** Null for life. */
  readonly end_date: string | null
}

export interface Project {
  /** The project's id. */
  readonly id: string
  /** The membership count, including expired ones. */
  readonly memberships: number
  /** The webhook count. */
  readonly webhooks: number
  /** The last date all memberships were extended to. */
  readonly last_bulk_end_date: string | null
  /** The IANA time zone in which whole days begin and end. */
  readonly time_zone: string
  /** For how long memberships are still active after their end dates; null for none. */
  readonly grace: string | null
}

export interface ProjectActivity {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<ActivityCell>
}

export interface PublishedEvent {
  /** A UUID. */
  readonly id: string
  /** The event's type. */
  readonly type: string
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  readonly data: unknown
  readonly deliveries: ReadonlyArray<DeliveryOfEvent>
}

export interface ReplayedEvents {
  /** The number of events sent again, up to 10,000 in one call. */
  readonly replayed: number
  /** The cursor to go on with: the next call's `after`, with the other fields unchanged. Null if all events were looked at. */
  readonly next: string | null
}

export interface RotatedSecret {
  /** The new secret. */
  readonly secret: string
  /** A time in UTC, with milliseconds. */
  readonly previous_until: string
}

export interface SegmentExtended {
  /** After a dry run: the announcements of the next seven days, if ends are announced. */
  readonly announcements?: {
    /** Reminders. */
    readonly expiring: number
    /** Ends that are followed by grace. */
    readonly overdue: number
    /** Expiries. */
    readonly expired: number
    /** Those in 24 hours. */
    readonly next_24_hours: number
  }
  /** The number of extended memberships; after a dry run, on all pages. */
  readonly total: number
  /** The next page's `after`; null after the last one. */
  readonly next: string | null
  /** After a dry run: the number of memberships that would end earlier than now. */
  readonly would_shorten?: number
  /** After a dry run: up to ten of them. */
  readonly examples?: ReadonlyArray<ExtensionExample>
}

export interface ShownDelivery {
  /** A UUID. */
  readonly event_id: string
  /** The event's type. */
  readonly type: string
  /** A time in UTC, with milliseconds. */
  readonly created_at: string
  /** The first `user_id` in the event's data: the user it is about. null without one, and after an erasure. */
  readonly user_id: string | null
  /** Whether it waits for an attempt, or how it has ended. */
  readonly state: "waiting" | "delivered" | "failed" | "cancelled"
  /** When the next attempt is due; null if the delivery has ended. */
  readonly due_at: string | null
  readonly attempts: ReadonlyArray<AnsweredAttempt>
  /** The request sent by every attempt. */
  readonly request: {
    readonly method: "POST"
    readonly url: string
    /** The header fields; null for fields made anew by each attempt, and for the webhook's own fields, because these are never shown. */
    readonly headers: Readonly<Record<string, string | null>>
    /** The body, as it is sent. */
    readonly body: string
  }
}

export interface Status {
  readonly versions: {
    readonly tenure: string
    readonly api: "v2"
  }
  readonly stores: {
    /** Whether the store answers and takes changes. */
    readonly memberships: boolean
    /** Whether the store answers and takes changes. */
    readonly webhooks: boolean
    /** Whether the store answers and takes changes. */
    readonly api_keys: boolean
    /** Whether the store answers and takes changes. */
    readonly deliveries: boolean
    /** Whether the store answers and takes changes. */
    readonly rate_limits: boolean
  }
  /** Pending deliveries; null if the store does not answer. */
  readonly backlog: {
    /** Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more. */
    readonly waiting: number
    /** For how many milliseconds the oldest due delivery has been due; null if none is. It is looked for among the first 10,000 webhooks with due deliveries. */
    readonly due_for_ms: number | null
    /** The time in milliseconds that the oldest delivery has waited only for a server to send it; null if none does. It does not grow because receivers fail, are slow or have a rate. */
    readonly late_for_ms: number | null
  } | null
  /** Failed deliveries, kept for replays, up to 10,000; 10,000 stands for as many or more; null if the store does not answer. */
  readonly failed_deliveries: number | null
  /** Disabled webhooks, up to 10,000; 10,000 stands for as many or more; null if the store does not answer. */
  readonly disabled_webhooks: number | null
  /** Up to 50 webhooks in all projects: failing ones by how long they fail, then disabled ones, the latest first; among these, unreadable secrets first. null if the store does not answer. */
  readonly webhooks_needing_attention: ReadonlyArray<WebhookNeedingAttention> | null
  /** How the answering server limits requests: by the store, or, because the store does not answer or has failed in the last 10 seconds, by itself alone, not at all, or by answering all 503. */
  readonly rate_limiting: "store" | "local" | "open" | "closed"
  /** The ids of API keys suspended by the answering server. */
  readonly suspended_keys: ReadonlyArray<string>
  /** The ids of encryption keys needed by stored secrets, but missing on the answering server or different there: nothing is sent to their webhooks. The list may be up to 20 seconds old; null if the store does not answer. */
  readonly missing_encryption_keys: ReadonlyArray<string> | null
}

export interface Ticket {
  readonly ticket: string
  /** A time in UTC, with milliseconds. */
  readonly expires_at: string
}

export interface Webhook {
  /** The receiver's URL: public, http or https, without credentials. */
  readonly url: string
  /** A UUID. */
  readonly id: string
  /** The secret for signing notifications: `whsec_` and base64. `unreadable_` and a UUID, never used for signing, stand for a secret the server cannot read. */
  readonly secret: string
}

export interface WebhookActivity {
  /** 96 spans of 15 minutes, oldest first; the last one goes on. */
  readonly quarters: ReadonlyArray<ActivityCell>
  /** These attempts' median duration, estimated: at most 19 % off between 4 and 16,384 ms, and one of these two values beyond; null without any attempts. */
  readonly p50_ms: number | null
  /** The 99th percentile, estimated in the same way. */
  readonly p99_ms: number | null
}

export interface WebhookDetails {
  /** A UUID. */
  readonly id: string
  /** The receiver's URL: public, http or https, without credentials. */
  readonly url: string
  /** The event types to send; null for all. */
  readonly event_types: ReadonlyArray<string> | null
  /** Whether a member's events are sent one after another. */
  readonly ordered: boolean
  /** How many attempts start in a second at most; null without a limit. */
  readonly rate: number | null
  /** The webhook's purpose; null if none was given. */
  readonly description: string | null
  /** The webhook's own request header names, in lower case and in order. */
  readonly header_names: ReadonlyArray<string>
  /** A time in UTC, with milliseconds. */
  readonly created_at: string
  /** When it was disabled; null while it is enabled. */
  readonly disabled_at: string | null
  /** `failures` if attempts had failed for too long or the receiver is gone: waiting deliveries have failed. `request` if a client or the host disabled it: waiting deliveries stay. Null while the webhook is enabled. */
  readonly disabled_by: "failures" | "request" | null
  /** When an attempt first failed since one succeeded; null if none has. */
  readonly failing_since: string | null
  /** How many attempts have failed since one succeeded. */
  readonly failures: number
  /** The latest attempt with a kept delivery, or null. */
  readonly last_attempt: LastAttempt | null
  /** Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more. */
  readonly waiting: number
  /** When the next attempt is due; null if none is, because nothing waits, all is being attempted, or the webhook is disabled. */
  readonly next_attempt_at: string | null
  /** The secret for signing notifications: `whsec_` and base64. `unreadable_` and a UUID, never used for signing, stand for a secret the server cannot read. */
  readonly secret: string
}

export interface WebhookDisabledEvent {
  /** The type of the event. */
  readonly type: "webhook.disabled"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** A UUID. */
    readonly webhook_id: string
    /** Why: it answered 410, or every attempt has failed for days. */
    readonly reason: "gone" | "failing"
    /** The attempt that failed last. */
    readonly last_attempt: LastAttempt
  }
}

export interface WebhookFailingEvent {
  /** The type of the event. */
  readonly type: "webhook.failing"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** A UUID. */
    readonly webhook_id: string
    /** How much of that time has passed: the greatest of these shares. At 100, the webhook is disabled, and `webhook.disabled` follows. */
    readonly percent: 50 | 90 | 100
    /** A time in UTC, with milliseconds. */
    readonly failing_since: string
    /** A time in UTC, with milliseconds. */
    readonly disables_at: string
    /** How many attempts have failed since one succeeded. */
    readonly failures: number
    /** The attempt that failed last. */
    readonly last_attempt: LastAttempt
  }
}

export interface WebhookHealth {
  /** A UUID. */
  readonly id: string
  /** The receiver's URL: public, http or https, without credentials. */
  readonly url: string
  /** The event types to send; null for all. */
  readonly event_types: ReadonlyArray<string> | null
  /** Whether a member's events are sent one after another. */
  readonly ordered: boolean
  /** How many attempts start in a second at most; null without a limit. */
  readonly rate: number | null
  /** The webhook's purpose; null if none was given. */
  readonly description: string | null
  /** The webhook's own request header names, in lower case and in order. */
  readonly header_names: ReadonlyArray<string>
  /** A time in UTC, with milliseconds. */
  readonly created_at: string
  /** When it was disabled; null while it is enabled. */
  readonly disabled_at: string | null
  /** `failures` if attempts had failed for too long or the receiver is gone: waiting deliveries have failed. `request` if a client or the host disabled it: waiting deliveries stay. Null while the webhook is enabled. */
  readonly disabled_by: "failures" | "request" | null
  /** When an attempt first failed since one succeeded; null if none has. */
  readonly failing_since: string | null
  /** How many attempts have failed since one succeeded. */
  readonly failures: number
  /** The latest attempt with a kept delivery, or null. */
  readonly last_attempt: LastAttempt | null
  /** Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more. */
  readonly waiting: number
  /** When the next attempt is due; null if none is, because nothing waits, all is being attempted, or the webhook is disabled. */
  readonly next_attempt_at: string | null
}

export interface WebhookNeedingAttention {
  /** The latest attempt with a kept delivery, or null. */
  readonly last_attempt: LastAttempt | null
  /** Deliveries waiting for an attempt or its result, up to 10,000; 10,000 stands for as many or more. */
  readonly waiting: number
  /** The project's id. */
  readonly project_id: string
  /** A UUID. */
  readonly id: string
  /** The host in its URL, with the port unless it is the usual one. */
  readonly url_host: string
  /** The webhook's purpose; null if none was given. */
  readonly description: string | null
  /** Whether nothing can be signed, the latest attempts have failed, or nothing is sent until somebody enables it. */
  readonly reason: "unreadable_secret" | "failing" | "disabled"
  /** A time in UTC, with milliseconds. */
  readonly since: string
}

export interface WebhookPingEvent {
  /** The type of the event. */
  readonly type: "webhook.ping"
  /** A time in UTC, with milliseconds. */
  readonly timestamp: string
  /** The trace context (W3C) of the request behind it, if that had one. */
  readonly traceparent?: string
  /** What happened, by its type. */
  readonly data: {
    /** The id of the project. */
    readonly project_id: string
    /** A UUID. */
    readonly webhook_id: string
  }
}

/** The errors of the API by code, as they are in the body of a response. */
export interface Problems {
  readonly API_KEY_NOT_FOUND: {
    readonly error_code: "API_KEY_NOT_FOUND"
    readonly message: string
  }
  readonly BULK_EXTENSION_NOT_FOUND: {
    readonly error_code: "BULK_EXTENSION_NOT_FOUND"
    readonly message: string
  }
  readonly BULK_EXTENSION_SETTLED: {
    readonly error_code: "BULK_EXTENSION_SETTLED"
    readonly message: string
  }
  readonly BULK_EXTENSION_UNDONE: {
    readonly error_code: "BULK_EXTENSION_UNDONE"
    readonly message: string
  }
  readonly CURSOR_EXPIRED: {
    readonly error_code: "CURSOR_EXPIRED"
    readonly message: string
  }
  readonly END_DATE_CONFLICT: {
    readonly error_code: "END_DATE_CONFLICT"
    readonly message: string
    readonly current_end_date: string | null
  }
  readonly EVENT_NOT_FOUND: {
    readonly error_code: "EVENT_NOT_FOUND"
    readonly message: string
  }
  readonly FORBIDDEN: {
    readonly error_code: "FORBIDDEN"
    readonly message: string
  }
  readonly IDEMPOTENCY_IN_PROGRESS: {
    readonly error_code: "IDEMPOTENCY_IN_PROGRESS"
    readonly message: string
  }
  readonly IDEMPOTENCY_MISMATCH: {
    readonly error_code: "IDEMPOTENCY_MISMATCH"
    readonly message: string
  }
  readonly INTERNAL_ERROR: {
    readonly error_code: "INTERNAL_ERROR"
    readonly message: string
  }
  readonly MALFORMED_REQUEST: {
    readonly error_code: "MALFORMED_REQUEST"
    readonly message: string
  }
  readonly MEMBERSHIP_NOT_FOUND: {
    readonly error_code: "MEMBERSHIP_NOT_FOUND"
    readonly message: string
  }
  readonly METHOD_NOT_ALLOWED: {
    readonly error_code: "METHOD_NOT_ALLOWED"
    readonly message: string
  }
  readonly PAYLOAD_TOO_LARGE: {
    readonly error_code: "PAYLOAD_TOO_LARGE"
    readonly message: string
  }
  readonly PROJECT_NOT_FOUND: {
    readonly error_code: "PROJECT_NOT_FOUND"
    readonly message: string
  }
  readonly RATE_LIMIT_EXCEEDED: {
    readonly message: string
    readonly code: "RATE_LIMIT_EXCEEDED"
    readonly retry_after: number
  }
  readonly REQUEST_HEADERS_TOO_LARGE: {
    readonly error_code: "REQUEST_HEADERS_TOO_LARGE"
    readonly message: string
  }
  readonly REQUEST_TIMEOUT: {
    readonly error_code: "REQUEST_TIMEOUT"
    readonly message: string
  }
  readonly SERVICE_UNAVAILABLE: {
    readonly error_code: "SERVICE_UNAVAILABLE"
    readonly message: string
  }
  readonly STATE_CONFLICT: {
    readonly error_code: "STATE_CONFLICT"
    readonly message: string
    readonly current_state: "active" | "paused" | "expired"
  }
  readonly UNAUTHORIZED: {
    readonly error_code: "UNAUTHORIZED"
    readonly message: string
  }
  readonly UNSUPPORTED_MEDIA_TYPE: {
    readonly error_code: "UNSUPPORTED_MEDIA_TYPE"
    readonly message: string
  }
  readonly VALIDATION_ERROR: {
    readonly error_code: "VALIDATION_ERROR"
    readonly message: string
    /** The number of the line; the first one is 1. */
    readonly line?: number
  }
  readonly WEBHOOK_DISABLED: {
    readonly error_code: "WEBHOOK_DISABLED"
    readonly message: string
  }
  readonly WEBHOOK_NOT_FOUND: {
    readonly error_code: "WEBHOOK_NOT_FOUND"
    readonly message: string
  }
}

/** The events that Tenure itself publishes, by type, as they are in the body of a notification. */
export interface Events {
  /** A membership was created, or its end date set to any date. */
  readonly "membership.granted": MembershipGrantedEvent
  /** Memberships were created or set by an import. */
  readonly "memberships.imported": MembershipsImportedEvent
  /** A membership was extended. */
  readonly "membership.extended": MembershipExtendedEvent
  /** All memberships of the project were extended. */
  readonly "memberships.extended": MembershipsExtendedEvent
  /** An extension of all memberships of the project was undone. */
  readonly "memberships.extension_undone": MembershipsExtension_undoneEvent
  /** A membership was removed. */
  readonly "membership.ended": MembershipEndedEvent
  /** The metadata of a membership was changed. */
  readonly "membership.updated": MembershipUpdatedEvent
  /** A membership was paused: it is not active, and its end date stands meanwhile. */
  readonly "membership.paused": MembershipPausedEvent
  /** The pause of a membership has ended, by itself or because somebody ended it. The end date is later by the time paused. */
  readonly "membership.resumed": MembershipResumedEvent
  /** A membership ends soon. */
  readonly "membership.expiring": MembershipExpiringEvent
  /** A membership has ended at its end date, and is still active during the project's grace. */
  readonly "membership.overdue": MembershipOverdueEvent
  /** A membership has expired: it has ended at its end date, and the project's grace is over, if it has some. */
  readonly "membership.expired": MembershipExpiredEvent
  /** The webhook is tried out. */
  readonly "webhook.ping": WebhookPingEvent
  /** All attempts for another webhook of the project have failed for 50, 90 or 100 % of the time after which it is disabled. */
  readonly "webhook.failing": WebhookFailingEvent
  /** Another webhook of the project was disabled. */
  readonly "webhook.disabled": WebhookDisabledEvent
}

/** The client: an object for each resource, with a method for each operation. */
export interface Operations {
  readonly memberships: {
    /** Sets a membership's end date, even if it has expired. `new_end_date` is the end date afterwards: with the mode `never_shorten`, it may be later than `extend`. With `create`, a user without a membership gets one. `PATCH /v2/projects/{project_id}/memberships/{user_id}/extend` */
    readonly extend: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Needed without `extend_by` and `through`. */
        readonly extend?: number | string | undefined
        /** If given, the membership is changed only if it has this end date; null for one for life. */
        readonly expected_end_date?: number | string | null | undefined
        /** If true, a user without a membership gets one, as if it ended now; `created` tells. Needs the role `operator`. Not with `expected_end_date`. */
        readonly create?: boolean | undefined
        /** If true, nothing is changed. The response is the same as without it. */
        readonly dry_run?: boolean | undefined
        /** If true, a dry run also returns the webhook notifications the request would send. */
        readonly events?: boolean | undefined
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** Whether a membership with a later end date is set, too (the default), or left as it is. */
        readonly mode?: "set" | "never_shorten" | undefined
        /** In place of `extend`: an ISO 8601 duration to add to the end date, by the calendar of the time zone. Needs the header `Idempotency-Key` or `expected_end_date`. */
        readonly extend_by?: string | undefined
        /** The IANA time zone in which days begin and months count. Default: the project's. */
        readonly time_zone?: string | undefined
        /** The start for `extend_by`: the end date, now, or the later of both (the default). */
        readonly from?: "end" | "now" | "later" | undefined
        /** A day of the calendar, without a time zone. */
        readonly through?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Counted<Extended>>

    /** Sets all end dates in a project. `total` is the number of end dates set. `PATCH /v2/projects/{project_id}/memberships/extend` */
    readonly extendAll: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Needed without `extend_by` and `through`. */
        readonly extend?: number | string | undefined
        /** If true, nothing is changed. The response is the same as without it. */
        readonly dry_run?: boolean | undefined
        /** If true, a dry run also returns the webhook notifications the request would send. */
        readonly events?: boolean | undefined
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** Whether memberships with a later end date are set, too, or left as they are. The default is the server's. */
        readonly mode?: "set" | "never_shorten" | undefined
        /** In place of `extend`: an ISO 8601 duration to add to every end date, in weeks, days, hours, minutes and seconds, up to ten years. Needs the header `Idempotency-Key`. */
        readonly extend_by?: string | undefined
        /** A day of the calendar, without a time zone. */
        readonly through?: string | undefined
        /** The IANA time zone in which days begin and months count. Default: the project's. */
        readonly time_zone?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Counted<BulkExtended>>

    /** Extends the memberships in a segment, 1,000 in one step, in the order of their user ids; go on with `after` until `next` is null. With `extend_by`, each page needs its own `Idempotency-Key`. It leaves those for life as they are, and those that would still be over. Where few match, a page may have few, or none, before the last. Needs the role `operator`. `POST /v2/projects/{project_id}/memberships/extend-some` */
    readonly extendSome: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** A future date: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Needed without `extend_by` and `through`. */
        readonly extend?: number | string | undefined
        /** Which memberships: those that match all given fields, one at least. `metadata` has some of theirs, `state` is theirs, `ending_after` and `ending_before` are instants before and after their end dates, and `user_ids` has up to 1,000. */
        readonly where?:
          | {
              readonly metadata?: Readonly<Record<string, string>> | undefined
              readonly state?: "active" | "paused" | "expired" | undefined
              readonly ending_after?: number | string | undefined
              readonly ending_before?: number | string | undefined
              readonly user_ids?: ReadonlyArray<string> | undefined
            }
          | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** If true, nothing is changed. The response is that of all pages. */
        readonly dry_run?: boolean | undefined
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** Whether memberships with a later end date are set, too (the default), or left as they are. */
        readonly mode?: "set" | "never_shorten" | undefined
        /** In place of `extend`: an ISO 8601 duration to add to the end date, by the calendar of the time zone. Needs the header `Idempotency-Key` or `expected_end_date`. */
        readonly extend_by?: string | undefined
        /** The IANA time zone in which days begin and months count. Default: the project's. */
        readonly time_zone?: string | undefined
        /** The start for `extend_by`: the end date, now, or the later of both (the default). */
        readonly from?: "end" | "now" | "later" | undefined
        /** A day of the calendar, without a time zone. */
        readonly through?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Counted<SegmentExtended>>

    /** Returns a project's bulk extensions, newest first, including undone ones. `GET /v2/projects/{project_id}/bulk-extensions` */
    readonly bulkExtensions: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
      },
      options?: CallOptions,
    ) => PageList<BulkExtensionRecord>

    /** Restores the end date that every membership would have without the bulk extension. Later changes to single members are kept. Needs the role `operator`. `POST /v2/projects/{project_id}/bulk-extensions/{bulk_extension_id}/undo` */
    readonly undoBulkExtension: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** undefined */
        readonly bulk_extension_id: string
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** If true, nothing is changed. The response is the same as without it. */
        readonly dry_run?: boolean | undefined
        /** If true, a dry run also returns the webhook notifications the request would send. */
        readonly events?: boolean | undefined
      },
      options?: CallOptions,
    ) => Promise<Counted<BulkExtensionUndoing>>

    /** Returns the number of active memberships in a project, and the number ending on each day in its time zone, counted at this moment. It reads all memberships, so a server counts for one request at a time, and equal requests share one count; if too many different ones wait, it responds with 503. `GET /v2/projects/{project_id}/ends` */
    readonly ends: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The first day. By default, 59 days before `to`, or 14 days before today without `to`. */
        readonly from?: string | undefined
        /** The last day, less than 400 days later. By default, 59 days after `from`, or 45 days after today without `from`. */
        readonly to?: string | undefined
        /** Counts as if all memberships had been extended to this date, in either format allowed for `extend`. Nothing is changed. */
        readonly extend?: string | undefined
        /** Counts as if all memberships had been extended by this duration. */
        readonly extend_by?: string | undefined
        /** Counts as if all memberships had been extended through this day, in the project's time zone. */
        readonly through?: string | undefined
        /** With `extend` or `through`: whether memberships with a later end date are set, too, or left as they are. The default is the server's. */
        readonly mode?: "set" | "never_shorten" | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<EndCounts>>

    /** Creates memberships, each for a different user, or sets the end dates if they exist: all or none. `total` is the line count. Needs the role `operator`. `POST /v2/projects/{project_id}/memberships/import` */
    readonly import: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** With `true`, the lines are judged, and nothing is changed. */
        readonly dry_run?: "true" | "false" | undefined
        /** With `true`, a dry run returns the webhook notifications the import would send. */
        readonly events?: "true" | "false" | undefined
        /** A JSON object on each line, with `user_id` and `end_date`: a date, possibly past, in either format allowed for `extend`; or in place of that `through` and optionally `time_zone`, as for a grant. Optionally with `metadata`, as for a grant, and with `kept_day`, `paused_at` and `resumes_at` as the membership returned them. At most 10,000 lines and 2 MiB, sent unquoted. */
        readonly lines: Iterable<ImportLine>
      },
      options?: CallOptions,
    ) => Promise<Counted<ImportPreview | null>>

    /** Returns a project's memberships ordered by user id, compared as text; with `state`, only active, paused or expired ones. With `ending_before`, they are ordered by end date, and a page may have fewer than `limit`, or none, before the last. `GET /v2/projects/{project_id}/memberships` */
    readonly list: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Only memberships in this state. */
        readonly state?: "active" | "paused" | "expired" | undefined
        /** Only these users' memberships: at most 1,000 user ids, each 1 to 128 visible ASCII characters, and not . or .., joined by commas. In an id, a comma is written %2C and a percent sign %25. */
        readonly user_ids?: string | undefined
        /** Only memberships with this user id prefix, also with `state`. Not with `user_ids`. */
        readonly prefix?: string | undefined
        /** Only active memberships ending before this time, soonest first. Not with `state`, `user_ids` or `prefix`. */
        readonly ending_before?: string | undefined
      },
      options?: CallOptions,
    ) => PageList<Membership>

    /** Returns a membership. `GET /v2/projects/{project_id}/memberships/{user_id}` */
    readonly get: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<Membership>>

    /** Creates a membership, or sets an existing one's end date. With `if_absent`, an existing one stays as it is. Needs the role `operator`. `PUT /v2/projects/{project_id}/memberships/{user_id}` */
    readonly grant: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** A date, possibly past: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Null for life. Needed without `through`. */
        readonly end_date?: number | string | null | undefined
        /** Replaces the membership's metadata. Without it, the metadata stays. */
        readonly metadata?: Readonly<Record<string, string>> | undefined
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** If true, a membership that exists stays as it is, even an expired one. `created` tells. */
        readonly if_absent?: boolean | undefined
        /** A day of the calendar, without a time zone. */
        readonly through?: string | undefined
        /** The IANA time zone in which days begin and months count. Default: the project's. */
        readonly time_zone?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Granted>>

    /** Changes a membership's metadata, and leaves its end date. Needs the role `operator`. `PATCH /v2/projects/{project_id}/memberships/{user_id}` */
    readonly update: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** New texts by name, and null to remove a name. Other names stay. */
        readonly metadata: Readonly<Record<string, string | null>>
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Membership>>

    /** Removes a membership. The user can be granted another one. With `erase=true`, also removes the user id from the history and from events, and succeeds if the membership has ended. Needs the role `operator`. `DELETE /v2/projects/{project_id}/memberships/{user_id}` */
    readonly end: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** Whether to erase the person. Needs the role `admin`. */
        readonly erase?: "true" | "false" | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<null>>

    /** Moves a membership to another user id, for a person whose id changes. If both have a membership, the later end date stays. Receivers get `membership.ended` and `membership.granted`. Needs the role `operator`. `POST /v2/projects/{project_id}/memberships/{user_id}/move` */
    readonly move: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** The user id to move it to, with or without a membership. */
        readonly to: string
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Moved>>

    /** Pauses an active membership before its end. It is not active then, and its end date stands; at the end of the pause, it is later by the time paused. Needs the role `operator`. `POST /v2/projects/{project_id}/memberships/{user_id}/pause` */
    readonly pause: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** When the pause ends by itself, at most two years ahead: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. Without it and `through`, the membership is paused until it is resumed. */
        readonly until?: number | string | undefined
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
        /** A day of the calendar, without a time zone. */
        readonly through?: string | undefined
        /** The IANA time zone in which days begin and months count. Default: the project's. */
        readonly time_zone?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Membership>>

    /** Ends a membership's pause. Needs the role `operator`. `POST /v2/projects/{project_id}/memberships/{user_id}/resume` */
    readonly resume: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** The reason, in 1 to 500 characters. The audit trail and the event keep it. */
        readonly reason?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Membership>>

    /** Returns a membership's changes, newest first, even after it has ended; includes the bulk extensions applied to it. With parameters that select changes, a page may have fewer than `limit`, or none, before the last. Needs the role `operator`. `GET /v2/projects/{project_id}/memberships/{user_id}/history` */
    readonly history: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The host's own user id. Neither . nor .. */
        readonly user_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Only changes by this API key, or by another principal named by the host. */
        readonly key_id?: string | undefined
        /** Only changes of this kind. */
        readonly action?:
          | "granted"
          | "imported"
          | "extended"
          | "bulk_extended"
          | "bulk_lengthened"
          | "bulk_extended_by"
          | "bulk_undone"
          | "ended"
          | "moved"
          | "updated"
          | "paused"
          | "resumed"
          | "reverted"
          | "expiring"
          | "overdue"
          | "expired"
          | "person_erased"
          | "webhook_created"
          | "webhook_changed"
          | "webhook_deleted"
          | "webhook_disabled"
          | "secret_rotated"
          | "signing_key_added"
          | "deliveries_cancelled"
          | "project_changed"
          | "secret_shown"
          | "data_shown"
          | "project_created"
          | "project_deleted"
          | "key_issued"
          | "key_opened"
          | "key_revoked"
          | undefined
        /** Only changes by the request with this id. */
        readonly request_id?: string | undefined
        /** Only changes at this time or later. */
        readonly since?: string | undefined
        /** Only changes before this time, which is after `since`. */
        readonly until?: string | undefined
        /** `false` leaves out the announcements `expiring`, `overdue` and `expired`. */
        readonly announcements?: "true" | "false" | undefined
      },
      options?: CallOptions,
    ) => PageList<MembershipChange>
  }

  readonly projects: {
    /** Returns the projects in the key's scope, ordered by id, compared as text. `GET /v2/projects` */
    readonly list: (
      input?: {
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
      },
      options?: CallOptions,
    ) => PageList<ListedProject>

    /** Creates a project. Does nothing if it exists. Needs the role `admin`. `PUT /v2/projects/{project_id}` */
    readonly create: (
      input: {
        /** Your own id: 1 to 255 characters, no control characters. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<Project>>

    /** Returns a project. `GET /v2/projects/{project_id}` */
    readonly get: (
      input: {
        /** The project's id. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<Project>>

    /** Changes settings of a project. What is not in the body stays as it is. A new time zone moves no end date. A new grace counts at once, for past ends too, and nothing is announced twice. Needs the role `operator`. `PATCH /v2/projects/{project_id}` */
    readonly update: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The name of an IANA time zone, in which whole days begin and end; no offset. No end date moves. */
        readonly time_zone?: string | undefined
        /** For how long memberships are still active after their end dates: an ISO 8601 duration in weeks, days, hours, minutes and seconds, up to 90 days; null for none. It counts at once, for past ends too. */
        readonly grace?: string | null | undefined
        /** Why, in 1 to 500 characters. The audit trail keeps it. */
        readonly reason?: string | undefined
        /** If true, nothing is changed. The response is the same as without it. */
        readonly dry_run?: boolean | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<ChangedProject>>

    /** Deletes a project with its memberships, webhooks, events and deliveries. API keys do not open it any more, even if it is created again. Needs the role `admin`. `DELETE /v2/projects/{project_id}` */
    readonly delete: (
      input: {
        /** The project's id. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<null>>

    /** Returns the changes to a project's memberships and webhooks with their principals, newest first, for as long as the server keeps them. With parameters that select changes, a page may have fewer than `limit`, or none, before the last. Needs the role `operator`. `GET /v2/projects/{project_id}/audit` */
    readonly audit: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Only changes by this API key, or by another principal named by the host. */
        readonly key_id?: string | undefined
        /** Only changes of this kind. */
        readonly action?:
          | "granted"
          | "imported"
          | "extended"
          | "bulk_extended"
          | "bulk_lengthened"
          | "bulk_extended_by"
          | "bulk_undone"
          | "ended"
          | "moved"
          | "updated"
          | "paused"
          | "resumed"
          | "reverted"
          | "expiring"
          | "overdue"
          | "expired"
          | "person_erased"
          | "webhook_created"
          | "webhook_changed"
          | "webhook_deleted"
          | "webhook_disabled"
          | "secret_rotated"
          | "signing_key_added"
          | "deliveries_cancelled"
          | "project_changed"
          | "secret_shown"
          | "data_shown"
          | "project_created"
          | "project_deleted"
          | "key_issued"
          | "key_opened"
          | "key_revoked"
          | undefined
        /** Only changes by the request with this id. */
        readonly request_id?: string | undefined
        /** Only changes at this time or later. */
        readonly since?: string | undefined
        /** Only changes before this time, which is after `since`. */
        readonly until?: string | undefined
        /** `false` leaves out the announcements `expiring`, `overdue` and `expired`. */
        readonly announcements?: "true" | "false" | undefined
        /** Only changes to this user's membership, including the bulk extensions applied to it. */
        readonly user_id?: string | undefined
      },
      options?: CallOptions,
    ) => PageList<AuditRow>

    /** Counts a project's delivery attempts by the minute, over all servers. Another server's attempts may be missing for up to 10 seconds. Needs the role `operator`. `GET /v2/projects/{project_id}/activity` */
    readonly activity: (
      input: {
        /** The project's id. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<ProjectActivity>>
  }

  readonly webhooks: {
    /** Returns a project's webhooks, oldest first. `GET /v2/projects/{project_id}/integrations/webhooks` */
    readonly list: (
      input: {
        /** The project's id. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Counted<ReadonlyArray<Webhook>>>

    /** Registers a URL, to receive the project's events from now on. `POST /v2/projects/{project_id}/integrations/webhooks` */
    readonly create: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** Where events are sent: a public http or https URL without credentials. */
        readonly url: string
        /** The types of events to send, 1 to 100. Default: all. */
        readonly event_types?: ReadonlyArray<string> | undefined
        /** Whether a member's events are sent one after another: none is attempted before the earlier ones were delivered or given up, which may take three days. Default: `false`. Receivers that can compare the `sequence` of events need no order. */
        readonly ordered?: boolean | undefined
        /** How many attempts start in a second at most, 1 to 10,000; `null`, the default, for no limit. What exceeds it waits. */
        readonly rate?: number | null | undefined
        /** What the webhook is for: 1 to 200 characters without control characters. */
        readonly description?: string | undefined
        /** Request headers to send with every notification, for example for the receiver's gateway: at most 10 texts of 1 to 1,000 visible ASCII characters and inner spaces, by names that are HTTP tokens of at most 64 characters. Their values are kept like secrets, and nothing shows them. */
        readonly headers?: Readonly<Record<string, string>> | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<Webhook>>

    /** Returns a project's webhooks, oldest first, without their secrets: their purposes, and how their latest attempts went. `GET /v2/projects/{project_id}/integrations/health` */
    readonly health: (
      input: {
        /** The project's id. */
        readonly project_id: string
      },
      options?: CallOptions,
    ) => Promise<Counted<ReadonlyArray<WebhookHealth>>>

    /** Returns a webhook, its purpose, how its latest attempts went, and its secret: the audit trail records the disclosure. `GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}` */
    readonly get: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<WebhookDetails>>

    /** Changes a webhook's settings. Its id, its secret and its deliveries stay, and settings missing from the body stay, too. Needs the role `operator`. `PATCH /v2/projects/{project_id}/integrations/webhooks/{webhook_id}` */
    readonly update: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
        /** Where events are sent from now on: a public http or https URL without credentials. */
        readonly url?: string | undefined
        /** The types of events to send from now on, 1 to 100; `null` for all. Events that wait are sent whatever their type. */
        readonly event_types?: ReadonlyArray<string> | null | undefined
        /** Whether a member's events are sent one after another, of those that are published from now on. */
        readonly ordered?: boolean | undefined
        /** How many attempts start in a second at most, 1 to 10,000; `null` for no limit. */
        readonly rate?: number | null | undefined
        /** What the webhook is for: 1 to 200 characters without control characters; `null` for nothing. */
        readonly description?: string | null | undefined
        /** Request headers to set, and `null` for those to remove; others stay (RFC 7396). `null` removes all. */
        readonly headers?: Readonly<Record<string, string | null>> | null | undefined
        /** `true` aborts attempts in flight, and starts none until the webhook is enabled: what waits stays waiting, and events from then on are not for it. `false` enables the webhook, and goes on with what waits. */
        readonly disabled?: boolean | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<WebhookHealth>>

    /** Deletes a webhook. No further attempt to notify it starts. `DELETE /v2/projects/{project_id}/integrations/webhooks/{webhook_id}` */
    readonly delete: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<null>>

    /** Sends the event webhook.ping to one webhook. Needs the role `operator`. `POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/ping` */
    readonly ping: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<
      Success<{
        /** A UUID. */
        readonly event_id: string
      }>
    >

    /** Enables a disabled webhook, and goes on with its waiting deliveries. An enabled webhook does not change. Needs the role `operator`. `POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/enable` */
    readonly enable: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<null>>

    /** Replaces a webhook's secret. The previous one also signs for a day. Needs the role `operator`. `POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/rotate` */
    readonly rotate: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<RotatedSecret>>

    /** Returns a webhook's deliveries, newest first, with every attempt. Needs the role `operator`. `GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries` */
    readonly deliveries: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Lists only deliveries in this state. */
        readonly state?: "waiting" | "delivered" | "failed" | "cancelled" | undefined
        /** `created`, the default, lists the newest first; `latest_attempt` lists only attempted deliveries, the latest attempted first. A cursor belongs to its page's order. */
        readonly order?: "created" | "latest_attempt" | undefined
      },
      options?: CallOptions,
    ) => PageList<Delivery>

    /** Counts a webhook's attempts in the last 24 hours, in 15-minute spans, and estimates how long they took. Another server's attempts may be missing for up to 10 seconds. `GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/activity` */
    readonly activity: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<WebhookActivity>>

    /** Returns an event's delivery to a webhook: the request sent by every attempt, and the receiver's responses. The audit trail records the disclosure. Needs the role `operator`. `GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries/{event_id}` */
    readonly delivery: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
        /** The event's id. */
        readonly event_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<ShownDelivery>>

    /** Sends an event to a webhook again, or now if it waits for its next attempt; or sends the events since a time that the webhook has missed or not accepted. One call reads up to 25,000 kept events and sends up to 10,000, after all other events due for the webhook. Waiting deliveries and attempts in flight are never doubled. Needs the role `operator`. `POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/replay` */
    readonly replay: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
        /** A UUID. */
        readonly event_id?: string | undefined
        /** Sends only events from this time on. */
        readonly since?: number | string | undefined
        /** Sends only events of these types, 1 to 100. Default: those that the webhook takes. */
        readonly types?: ReadonlyArray<string> | undefined
        /** `"missed"` sends only events without a delivery: published before the webhook existed, while it was disabled, or before it took their type. `"failed"` sends only events that were given up. `"all"` also sends delivered events again. Default: all that were missed or given up. None of them doubles what waits or is being sent. */
        readonly only?: "missed" | "failed" | "all" | undefined
        /** Counts the events without sending any. Default: `false`. */
        readonly dry_run?: boolean | undefined
        /** Goes on where an earlier page ended: its `next`. The other arguments are the same. */
        readonly after?: string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<ReplayedEvents>>

    /** Cancels what waits for a webhook, except attempts in flight. With several fields, only events that match all of them are cancelled. They are sent again only one by one, by a replay with `event_id`. Needs the role `operator`. `POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/cancel` */
    readonly cancel: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the webhook. */
        readonly webhook_id: string
        /** Cancels only deliveries of events of these types, 1 to 100. Default: of all. */
        readonly types?: ReadonlyArray<string> | undefined
        /** Cancels only deliveries of events from this time on. */
        readonly since?: number | string | undefined
        /** Cancels only deliveries of events before this time, which is after `since`. */
        readonly until?: number | string | undefined
        /** Cancels only deliveries of events about this user. */
        readonly user_id?: string | undefined
        /** Counts the deliveries without cancelling any. Default: `false`. */
        readonly dry_run?: boolean | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<CancelledDeliveries>>
  }

  readonly events: {
    /** Returns a project's events after a cursor, without skipping any: the next page continues at the end of this one, whenever it is requested. `after=start` begins at the oldest kept event; without `after`, the feed begins now. With `Accept: text/event-stream`, it is a stream, resumed by `Last-Event-ID`. `GET /v2/projects/{project_id}/events` */
    readonly list: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Only events with these types, joined by commas. */
        readonly types?: string | undefined
        /** How many seconds to wait when there is no event yet: 0 to 20. Default: 0. */
        readonly wait?: string | undefined
        /** A ticket, in place of a key. */
        readonly ticket?: string | undefined
        /** Whether the response has the events' data, or null. With `summary`, events about memberships have `user_id` and `end_date` alone, and others null. Default: true. */
        readonly data?: "true" | "summary" | "false" | undefined
        /** `newest`: the latest events first, for a list. `next` is the page with older ones, and `start` after the oldest. Not with `types` and `wait`. Default: oldest. */
        readonly order?: "oldest" | "newest" | undefined
      },
      options?: CallOptions,
    ) => Promise<Continued<FeedEvent>>

    /** Publishes your own event to a project's webhooks. Needs the role `operator`. `POST /v2/projects/{project_id}/events` */
    readonly publish: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** Any type not published by Tenure itself. */
        readonly type: string
        readonly data: unknown
      },
      options?: CallOptions,
    ) => Promise<
      Success<{
        /** A UUID. */
        readonly id: string
      }>
    >

    /** Returns an event, and its deliveries with every attempt. The audit trail records the disclosure, unless `data=false` leaves out the event's data. Needs the role `operator`. `GET /v2/projects/{project_id}/events/{event_id}` */
    readonly get: (
      input: {
        /** The project's id. */
        readonly project_id: string
        /** The id of the event. */
        readonly event_id: string
        /** Whether the response has the events' data, and not null. Default: true. */
        readonly data?: "true" | "false" | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<PublishedEvent>>
  }

  readonly realtime: {
    /** Issues a ticket for a browser, because a browser cannot send the key: within 60 seconds, it opens one connection to follow the feed. `POST /v2/realtime/tickets` */
    readonly issueTicket: (
      input: {
        /** Ids of the projects with feeds in the ticket's scope; `all` for the key's projects. */
        readonly projects: "all" | ReadonlyArray<string>
      },
      options?: CallOptions,
    ) => Promise<Success<Ticket>>
  }

  readonly apiKeys: {
    /** Returns API keys within the own key's scope, including revoked and expired ones, oldest first. Needs the role `admin`. `GET /v2/api-keys` */
    readonly list: (
      input?: {
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
      },
      options?: CallOptions,
    ) => PageList<ApiKey>

    /** Issues a key. Its scope must be within the own key's scope. Needs the role `admin`. `POST /v2/api-keys` */
    readonly issue: (
      input: {
        /** Ids of the projects in the key's scope; `all` for present and future ones. */
        readonly projects: "all" | ReadonlyArray<string>
        /** The key's permission; each role includes the permissions before it. */
        readonly role: "client" | "operator" | "admin"
        /** The key's display name. */
        readonly name?: string | undefined
        /** A future date. By default, the key never expires. */
        readonly expires_at?: number | string | undefined
      },
      options?: CallOptions,
    ) => Promise<Success<IssuedApiKey>>

    /** Revokes a key for good. Revoking it again changes nothing. Needs the role `admin`. `DELETE /v2/api-keys/{key_id}` */
    readonly revoke: (
      input: {
        /** The id of the key. */
        readonly key_id: string
      },
      options?: CallOptions,
    ) => Promise<Success<null>>
  }

  readonly audit: {
    /** Returns changes with their principals, newest first: projects created and deleted, and API keys issued and revoked. Needs a key with all projects in its scope. With parameters that select changes, a page may have fewer than `limit`, or none, before the last. Needs the role `admin`. `GET /v2/audit` */
    readonly list: (
      input?: {
        /** The most items to return. */
        readonly limit?: number | undefined
        /** The previous page's `next`; without it, the first page. */
        readonly after?: string | undefined
        /** Only changes by this API key, or by another principal named by the host. */
        readonly key_id?: string | undefined
        /** Only changes of this kind. */
        readonly action?:
          | "granted"
          | "imported"
          | "extended"
          | "bulk_extended"
          | "bulk_lengthened"
          | "bulk_extended_by"
          | "bulk_undone"
          | "ended"
          | "moved"
          | "updated"
          | "paused"
          | "resumed"
          | "reverted"
          | "expiring"
          | "overdue"
          | "expired"
          | "person_erased"
          | "webhook_created"
          | "webhook_changed"
          | "webhook_deleted"
          | "webhook_disabled"
          | "secret_rotated"
          | "signing_key_added"
          | "deliveries_cancelled"
          | "project_changed"
          | "secret_shown"
          | "data_shown"
          | "project_created"
          | "project_deleted"
          | "key_issued"
          | "key_opened"
          | "key_revoked"
          | undefined
        /** Only changes by the request with this id. */
        readonly request_id?: string | undefined
        /** Only changes at this time or later. */
        readonly since?: string | undefined
        /** Only changes before this time, which is after `since`. */
        readonly until?: string | undefined
        /** `false` leaves out the announcements `expiring`, `overdue` and `expired`. */
        readonly announcements?: "true" | "false" | undefined
      },
      options?: CallOptions,
    ) => PageList<AuditRow>
  }

  readonly identity: {
    /** Returns the request's principal, with its role and scope. `GET /v2/identity` */
    readonly get: (input?: {}, options?: CallOptions) => Promise<Success<Identity>>
  }

  readonly status: {
    /** Returns the state of the server and its stores. Needs a key with all projects in its scope. Needs the role `admin`. `GET /v2/status` */
    readonly get: (input?: {}, options?: CallOptions) => Promise<Success<Status>>

    /** Returns the successful and failed delivery attempts on all servers, and the answering server's refused requests, by the minute. Another server's attempts may be missing for up to 10 seconds. Needs a key with all projects in its scope. Needs the role `admin`. `GET /v2/status/activity` */
    readonly activity: (input?: {}, options?: CallOptions) => Promise<Success<Activity>>
  }
}

/** The name of each operation and those of the fields of its input, by resource and route. */
export const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  memberships: {
    "PATCH /v2/projects/{project_id}/memberships/{user_id}/extend":
      "extend project_id user_id extend expected_end_date create dry_run events reason mode extend_by time_zone from through",
    "PATCH /v2/projects/{project_id}/memberships/extend":
      "extendAll project_id extend dry_run events reason mode extend_by through time_zone",
    "POST /v2/projects/{project_id}/memberships/extend-some":
      "extendSome project_id extend where after dry_run reason mode extend_by time_zone from through",
    "GET /v2/projects/{project_id}/bulk-extensions": "bulkExtensions project_id limit after",
    "POST /v2/projects/{project_id}/bulk-extensions/{bulk_extension_id}/undo":
      "undoBulkExtension project_id bulk_extension_id reason dry_run events",
    "GET /v2/projects/{project_id}/ends": "ends project_id from to extend extend_by through mode",
    "POST /v2/projects/{project_id}/memberships/import": "import project_id dry_run events lines",
    "GET /v2/projects/{project_id}/memberships":
      "list project_id limit after state user_ids prefix ending_before",
    "GET /v2/projects/{project_id}/memberships/{user_id}": "get project_id user_id",
    "PUT /v2/projects/{project_id}/memberships/{user_id}":
      "grant project_id user_id end_date metadata reason if_absent through time_zone",
    "PATCH /v2/projects/{project_id}/memberships/{user_id}":
      "update project_id user_id metadata reason",
    "DELETE /v2/projects/{project_id}/memberships/{user_id}": "end project_id user_id erase",
    "POST /v2/projects/{project_id}/memberships/{user_id}/move":
      "move project_id user_id to reason",
    "POST /v2/projects/{project_id}/memberships/{user_id}/pause":
      "pause project_id user_id until reason through time_zone",
    "POST /v2/projects/{project_id}/memberships/{user_id}/resume":
      "resume project_id user_id reason",
    "GET /v2/projects/{project_id}/memberships/{user_id}/history":
      "history project_id user_id limit after key_id action request_id since until announcements",
  },
  projects: {
    "GET /v2/projects": "list limit after",
    "PUT /v2/projects/{project_id}": "create project_id",
    "GET /v2/projects/{project_id}": "get project_id",
    "PATCH /v2/projects/{project_id}": "update project_id time_zone grace reason dry_run",
    "DELETE /v2/projects/{project_id}": "delete project_id",
    "GET /v2/projects/{project_id}/audit":
      "audit project_id limit after key_id action request_id since until announcements user_id",
    "GET /v2/projects/{project_id}/activity": "activity project_id",
  },
  webhooks: {
    "GET /v2/projects/{project_id}/integrations/webhooks": "list project_id",
    "POST /v2/projects/{project_id}/integrations/webhooks":
      "create project_id url event_types ordered rate description headers",
    "GET /v2/projects/{project_id}/integrations/health": "health project_id",
    "GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}": "get project_id webhook_id",
    "PATCH /v2/projects/{project_id}/integrations/webhooks/{webhook_id}":
      "update project_id webhook_id url event_types ordered rate description headers disabled",
    "DELETE /v2/projects/{project_id}/integrations/webhooks/{webhook_id}":
      "delete project_id webhook_id",
    "POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/ping":
      "ping project_id webhook_id",
    "POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/enable":
      "enable project_id webhook_id",
    "POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/rotate":
      "rotate project_id webhook_id",
    "GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries":
      "deliveries project_id webhook_id limit after state order",
    "GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/activity":
      "activity project_id webhook_id",
    "GET /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries/{event_id}":
      "delivery project_id webhook_id event_id",
    "POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/replay":
      "replay project_id webhook_id event_id since types only dry_run after",
    "POST /v2/projects/{project_id}/integrations/webhooks/{webhook_id}/cancel":
      "cancel project_id webhook_id types since until user_id dry_run",
  },
  events: {
    "GET /v2/projects/{project_id}/events":
      "list project_id limit after types wait ticket data order",
    "POST /v2/projects/{project_id}/events": "publish project_id type data",
    "GET /v2/projects/{project_id}/events/{event_id}": "get project_id event_id data",
  },
  realtime: {
    "POST /v2/realtime/tickets": "issueTicket projects",
  },
  apiKeys: {
    "GET /v2/api-keys": "list limit after",
    "POST /v2/api-keys": "issue projects role name expires_at",
    "DELETE /v2/api-keys/{key_id}": "revoke key_id",
  },
  audit: {
    "GET /v2/audit": "list limit after key_id action request_id since until announcements",
  },
  identity: {
    "GET /v2/identity": "get",
  },
  status: {
    "GET /v2/status": "get",
    "GET /v2/status/activity": "activity",
  },
}

/** Makes the operations, by resource. */
export const operations = ({ call, callWithLines, list }: Calls): Operations => ({
  memberships: {
    extend: (input, options) =>
      call("PATCH", "/v2/projects/{project_id}/memberships/{user_id}/extend", input, options),
    extendAll: (input, options) =>
      call("PATCH", "/v2/projects/{project_id}/memberships/extend", input, options),
    extendSome: (input, options) =>
      call("POST", "/v2/projects/{project_id}/memberships/extend-some", input, options),
    bulkExtensions: (input, options) =>
      list("GET", "/v2/projects/{project_id}/bulk-extensions", input, options),
    undoBulkExtension: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/bulk-extensions/{bulk_extension_id}/undo",
        input,
        options,
      ),
    ends: (input, options) => call("GET", "/v2/projects/{project_id}/ends", input, options),
    import: (input, options) =>
      callWithLines("POST", "/v2/projects/{project_id}/memberships/import", input, options),
    list: (input, options) => list("GET", "/v2/projects/{project_id}/memberships", input, options),
    get: (input, options) =>
      call("GET", "/v2/projects/{project_id}/memberships/{user_id}", input, options),
    grant: (input, options) =>
      call("PUT", "/v2/projects/{project_id}/memberships/{user_id}", input, options),
    update: (input, options) =>
      call("PATCH", "/v2/projects/{project_id}/memberships/{user_id}", input, options),
    end: (input, options) =>
      call("DELETE", "/v2/projects/{project_id}/memberships/{user_id}", input, options),
    move: (input, options) =>
      call("POST", "/v2/projects/{project_id}/memberships/{user_id}/move", input, options),
    pause: (input, options) =>
      call("POST", "/v2/projects/{project_id}/memberships/{user_id}/pause", input, options),
    resume: (input, options) =>
      call("POST", "/v2/projects/{project_id}/memberships/{user_id}/resume", input, options),
    history: (input, options) =>
      list("GET", "/v2/projects/{project_id}/memberships/{user_id}/history", input, options),
  },
  projects: {
    list: (input = {}, options) => list("GET", "/v2/projects", input, options),
    create: (input, options) => call("PUT", "/v2/projects/{project_id}", input, options),
    get: (input, options) => call("GET", "/v2/projects/{project_id}", input, options),
    update: (input, options) => call("PATCH", "/v2/projects/{project_id}", input, options),
    delete: (input, options) => call("DELETE", "/v2/projects/{project_id}", input, options),
    audit: (input, options) => list("GET", "/v2/projects/{project_id}/audit", input, options),
    activity: (input, options) => call("GET", "/v2/projects/{project_id}/activity", input, options),
  },
  webhooks: {
    list: (input, options) =>
      call("GET", "/v2/projects/{project_id}/integrations/webhooks", input, options),
    create: (input, options) =>
      call("POST", "/v2/projects/{project_id}/integrations/webhooks", input, options),
    health: (input, options) =>
      call("GET", "/v2/projects/{project_id}/integrations/health", input, options),
    get: (input, options) =>
      call("GET", "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}", input, options),
    update: (input, options) =>
      call("PATCH", "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}", input, options),
    delete: (input, options) =>
      call(
        "DELETE",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}",
        input,
        options,
      ),
    ping: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/ping",
        input,
        options,
      ),
    enable: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/enable",
        input,
        options,
      ),
    rotate: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/rotate",
        input,
        options,
      ),
    deliveries: (input, options) =>
      list(
        "GET",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries",
        input,
        options,
      ),
    activity: (input, options) =>
      call(
        "GET",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/activity",
        input,
        options,
      ),
    delivery: (input, options) =>
      call(
        "GET",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/deliveries/{event_id}",
        input,
        options,
      ),
    replay: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/replay",
        input,
        options,
      ),
    cancel: (input, options) =>
      call(
        "POST",
        "/v2/projects/{project_id}/integrations/webhooks/{webhook_id}/cancel",
        input,
        options,
      ),
  },
  events: {
    list: (input, options) => call("GET", "/v2/projects/{project_id}/events", input, options),
    publish: (input, options) => call("POST", "/v2/projects/{project_id}/events", input, options),
    get: (input, options) =>
      call("GET", "/v2/projects/{project_id}/events/{event_id}", input, options),
  },
  realtime: {
    issueTicket: (input, options) => call("POST", "/v2/realtime/tickets", input, options),
  },
  apiKeys: {
    list: (input = {}, options) => list("GET", "/v2/api-keys", input, options),
    issue: (input, options) => call("POST", "/v2/api-keys", input, options),
    revoke: (input, options) => call("DELETE", "/v2/api-keys/{key_id}", input, options),
  },
  audit: {
    list: (input = {}, options) => list("GET", "/v2/audit", input, options),
  },
  identity: {
    get: (input = {}, options) => call("GET", "/v2/identity", input, options),
  },
  status: {
    get: (input = {}, options) => call("GET", "/v2/status", input, options),
    activity: (input = {}, options) => call("GET", "/v2/status/activity", input, options),
  },
})
