/** What follows the feed of a project over a connection that stays open, by any transport. */

import * as Predicate from "effect/Predicate"

/** What to follow. */
interface Subscription {
  readonly url: string
  readonly projectId: string
  /** The types of events to follow; all if missing. */
  readonly types?: ReadonlyArray<string> | undefined
  readonly token: string
  readonly cursor: string
  readonly signal: AbortSignal
  readonly onMessage: (message: Message) => void
}

/** A message of the server. */
export interface Message {
  /** The event, if it brings one; also anything else that is not expected. */
  readonly event: unknown
  /** The place after the message, if it has one. */
  readonly cursor: string | undefined
}

/** A connection that has ended. */
export interface Ended {
  /** The status of the answer; 0 if there was none. */
  readonly status: number
  /** When the answer began, and when the connection ended. */
  readonly from: number
  readonly to: number
  /** The status with which the server closed the connection, if it refused to go on. */
  readonly refusal: number | undefined
}

/** A connection. Its promises never reject. */
interface Following {
  /** The status of the response, as soon as it begins; 0 if the connection fails before. */
  readonly answered: Promise<number>
  readonly ended: Promise<Ended>
}

/** Follows until the connection ends. */
export type Follow = (subscription: Subscription) => Following

/** The statuses of connections that are admitted: of a stream, and of a WebSocket. */
export const admitted: ReadonlyArray<number> = [200, 101]

/** The id of an event. */
export const idOf = (event: unknown): string =>
  Predicate.hasProperty(event, "id") ? String(event.id) : "an event without an id"
