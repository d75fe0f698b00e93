/** What pages show from results: the tables, and the comparisons' picture. */

import { mkdir, readFile, writeFile } from "node:fs/promises"
import { type Comparison, comparisonsOf, pictureOf, themes, unansweredOf } from "./comparisons.ts"
import { type Judged, judged } from "./measurement.ts"
import {
  type Measured,
  type Results,
  lastRun,
  latest,
  readResults,
  rowsIn,
  shown,
  writeResults,
} from "./results.ts"
import { digits, markdownOf, markdownTable, summaryOf, timesOf } from "./tables.ts"

/** The page for users. */
export const userPage = new URL("../../../docs/performance.md", import.meta.url)

/** The page for maintainers. */
export const figuresPage = new URL("FIGURES.md", import.meta.url)

export const pictures = new URL("performance/", userPage)

const listOf = (texts: ReadonlyArray<string>): string =>
  new Intl.ListFormat("en-GB").format([...new Set(texts)])

/** When and where sections were measured. */
const circumstancesOf = (sections: ReadonlyArray<Measured>): string => {
  const inOrder = sections.toSorted((one, other) => one.at.localeCompare(other.at))
  const dates = inOrder.map(({ at }) =>
    new Date(at).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" }),
  )
  return `Measured on ${listOf(dates)}, with ${listOf(inOrder.map(({ on }) => on))}.`
}

/** Prints why targets are missed: each profile once, with all rows that it explains. */
const missesOf = (rows: ReadonlyArray<Judged>): ReadonlyArray<string> => {
  const missed = rows.filter(({ target, verdict }) => verdict === "missed" && target?.profile)
  return [...Map.groupBy(missed, ({ target }) => target?.profile)].map(([profile, explained]) => {
    const measured = new Set(explained.map((row) => row.measured))
    return `Why “${[...measured].join("” and “")}” is missed: ${profile}`
  })
}

const sectionOf = ({ name, rows }: Measured): ReadonlyArray<string> => {
  const all = rows.map(judged)
  return [`### ${name}`, markdownTable(all), ...missesOf(all)]
}

const [begin, end] = ["<!-- from results.json -->", "<!-- until here -->"]

/** Replaces what stands between a page's two comments. */
const replaceIn = (page: string, parts: ReadonlyArray<string>): string => {
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`the page has no ${begin}`)
  return [`${before}${begin}`, ...parts, `${end}${after}`].join("\n\n")
}

/** Puts all tables into the page for maintainers. */
export const withFigures = (page: string, results: Results): string => {
  const { sections } = results
  const summary = summaryOf(rowsIn(results).map(judged))
  const parts = [`${circumstancesOf(sections)} ${summary}.`, ...sections.flatMap(sectionOf)]
  return replaceIn(page, parts)
}

const comparisonLines = ({ alternatives, figure, title, unit }: Comparison) =>
  alternatives.map(({ better, name, figure: beside }, index) => [
    ...(index === 0 ? [title, `${digits(figure)} ${unit}`] : ["", ""]),
    name,
    `${digits(beside)} ${unit}`,
    timesOf(better),
  ])

/** Puts the comparisons with alternatives into the page for users. */
export const withComparisons = (page: string, results: Results): string => {
  const comparisons = comparisonsOf(rowsIn(results))
  const measured = new Set(comparisons.map((one) => one.measured))
  const head = ["", "Tenure", "instead", "its figure", "times better"]
  const lines = [head, ...comparisons.flatMap(comparisonLines)]
  const sections = results.sections.filter(({ rows }) =>
    rows.some((row) => measured.has(row.measured)),
  )
  const table = markdownOf(lines, (column) => [1, 3, 4].includes(column))
  return replaceIn(page, [table, circumstancesOf(sections)])
}

/** Draws the comparisons, for light pages and for dark ones. */
export const picturesOf = (results: Results) =>
  themes.map((theme) => ({
    file: `alternatives-${theme}.svg`,
    svg: pictureOf(comparisonsOf(rowsIn(results)), theme),
  }))

const rewrite = async (page: URL, change: (text: string) => string): Promise<void> =>
  writeFile(page, change(await readFile(page, "utf8")))

/**
 * Replaces each section that the documentation shows by the latest one from this machine, if that is later, and writes
 * the pages and the picture anew. Sections may have been measured apart.
 *
 * @param names - all sections' names
 */
export const publish = async (names: ReadonlyArray<string>): Promise<void> => {
  const runs = await Promise.all([shown, lastRun].map(readResults))
  const results = latest(runs, names)
  await writeResults(shown, results)
  await mkdir(pictures, { recursive: true })
  for (const { file, svg } of picturesOf(results)) await writeFile(new URL(file, pictures), svg)
  await rewrite(figuresPage, (text) => withFigures(text, results))
  await rewrite(userPage, (text) => withComparisons(text, results))
  const unmeasured = names.filter((name) => results.sections.every((one) => one.name !== name))
  if (unmeasured.length > 0) console.warn(`never measured: ${unmeasured.join(", ")}`)
  const unanswered = unansweredOf(rowsIn(results))
  if (unanswered.length > 0) console.warn(`the page for users misses: ${unanswered.join("; ")}`)
}
