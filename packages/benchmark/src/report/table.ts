/** The table for the terminal. */

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
  const bounds = [
    atLeast === undefined ? "" : `≥ ${digits(atLeast)}`,
    atMost === undefined ? "" : `≤ ${digits(atMost)}`,
  ]
  const text = bounds.filter((bound) => bound !== "").join(", ")
  return of === "ratio" ? `${text} ×` : `${of === "difference" ? "+" : ""}${text} ${unit}`.trim()
}

const printed: Record<Verdict, string> = { met: "met", missed: "MISSED", none: "" }

const columns = ["measured", "Tenure", "yardstick", "", "ratio", "target", ""]

const cellsOf = ({ figure, measured, ratio, target, unit, verdict, yardstick }: Judged) => [
  measured,
  `${digits(figure)} ${unit}`.trim(),
  yardstick?.name ?? "",
  yardstick === undefined ? "" : digits(yardstick.figure),
  ratio === undefined ? "" : ratio.toFixed(2),
  target === undefined ? "" : targetOf(target, unit),
  printed[verdict],
]

// Figures are read from the right, words from the left.
const isFigure = (column: number): boolean => [1, 3, 4].includes(column)

/** Prints rows as lines of equal columns. */
export const tableOf = (rows: ReadonlyArray<Judged>): string => {
  const lines = [columns, ...rows.map(cellsOf)]
  const widths = columns.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  )
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => {
          const width = widths[column] ?? 0
          return isFigure(column) ? cell.padStart(width) : cell.padEnd(width)
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}

/** Counts the targets that are met. */
export const summaryOf = (rows: ReadonlyArray<Judged>): string => {
  const count = (verdict: Verdict) => rows.filter((row) => row.verdict === verdict).length
  return `${count("met")} targets met, ${count("missed")} missed`
}
