/** Reads lines from member files written by programs and spreadsheets. */

import { UserId } from "@tenure/core/store"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { isNever, parseDay } from "../support/end-dates.ts"
import { parseDate } from "../support/flags.ts"
import { parseExact } from "../support/input.ts"
import { type CsvRecord, readCsvRecord, separators } from "./csv.ts"
import { type Lines, UnreadableFile, readTextLines } from "./file-text.ts"
import type { Format } from "./members-export.ts"
import { type ExportRecord, readRecord } from "./project-export.ts"
import {
  type ColumnNames,
  type DateOrder,
  type Field,
  type Header,
  brokenIdProblem,
  dateProblem,
  dayProblem,
  fields,
  findNames,
  makeRoundedRule,
  misnamed,
  readHeader,
  sharedProblem,
  trim,
  withoutFormula,
} from "./spreadsheet.ts"

/** When a member ends. */
type FileEnd =
  | {
      /** `null` for life. */
      readonly end_date: string | null
      readonly through?: undefined
      readonly time_zone?: undefined
    }
  | {
      readonly end_date?: undefined
      /** The last whole day. */
      readonly through: string
      /** Of the day; by default, the project's. */
      readonly time_zone?: string | undefined
    }

/** A valid line. */
export type FileMember = FileEnd & {
  readonly _tag: "Member"
  /** The line number; the first line is 1. */
  readonly line: number
  readonly user_id: string
  /** The day that months count with, if the end date does not tell it. */
  readonly kept_day?: number | undefined
  /** When its pause began, if it is paused. */
  readonly paused_at?: string | undefined
  /** When its pause ends by itself. */
  readonly resumes_at?: string | undefined
  readonly metadata?: Metadata | undefined
}

/** Texts by name. */
type Metadata = Readonly<Record<string, string>>

/** A refused line, with its text or fields. */
export interface RejectedLine {
  readonly _tag: "Refused"
  readonly line: number
  readonly problem: string
  readonly given: unknown
}

/** A line in an exported project, other than a member. */
interface FileRecord {
  readonly _tag: "Record"
  readonly line: number
  readonly record: ExportRecord
}

/** A line. */
export type FileLine = FileMember | FileRecord | RejectedLine

/** Overrides for reading a file. */
export interface Reading {
  /** By default, NDJSON if the file begins with an object, and CSV otherwise. */
  readonly format?: Format | undefined
  readonly columns?: ColumnNames | undefined
  readonly dates?: DateOrder | undefined
  /** Of days in lines that name none; by default, the project's. */
  readonly timeZone?: string | undefined
}

const noColumns: ColumnNames = new Map()

// An unsafe integer may have been rounded to another user's id.
const asText = (value: unknown): string => {
  if (Number.isSafeInteger(value)) return String(value)
  return typeof value === "string" ? trim(value) : ""
}

const parseMetadata = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Reads texts by name, also from a CSV cell with JSON, or nothing. Numbers become texts, and the server judges names
 * and texts.
 */
const readMetadata = (given: unknown): Result.Result<Metadata | undefined, string> => {
  if (given === undefined || given === "") return Result.succeed(undefined)
  const value = typeof given === "string" ? parseMetadata(given) : given
  if (!Predicate.isObject(value)) return Result.fail("metadata must be a JSON object of texts")
  const entries = Object.entries(value)
  const wrong = entries.find(([, text]) => typeof text === "object")
  return wrong === undefined
    ? Result.succeed(Object.fromEntries(entries.map(([name, text]) => [name, String(text)])))
    : Result.fail(`metadata.${wrong[0]} must be a text`)
}

/** Tells whether there is a value: others are empty cells, and `null`, which a returned membership has. */
const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== null && !(typeof value === "string" && trim(value) === "")

/** Other programs write it for what never ends. */
const dayForLife = "9999-12-31"

type Values = Readonly<Partial<Record<Field, unknown>>>

