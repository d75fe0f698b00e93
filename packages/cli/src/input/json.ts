/** JSON from files and arguments, without numbers that differ from what was written. */

// Reviving functions get the text of a number only as this argument.
interface Written {
  readonly source?: string
}

/**
 * Parses JSON as `JSON.parse` does, but returns numbers other than safe integers as their text: an id such as
 * 175928847299117063 would be rounded. Throws a `SyntaxError` for other text.
 */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, (_: string, value: unknown, written?: Written) =>
    typeof value === "number" && !Number.isSafeInteger(value) ? (written?.source ?? value) : value,
  )

/** Parses JSON. Throws a `RangeError` for a number so large that it would be rounded. */
export const parseUnrounded = (text: string): unknown =>
  JSON.parse(text, (_: string, value: unknown) => {
    if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER)
      throw new RangeError(`${value} would be rounded`)
    return value
  })
