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

const loads: Readonly<Record<string, Load>> = {
  "10⁶ members, 10 extensions a second": {
    members: 1e6,
    extensionsPerSecond: 10,
    deliveriesPerSecond: 10,
    eventDays: 30,
    auditDays: 400,
  },
  "10⁷ members, 1,000 a second": {
    members: 1e7,
    extensionsPerSecond: 1000,
    deliveriesPerSecond: 1000,
    eventDays: 30,
    auditDays: 400,
  },
  "10⁸ members, 10,000 a second": {
    members: 1e8,
    extensionsPerSecond: 10_000,
    deliveriesPerSecond: 10_000,
    eventDays: 3,
    auditDays: 30,
  },
  "10⁸ members, 100,000 a second": {
    members: 1e8,
    extensionsPerSecond: 100_000,
    deliveriesPerSecond: 100_000,
    eventDays: 3,
    auditDays: 30,
  },
}

const gigabytes = (bytes: number): string => `${figure(bytes / 1e9)} GB`

print(
  "Servers with 16 processors half of whose time is used, and what is on disk once the oldest rows are as old as they get",
  Object.entries(loads).map(([load, given]) => {
    const { audit, deliveries, events, log, memberships } = takenBy(
      given,
      rows,
      deliveryLogOf(rows),
    )
    return {
      load,
      servers: figure(
        serversFor(given, {
          extension: figureOf(rows, extensionCpu),
          delivery: figureOf(rows, costOf("20 webhooks", "database")),
        }),
      ),
      "kept, events and audit": `${given.eventDays} and ${given.auditDays} days`,
      memberships: gigabytes(memberships),
      audit: gigabytes(audit),
      events: gigabytes(events),
      deliveries: gigabytes(deliveries),
      log: `${figure(log / 1e6)} MB/s`,
    }
  }),
)
