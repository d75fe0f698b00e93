/** JSON that comes from elsewhere. */

/** Tells whether a value is an object. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/**
 * Parses an object.
 *
 * @param revive - returns what takes the place of a value, as for `JSON.parse`
 * @returns `undefined` if the text is not the JSON of an object
 */
export const parseObject = (
  text: string,
  revive?: (name: string, value: unknown) => unknown,
): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text, revive)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
