/** Errors common to all methods: invalid input, and unavailable stores. */

import { TaggedError } from "./tagged-error.ts"

/** An argument in an in-process call, or an option, is invalid. */
export class InvalidInput extends TaggedError("InvalidInput")<{
  /** The argument's or option's name, such as `projectId` or `webhooks.timeout`. */
  readonly field: string
  /** The problem, and what is valid instead. */
  readonly problem: string
}> {
  override get message(): string {
    return `${this.field} ${this.problem}`
  }
}

/** The cause for calls refused because Tenure is closing. */
export const closing = "closed"

/**
 * The storage behind a port does not answer. It is unknown whether a change was made. Repeating the
 * change sets the same end dates again, but may add a second audit row and a second event.
 */
export class StoreUnavailable extends TaggedError("StoreUnavailable")<{
  readonly cause: unknown
  /** The unavailable part, as a sentence, if it is not the store. */
  readonly problem?: string | undefined
}> {
  override get message(): string {
    return this.cause === closing
      ? "Tenure is closing, and has not made the call."
      : (this.problem ?? "The store does not answer.")
  }
}
