/** Puts the latest results into the documentation. */

import { readFile, writeFile } from "node:fs/promises"
import { unansweredOf } from "../charts/alternatives.ts"
import { drawAll, drawAlternatives, writeDrawn } from "../charts/files.ts"
import { lastRun } from "../report/report.ts"
import { foundIn, latest, readResults, writeResults } from "../results.ts"
import { withComparisons, withFigures } from "./pages.ts"

/** The page for users. */
export const userPage = new URL("../../../../docs/performance.md", import.meta.url)

/** The folder of its picture. */
export const pictures = new URL("performance/", userPage)

/** The page for maintainers. */
export const figuresPage = new URL("../FIGURES.md", import.meta.url)

/** The folder of its results and charts. */
export const shown = new URL("../figures/", import.meta.url)

const rewrite = async (page: URL, change: (text: string) => string): Promise<void> =>
  writeFile(page, change(await readFile(page, "utf8")))

/**
 * Replaces each section that the documentation shows by the latest one of this machine, if that is later,
 * and writes the pages and charts anew. Sections may have been measured apart.
 *
 * @param names - the names of all sections
 */
export const publish = async (names: ReadonlyArray<string>): Promise<void> => {
  const runs = await Promise.all([shown, lastRun].map(readResults))
  const results = latest(runs, names)
  await writeResults(shown, results)
  await writeDrawn(shown, await drawAll(results))
  await writeDrawn(pictures, await drawAlternatives(results))
  await rewrite(figuresPage, (text) => withFigures(text, results))
  await rewrite(userPage, (text) => withComparisons(text, results))
  const unmeasured = names.filter((name) => results.sections.every((one) => one.name !== name))
  if (unmeasured.length > 0) console.warn(`never measured: ${unmeasured.join(", ")}`)
  const unanswered = unansweredOf(foundIn(results).rows)
  if (unanswered.length > 0) console.warn(`the page for users misses: ${unanswered.join("; ")}`)
}
