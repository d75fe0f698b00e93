import * as Data from "effect/Data"

/** An argument of an in-process call, or an option, is invalid. */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{
  /** The name of the argument or option, such as `projectId` or `webhooks.timeout`. */
  readonly field: string
  /** What is wrong with it, and what is valid instead. */
  readonly problem: string
}> {
  override get message(): string {
    return `${this.field} ${this.problem}`
  }
}
