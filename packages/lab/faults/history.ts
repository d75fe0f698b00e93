/** What a run records. Every check is a function of this. */

import type { KindName } from "./kinds.ts"

/** What a client asks for. */
type Action =
  | ("extend" | "extendAll" | "undo" | "grant" | "end" | "import" | "erase" | "find" | "list")
  | ("publish" | "createWebhook" | "deleteWebhook" | "listWebhooks" | "ready" | "invalid")
  | FeedAction

/** How a reader asks for events: by a poll, by a stream over HTTP, by WebSocket, or in process. */
export type FeedAction = "poll" | "listen" | "subscribe" | "follow"

/** A client's request, and its answer. Instants are in milliseconds since the epoch. */
export interface Operation {
  readonly action: Action
  /** The process that was asked: a server's name, or `host` for a call in process. */
  readonly process: string
  /** Empty if a server is asked whether it is ready. */
  readonly projectId: string
  readonly userId?: string | undefined
  /**
   * The end date asked for, which no other request asks for, or the one that was found: also by a change
   * that expected another one.
   */
  readonly endDate?: number | undefined
  /** The memberships to import, each with an end date that nothing else asks for, or those in a list. */
  readonly members?: ReadonlyArray<Dated> | undefined
  /** Whether a bulk extension leaves later dates as they are. */
  readonly isNeverShortening?: boolean | undefined
  /** By how much a bulk extension extends, in milliseconds. */
  readonly extendBy?: number | undefined
  /** The end date that an extension expects. */
  readonly expectedEndDate?: number | undefined
  /** The end date that was found instead of the expected one. */
  readonly conflictingDate?: number | undefined
  /** Repetitions have the same one. */
  readonly idempotencyKey?: string | undefined
  /** Whether the answer says that it repeats an earlier one. */
  readonly isReplayed?: boolean | undefined
  /** The API key's name. Calls in process have none. */
  readonly key?: string | undefined
  /** What identifies a published event, the webhook to delete, or the request whose bulk extension to undo. */
  readonly subject?: string | undefined
  readonly start: number
  readonly end: number
  /** The answer's status, also for a call in process; 0 if there was none. */
  readonly status: number
  /** The statuses that are right while all is well. */
  readonly expected: ReadonlyArray<number>
  readonly requestId?: string | undefined
  /** The webhook that was created. */
  readonly webhook?: Webhook | undefined
  /** What is wrong with the answer, or why it is missing. */
  readonly problem?: string | undefined
}

/** A user's end date; none if the user is no member. */
interface Dated {
  readonly userId: string
  readonly endDate: number | undefined
}

export interface Webhook {
  readonly id: string
  readonly url: string
  readonly secret: string
}

/** A notification that a receiver got. */
export interface Arrival {
  /** The webhook's URL, which no other webhook has. */
  readonly url: string
  readonly at: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** The status that the receiver answered; `undefined` if it did not answer. */
  readonly status: number | undefined
  /** When its answer was sent or its connection closed; `undefined` if neither has happened. */
  readonly ended: number | undefined
}

/** A reader, which goes on from its cursor at any process. */
export interface Reader {
  readonly name: string
  readonly projectId: string
  /** The event types that it asks for; all if missing. */
  readonly types?: ReadonlyArray<string> | undefined
  /** What it got, in this order. */
  readonly got: ReadonlyArray<Got>
}

/** An event that a reader got. */
export interface Got {
  readonly eventId: string
  readonly at: number
  /** Whether a cursor followed it before the connection ended. */
  readonly isSettled: boolean
}

/** A connection that follows the feed, from its response's first byte to its end. */
export interface Connection {
  readonly key: string
  readonly process: string
  readonly from: number
  readonly to: number
}

/** When a key was revoked while it followed the feed, and when its connection ended. */
export type Revocation = Readonly<Record<"revoked" | "ended", number>>

/** A connection by WebSocket whose client has sent what is no frame. */
export interface Intrusion {
  /** What it sent. */
  readonly sent: string
  readonly at: number
  /** When the server ended the connection, or the client gave up waiting for that. */
  readonly ended: number
}

export const manners = [
  ...(["fast", "slow", "hanging", "failing", "shaky"] as const),
  ...(["gone", "busy", "resetting", "talkative"] as const),
] as const

export type Manner = (typeof manners)[number]

/** A fault that was caused. */
export interface Fault {
  readonly kind: KindName
  readonly target: string | undefined
  readonly start: number
  readonly end: number
}

/** How a server ended that was asked to. */
export interface Exit {
  readonly process: string
  readonly code: number | null
  readonly signal: string | null
  readonly millis: number
}

