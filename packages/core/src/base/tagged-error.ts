/** Errors with a tag. */

import * as Data from "effect/Data"

const inspection = Symbol.for("nodejs.util.inspect.custom")

/**
 * Creates the base class for an error with a tag, as `Data.TaggedError` does. Unlike Effect's, Node
 * prints the error with its message and its stack: hosts log it with `console.error`.
 */
export const TaggedError: typeof Data.TaggedError = (tag) => {
  const base = Data.TaggedError(tag)
  Reflect.defineProperty(base.prototype, inspection, { value: undefined })
  return base
}

/** Tells whether an error has any given tag. */
export const hasTag = (error: unknown, tags: ReadonlyArray<string>): boolean =>
  error instanceof Error && "_tag" in error && tags.some((tag) => tag === error._tag)

/** Resolves to `undefined` if the promise rejects with any given tag. */
export const unless = <A>(
  tags: ReadonlyArray<string>,
  promise: Promise<A>,
): Promise<A | undefined> =>
  promise.catch((error: unknown) => {
    if (hasTag(error, tags)) return undefined
    throw error
  })
