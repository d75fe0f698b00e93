/** What is recorded of a run. Every invariant is a function of this. Instants are in true time. */

/** What a client asks for. */
type Action =
  | "grant"
  | "extend"
  | "extendAll"
  | "undo"
  | "end"
  | "find"
  | "publish"
  | "createWebhook"
  | "deleteWebhook"

/** What a client called, with all repetitions of the request. */
export interface Call {
  readonly client: string
  readonly action: Action
  readonly projectId: string
  readonly userId?: string | undefined
  /** The date asked for, which no other call asks for; or the one that was found. */
  endDate?: number | undefined
  /** Whether a bulk extension leaves later dates as they are. */
  readonly isNeverShortening?: boolean | undefined
  /** What the request names: a bulk extension, a webhook, or the mark of an event. */
  readonly subject?: string | undefined
  /** Whether its requests have an idempotency key, of the client's package or of its caller. */
  readonly hasKey: boolean
  /** How many requests were sent. */
  tries: number
  readonly start: number
  /** When its outcome was known; `Infinity` if it is not known. */
  end: number
  /** 200 if it is reported as done, the status of its error otherwise; 0 without one. */
  status: number
  /** The code of its error. */
  code: string
  /** The data of the answer. */
  data: Readonly<Record<string, unknown>>
}

/** A change that the stores have made. */
export interface Commit {
  /** The event of the change. */
  readonly eventId: string
  readonly at: number
  /** By the clock of the store. */
  readonly storeMillis: number
}

/** A request at a receiver. */
export interface Arrival {
  readonly url: string
  readonly eventId: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** By the clock of the receiver, which is that of the process. */
  readonly wallMillis: number
  /** When the process began to send. */
  readonly sentAt: number
  readonly at: number
  readonly isVerified: boolean
  readonly isAccepted: boolean
  /** What the client's package makes of it, if the receiver has the secret in the end: an event, or why not. */
  trusted?: { readonly type: string; readonly data: unknown } | string
  /** Whether the process heard of it. */
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

/** A wait that a server asked for, and the one until the next request of the call. In milliseconds. */
interface Wait {
  readonly asked: number
  readonly taken: number
}

/** An event, as it is in the feed in the end. */
export interface StoredEvent {
  readonly id: string
  readonly projectId: string
  readonly type: string
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
  /** By the clock of the store. */
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
  /** Why the programs of clients ended before they were done. */
  readonly deaths: Array<string>
  /** Since when ends are announced, by the clock of the store, as it tells each process. */
  readonly watchedSince: Array<number>
  /** When something went wrong: a call of the store failed, a process crashed, a clock was set. */
  readonly troubles: Array<number>
}

/** Makes notes of which nothing has happened yet. */
export const makeNotes = (): Notes => ({
  calls: [],
  commits: [],
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
  troubles: [],
})

/** All that is recorded of a run. */
export interface Run extends Notes {
  readonly remains: Remains
}

/** Something that must not be. */
export interface Violation {
  readonly invariant: string
  readonly text: string
}
