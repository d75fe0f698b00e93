/** The five comparisons with alternatives on the page for users, and their picture. */

import type { Row } from "./measurement.ts"
import { bulkRow } from "./sections/bulk-update.ts"
import { takeOf } from "./sections/limiters.ts"
import { ownTableRows } from "./sections/own-table.ts"
import { queueRows } from "./sections/queues.ts"
import { timesOf } from "./tables.ts"

/** What a user asks, and the row that answers it. */
interface Question {
  readonly title: string
  readonly measured: string
  readonly unit: "/s" | "ms"
}

const questions: ReadonlyArray<Question> = [
  { title: "Extensions a second over HTTP", measured: ownTableRows.answered, unit: "/s" },
  { title: "Rate-limited requests a second", measured: takeOf.some, unit: "/s" },
  { title: "Notifications a second", measured: queueRows.rate, unit: "/s" },
  { title: "99th percentile of a notification’s delay", measured: queueRows.p99, unit: "ms" },
  { title: "Bulk extension of a million members", measured: bulkRow, unit: "ms" },
]

/** An alternative, and how many times better Tenure is: less than 1 if it is worse. */
interface Alternative {
  readonly name: string
  readonly figure: number
  readonly better: number
}

/** An answered question. The best alternative is first. */
export interface Comparison extends Question {
  readonly figure: number
  readonly alternatives: ReadonlyArray<Alternative>
}

const comparisonOf = (question: Question, rows: ReadonlyArray<Row>): Comparison | undefined => {
  const { measured, unit } = question
  const found = rows.filter((row) => row.measured === measured && row.unit === unit)
  const [first] = found
  if (first === undefined) return undefined
  const alternatives = found.flatMap(({ figure, yardstick }): ReadonlyArray<Alternative> => {
    if (yardstick === undefined) return []
    const ratio = figure / yardstick.figure
    return [{ ...yardstick, better: unit === "/s" ? ratio : 1 / ratio }]
  })
  return {
    ...question,
    figure: first.figure,
    alternatives: alternatives.toSorted((one, other) => one.better - other.better),
  }
}

/** All comparisons that were measured. */
export const comparisonsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Comparison> =>
  questions.flatMap((question) => comparisonOf(question, rows) ?? [])

/** Questions that were not measured. */
export const unansweredOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  questions
    .filter((question) => comparisonOf(question, rows) === undefined)
    .map(({ title }) => title)

const colours = {
  light: { bar: "#4f46e5", background: "#ffffff", text: "#1f2328", muted: "#59636e" },
  dark: { bar: "#8b85ff", background: "#0d1117", text: "#f0f6fc", muted: "#9198a1" },
} as const

/** The page that a picture is made for. */
export type Theme = keyof typeof colours

export const themes: ReadonlyArray<Theme> = ["light", "dark"]

// In pixels. Each comparison has two lines.
const [margin, barStart, barWidth, rowHeight, firstRow] = [20, 370, 420, 46, 84]

const write = (x: number, y: number, words: string, style: string): string =>
  `<text x="${x.toFixed(1)}" y="${y}" ${style}>${words}</text>`

/** Draws how many times better Tenure is than the best alternative in each comparison, as SVG. */
export const pictureOf = (comparisons: ReadonlyArray<Comparison>, theme: Theme): string => {
  const { background, bar, muted, text } = colours[theme]
  const best = comparisons.flatMap(({ alternatives: [first], title }) =>
    first === undefined ? [] : [{ ...first, title }],
  )
  const ratios = best.map(({ better }) => better)
  const [least, most] = [Math.min(0.5, ...ratios), Math.max(2, ...ratios)]
  const xOf = (ratio: number): number =>
    margin + barStart + (barWidth * Math.log(ratio / least)) / Math.log(most / least)
  const [width, bottom] = [2 * margin + barStart + barWidth, firstRow + rowHeight * best.length]
  const [bold, soft] = ['font-weight="600"', `fill="${muted}"`]
  const ticks = [1, 10, 100, 1000].filter((value) => value <= most)
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${bottom + 40}" viewBox="0 0 ${width} ${bottom + 40}" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif" font-size="13" fill="${text}">`,
    `<rect width="${width}" height="${bottom + 40}" fill="${background}"/>`,
    write(
      margin,
      36,
      "Is Tenure better than what you would use instead?",
      `${bold} font-size="18"`,
    ),
    write(margin, 60, "Times better than the best alternative, on a logarithmic scale", soft),
    ...ticks.flatMap((value) => [
      `<path d="M${xOf(value).toFixed(1)} ${firstRow}V${bottom}" stroke="${muted}" stroke-opacity="0.4"/>`,
      write(
        xOf(value),
        bottom + 18,
        `${value.toLocaleString("en")} ×`,
        `${soft} text-anchor="middle"`,
      ),
    ]),
    ...best.flatMap(({ better, name, title }, index) => {
      const middle = firstRow + rowHeight * (index + 0.5)
      const [from, to] = [xOf(Math.min(1, better)), xOf(Math.max(1, better))]
      return [
        `<rect x="${from.toFixed(1)}" y="${middle - 9}" width="${(to - from).toFixed(1)}" height="18" fill="${bar}"/>`,
        write(margin, middle - 4, title, bold),
        write(margin, middle + 14, `beside ${name}`, soft),
        write(margin + barStart - 12, middle + 4, timesOf(better), `${bold} text-anchor="end"`),
      ]
    }),
    "</svg>\n",
  ]
  return lines.join("\n")
}
