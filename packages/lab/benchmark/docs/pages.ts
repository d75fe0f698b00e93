/** The parts of pages that are decided by results. */

import { type Comparison, comparisonsOf, timesOf } from "../charts/alternatives.ts"
import { type Judged, judged } from "../measurement.ts"
import { cellsOf, columns, digits, isFigure, straight, summaryOf } from "../report/table.ts"
import { type Measured, type Results, foundIn } from "../results.ts"

const dateOf = (at: string): string =>
  new Date(at).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" })

const listOf = (texts: ReadonlyArray<string>): string =>
  new Intl.ListFormat("en-GB").format([...new Set(texts)])

/** When and where sections were measured. */
const circumstancesOf = (sections: ReadonlyArray<Measured>): string => {
  const inOrder = sections.toSorted((one, other) => one.at.localeCompare(other.at))
  const dates = listOf(inOrder.map(({ at }) => dateOf(at)))
  return `Measured on ${dates}, with ${listOf(inOrder.map(({ on }) => on))}.`
}

/** Prints lines of cells as Markdown. The first one is the head. */
const markdownOf = (
  lines: ReadonlyArray<ReadonlyArray<string>>,
  isRight: (column: number) => boolean,
): string => {
  const [head = [], ...body] = straight(lines, isRight)
  const rule = head.map(({ length }, column) =>
    isRight(column) ? `${"-".repeat(length - 1)}:` : "-".repeat(length),
  )
  return [head, rule, ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

/** Prints why targets are missed: each profile once, with all rows that it explains. */
const missesOf = (rows: ReadonlyArray<Judged>): ReadonlyArray<string> => {
  const measuredBy = new Map<string, Set<string>>()
  for (const { measured, target, verdict } of rows) {
    if (verdict !== "missed" || target?.profile === undefined) continue
    const known = measuredBy.get(target.profile) ?? new Set()
    measuredBy.set(target.profile, known.add(measured))
  }
  return Array.from(
    measuredBy,
    ([profile, measured]) => `Why “${[...measured].join("” and “")}” is missed: ${profile}`,
  )
}

const sectionOf = ({ name, rows }: Measured): ReadonlyArray<string> => {
  const all = rows.map(judged)
  const table = markdownOf([columns, ...all.map(cellsOf)], isFigure)
  return [`### ${name}`, table, ...missesOf(all)]
}

const [begin, end] = ["<!-- from results.json -->", "<!-- until here -->"]

/** Replaces the part of a page between its two comments. */
const replaceIn = (page: string, parts: ReadonlyArray<string>): string => {
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`the page has no ${begin}`)
  return [`${before}${begin}`, ...parts, `${end}${after}`].join("\n\n")
}

/** Puts the tables of all sections into the page for maintainers. */
export const withFigures = (page: string, { sections }: Results): string => {
  const rows = sections.flatMap((section) => section.rows.map(judged))
  return replaceIn(page, [
    `${circumstancesOf(sections)} ${summaryOf(rows)}.`,
    ...sections.flatMap(sectionOf),
  ])
}

const comparisonLines = ({ alternatives, figure, title, unit }: Comparison) =>
  alternatives.map(({ better, name, figure: beside }, index) => [
    index === 0 ? title : "",
    index === 0 ? `${digits(figure)} ${unit}` : "",
    name,
    `${digits(beside)} ${unit}`,
    timesOf(better),
  ])

/** Puts the comparisons with alternatives into the page for users. */
export const withComparisons = (page: string, results: Results): string => {
  const comparisons = comparisonsOf(foundIn(results).rows)
  const measured = new Set(comparisons.map((one) => one.measured))
  const head = ["", "Tenure", "instead", "its figure", "times better"]
  const table = markdownOf([head, ...comparisons.flatMap(comparisonLines)], (column) =>
    [1, 3, 4].includes(column),
  )
  const sections = results.sections.filter(({ rows }) =>
    rows.some((row) => measured.has(row.measured)),
  )
  return replaceIn(page, [table, circumstancesOf(sections)])
}
