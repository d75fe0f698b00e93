import * as Data from "effect/Data"

/** The cause of a call that was not made, because Tenure is closing. */
export const closing = "closed"

/**
 * The storage behind a port does not answer. It is unknown whether a change was made. Repeating the
 * change sets the same end dates again, but may add a second audit row and a second event.
 */
export class StoreUnavailable extends Data.TaggedError("StoreUnavailable")<{
  readonly cause: unknown
}> {
  override get message(): string {
    return this.cause === closing
      ? "Tenure is closing, and has not made the call."
      : "The store does not answer."
  }
}
