/**
 * Measures what is named on the command line, or everything. With `--smoke` everything runs once on
 * a small scale, to see that it works; no figure of that means anything. With `--large` things grow
 * to ten million memberships.
 */

import { parseArgs } from "node:util"
import type { Findings, Section } from "./measurement.ts"
import { report } from "./report/report.ts"
import { decode } from "./sections/decode.ts"
import { deliveries } from "./sections/deliveries.ts"
import { bulk, extensions } from "./sections/extensions.ts"
import { growth } from "./sections/growth.ts"
import { http } from "./sections/http.ts"
import { limiter } from "./sections/limiter.ts"
import { limiterPostgres } from "./sections/limiterPostgres.ts"
import { mounted } from "./sections/mounted.ts"
import { roundTrips } from "./sections/roundTrips.ts"
import { signing } from "./sections/signing.ts"
import { soak } from "./sections/soak.ts"
import { start } from "./sections/start.ts"
import { withSettings } from "./settings.ts"

const sections: ReadonlyArray<Section> = [
  start,
  limiter,
  limiterPostgres,
  decode,
  signing,
  http,
  mounted,
  extensions,
  bulk,
  roundTrips,
  deliveries,
  growth,
  soak,
]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    large: { type: "boolean", default: false },
    smoke: { type: "boolean", default: false },
  },
})

const sectionOf = (name: string): Section => {
  const section = sections.find((one) => one.name === name)
  if (section !== undefined) return section
  const names = sections.map((one) => one.name).join(", ")
  throw new Error(`there is no section "${name}", but ${names}`)
}

const chosen = positionals.length === 0 ? sections : positionals.map(sectionOf)

await withSettings({ isLarge: values.large, isSmoke: values.smoke }, async (settings) => {
  const findings: Array<Findings> = []
  for (const { measure, name } of chosen) {
    const begin = performance.now()
    findings.push(await measure(settings))
    console.warn(`${name}: ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  }
  const holds = await report(findings, { isSmoke: values.smoke })
  if (!holds) process.exitCode = 1
})