interface Log {
  readonly process: string
  readonly text: string
}

/** What a process holds at a moment. */
export interface Holding {
  readonly bytes: number
  /** Open files, which include connections. */
  readonly handles: number
}

/** What a process holds before the first fault, and after the last one has healed. */
export interface Size {
  readonly process: string
  readonly before: Holding
  readonly after: Holding
}

/** What a server holds in a calm, after it has collected its garbage. */
export interface Sample extends Holding {
  readonly process: string
  /** The process id, which a restart changes. */
  readonly id: number
  readonly at: number
  readonly heapBytes: number
}

/** An audit row, in the trail's order. */
export interface AuditRow {
  readonly projectId: string
  /** `undefined` for all memberships in the project. */
  readonly userId: string | undefined
  readonly action: string
  readonly from: number | undefined
  readonly to: number | undefined
  /** By how much a bulk extension has extended, in milliseconds. */
  readonly extendBy?: number | undefined
  /** The bulk extension that was made or undone. */
  readonly bulkExtensionId?: string | undefined
  readonly requestId: string | undefined
}

export interface Event {
  readonly id: string
  readonly projectId: string
  readonly type: string
  readonly body: string
}

export interface Delivery {
  readonly eventId: string
  readonly webhookId: string
  readonly state: string
  /** How often it was attempted, also by processes that could not record it any more. */
  readonly attempts: number
}

/** What the database holds in the end. */
export interface State {
  readonly memberships: ReadonlyArray<
    Readonly<{ projectId: string; userId: string; endDate: number }>
  >
  readonly audit: ReadonlyArray<AuditRow>
  readonly events: ReadonlyArray<Event>
  readonly deliveries: ReadonlyArray<Delivery>
  readonly webhooks: ReadonlyArray<Webhook & Readonly<{ projectId: string; isDisabled: boolean }>>
}

/** What a key may send: `capacity` requests at once, and `perSecond` afterwards. */
export type Limit = Readonly<Record<"capacity" | "perSecond", number>>

export interface Run {
  readonly seed: number
  /** The processes: the servers, then the host. */
  readonly processes: ReadonlyArray<string>
  readonly operations: ReadonlyArray<Operation>
  readonly arrivals: ReadonlyArray<Arrival>
  readonly readers: ReadonlyArray<Reader>
  /** What a feed got that asks for what comes after the last position. It is not Tenure's. */
  readonly naive: Reader
  readonly connections: ReadonlyArray<Connection>
  readonly revocations: ReadonlyArray<Revocation>
  readonly intrusions: ReadonlyArray<Intrusion>
  /** How the receiver at each URL behaves. */
  readonly manners: Readonly<Record<string, Manner>>
  readonly faults: ReadonlyArray<Fault>
  readonly exits: ReadonlyArray<Exit>
  readonly logs: ReadonlyArray<Log>
  /** What no log may contain, by name. */
  readonly secrets: Readonly<Record<string, string>>
  readonly sizes: ReadonlyArray<Size>
  /** What servers hold meanwhile. */
  readonly samples: ReadonlyArray<Sample>
  readonly limits: ReadonlyArray<Limit>
  /** How long before its end date a membership is announced, in milliseconds: longest first, and then 0. */
  readonly leads: ReadonlyArray<number>
  /** How often a delivery is attempted before it is given up. */
  readonly maxAttempts: number
  /**
   * How much later than documented things may happen, in milliseconds: at least the longest time that
   * the harness itself was held up.
   */
  readonly slackMillis: number
  /** How many deliveries had not ended after the last request in a long run, with receivers that were not well. */
  readonly backlog: number
  /** How long deliveries were under way after the last request, in milliseconds. */
  readonly drainedMillis: number
  /** When everything was over. */
  readonly endedAt: number
  readonly state: State
}

/** The largest value, none of which is negative; 0 without any. */
export const largest = (values: ReadonlyArray<number>): number =>
  values.reduce((one, other) => Math.max(one, other), 0)

/** When a run's first request began. */
export const beginOf = ({ operations }: Pick<Run, "operations">): number =>
  operations.reduce((first, { start }) => Math.min(first, start), Infinity)

/** Something that must not be. */
export interface Finding {
  readonly text: string
  /** When it happened, if that is known. */
  readonly at?: number | undefined
}

/** What a check has found. */
export interface Violation extends Finding {
  readonly check: string
}

/** A check: finds what must not be in a run. */
export interface Check {
  readonly name: string
  readonly find: (run: Run) => ReadonlyArray<Finding>
}
