import * as Data from "effect/Data"

const inspection = Symbol.for("nodejs.util.inspect.custom")

/**
 * Creates the base class of an error with a tag, as `Data.TaggedError` does. Unlike Effect's, Node prints the error
 * with its message and its stack: hosts log it with `console.error`.
 */
export const TaggedError: typeof Data.TaggedError = (tag) => {
  const base = Data.TaggedError(tag)
  Reflect.defineProperty(base.prototype, inspection, { value: undefined })
  return base
}
