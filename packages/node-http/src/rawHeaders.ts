/** Header fields as they were sent: of some, node keeps the first and drops the others. */

/**
 * All values of a field.
 *
 * @param name - in lower case
 */
export const valuesOf = (rawHeaders: ReadonlyArray<string>, name: string): ReadonlyArray<string> =>
  rawHeaders.filter((_, index) => {
    const field = index % 2 === 1 ? rawHeaders[index - 1] : undefined
    return field?.length === name.length && field.toLowerCase() === name
  })
