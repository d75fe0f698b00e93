/** Column names, and ids and dates changed by spreadsheets. */

import { makeNameCheck } from "@tenure/core/internal"
import { parseDay } from "../support/end-dates.ts"
import { dateFormat } from "../support/flags.ts"

/** A member's fields in a file. */
export const fields = [
  "user_id",
  "end_date",
  "through",
  "time_zone",
  "kept_day",
  "paused_at",
  "resumes_at",
  "metadata",
] as const

/** A member's field in a file. */
export type Field = (typeof fields)[number]

/** Tells whether a text is a field's name. */
export const isField = (text: string): text is Field => fields.some((field) => field === text)

/** Column names by field, for fields under another name. */
export type ColumnNames = ReadonlyMap<Field, string>

/** Removes spaces with any width, and invisible characters, from both ends. */
export const trim = (text: string): string => text.replaceAll(/^[\s\p{Cf}]+|[\s\p{Cf}]+$/gu, "")

/** Returns a name without its capitals, spaces and marks: `User ID` and `userId` are the same. */
const plain = (name: string): string =>
  // A Mac may write `ü` as two characters.
  name
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "")

/** Returns a field's columns: an exact name comes before other spellings. */
const indexesOf = (name: string, titles: ReadonlyArray<string>): ReadonlyArray<number> => {
  const spelled = (isSame: (title: string) => boolean) =>
    titles.flatMap((title, index) => (isSame(title) ? [index] : []))
  const exact = spelled((title) => title === name)
  return exact.length > 0 ? exact : spelled((title) => plain(title) === plain(name))
}

/** Finds a field's name in any spelling among other names: more than one if ambiguous. */
export const findNames = (
  field: Field,
  names: ReadonlyArray<string>,
  columns: ColumnNames,
): ReadonlyArray<string> =>
  indexesOf(columns.get(field) ?? field, names).flatMap((index) => names[index] ?? [])

const faultOfNames = makeNameCheck(Object.fromEntries(fields.map((field) => [field, true])))

/**
 * Returns the problem if a name beside the fields' is probably misspelled.
 *
 * @param found - the names of the fields found
 */
export const misnamed = (
  names: ReadonlyArray<string>,
  found: ReadonlyMap<Field, string>,
): string | undefined => {
  const used = new Set(found.values())
  // A field's other spellings here are beside its exact name, or there are two.
  const others = names.filter(
    (name) => !used.has(name) && !fields.some((field) => plain(field) === plain(name)),
  )
  return faultOfNames(Object.fromEntries([...others, ...found.keys()].map((name) => [name, true])))
    ?.message
}

/** Returns the problem if two fields have the same name: `--map` can say so. */
export const sharedProblem = (found: ReadonlyMap<Field, string>): string | undefined => {
  const fieldsOf = (name: string) =>
    fields.filter((field) => found.has(field) && found.get(field) === name)
  const name = [...found.values()].find((one) => fieldsOf(one).length > 1)
  return name === undefined
    ? undefined
    : `"${name}" cannot be ${fieldsOf(name).join(" and ")}: correct --map, which gives each field a column of its own`
}

/** The fields' columns in a record. */
export interface Header {
  readonly titles: ReadonlyArray<string>
  readonly indexes: ReadonlyMap<Field, number>
}

const maxShown = 20

const shown = (titles: ReadonlyArray<string>): string => {
  const named = titles.filter((title) => title !== "")
  const first = named.slice(0, maxShown).map((title) => `"${title.slice(0, 60)}"`)
  return [...first, ...(named.length > maxShown ? ["…"] : [])].join(", ")
}

const missing = (lacking: ReadonlyArray<Field>, titles: ReadonlyArray<string>): string => {
  const flags = lacking.map((field) => `--map ${field}="NAME OF THE COLUMN"`).join(" ")
  return `The first line must name the columns user_id and end_date: no ${lacking.join(", no ")}. It has ${shown(titles)}. Say which column is which: ${flags}. Columns are separated by a comma, a semicolon, a tab or |, or as a first line such as sep=; says`
}

