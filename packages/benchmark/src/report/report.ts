/** Where the findings go: a table on the terminal, and two files. */

import { mkdir, writeFile } from "node:fs/promises"
import { cpus } from "node:os"
import { type Findings, judged, type Row } from "../measurement.ts"
import { chartOf } from "./chart.ts"
import { summaryOf, tableOf } from "./table.ts"

const folder = new URL("../../results/", import.meta.url)

const machine = () => ({
  at: new Date().toISOString(),
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  processors: cpus().map(({ model }) => model),
})

/** A row whose verdict does not depend on time. */
const withoutTimes = ({ target, ...row }: Row): Row =>
  target?.always === true ? { ...row, target } : row

/**
 * Prints the table, and writes `results.json` and `results.svg`.
 *
 * @returns whether everything holds that has to hold on any scale
 */
export const report = async (
  findings: ReadonlyArray<Findings>,
  { isSmoke }: { readonly isSmoke: boolean },
): Promise<boolean> => {
  const given = findings.flatMap((one) => one.rows)
  const rows = (isSmoke ? given.map(withoutTimes) : given).map(judged)
  const curves = findings.flatMap((one) => one.curves ?? [])
  console.log(tableOf(rows))
  console.log(summaryOf(rows))
  await mkdir(folder, { recursive: true })
  const json = JSON.stringify({ machine: machine(), rows, curves }, undefined, 2)
  await writeFile(new URL("results.json", folder), `${json}\n`)
  await writeFile(new URL("results.svg", folder), chartOf(rows, curves))
  return rows.every(({ target, verdict }) => target?.always !== true || verdict === "met")
}
