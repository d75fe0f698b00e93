/** Tables for people. */

import { displayWidth } from "effect/cli/CliOutput"
import { printable } from "./printable.ts"

/** What can be in a cell. */
type Cell = string | number | boolean | null | undefined | ReadonlyArray<string>

/** A row: its cells by the names of their columns. */
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

const lineOf = (texts: ReadonlyArray<string>, widths: ReadonlyArray<number>): string =>
  texts
    .map((text, index) => padded(text, widths[index] ?? 0))
    .join("  ")
    .trimEnd()

/** A table that is printed in parts. */
export interface Table {
  readonly lines: ReadonlyArray<string>
  /** The widths of the columns, for the part that follows. */
  readonly widths: ReadonlyArray<number>
}

/**
 * Lays out rows, all of which have the same columns. The first part of a table has the titles.
 *
 * @param earlier - the widths of the columns in the part before
 */
export const layOut = (rows: ReadonlyArray<Row>, earlier?: ReadonlyArray<number>): Table => {
  const titles = Object.keys(rows[0] ?? {}).map((name) => titleOf(name).toUpperCase())
  const texts = rows.map((row) => Object.values(row).map(textOf))
  const all = earlier === undefined ? [titles, ...texts] : texts
  const widths = titles.map((_, column) =>
    all.reduce(
      (most, line) => Math.max(most, displayWidth(line[column] ?? "")),
      earlier?.[column] ?? 0,
    ),
  )
  return { lines: all.map((line) => lineOf(line, widths)), widths }
}

/** Lays out one row: a line for each cell. */
export const layOutOne = (row: Row): ReadonlyArray<string> => {
  const cells = Object.entries(row).map(([name, cell]) => [titleOf(name), textOf(cell)] as const)
  const width = Math.max(...cells.map(([title]) => displayWidth(title)))
  return cells.map((line) => lineOf(line, [width]))
}
