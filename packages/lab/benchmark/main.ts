/**
 * Measures sections by name, or all. With `--smoke` everything runs once on a small scale, to see that it works;
 * its figures mean nothing. With `--large` things grow to ten million memberships. With `--docs` the latest results of
 * each section go into the documentation: after the named sections were measured, or without measuring if none is
 * named.
 */

import { rm } from "node:fs/promises"
import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import { unansweredOf } from "./comparisons.ts"
import { type Database, connect } from "./database.ts"
import { type Row, type Section, type Settings, judged } from "./measurement.ts"
import { publish } from "./pages.ts"
import { stopAll } from "./processes.ts"
import { type Measured, addResults, lastRun, rowsIn, thisMachine } from "./results.ts"
import { sections } from "./sections/all.ts"
import { plainTable, summaryOf } from "./tables.ts"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    docs: { type: "boolean", default: false },
    large: { type: "boolean", default: false },
    smoke: { type: "boolean", default: false },
  },
})
const { docs, large: isLarge, smoke: isSmoke } = values

if (docs && isSmoke) throw new Error("--docs needs figures, and --smoke has none")

const names = sections.map(({ name }) => name)

const sectionsOf = (name: string): ReadonlyArray<Section> => {
  if (name === "all") return sections
  const section = sections.find((one) => one.name === name)
  if (section !== undefined) return [section]
  throw new Error(`there is no section "${name}", but all, ${names.join(", ")}`)
}

const openDatabase = async (): Promise<Database> => {
  const given = process.env["DATABASE_URL"]
  if (given !== undefined) return connect(given)
  const server = await startPostgres()
  const database = await connect(server.url)
  const close = async () => {
    await database.close()
    await server.stop()
  }
  return { ...database, close }
}

let opening: Promise<Database> | undefined

const settings: Settings = {
  rounds: isSmoke ? 1 : Number(process.env["ROUNDS"] ?? 5),
  seconds: isSmoke ? 0.05 : Number(process.env["ROUND_SECONDS"] ?? 2),
  isLarge,
  pick: (thorough, smoke) => (isSmoke ? smoke : thorough),
  database: () => (opening ??= openDatabase()),
}

// Smoke runs have their own.
const folder = isSmoke ? new URL("smoke/", lastRun) : lastRun

/** Measures a section, and keeps its results. Another one may still succeed if it fails. */
const measure = async ({ measure: find, name }: Section): Promise<Measured | undefined> => {
  const begin = performance.now()
  try {
    const findings = await find(settings)
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

/** A row whose verdict does not depend on time. */
const withoutTimes = ({ target, ...row }: Row): Row =>
  target?.always === true ? { ...row, target } : row

/** Measures and reports. Returns whether everything holds that has to hold on any scale. */
const run = async (chosen: ReadonlyArray<Section>): Promise<boolean> => {
  if (isSmoke) await rm(folder, { recursive: true, force: true })
  const measured: Array<Measured> = []
  for (const section of chosen) measured.push(...[(await measure(section)) ?? []].flat())
  // If it could not be opened, the section that asked for it has failed already.
  await opening?.then(
    ({ close }) => close(),
    () => undefined,
  )
  const found = rowsIn({ sections: measured })
  const rows = (isSmoke ? found.map(withoutTimes) : found).map(judged)
  console.log(plainTable(rows))
  console.log(summaryOf(rows))
  const gaps = chosen === sections ? unansweredOf(found) : []
  if (gaps.length > 0) console.error(`the page for users misses: ${gaps.join("; ")}`)
  const isBroken = rows.some(({ target, verdict }) => target?.always === true && verdict !== "met")
  return !isBroken && gaps.length === 0 && measured.length === chosen.length
}

const publishesOnly = docs && positionals.length === 0
const isWhole = positionals.length === 0 || positionals.includes("all")
const holds = publishesOnly || (await run(isWhole ? sections : positionals.flatMap(sectionsOf)))
if (docs) await publish(names)
// What a section that failed has left open would keep the process alive.
process.exit(holds ? 0 : 1)