/**
 * Reads when a member ends: `null` for life, which a cell or text says as `never`, and a day alone is the last one. An
 * instant has no use for a time zone.
 */
const readEnd = (
  { end_date, through, time_zone }: Values,
  { dates, timeZone }: Reading,
): Result.Result<FileEnd, string> => {
  const dayOf = (text: string) => parseDay(text) ?? dates?.read(text)
  const zone = isGiven(time_zone) ? asText(time_zone) : timeZone
  const until = (day: string): Result.Result<FileEnd, string> =>
    day === dayForLife
      ? Result.fail(`${day} has no end: write never in end_date for a member for life`)
      : Result.succeed({
          through: day,
          ...(zone !== undefined && { time_zone: zone }),
        })
  if (isGiven(through)) {
    if (end_date !== undefined && end_date !== "") {
      return Result.fail("end_date and through are two dates: leave one out")
    }
    const day = dayOf(asText(through))
    return day === undefined ? Result.fail(dayProblem(dates)) : until(day)
  }
  const text = asText(end_date)
  if (end_date === null || isNever(text)) return Result.succeed({ end_date: null })
  const day = dayOf(text)
  if (day !== undefined) return until(day)
  const date = parseDate(text)
  return date === undefined
    ? Result.fail(dateProblem(text, dates))
    : Result.succeed({ end_date: date })
}

/** Reads a kept day, as an export has it. */
const readKeptDay = (given: unknown): Result.Result<number | undefined, string> => {
  if (!isGiven(given)) return Result.succeed(undefined)
  const text = asText(given)
  return /^(?:[1-9]|[12]\d|3[01])$/.test(text)
    ? Result.succeed(Number(text))
    : Result.fail("kept_day must be a whole number from 1 to 31")
}

/** Reads an instant of a pause, as an export has it. */
const readInstant = (
  field: "paused_at" | "resumes_at",
  given: unknown,
): Result.Result<string | undefined, string> => {
  if (!isGiven(given)) return Result.succeed(undefined)
  const text = asText(given)
  const instant = parseDay(text) === undefined ? parseDate(text) : undefined
  return instant === undefined
    ? Result.fail(`${field} must be an instant, such as 2027-01-31T12:00:00.000Z`)
    : Result.succeed(instant)
}

/** Reads a pause, as an export has it. */
const readPause = ({
  paused_at,
  resumes_at,
}: Values): Result.Result<Pick<FileMember, "paused_at" | "resumes_at">, string> =>
  Result.gen(function* () {
    const since = yield* readInstant("paused_at", paused_at)
    const until = yield* readInstant("resumes_at", resumes_at)
    return {
      ...(since !== undefined && { paused_at: since }),
      ...(until !== undefined && { resumes_at: until }),
    }
  })

/** Explains a doubt about the letters in metadata. */
const encodingProblem = (
  metadata: Metadata | undefined,
  isGuessed: boolean,
): string | undefined => {
  if (metadata === undefined) return undefined
  const text = JSON.stringify(metadata)
  if (text.includes("\uFFFD")) return "metadata has a character that is not UTF-8"
  return isGuessed && /[^\0-\x7f]/.test(text)
    ? "metadata has letters whose encoding is unknown: save the file as UTF-8"
    : undefined
}

