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

/** What a client asked for, with all repetitions of the request. */
export interface Call {
  readonly action: Action
  readonly projectId: string
  readonly userId?: string | undefined
  /** The date asked for, which no other call asks for; or the one that was found. */
  endDate?: number | undefined
  /** What the request names: a bulk extension, a webhook, or the mark of an event. */
  readonly subject?: string | undefined
  readonly hasKey: boolean
  /** How many requests were sent. */
  tries: number
  readonly start: number
  end: number
  /** The status of the last answer; 0 if there was none. */
  status: number
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
interface Arrival {
  readonly url: string
  readonly eventId: string
  /** When the process began to send. */
  readonly sentAt: number
  readonly at: number
  readonly isVerified: boolean
  readonly isAccepted: boolean
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
  readonly got: Array<string>
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
  /** When the limiter let a request pass, and when a process answered one that it let pass. */
  readonly takes: Array<number>
  readonly admissions: Array<number>
  readonly arrivals: Array<Arrival>
  readonly webhooks: Array<Webhook>
  /** When webhooks were created and deleted, by their ids. */
  readonly created: Map<string, number>
  readonly deleted: Map<string, number>
  readonly readers: Array<Reader>
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
