/** The table of rows: its cells, and the table as it is printed on a terminal. */

import type { Judged } from "../measurement.ts"
import type { Target, Verdict } from "../target.ts"

/** Digits enough to see a difference, and no more. */
export const digits = (value: number): string => {
  const places =
    Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString("en", {
    minimumFractionDigits: places,
    maximumFractionDigits: places,
  })
}

/** Prints what a target asks for. */
const targetOf = ({ atLeast, atMost, of }: Target, unit: string): string => {
  const bound = (sign: string, value: number | undefined) =>
    value === undefined
      ? []
      : [`${sign} ${of === "difference" ? "+" : ""}${value.toLocaleString("en")}`]
  const bounds = [...bound("≥", atLeast), ...bound("≤", atMost)].join(" and ")
  return `${bounds} ${of === "ratio" ? "×" : unit}`.trim()
}

/** Prints the difference to the yardstick where that is aimed at, and the ratio elsewhere. */
const comparisonOf = ({ figure, ratio, target, yardstick }: Judged): string => {
  if (yardstick === undefined || ratio === undefined) return ""
  if (target?.of !== "difference") return `${ratio.toFixed(2)} ×`
  const difference = figure - yardstick.figure
  return `${difference < 0 ? "" : "+"}${digits(difference)}`
}

const printed: Record<Verdict, string> = { met: "met", missed: "MISSED", none: "" }

/** A text for each column. */
type Cells = ReadonlyArray<string>

/** The heads of the columns. */
export const columns: Cells = [
  "measured",
  "Tenure",
  "beside",
  "its figure",
  "compared",
  "target",
  "verdict",
]

/** Prints a row. */
export const cellsOf = (row: Judged): Cells => {
  const { figure, measured, target, unit, verdict, yardstick } = row
  return [
    measured,
    `${digits(figure)} ${unit}`.trim(),
    yardstick?.name ?? "",
    yardstick === undefined ? "" : digits(yardstick.figure),
    comparisonOf(row),
    target === undefined ? "" : targetOf(target, unit),
    printed[verdict],
  ]
}

/** Whether a column is of figures. They are read from the right, words from the left. */
export const isFigure = (column: number): boolean => [1, 3, 4].includes(column)

/** Pads cells, so that all columns are straight. The first line is the head. */
export const straight = (
  lines: ReadonlyArray<Cells>,
  isRight: (column: number) => boolean,
): ReadonlyArray<Cells> => {
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  )
  return lines.map((cells) =>
    cells.map((cell, column) => {
      const width = widths?.[column] ?? 0
      return isRight(column) ? cell.padStart(width) : cell.padEnd(width)
    }),
  )
}

/** Prints rows as lines of equal columns. */
export const tableOf = (rows: ReadonlyArray<Judged>): string =>
  straight([columns, ...rows.map(cellsOf)], isFigure)
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n")

/** Counts the targets that are met. */
export const summaryOf = (rows: ReadonlyArray<Judged>): string => {
  const count = (verdict: Verdict) => rows.filter((row) => row.verdict === verdict).length
  return `${count("met")} targets met, ${count("missed")} missed`
}