/** Checks a line's fields. */
const lineFromFields = (
  line: number,
  values: Values,
  given: unknown,
  reading: Reading,
  isGuessed: boolean,
): FileLine => {
  const refuse = (problem: string): RejectedLine => ({ _tag: "Refused", line, problem, given })
  const user_id = asText(values.user_id)
  const broken = brokenIdProblem(user_id)
  if (broken !== undefined) return refuse(broken)
  // Programs write numbers to mean digits.
  if (!UserId.is(user_id) || (typeof values.user_id === "number" && values.user_id < 0)) {
    return refuse(`user_id must be ${UserId.expected}`)
  }
  const end = readEnd(values, reading)
  if (Result.isFailure(end)) return refuse(end.failure)
  const kept_day = readKeptDay(values.kept_day)
  if (Result.isFailure(kept_day)) return refuse(kept_day.failure)
  const pause = readPause(values)
  if (Result.isFailure(pause)) return refuse(pause.failure)
  const metadata = readMetadata(values.metadata)
  if (Result.isFailure(metadata)) return refuse(metadata.failure)
  const unclear = encodingProblem(metadata.success, isGuessed)
  return unclear === undefined
    ? {
        _tag: "Member",
        line,
        user_id,
        ...end.success,
        kept_day: kept_day.success,
        ...pause.success,
        metadata: metadata.success,
      }
    : refuse(unclear)
}

/** Checks an object. Ignores additional fields, but not `metdata`. */
const lineFromObject = (
  line: number,
  given: unknown,
  reading: Reading,
  isGuessed: boolean,
): FileLine => {
  const refuse = (problem: string): RejectedLine => ({ _tag: "Refused", line, problem, given })
  if (!Predicate.isObject(given)) return refuse("it must be a JSON object")
  const record = readRecord(given)
  if (record !== undefined)
    return typeof record === "string" ? refuse(record) : { _tag: "Record", line, record }
  const names = Object.keys(given)
  const values: Partial<Record<Field, unknown>> = {}
  const found = new Map<Field, string>()
  for (const field of fields) {
    const [name, other] = findNames(field, names, reading.columns ?? noColumns)
    if (other !== undefined) return refuse(`${name} and ${other} are both ${field}: leave one out`)
    if (name === undefined) continue
    found.set(field, name)
    values[field] = Reflect.get(given, name)
  }
  const wrong = sharedProblem(found) ?? misnamed(names, found)
  if (wrong !== undefined) return refuse(wrong)
  return lineFromFields(line, values, given, reading, isGuessed)
}

/** Checks a JSON line. */
export const lineFromJson = (
  line: number,
  text: string,
  reading: Reading = {},
  isGuessed = false,
): FileLine => {
  try {
    return lineFromObject(line, parseExact(text), reading, isGuessed)
  } catch {
    return { _tag: "Refused", line, problem: "it must be JSON", given: text }
  }
}

async function* ofNdjson(lines: Lines, reading: Reading): AsyncGenerator<FileLine> {
  for (let text = await lines.peek(0); text !== undefined; text = await lines.peek(0)) {
    const line = lines.number()
    if (line === 1 && text.trimStart().startsWith("["))
      throw new UnreadableFile(
        "It is an array of JSON: write each object on a line, as jq -c '.[]' FILE does",
      )
    lines.drop(1)
    if (text.trim() !== "") yield lineFromJson(line, text.trimEnd(), reading, lines.isGuessed())
  }
}

/** A separator, with the first record and header read by it. */
interface Layout {
  readonly separator: string
  readonly record: CsvRecord
  readonly header: Header | string
}

const widthOf = ({ record }: Layout): number => (record._tag === "Cells" ? record.cells.length : 0)

/** Reads the first record by each separator, and returns the layout with all columns. */
const findLayout = async (
  lines: Lines,
  candidates: ReadonlyArray<string>,
  columns: ColumnNames,
): Promise<Layout | undefined> => {
  const layouts: Array<Layout> = []
  for (const separator of candidates) {
    const record = await readCsvRecord(lines, separator)
    if (record === undefined) return undefined
    const header =
      record._tag === "Cells"
        ? readHeader(record.cells, columns)
        : `Line ${lines.number()} cannot be read: ${record.problem}`
    layouts.push({ separator, record, header })
  }
  const [first, ...others] = layouts
  const widest = others.reduce(
    (most, one) => (most !== undefined && widthOf(most) >= widthOf(one) ? most : one),
    first,
  )
  return layouts.find(({ header }) => typeof header === "object") ?? widest
}

