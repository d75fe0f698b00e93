/** The files of charts. */

import { mkdir, writeFile } from "node:fs/promises"
import { type Results, foundIn } from "../results.ts"
import { comparisonsOf } from "./alternatives.ts"
import { drawComparisons } from "./draw-comparisons.ts"
import { draw } from "./draw.ts"
import { chartsOf } from "./questions.ts"

/** A chart as a file. */
interface Drawn {
  readonly file: string
  readonly svg: string
}

const themes = ["light", "dark"] as const

/** Draws all charts, for light pages and for dark ones. */
export const drawAll = async (results: Results): Promise<ReadonlyArray<Drawn>> => {
  const drawn: Array<Drawn> = []
  for (const chart of chartsOf(foundIn(results))) {
    for (const theme of themes) {
      drawn.push({ file: `${chart.name}-${theme}.svg`, svg: `${await draw(chart, theme)}\n` })
    }
  }
  return drawn
}

/** Draws the comparisons with alternatives, if there are any. */
export const drawAlternatives = async (results: Results): Promise<ReadonlyArray<Drawn>> => {
  const comparisons = comparisonsOf(foundIn(results).rows)
  if (comparisons.length === 0) return []
  return Promise.all(
    themes.map(async (theme) => ({
      file: `alternatives-${theme}.svg`,
      svg: `${await drawComparisons(comparisons, theme)}\n`,
    })),
  )
}

/** Writes charts into a folder. */
export const writeDrawn = async (folder: URL, drawn: ReadonlyArray<Drawn>): Promise<void> => {
  await mkdir(folder, { recursive: true })
  for (const { file, svg } of drawn) await writeFile(new URL(file, folder), svg)
}
