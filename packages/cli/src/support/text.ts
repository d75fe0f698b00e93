/** Text for a terminal: escaped, shortened, in columns. */

import { latestInstant } from "@tenure/core/internal"
import { displayWidth } from "effect/cli/CliOutput"

// Control characters, and those hiding or reordering text, can falsify a terminal's display.
const unprintable = /\p{C}/gu

const escape = (character: string): string =>
  JSON.stringify(character)
    .slice(1, -1)
    .replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Escapes unprintable characters, as JSON does. */
export const printable = (text: string): string => text.replaceAll(unprintable, escape)

/** Prints a value as JSON with unprintable characters escaped. */
export const toJson = (value: unknown): string => printable(JSON.stringify(value))

/** Writes a time, in milliseconds since the epoch, as the API does. */
export const isoOf = (time: number): string => new Date(time).toISOString()

/** The last end date, which a membership for life has in the audit trail and in answers to changes. */
export const lastEndDate = isoOf(latestInstant)

/** Writes an end date for people: `never` for life. */
export const endText = (date: string | null): string =>
  date === null || date === lastEndDate ? "never" : date

/** Writes a pause for people: since when, and until when, if it ends by itself. */
export const pauseText = (paused_at: string, resumes_at: string | null): string =>
  `paused since ${paused_at}${resumes_at === null ? "" : `, until ${resumes_at}`}`

type Cell = string | number | boolean | null | undefined | ReadonlyArray<string>

/** A row: its cells by column name. */
export type Row = Readonly<Record<string, Cell>>

const textOf = (cell: Cell): string => {
  if (cell === null || cell === undefined) return "–"
  if (typeof cell === "boolean") return cell ? "yes" : "no"
  const text = typeof cell === "object" ? cell.join(", ") : String(cell)
  return text === "" ? "–" : printable(text)
}

const titleOf = (name: string): string => name.replaceAll("_", " ")

const padded = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)))

const gap = "  "

const lineOf = (texts: ReadonlyArray<string>, widths: ReadonlyArray<number>): string =>
  texts
    .map((text, index) => padded(text, widths[index] ?? 0))
    .join(gap)
    .trimEnd()

/** Shortens text to a width. */
const shortened = (text: string, most: number): string => {
  // No character is wider than two columns. To measure takes long.
  if (text.length * 2 <= most || displayWidth(text) <= most) return text
  let start = ""
  for (const character of text) {
    if (displayWidth(start + character) >= most) break
    start += character
  }
  return `${start}…`
}

// Ids are copied from tables, so they stay whole.
const widthOfId = 36

/** Narrows the widest columns until a line fits, but keeps ids whole. */
const narrowed = (widths: ReadonlyArray<number>, lineWidth: number): ReadonlyArray<number> => {
  const atMost = (most: number) => widths.map((width) => Math.min(width, most))
  const fits = (most: number) =>
    atMost(most).reduce((sum, width) => sum + width + gap.length, -gap.length) <= lineWidth
  let most = Math.max(widthOfId, Math.min(lineWidth, Math.max(...widths)))
  while (most > widthOfId && !fits(most)) most -= 1
  return atMost(most)
}

/** A table, printed in parts. */
export interface Table {
  readonly lines: ReadonlyArray<string>
  /** The column widths for the next part. */
  readonly widths: ReadonlyArray<number>
}

/**
 * Lays out rows with the same columns. A table's first part has titles. Text beyond the line width is
 * omitted: first long texts are shortened, then the line is cut.
 *
 * @param lineWidth - the maximum line width; `Infinity` omits nothing
 * @param earlier - the previous part's column widths
 */
export const layOut = (
  rows: ReadonlyArray<Row>,
  lineWidth: number,
  earlier?: ReadonlyArray<number>,
): Table => {
  const titles = Object.keys(rows[0] ?? {}).map((name) => titleOf(name).toUpperCase())
  const texts = rows.map((row) => Object.values(row).map(textOf))
  const all = earlier === undefined ? [titles, ...texts] : texts
  const natural = titles.map((_, column) =>
    all.reduce(
      (most, line) => Math.max(most, displayWidth(line[column] ?? "")),
      earlier?.[column] ?? 0,
    ),
  )
  const widths = narrowed(natural, lineWidth)
  const lines = all.map((line) => {
    const fitting = line.map((text, column) => shortened(text, widths[column] ?? 0))
    return shortened(lineOf(fitting, widths), lineWidth)
  })
  return { lines, widths }
}

/** Lays out one row: a line for each cell. */
export const layOutOne = (row: Row): ReadonlyArray<string> => {
  const cells = Object.entries(row).map(([name, cell]) => [titleOf(name), textOf(cell)] as const)
  const width = Math.max(...cells.map(([title]) => displayWidth(title)))
  return cells.map((line) => lineOf(line, [width]))
}

/** Writes how many there are: `1 check`, `2 checks`. */
export const pluralize = (count: number, one: string, several = `${one}s`): string =>
  `${count} ${count === 1 ? one : several}`

const units = [
  { name: "s", millis: 1000 },
  { name: "min", millis: 60_000 },
  { name: "h", millis: 3_600_000 },
  { name: "d", millis: 86_400_000 },
] as const

/** Writes a duration in whole units, of which there are two at least: `119 s`, `2 min`. */
export const formatAge = (millis: number): string => {
  const [seconds, ...longer] = units
  const unit = longer.findLast((one) => millis >= 2 * one.millis) ?? seconds
  return `${Math.max(0, Math.floor(millis / unit.millis))} ${unit.name}`
}
