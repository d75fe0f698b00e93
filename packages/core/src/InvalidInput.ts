import * as Data from "effect/Data"

/** An argument of an in-process call, or an option, is not what it has to be. */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{
  /** Name of the argument or option, such as `projectId`. */
  readonly field: string
  readonly message: string
}> {}
