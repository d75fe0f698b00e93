/**
 * Measures sections by name, or all of them. With `--smoke` everything runs once on a small scale, to see
 * that it works; no figure of that means anything. With `--large` things grow to ten million memberships.
 * With `--docs` the latest results of each section go into the documentation: after the named sections
 * were measured, or without measuring if none is named.
 */

import { parseArgs } from "node:util"
import { gapsOf } from "./charts/questions.ts"
import { publish } from "./docs/publish.ts"
import type { Section, Settings } from "./measurement.ts"
import { stopAll } from "./processes.ts"
import { openFolder, report } from "./report/report.ts"
import { type Measured, addResults, foundIn, thisMachine } from "./results.ts"
import { sections } from "./sections/all.ts"
import { withSettings } from "./settings.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    docs: { type: "boolean", default: false },
    large: { type: "boolean", default: false },
    smoke: { type: "boolean", default: false },
  },
})

if (values.docs && values.smoke) throw new Error("--docs needs figures, and --smoke has none")

const names = sections.map(({ name }) => name)

const sectionsOf = (name: string): ReadonlyArray<Section> => {
  if (name === "all") return sections
  const section = sections.find((one) => one.name === name)
  if (section !== undefined) return [section]
  throw new Error(`there is no section "${name}", but all, ${names.join(", ")}`)
}

/** Measures a section, and keeps its results. Another one may still succeed if it fails. */
const measure = async (
  section: Section,
  settings: Settings,
  folder: URL,
): Promise<Measured | undefined> => {
  const { name } = section
  const begin = performance.now()
  try {
    const findings = await section.measure(settings)
    const measured = { name, at: new Date().toISOString(), on: thisMachine(), ...findings }
    await addResults(folder, measured)
    console.warn(`${name}: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    return measured
  } catch (error) {
    console.error(`${name} failed:`, error)
    stopAll()
    return undefined
  }
}

/** Measures and reports. Returns whether everything holds. */
const run = async (chosen: ReadonlyArray<Section>): Promise<boolean> => {
  const folder = await openFolder(values.smoke)
  const measured: Array<Measured> = []
  await withSettings({ isLarge: values.large, isSmoke: values.smoke }, async (settings) => {
    for (const section of chosen) {
      const one = await measure(section, settings, folder)
      if (one !== undefined) measured.push(one)
    }
  })
  const results = { sections: measured }
  const gaps = chosen === sections ? gapsOf(foundIn(results)) : []
  if (gaps.length > 0) console.error(`the charts miss: ${gaps.join("; ")}`)
  const holds = await report(results, { folder, isSmoke: values.smoke })
  return holds && gaps.length === 0 && measured.length === chosen.length
}

const publishesOnly = values.docs && positionals.length === 0
const isWhole = positionals.length === 0 || positionals.includes("all")
const holds = publishesOnly || (await run(isWhole ? sections : positionals.flatMap(sectionsOf)))
if (values.docs) await publish(names)
// What a section that failed has left open would keep the process alive.
process.exit(holds ? 0 : 1)
