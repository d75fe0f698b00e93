/**
 * Measures what is named on the command line, or everything. With `--smoke` everything runs once on
 * a small scale, to see that it works; no figure of that means anything. With `--large` things grow
 * to ten million memberships. With `--docs` nothing is measured: the last run goes into the
 * documentation.
 */

import { parseArgs } from "node:util"
import { gapsOf } from "./charts/questions.ts"
import { publish } from "./docs/publish.ts"
import type { Section } from "./measurement.ts"
import { report } from "./report/report.ts"
import { type Measured, foundIn, thisMachine } from "./results.ts"
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

const names = sections.map(({ name }) => name)

const sectionOf = (name: string): Section => {
  const section = sections.find((one) => one.name === name)
  if (section !== undefined) return section
  throw new Error(`there is no section "${name}", but ${names.join(", ")}`)
}

const measureAll = async (chosen: ReadonlyArray<Section>): Promise<ReadonlyArray<Measured>> => {
  const measured: Array<Measured> = []
  await withSettings({ isLarge: values.large, isSmoke: values.smoke }, async (settings) => {
    for (const { measure, name } of chosen) {
      const begin = performance.now()
      const findings = await measure(settings)
      measured.push({ name, at: new Date().toISOString(), on: thisMachine(), ...findings })
      console.warn(`${name}: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
    }
  })
  return measured
}

/** Measures and reports. Returns whether everything holds. */
const run = async (): Promise<boolean> => {
  const isWhole = positionals.length === 0
  const results = { sections: await measureAll(isWhole ? sections : positionals.map(sectionOf)) }
  const gaps = isWhole ? gapsOf(foundIn(results)) : []
  if (gaps.length > 0) console.error(`the charts miss: ${gaps.join("; ")}`)
  return (await report(results, { isSmoke: values.smoke })) && gaps.length === 0
}

if (values.docs) await publish(names)
else if (!(await run())) process.exitCode = 1