/**
 * Finds the fields among the titles. Returns the problem if a field is missing or ambiguous.
 */
export const readHeader = (cells: ReadonlyArray<string>, columns: ColumnNames): Header | string => {
  const titles = cells.map(trim)
  const indexes = new Map<Field, number>()
  for (const field of fields) {
    const given = columns.get(field)
    const [index, other] = indexesOf(given ?? field, titles)
    if (index !== undefined && other !== undefined)
      return `Two columns are ${field}: "${titles[index]}" and "${titles[other]}". Rename one of them, or say which one it is: --map ${field}="NAME OF THE COLUMN"`
    if (index === undefined && given !== undefined)
      return `There is no column "${given}" for --map ${field}. There are ${shown(titles)}`
    if (index !== undefined) indexes.set(field, index)
  }
  const needed: ReadonlyArray<Field> = indexes.has("through")
    ? ["user_id"]
    : ["user_id", "end_date"]
  const lacking = needed.filter((field) => !indexes.has(field))
  if (lacking.length > 0) return missing(lacking, titles)
  const found = new Map([...indexes].map(([field, index]) => [field, titles[index] ?? ""]))
  const shared = sharedProblem(found)
  if (shared !== undefined) return shared
  const wrong = misnamed(titles, found)
  return wrong === undefined ? { titles, indexes } : `In the first line, ${wrong}`
}

/** How a file writes dates. */
export interface DateOrder {
  /** As it was given, such as `DD.MM.YYYY`. */
  readonly format: string
  /** Converts such a date to the API's format for days. */
  readonly read: (text: string) => string | undefined
}

const order = /^(DD?|MM?|YYYY)([./-])(DD?|MM?|YYYY)\2(DD?|MM?|YYYY)$/

// Spreadsheets add midnight to dates.
const midnight = String.raw`(?:,? +(?:0?0:00(?::00)?|12:00(?::00)? ?AM))?`

const partOf = (part: string): string =>
  part.startsWith("Y") ? String.raw`(?<Y>\d{4})` : String.raw`(?<${part.slice(0, 1)}>\d{1,2})`

/** Reads a date order, such as `DD.MM.YYYY` or `MM/DD/YYYY`. */
export const parseDateOrder = (given: string): DateOrder | undefined => {
  const format = given.toUpperCase()
  const [, one = "", separator = "", two = "", three = ""] = order.exec(format) ?? []
  const parts = [one, two, three]
  if (new Set(parts.map((part) => part.slice(0, 1))).size !== parts.length) return undefined
  const pattern = new RegExp(
    `^${parts.map(partOf).join(String.raw`\s*[${separator}]\s*`)}${midnight}$`,
    "i",
  )
  return {
    format,
    read: (text) => {
      const { D = "", M = "", Y = "" } = pattern.exec(text)?.groups ?? {}
      return parseDay(`${Y}-${M.padStart(2, "0")}-${D.padStart(2, "0")}`)
    },
  }
}

/** Other programs' dates, with the advice. */
const foreignDates: ReadonlyArray<readonly [pattern: RegExp, problem: string]> = [
  [
    /^\d{5}(?:[.,]\d+)?$/,
    "end_date is a count of days, which spreadsheets have for dates: format the column as a date such as 2027-01-31, and save the file again",
  ],
  [/^\d{10}$/, "end_date is Unix time in seconds: it must be in milliseconds"],
  [
    /^\d(?:[.,]\d+)?E\+?\d+$/i,
    "end_date was rounded by a spreadsheet: format the column as a date such as 2027-01-31, and export it again",
  ],
  [
    /^\d{4}-\d\d-\d\d[T ]\d/,
    "end_date must be a time in UTC that ends in Z, such as 2027-01-31T12:00:00Z, or a date alone",
  ],
  [
    /^\d{1,2}\/\d{1,2}\/\d{4}\b/,
    "end_date is a date whose order must be told: add --dates MM/DD/YYYY if the month comes first, or --dates DD/MM/YYYY",
  ],
  [
    /^\d{1,2}-\d{1,2}-\d{4}\b/,
    "end_date is a date whose order must be told: add --dates DD-MM-YYYY, or --dates MM-DD-YYYY if the month comes first",
  ],
  [
    /^\d{1,2}\.\s*\d{1,2}\.\s*\d{4}\b/,
    "end_date is a date whose order must be told: add --dates DD.MM.YYYY",
  ],
  [
    /^\d{4}([./])\d{1,2}\1\d{1,2}\b/,
    "end_date is a date whose order must be told: add --dates YYYY/MM/DD, with the separator of the file",
  ],
  [
    /^\d{1,2}([./-])\s*\d{1,2}\1\s*\d{2}\b/,
    "end_date must have a year of four digits: format the column so, and add --dates, such as --dates DD.MM.YYYY",
  ],
]

