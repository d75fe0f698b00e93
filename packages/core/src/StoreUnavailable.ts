import * as Data from "effect/Data"

/**
 * The storage behind a port does not answer. Whether a change was made is unknown. To repeat it does
 * no harm: end dates are the same afterwards, though the audit trail and the webhooks may tell of it
 * twice.
 */
export class StoreUnavailable extends Data.TaggedError("StoreUnavailable")<{
  readonly cause: unknown
}> {
  override get message(): string {
    return "The store does not answer."
  }
}
