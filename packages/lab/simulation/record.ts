/** What is recorded in a run. Every invariant is a function of this. Instants are in true time. */

/** What a client asks for. */
type Action =
  | "grant"
  | "extend"
  | "extendAll"
  | "undo"
  | "end"
  | "pause"
  | "resume"
  | "find"
  | "publish"
  | "setGrace"
  | "createWebhook"
  | "deleteWebhook"

/** What a client called, with all repeated requests. */
export interface Call {
  readonly client: string
  readonly action: Action
  readonly projectId: string
  readonly userId?: string | undefined
  /** The date asked for, which no other call asks for; or the one that was found. */
  endDate?: number | undefined
  /** Whether a bulk extension leaves later dates as they are. */
  readonly isNeverShortening?: boolean | undefined
  /** The grace asked for. */
  readonly graceMillis?: number | undefined
  /** What the request names: a bulk extension, a webhook, an event's mark, or a reason that no other call has. */
  readonly subject?: string | undefined
  /** Whether its requests have an idempotency key, from the client's package or its caller. */
  readonly hasKey: boolean
  /** How many requests were sent. */
  tries: number
  readonly start: number
  /** When its outcome was known; `Infinity` if it is not known. */
  end: number
  /** Both by the store's clock. */
  readonly storeStart: number
  storeEnd: number
  /** 200 if it is reported as done, its error's status otherwise; 0 without one. */
  status: number
  /** Its error's code. */
  code: string
  /** The answer's data. */
  data: Readonly<Record<string, unknown>>
}

/** A change that the stores have made. */
export interface Commit {
  /** The change's event. */
  readonly eventId: string
  readonly at: number
  /** By the store's clock. */
  readonly storeMillis: number
}

/** A project's new grace. */
interface GraceChange {
  readonly projectId: string
  readonly graceMillis: number
  readonly at: number
  /** How many changes with events the stores had made before. */
  readonly commits: number
}

/** A request at a receiver. */
export interface Arrival {
  readonly url: string
  readonly eventId: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** By the receiver's clock, which is the process's. */
  readonly wallMillis: number
  /** When the process began to send. */
  readonly sentAt: number
  readonly at: number
  readonly isVerified: boolean
  readonly isAccepted: boolean
  /** What the client's package verifies, if the receiver has the secret in the end: an event, or why not. */
  trusted?: { readonly type: string; readonly data: unknown } | string
  /** Whether the process got the response. */
  isHeard: boolean
}

/** A webhook. */
interface Webhook {
  readonly id: string
  readonly projectId: string
  readonly url: string
  readonly secret: string
}

/** What somebody got who reads the feed. */
interface Reader {
  readonly projectId: string
  /** Page by page, or by a subscription. */
  readonly way: "pages" | "subscription"
  readonly got: Array<string>
}

/** A wait that a server asked for, and the one until the call's next request. In milliseconds. */
interface Wait {
  readonly asked: number
  readonly taken: number
}

/** An event, as it is in the feed in the end. */
export interface StoredEvent {
  readonly id: string
  readonly projectId: string
  readonly type: string
  /** By the clock of the process that made it. */
  readonly at: number
  readonly data: Readonly<Record<string, unknown>>
}

/** What is in the store in the end. */
export interface Remains {
  readonly events: ReadonlyArray<StoredEvent>
  readonly members: ReadonlyArray<{
    readonly projectId: string
    readonly userId: string
    readonly endDate: number
  }>
  readonly webhooks: ReadonlyArray<{ readonly id: string; readonly url: string }>
  readonly deliveries: ReadonlyArray<{
    readonly eventId: string
    readonly webhookId: string
    readonly state: string
    readonly attempts: number
  }>
  /** By the store's clock. */
  readonly storeMillis: number
}

/** Something that happened, for people. */
export interface Told {
  readonly at: number
  readonly who: string
  readonly what: string
}

/** What is recorded while things happen. */
export interface Notes {
  readonly calls: Array<Call>
  readonly commits: Array<Commit>
  readonly graces: Array<GraceChange>
  /** When the limiter let a request pass, by its clock, and when a process answered one that it let pass. */
  readonly takes: Array<number>
  readonly admissions: Array<number>
  readonly arrivals: Array<Arrival>
  readonly webhooks: Array<Webhook>
  /** When webhooks were created and deleted, by their ids. */
  readonly created: Map<string, number>
  readonly deleted: Map<string, number>
  readonly readers: Array<Reader>
  readonly waits: Array<Wait>
  /** Why client programs ended before they were done. */
  readonly deaths: Array<string>
  /** Since when ends are announced, by the store's clock, as it tells each process. */
  readonly watchedSince: Array<number>
  /** The longest pause between two looks for what is due, if nothing fails. */
  longestPause: number
  /** When something went wrong: a store's call failed, a process crashed, a clock was set. */
  readonly troubles: Array<number>
}

/** Makes empty notes. */
export const makeNotes = (): Notes => ({
  calls: [],
  commits: [],
  graces: [],
  takes: [],
  admissions: [],
  arrivals: [],
  webhooks: [],
  created: new Map(),
  deleted: new Map(),
  readers: [],
  waits: [],
  deaths: [],
  watchedSince: [],
  longestPause: 1000,
  troubles: [],
})

/** All that is recorded in a run. */
export interface Run extends Notes {
  readonly remains: Remains
}

/** Something that must not be. */
export interface Violation {
  readonly invariant: string
  readonly text: string
}
