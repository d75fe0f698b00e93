/** Results, and the files that keep them. */

import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { cpus } from "node:os"
import type { Findings, Row } from "./measurement.ts"

/** What a section found, when and where. */
export interface Measured extends Findings {
  readonly name: string
  /** ISO text. */
  readonly at: string
  readonly on: string
}

/** What one run found, or several. */
export interface Results {
  readonly sections: ReadonlyArray<Measured>
}

/** The folder for each section's latest results on this machine. */
export const lastRun = new URL("results/", import.meta.url)

/** The folder for the results that the documentation shows. */
export const shown = new URL("figures/", import.meta.url)

/** This machine, in words. */
export const thisMachine = (): string => {
  const [processor, ...more] = cpus().map(({ model }) => model)
  return `Node ${process.versions.node} and ${more.length + 1} × ${processor}`
}

export const rowsIn = ({ sections }: Results): ReadonlyArray<Row> =>
  sections.flatMap(({ rows }) => rows)

/** Each section's latest results, in the order of these names. */
export const latest = (runs: ReadonlyArray<Results>, names: ReadonlyArray<string>): Results => {
  const found = new Map<string, Measured>()
  for (const section of runs.flatMap(({ sections }) => sections)) {
    if (section.at > (found.get(section.name)?.at ?? "")) found.set(section.name, section)
  }
  return { sections: names.flatMap((name) => found.get(name) ?? []) }
}

const file = "results.json"

/** Reads the results in a folder, which may have none yet. */
export const readResults = async (folder: URL): Promise<Results> =>
  existsSync(new URL(file, folder))
    ? JSON.parse(await readFile(new URL(file, folder), "utf8"))
    : { sections: [] }

/** Writes results into a folder. */
export const writeResults = async (folder: URL, results: Results): Promise<void> => {
  await mkdir(folder, { recursive: true })
  await writeFile(new URL(file, folder), `${JSON.stringify(results, undefined, 2)}\n`)
}

/** Puts a section's results into a folder, in place of its earlier ones. */
export const addResults = async (folder: URL, measured: Measured): Promise<void> => {
  const { sections } = await readResults(folder)
  const others = sections.filter(({ name }) => name !== measured.name)
  await writeResults(folder, { sections: [...others, measured] })
}
