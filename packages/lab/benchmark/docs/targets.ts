/** The part of docs/performance.md that is decided by results: the targets, and all figures. */

import { type Judged, judged } from "../measurement.ts"
import { cellsOf, columns, isFigure, straight, summaryOf } from "../report/table.ts"
import { type Results, foundIn } from "../results.ts"

const dateOf = (at: string): string =>
  new Date(at).toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" })

const unique = (texts: ReadonlyArray<string>): string => [...new Set(texts)].join(" and ")

/** When and where the results were measured. */
const circumstancesOf = ({ sections }: Results): string => {
  const inOrder = sections.toSorted((one, other) => one.at.localeCompare(other.at))
  const dates = unique(inOrder.map(({ at }) => dateOf(at)))
  return `Measured on ${dates}, with ${unique(inOrder.map(({ on }) => on))}.`
}

/** Prints rows as Markdown. */
const tableOf = (rows: ReadonlyArray<Judged>): string => {
  const [head = [], ...body] = straight([columns, ...rows.map(cellsOf)])
  const rule = head.map(({ length }, column) =>
    isFigure(column) ? `${"-".repeat(length - 1)}:` : "-".repeat(length),
  )
  return [head, rule, ...body].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}

/** Prints why targets are missed: each profile once, with all rows that it explains. */
const missesOf = (rows: ReadonlyArray<Judged>): ReadonlyArray<string> => {
  const measuredBy = new Map<string, ReadonlyArray<string>>()
  for (const { measured, target, verdict } of rows) {
    if (verdict !== "missed" || target?.profile === undefined) continue
    measuredBy.set(target.profile, [...(measuredBy.get(target.profile) ?? []), measured])
  }
  const lines = Array.from(
    measuredBy,
    ([profile, measured]) => `- **${[...new Set(measured)].join("; ")}.** ${profile}`,
  )
  return lines.length === 0 ? [] : ["Profiles show why targets are missed:", lines.join("\n")]
}

const [begin, end] = ["<!-- from results.json -->", "<!-- until here -->"]

/** Replaces the part of the page that is decided by results. */
export const withTargets = (page: string, results: Results): string => {
  const rows = foundIn(results).rows.map(judged)
  const aimed = rows.filter(({ verdict }) => verdict !== "none")
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`the page has no ${begin}`)
  return [
    `${before}${begin}`,
    `${circumstancesOf(results)} ${summaryOf(rows)}.`,
    tableOf(aimed),
    ...missesOf(rows),
    "<details>",
    "<summary>All figures, those without a target too</summary>",
    tableOf(rows),
    "</details>",
    `${end}${after}`,
  ].join("\n\n")
}
