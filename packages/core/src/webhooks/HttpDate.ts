/** Dates in HTTP header fields (RFC 9110, 5.6.7). */

const formats = [
  // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
  /^(?<weekday>[A-Z][a-z]{2}), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // The obsolete format of RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
  /^(?<weekday>(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day), (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  // The obsolete format of asctime: Sun Nov  6 08:49:37 1994
  /^(?<weekday>[A-Z][a-z]{2}) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/,
]

/** Completes a two-digit year, so that it is at most 50 years in the future. */
const fullYear = (digits: string, now: number): string => {
  const latest = new Date(now).getUTCFullYear() + 50
  return String(latest - ((latest - Number(digits)) % 100))
}

/**
 * Parses a date in the format that senders must use, or in one of the two obsolete ones.
 *
 * @param now - milliseconds since the epoch; determines the century of a two-digit year
 * @returns milliseconds since the epoch, or `undefined` if the text is not such a date, or the date does not exist
 * @example `parse("Sun, 06 Nov 1994 08:49:37 GMT", now)` returns 784111777000
 */
export const parse = (text: string, now: number): number | undefined => {
  for (const format of formats) {
    const fields = format.exec(text)?.groups
    if (fields === undefined) continue
    const { day = "", month = "", time = "", weekday = "", year = "" } = fields
    const yyyy = year.length === 2 ? fullYear(year, now) : year
    const weekdayAndDay = `${weekday.slice(0, 3)}, ${day.replace(" ", "0")}`
    return instantOf(`${weekdayAndDay} ${month} ${yyyy} ${time} GMT`)
  }
  return undefined
}

/** Returns the instant of an IMF-fixdate. A date that does not exist is formatted differently. */
const instantOf = (fixdate: string): number | undefined => {
  const instant = Date.parse(fixdate)
  return new Date(instant).toUTCString() === fixdate ? instant : undefined
}
