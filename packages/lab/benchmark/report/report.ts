/** Where results go: a table on the terminal, and files. */

import { rm } from "node:fs/promises"
import { drawAll, drawAlternatives, writeDrawn } from "../charts/files.ts"
import { type Row, judged } from "../measurement.ts"
import { type Results, foundIn } from "../results.ts"
import { summaryOf, tableOf } from "./table.ts"

/** The folder of the latest results of each section on this machine. */
export const lastRun = new URL("../results/", import.meta.url)

// Kept apart, because no figure of a smoke run means anything.
const lastSmokeRun = new URL("smoke/", lastRun)

/** Returns the folder for results. That of smoke runs is emptied. */
export const openFolder = async (isSmoke: boolean): Promise<URL> => {
  if (!isSmoke) return lastRun
  await rm(lastSmokeRun, { recursive: true, force: true })
  return lastSmokeRun
}

/** A row whose verdict does not depend on time. */
const withoutTimes = ({ target, ...row }: Row): Row =>
  target?.always === true ? { ...row, target } : row

/**
 * Prints the table, and draws the charts into a folder.
 *
 * @returns whether everything holds that has to hold on any scale
 */
export const report = async (
  results: Results,
  { folder, isSmoke }: { readonly folder: URL; readonly isSmoke: boolean },
): Promise<boolean> => {
  const given = foundIn(results).rows
  const rows = (isSmoke ? given.map(withoutTimes) : given).map(judged)
  console.log(tableOf(rows))
  console.log(summaryOf(rows))
  await writeDrawn(folder, await drawAll(results))
  await writeDrawn(folder, await drawAlternatives(results))
  return rows.every(({ target, verdict }) => target?.always !== true || verdict === "met")
}
