/** Dates as people write them. */

/** What a date looks like. */
export const expected = "2027-01-31, 2027-01-31T12:00:00.000Z, or Unix time in milliseconds"

const millis = /^\d{13}$/

const pattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)?$/

/**
 * Converts a date to the form of the API.
 *
 * @returns `undefined` if the text is not a date, or one that does not exist, such as the 30th of February
 */
export const toIso = (text: string): string | undefined => {
  const isMillis = millis.test(text)
  if (!isMillis && !pattern.test(text)) return undefined
  const date = new Date(isMillis ? Number(text) : text)
  if (Number.isNaN(date.getTime())) return undefined
  const iso = date.toISOString()
  return isMillis || iso.startsWith(text.slice(0, "2027-01-31".length)) ? iso : undefined
}
