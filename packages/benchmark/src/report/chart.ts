/** The chart: a bar for each ratio, and a line for everything that grows. */

import type { Curve, Judged } from "../measurement.ts"
import type { Verdict } from "../target.ts"
import { digits } from "./table.ts"

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const text = (x: number, y: number, content: string, anchor = "start"): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escape(content)}</text>`

const [width, labelWidth, barWidth, rowHeight] = [1280, 800, 380, 20]

const colours = ["#2f6f9f", "#c2553a", "#4d8f4d", "#8a5a9e", "#b58a2b", "#5b5b5b"]
const verdictColours: Record<Verdict, string> = {
  none: "#8c9bab",
  met: "#3c8d5a",
  missed: "#c2553a",
}

const labelOf = ({ measured, unit, yardstick }: Judged): string =>
  `${measured}${unit === "" ? "" : `, ${unit}`}, beside ${yardstick?.name}`

const log = (value: number): number => Math.log10(Math.max(value, 1e-3))

/** A bar from 1 to the ratio, to the right for more and to the left for less; logarithmic. */
const bar = (row: Judged, ratio: number, index: number, reach: number): string => {
  const y = 40 + index * rowHeight
  const unity = labelWidth + barWidth / 2
  const length = (log(ratio) / reach) * (barWidth / 2)
  const x = Math.min(unity, unity + length)
  return [
    text(labelWidth - 10, y + 13, labelOf(row), "end"),
    `<rect x="${x.toFixed(1)}" y="${y}" width="${Math.abs(length).toFixed(1)}" height="14" fill="${verdictColours[row.verdict]}"/>`,
    text(labelWidth + barWidth + 10, y + 13, ratio.toFixed(2)),
  ].join("\n")
}

const barsOf = (rows: ReadonlyArray<Judged>): { readonly svg: string; readonly height: number } => {
  const bars = rows.flatMap((row) =>
    row.ratio !== undefined && Number.isFinite(row.ratio) ? [{ row, ratio: row.ratio }] : [],
  )
  const height = 60 + bars.length * rowHeight
  const reach = Math.max(1, ...bars.map(({ ratio }) => Math.abs(log(ratio))))
  const unity = labelWidth + barWidth / 2
  return {
    height,
    svg: [
      text(10, 20, "Tenure’s figure divided by the yardstick’s, on a logarithmic scale around 1"),
      `<line x1="${unity}" y1="34" x2="${unity}" y2="${height - 20}" stroke="#333"/>`,
      ...bars.map(({ ratio, row }, index) => bar(row, ratio, index, reach)),
    ].join("\n"),
  }
}

const [plotLeft, plotWidth, plotHeight] = [60, 600, 260]

const colour = (index: number) => colours[index % colours.length]

/** The lines of all curves, each relative to its own first figure, in a plot that begins at `top`. */
const linesOf = (curves: ReadonlyArray<Curve>, top: number): string => {
  const relative = curves.map(({ name, points }) => {
    const first = points[0]?.[1] ?? 1
    return { name, points: points.map(([size, figure]) => [size, figure / first] as const) }
  })
  const all = relative.flatMap(({ points }) => points)
  const most = Math.max(2, ...all.map(([, value]) => value))
  const decades = Math.max(1, ...all.map(([size]) => Math.log10(size)))
  const x = (size: number) => plotLeft + (Math.log10(size) / decades) * plotWidth
  const y = (value: number) => top + 40 + plotHeight * (1 - value / most)
  const level = (value: number) =>
    `<line x1="${plotLeft}" y1="${y(value).toFixed(1)}" x2="${plotLeft + plotWidth}" y2="${y(value).toFixed(1)}" stroke="#ddd"/>\n${text(plotLeft - 8, y(value) + 4, digits(value), "end")}`
  const decade = (_: unknown, power: number) =>
    text(x(10 ** power), y(0) + 18, digits(10 ** power), "middle")
  const line = ({ name, points }: Curve, index: number) =>
    [
      `<polyline fill="none" stroke-width="2" stroke="${colour(index)}" points="${points.map(([size, value]) => `${x(size).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}"/>`,
      `<g fill="${colour(index)}">${text(plotLeft + plotWidth + 20, top + 60 + index * rowHeight, name)}</g>`,
    ].join("\n")
  return [
    text(10, top + 20, "Cost of an operation as things grow, relative to the smallest size"),
    ...[0, 1, 1.5, most].map(level),
    ...Array.from({ length: Math.floor(decades) + 1 }, decade),
    ...relative.map(line),
  ].join("\n")
}

/** Draws everything as one SVG. */
export const chartOf = (rows: ReadonlyArray<Judged>, curves: ReadonlyArray<Curve>): string => {
  const bars = barsOf(rows)
  const height = bars.height + (curves.length > 0 ? plotHeight + 80 : 0)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${bars.svg}
${curves.length > 0 ? linesOf(curves, bars.height) : ""}
</svg>
`
}
