/** Errors that any method may fail with: invalid input, and unavailable stores. */

import { TaggedError } from "./tagged-error.ts"

/** An argument of an in-process call, or an option, is invalid. */
export class InvalidInput extends TaggedError("InvalidInput")<{
  /** The name of the argument or option, such as `projectId` or `webhooks.timeout`. */
  readonly field: string
  /** What is wrong with it, and what is valid instead. */
  readonly problem: string
}> {
  override get message(): string {
    return `${this.field} ${this.problem}`
  }
}

/** The cause of a call that was not made, because Tenure is closing. */
export const closing = "closed"

/**
 * The storage behind a port does not answer. It is unknown whether a change was made. Repeating the
 * change sets the same end dates again, but may add a second audit row and a second event.
 */
export class StoreUnavailable extends TaggedError("StoreUnavailable")<{
  readonly cause: unknown
  /** What is unavailable, as a sentence, if it is not the store. */
  readonly problem?: string | undefined
}> {
  override get message(): string {
    return this.cause === closing
      ? "Tenure is closing, and has not made the call."
      : (this.problem ?? "The store does not answer.")
  }
}
