/**
 * Reads CSV records. After a wrong quotation mark, other CSV parsers stop, or lose the lines up to the next mark. This
 * one refuses a single line.
 */

import type { Lines } from "./file-text.ts"

/** Cell separators. */
export const separators = [",", ";", "\t", "|"] as const

/** A record's cells, or why its first line is refused. */
export type CsvRecord =
  | { readonly _tag: "Cells"; readonly cells: ReadonlyArray<string>; readonly lines: number }
  | { readonly _tag: "Wrong"; readonly problem: string; readonly lines: 1 }

const wrong = (problem: string): CsvRecord => ({ _tag: "Wrong", problem, lines: 1 })

const misplaced = wrong(
  "a quotation mark is misplaced: double those in a cell, and put the cell in quotation marks",
)

const unclosed = wrong("a quotation mark is not closed")

// Limits the memory for an unclosed quotation mark.
const maxCharacters = 100_000

/** Reads a cell in quotation marks. Without an end, it continues in the next line. */
const readQuoted = (
  line: string,
  from: number,
): { readonly text: string; readonly end: number | undefined } => {
  let text = ""
  for (let start = from; ;) {
    const mark = line.indexOf('"', start)
    if (mark === -1) return { text: text + line.slice(start), end: undefined }
    text += line.slice(start, mark)
    if (line[mark + 1] !== '"') return { text, end: mark + 1 }
    text += '"'
    start = mark + 2
  }
}

/** Collects a record's cells, a line at a time. */
const makeRecord = (separator: string) => {
  const cells: Array<string> = []
  let open: string | undefined
  const spaces = separator === "\t" ? /[ \u00a0]*/y : /[ \t\u00a0]*/y

  /** Skips spaces. */
  const skip = (line: string, from: number): number => {
    spaces.lastIndex = from
    spaces.test(line)
    return Math.max(from, spaces.lastIndex)
  }

  /** Adds a line. Returns whether the record has ended, continues, or is wrong. */
  const add = (line: string): "Ended" | "Open" | "Wrong" => {
    if (open === undefined && !line.includes('"')) {
      for (const cell of line.split(separator)) cells.push(cell)
      return "Ended"
    }
    for (let position = 0; ;) {
      const start = open === undefined ? skip(line, position) : 0
      if (open === undefined && line[start] !== '"') {
        const end = line.indexOf(separator, position)
        cells.push(line.slice(position, end === -1 ? undefined : end))
        if (end === -1) return "Ended"
        position = end + separator.length
        continue
      }
      const { end, text } = readQuoted(line, open === undefined ? start + 1 : 0)
      const all = open === undefined ? text : `${open}\n${text}`
      if (end === undefined) {
        open = all
        return "Open"
      }
      open = undefined
      cells.push(all)
      const after = skip(line, end)
      if (after === line.length) return "Ended"
      if (!line.startsWith(separator, after)) return "Wrong"
      position = after + separator.length
    }
  }

  return { cells, add }
}

/** Reads the next record, without dropping its lines. Returns `undefined` after the last one. */
export const readCsvRecord = async (
  lines: Lines,
  separator: string,
): Promise<CsvRecord | undefined> => {
  const record = makeRecord(separator)
  let characters = 0
  for (let count = 0; ; count++) {
    const line = await lines.peek(count)
    if (line === undefined) return count === 0 ? undefined : unclosed
    characters += line.length
    if (characters > maxCharacters)
      return count === 0 ? wrong("it is longer than 100,000 characters") : unclosed
    const state = record.add(line)
    if (state === "Wrong") return misplaced
    if (state === "Ended") return { _tag: "Cells", cells: record.cells, lines: count + 1 }
  }
}
