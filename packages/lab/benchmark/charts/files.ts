/** The files of charts. */

import { writeFile } from "node:fs/promises"
import { type Results, foundIn } from "../results.ts"
import { draw } from "./draw.ts"
import { chartsOf } from "./questions.ts"

/** A chart as a file. */
interface Drawn {
  readonly file: string
  readonly svg: string
}

/** Draws all charts, for light pages and for dark ones. */
export const drawAll = async (results: Results): Promise<ReadonlyArray<Drawn>> => {
  const drawn: Array<Drawn> = []
  for (const chart of chartsOf(foundIn(results))) {
    for (const theme of ["light", "dark"] as const) {
      drawn.push({ file: `${chart.name}-${theme}.svg`, svg: `${await draw(chart, theme)}\n` })
    }
  }
  return drawn
}

/** Writes all charts into a folder. */
export const writeCharts = async (folder: URL, results: Results): Promise<void> => {
  for (const { file, svg } of await drawAll(results)) {
    await writeFile(new URL(file, folder), svg)
  }
}
