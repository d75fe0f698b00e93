import * as Data from "effect/Data"

/**
 * The storage behind a port does not answer. Whether a change was made is unknown; every operation
 * is safe to repeat.
 */
export class StoreUnavailable extends Data.TaggedError("StoreUnavailable")<{
  readonly cause: unknown
}> {}
