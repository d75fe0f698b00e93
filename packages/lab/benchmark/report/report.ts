/** Where results go: a table on the terminal, and files. */

import { writeCharts } from "../charts/files.ts"
import { type Row, judged } from "../measurement.ts"
import { type Results, foundIn, writeResults } from "../results.ts"
import { summaryOf, tableOf } from "./table.ts"

/** The folder of the last run. */
export const lastRun = new URL("../results/", import.meta.url)

// Kept apart, because no figure of a smoke run means anything.
const lastSmokeRun = new URL("smoke/", lastRun)

/** A row whose verdict does not depend on time. */
const withoutTimes = ({ target, ...row }: Row): Row =>
  target?.always === true ? { ...row, target } : row

/**
 * Prints the table, and writes `results.json` and the charts.
 *
 * @returns whether everything holds that has to hold on any scale
 */
export const report = async (
  results: Results,
  { isSmoke }: { readonly isSmoke: boolean },
): Promise<boolean> => {
  const given = foundIn(results).rows
  const rows = (isSmoke ? given.map(withoutTimes) : given).map(judged)
  console.log(tableOf(rows))
  console.log(summaryOf(rows))
  const folder = isSmoke ? lastSmokeRun : lastRun
  await writeResults(folder, results)
  await writeCharts(folder, results)
  return rows.every(({ target, verdict }) => target?.always !== true || verdict === "met")
}
