/**
 * Says what deployments do that are larger than this machine, as Markdown. First the model meets what was
 * measured here: see docs/internals/scaling.md.
 */

import { readResults, rowsIn, shown } from "../benchmark/results.ts"
import { costOf } from "../benchmark/sections/delivery-rates.ts"
import { extensionCpu } from "../benchmark/sections/extensions.ts"
import { rateOf } from "./deliveries.ts"
import { type Load, serversFor, takenBy } from "./growth.ts"
import { costsOf, deliveryLogOf, figureOf, pointsOf } from "./measured.ts"

const rows = rowsIn(await readResults(shown))
const costs = costsOf(rows)

// The machine on which everything was measured.
const processorsHere = 2

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

/** Prints a table, whose columns are the names in its rows. */
const print = (title: string, table: ReadonlyArray<Readonly<Record<string, string>>>): void => {
  const columns = Object.keys(table[0] ?? {})
  const lines = [columns, columns.map(() => "---"), ...table.map((row) => Object.values(row))]
  console.log([`${title}:`, "", ...lines.map(line), ""].join("\n"))
}

const figure = (value: number): string => Math.round(value).toLocaleString("en")

const ratesHere = pointsOf(rows, processorsHere).map(({ name, rate, setup }) => {
  const modelled = rateOf(setup, costs, 2 * rate)
  return {
    "deliveries to": name,
    "measured, a second": figure(rate),
    "the model": figure(modelled),
    ratio: (modelled / rate).toFixed(2),
  }
})

print("On one machine with two processors, which also receives", ratesHere)

const loads = (
  [
    ["10⁶ members, 10 extensions a second", 1e6, 10, 30, 400],
    ["10⁷ members, 1,000 a second", 1e7, 1000, 30, 400],
    ["10⁸ members, 10,000 a second", 1e8, 10_000, 3, 30],
    ["10⁸ members, 100,000 a second", 1e8, 100_000, 3, 30],
  ] as const
).map(([load, members, perSecond, eventDays, auditDays]) => {
  const rates = { extensionsPerSecond: perSecond, deliveriesPerSecond: perSecond }
  return { load, given: { members, ...rates, eventDays, auditDays } satisfies Load }
})

const gigabytes = (bytes: number): string => `${figure(bytes / 1e9)} GB`

print(
  "Servers with 16 processors half of whose time is used, and what is on disk once the oldest rows are as old as they get",
  loads.map(({ given, load }) => {
    const taken = takenBy(given, rows, deliveryLogOf(rows))
    const servers = serversFor(given, {
      extension: figureOf(rows, extensionCpu),
      delivery: figureOf(rows, costOf("20 webhooks", "database")),
    })
    return {
      load,
      servers: figure(servers),
      "kept, events and audit": `${given.eventDays} and ${given.auditDays} days`,
      memberships: gigabytes(taken.memberships),
      audit: gigabytes(taken.audit),
      events: gigabytes(taken.events),
      deliveries: gigabytes(taken.deliveries),
      log: `${figure(taken.log / 1e6)} MB/s`,
    }
  }),
)
