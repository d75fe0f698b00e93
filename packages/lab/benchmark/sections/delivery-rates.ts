/** Deliveries a second, by how many webhooks, receivers and processes there are. */

import { type Case, type Delivered, prepare } from "../delivering.ts"
import type { Row, Section } from "../measurement.ts"
import { median } from "../rounds.ts"
import type { Target } from "../target.ts"

// They are longer than those of other sections.
const mostRounds = 3

const alone = { processes: 1 } as const

const slow = { ...alone, delayMillis: 500 }

/** The cases, by their names. */
export const cases = {
  "one webhook": { ...alone, webhooks: 1, delayMillis: 0, rate: 3500 },
  "one webhook that takes 25 ms": { ...alone, webhooks: 1, delayMillis: 25, rate: 550 },
  "20 webhooks": { ...alone, webhooks: 20, delayMillis: 0, rate: 4500 },
  "20 webhooks, by three processes": {
    ...alone,
    webhooks: 20,
    delayMillis: 0,
    processes: 3,
    rate: 4000,
  },
  "20 webhooks that take 25 ms": { ...alone, webhooks: 20, delayMillis: 25, rate: 4500 },
  "20 webhooks that take 25 ms, by three processes": {
    ...alone,
    webhooks: 20,
    delayMillis: 25,
    processes: 3,
    rate: 4000,
  },
  // Attempts take so long that the processors of one machine can serve several processes.
  "100 webhooks that take 500 ms": { ...slow, webhooks: 100, rate: 1100 },
  "100 webhooks that take 500 ms, by two processes": {
    ...slow,
    webhooks: 100,
    processes: 2,
    rate: 2000,
  },
  "100 webhooks that take 500 ms, by four processes": {
    ...slow,
    webhooks: 100,
    processes: 4,
    rate: 2500,
  },
  // Claims are dearer the more webhooks have something to deliver.
  "1,000 webhooks that take 500 ms": { ...slow, webhooks: 1000, rate: 1800 },
} satisfies Record<string, Case>

type Name = keyof typeof cases

const isName = (name: string): name is Name => name in cases

const names = Object.keys(cases).filter(isName)

const least: Partial<Record<Name, number>> = {
  "one webhook": 1800,
  "one webhook that takes 25 ms": 500,
  "20 webhooks": 4000,
}

const profile =
  "One process keeps both processors busy, with 360 µs for a delivery in sender, receiver and PostgreSQL. With three it takes 600: none claims ahead for a webhook of which another has claims, so 119 deliveries are claimed at once rather than 237, and 38 settled at once rather than 90. The clock runs from the first arrival, so starting them is not counted."

const byMany = /^(.*), by (two|three|four) processes$/

const notSlower: Target = { of: "ratio", atLeast: 1, profile }

/** What a row of a case is called. */
export const measuredOf = (name: string): string => `deliveries to ${name}`

const rateRow = (name: Name, rateOf: (name: Name) => number): Row => {
  const atLeast = least[name]
  const [, single = ""] = byMany.exec(name) ?? []
  return {
    measured: measuredOf(name),
    unit: "/s",
    figure: rateOf(name),
    ...(atLeast !== undefined && { target: { of: "figure", atLeast } }),
    ...(isName(single) && {
      yardstick: { name: "by one process", figure: rateOf(single) },
      target: notSlower,
    }),
  }
}

/** What a delivery takes, beside its rate: what the row is called, and its unit. */
export const costs = {
  sending: ["processor time where it is sent", "µs CPU"],
  receiving: ["processor time in the receiver", "µs CPU"],
  database: ["processor time in PostgreSQL", "µs CPU"],
  atATime: ["deliveries in a claim", ""],
  settledAtATime: ["deliveries in a settlement", ""],
  claim: ["time of a claim", "µs"],
  logBytes: ["write-ahead log", "bytes"],
} as const satisfies Partial<Record<keyof Delivered, readonly [string, string]>>

/** What the row of a cost is called. */
export const costOf = (name: string, cost: keyof typeof costs): string =>
  `${measuredOf(name)}, ${costs[cost][0]}`

const isCost = (name: string): name is keyof typeof costs => name in costs

/** The cases whose costs are shown: they have only one process, whose claims wait for nobody. */
const plain = ["one webhook", "20 webhooks"] as const

/** How fast backlogs are delivered, from process to process. */
export const deliveryRates: Section = {
  name: "delivery-rates",
  measure: async ({ database, rounds, seconds }) => {
    const { deliver, stop } = await prepare(await database(), cases)
    // Compilation is not measured.
    for (const name of names) await deliver(name, seconds / 4)
    const all = new Map<Name, Array<Delivered>>(names.map((name) => [name, []]))
    for (let round = 0; round < Math.min(rounds, mostRounds); round++) {
      for (const [name, samples] of all) samples.push(await deliver(name, seconds))
    }
    await stop()
    const figureOf = (name: Name, figure: keyof Delivered): number =>
      median((all.get(name) ?? []).map((one) => one[figure]))
    const costRows = plain.flatMap((name) =>
      Object.keys(costs)
        .filter(isCost)
        .map((cost): Row => ({
          measured: costOf(name, cost),
          unit: costs[cost][1],
          figure: figureOf(name, cost),
        })),
    )
    return {
      rows: [...names.map((name) => rateRow(name, (one) => figureOf(one, "rate"))), ...costRows],
    }
  },
}