const isBlank = (record: CsvRecord): boolean =>
  record._tag === "Cells" && record.cells.every((cell) => trim(cell) === "")

/** Drops lines without text. Returns the separator named by a line such as `sep=;`. */
const readPreamble = async (lines: Lines): Promise<string | undefined> => {
  for (let text = await lines.peek(0); text !== undefined; text = await lines.peek(0)) {
    const [, named] = /^"?sep=(.)"?[\s,;|]*$/i.exec(text) ?? []
    if (named === undefined && /[^\s,;|"]/.test(text)) return undefined
    lines.drop(1)
    if (named !== undefined) return named
  }
  return undefined
}

/** Checks a CSV record. */
const makeRowReader = ({ indexes, titles }: Header, reading: Reading) => {
  const roundedProblem = makeRoundedRule()
  return (line: number, cells: ReadonlyArray<string>, isGuessed: boolean): FileLine => {
    const refuse = (problem: string, given: unknown): RejectedLine => ({
      _tag: "Refused",
      line,
      problem,
      given,
    })
    if (cells.slice(titles.length).some((cell) => trim(cell) !== ""))
      return refuse(
        `it has more cells than the first line names, ${titles.length}: put a cell with a separator in quotation marks`,
        cells,
      )
    const given = Object.fromEntries(
      titles.flatMap((title, index) => {
        const cell = cells[index]
        return title === "" || cell === undefined ? [] : [[title, cell]]
      }),
    )
    const cellOf = (field: Field): string => trim(cells[indexes.get(field) ?? -1] ?? "")
    const id = withoutFormula(cellOf("user_id"))
    const rounded = id.isText ? undefined : roundedProblem(id.text)
    if (rounded !== undefined) return refuse(rounded, given)
    const values = {
      user_id: id.text,
      end_date: withoutFormula(cellOf("end_date")).text,
      through: withoutFormula(cellOf("through")).text,
      time_zone: cellOf("time_zone"),
      kept_day: cellOf("kept_day"),
      paused_at: withoutFormula(cellOf("paused_at")).text,
      resumes_at: withoutFormula(cellOf("resumes_at")).text,
      metadata: cellOf("metadata"),
    }
    return lineFromFields(line, values, given, reading, isGuessed)
  }
}

async function* ofCsv(lines: Lines, reading: Reading): AsyncGenerator<FileLine> {
  const named = await readPreamble(lines)
  const candidates = named === undefined ? separators : [named]
  const layout = await findLayout(lines, candidates, reading.columns ?? noColumns)
  if (layout === undefined) return
  const { header, record: first, separator } = layout
  if (typeof header === "string") throw new UnreadableFile(header)
  lines.drop(first.lines)
  const readRow = makeRowReader(header, reading)
  for (;;) {
    const line = lines.number()
    const record = await readCsvRecord(lines, separator)
    if (record === undefined) return
    const text = await lines.peek(0)
    lines.drop(record.lines)
    if (record._tag === "Wrong")
      yield { _tag: "Refused", line, problem: record.problem, given: text }
    else if (!isBlank(record)) yield readRow(line, record.cells, lines.isGuessed())
  }
}

/** Detects the format from the first text. */
const formatOf = async (lines: Lines): Promise<Format> => {
  for (;;) {
    const text = await lines.peek(0)
    if (text === undefined) return "csv"
    if (text.trim() !== "") return /^\s*[[{]/.test(text) ? "ndjson" : "csv"
    lines.drop(1)
  }
}

/** Reads lines one by one, however large the file. Throws `UnreadableFile` when it cannot continue. */
export async function* readLines(
  source: AsyncIterable<Buffer>,
  reading: Reading = {},
): AsyncGenerator<FileLine> {
  const lines = readTextLines(source)
  const format = reading.format ?? (await formatOf(lines))
  yield* format === "csv" ? ofCsv(lines, reading) : ofNdjson(lines, reading)
}
