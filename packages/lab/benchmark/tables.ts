/** Tables, on a terminal and as Markdown. */

import type { Judged, Target } from "./measurement.ts"

/** Digits enough to see a difference, and no more. */
export const digits = (value: number): string => {
  const places =
    Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return fixed(value, places)
}

/** Prints a ratio with as many digits as it is worth. */
export const timesOf = (ratio: number): string =>
  `${fixed(ratio, ratio < 2 ? 2 : ratio < 10 ? 1 : 0)} ×`

const fixed = (value: number, places: number): string =>
  value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places })

/** Prints what a target asks for. */
const targetOf = ({ atLeast, atMost, of }: Target, unit: string): string => {
  const bound = (sign: string, value: number | undefined) =>
    value === undefined
      ? []
      : [`${sign} ${of === "difference" ? "+" : ""}${value.toLocaleString("en")}`]
  const bounds = [...bound("≥", atLeast), ...bound("≤", atMost)].join(" and ")
  return `${bounds} ${of === "ratio" ? "×" : unit}`.trim()
}

/** Prints the difference to the yardstick if a target is about that, and the ratio otherwise. */
const comparisonOf = ({ figure, ratio, target, yardstick }: Judged): string => {
  if (yardstick === undefined || ratio === undefined) return ""
  if (target?.of !== "difference") return `${ratio.toFixed(2)} ×`
  const difference = figure - yardstick.figure
  return `${difference < 0 ? "" : "+"}${digits(difference)}`
}

const printed = { met: "met", missed: "MISSED", none: "" } as const

type Cells = ReadonlyArray<string>

const columns = ["measured", "Tenure", "beside", "its figure", "compared", "target", "verdict"]

const cellsOf = (row: Judged): Cells => {
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

type IsRight = (column: number) => boolean

// Figures are read from the right, words from the left.
const isFigure: IsRight = (column) => [1, 3, 4].includes(column)

/** Pads cells, so that all columns are straight. The first line is the head. */
const straight = (lines: ReadonlyArray<Cells>, isRight: IsRight): ReadonlyArray<Cells> => {
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

/** Prints lines as Markdown. The first one is the head. */
export const markdownOf = (lines: ReadonlyArray<Cells>, isRight: IsRight): string => {
  const [head = [], ...body] = straight(lines, isRight)
  const rule = head.map(({ length }, column) =>
    isRight(column) ? `${"-".repeat(length - 1)}:` : "-".repeat(length),
  )
  return [head, rule, ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

const linesOf = (rows: ReadonlyArray<Judged>) => [columns, ...rows.map(cellsOf)]

/** Prints rows as a table in Markdown. */
export const markdownTable = (rows: ReadonlyArray<Judged>): string =>
  markdownOf(linesOf(rows), isFigure)

/** Prints rows with equal columns. */
export const plainTable = (rows: ReadonlyArray<Judged>): string =>
  straight(linesOf(rows), isFigure)
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n")

/** Counts the targets that are met. */
export const summaryOf = (rows: ReadonlyArray<Judged>): string => {
  const count = (verdict: Judged["verdict"]) => rows.filter((row) => row.verdict === verdict).length
  return `${count("met")} targets met, ${count("missed")} missed`
}
