/** What was measured on one machine: the model's costs, and the rates that it is checked against. */

import type { Row } from "../benchmark/measurement.ts"
import { cases, costOf, measuredOf } from "../benchmark/sections/delivery-rates.ts"
import type { Costs, Setup } from "./deliveries.ts"

/** Something that was measured, and how to simulate it. */
export interface Point {
  readonly name: string
  readonly setup: Setup
  /** Deliveries a second. */
  readonly rate: number
}

/** Returns a row's figure. */
export const figureOf = (rows: ReadonlyArray<Row>, measured: string): number => {
  const row = rows.find((one) => one.measured === measured)
  if (row === undefined) throw new Error(`"${measured}" was not measured`)
  return row.figure
}

// On one machine, a round trip is little more than the work.
const roundTrip = 300

/** The costs that follow from claims with different sizes, and from a delivery. */
export const costsOf = (rows: ReadonlyArray<Row>): Costs => {
  const claimOf = (name: string) => ({
    micros: figureOf(rows, costOf(name, "claim")),
    size: figureOf(rows, costOf(name, "atATime")),
  })
  const [few, many] = [claimOf("one webhook"), claimOf("20 webhooks")]
  const each = (many.micros - few.micros) / (many.size - few.size)
  const inDatabase = figureOf(rows, costOf("20 webhooks", "database"))
  return {
    claim: { fixed: Math.max(0, few.micros - each * few.size), each },
    settlement: inDatabase - many.micros / many.size,
    sending: figureOf(rows, costOf("20 webhooks", "sending")),
    receiving: figureOf(rows, costOf("20 webhooks", "receiving")),
    roundTrip,
  }
}

/** The bytes that a delivery writes to the log. */
export const deliveryLogOf = (rows: ReadonlyArray<Row>): number =>
  figureOf(rows, costOf("20 webhooks", "logBytes"))

/**
 * What was measured on one database, on one machine with so many processors. What is not on the page yet
 * is left out.
 */
export const pointsOf = (rows: ReadonlyArray<Row>, count: number): ReadonlyArray<Point> =>
  [...cases].flatMap(([name, { delayMillis, processes, webhooks }]) => {
    const row = rows.find(({ measured }) => measured === measuredOf(name))
    if (row === undefined) return []
    const processors = { of: "everything", count } as const
    return [{ name, setup: { processes, webhooks, delayMillis, processors }, rate: row.figure }]
  })
