/** The rule for ids that hosts choose. */

/** What an id looks like, for error messages. */
export const expected = "1 to 255 characters, none of them a control character"

// PostgreSQL cannot store NUL, control characters break logs apart, and a lone surrogate has no
// UTF-8 encoding.
const pattern = /^[^\p{Cc}\p{Cs}]{1,255}$/u

/** Tells whether a value is text that can be stored and logged as an id. */
export const isIdentifier = (value: unknown): value is string =>
  typeof value === "string" && pattern.test(value)