/** Explains an invalid date. */
export const dateProblem = (text: string, dates: DateOrder | undefined): string => {
  const [pattern, problem] = foreignDates.find(([one]) => one.test(text)) ?? []
  const isOrdered = pattern !== undefined && problem?.includes("--dates") === true
  if (problem !== undefined && !(isOrdered && dates !== undefined)) return problem
  return dates === undefined
    ? `end_date must be a date: ${dateFormat}; or never. Other dates need --dates, such as --dates DD.MM.YYYY`
    : `end_date must be a date as --dates ${dates.format} says, or ${dateFormat}; or never`
}

/** Explains an invalid last day. */
export const dayProblem = (dates: DateOrder | undefined): string =>
  dates === undefined
    ? "through must be a day such as 2027-01-31"
    : `through must be a day as --dates ${dates.format} says, or such as 2027-01-31`

const asText = "format the column as text, and export it again from where the ids come from"

/** Spreadsheet numbers and errors where an id belongs. */
const brokenIds: ReadonlyArray<readonly [pattern: RegExp, problem: string]> = [
  [
    // Without a decimal mark or a sign, it may be an id: `12E45`.
    /^[+-]?\d+(?:[.,]\d*E[+-]?|E[+-])\d{1,3}$/i,
    `user_id is a number that a spreadsheet has rounded: ${asText}`,
  ],
  [/^[+-]?\d+[.,]0+$/, `user_id is a number with decimals: ${asText}`],
  [
    // A single dot may be in an id: `1.234`.
    /^[+-]?\d{1,3}(?:(?:,\d{3})+(?:\.\d+)?|(?:\.\d{3}){2,}(?:,\d+)?)$/,
    `user_id is a number with separators of thousands: ${asText}`,
  ],
  [
    // In every language: #REF!, #BEZUG!, #NOM?, #N/A, #N/D, #NV, Err:502.
    /^(?:#\p{Lu}[\p{Lu}\d_/.]*[!?]|#N\/\p{Lu}+\??|#NV|#{2,}|#GETTING_DATA|Err:\d{3})$/u,
    "user_id is an error of the spreadsheet: correct the cell",
  ],
]

/** Explains an id destroyed by a spreadsheet. */
export const brokenIdProblem = (text: string): string | undefined =>
  brokenIds.find(([pattern]) => pattern.test(text))?.[1]

// Spreadsheets keep a number's first 15 digits, followed by zeros.
const longNumber = /^\d{15}(\d+)$/

/** Makes a rule to detect rounded ids. It ends with the first id in the file with further digits, because a spreadsheet rounds all. */
export const makeRoundedRule = () => {
  let isExact = false
  return (id: string): string | undefined => {
    const [, further = ""] = longNumber.exec(id) ?? []
    if (/[1-9]/.test(further)) isExact = true
    return further === "" || isExact
      ? undefined
      : `user_id has more than 15 digits and ends in zeros, as numbers that a spreadsheet has rounded do: ${asText}. If it is right, write ="ID" in the cell`
  }
}

/** Unwraps a text protected from being read as a number: `="0017"`. */
export const withoutFormula = (
  cell: string,
): { readonly text: string; readonly isText: boolean } => {
  const [, text] = /^="([^"]*)"$/.exec(cell) ?? []
  return text === undefined ? { text: cell, isText: false } : { text: trim(text), isText: true }
}
