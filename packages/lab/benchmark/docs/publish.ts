/** Puts the results of the last run into the documentation. */

import { existsSync } from "node:fs"
import { readFile, writeFile } from "node:fs/promises"
import { writeCharts } from "../charts/files.ts"
import { lastRun } from "../report/report.ts"
import { latest, readResults, writeResults } from "../results.ts"
import { withTargets } from "./targets.ts"

/** The page of figures. */
export const page = new URL("../../../../docs/performance.md", import.meta.url)

/** The folder of its results and charts. */
export const shown = new URL("performance/", page)

/**
 * Replaces each section that the documentation shows by that of the last run, if that is later, and
 * draws the charts and the table anew.
 *
 * @param names - the names of all sections
 */
export const publish = async (names: ReadonlyArray<string>): Promise<void> => {
  const folders = [shown, lastRun].filter((folder) => existsSync(new URL("results.json", folder)))
  const results = latest(await Promise.all(folders.map(readResults)), names)
  await writeResults(shown, results)
  await writeCharts(shown, results)
  await writeFile(page, withTargets(await readFile(page, "utf8"), results))
}
