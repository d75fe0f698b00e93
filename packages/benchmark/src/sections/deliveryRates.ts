/** Deliveries a second, by how many webhooks, receivers and processes there are. */

import { fillBacklog } from "../backlog.ts"
import { startTenure } from "../database.ts"
import type { Row, Section } from "../measurement.ts"
import { type Child, start } from "../processes.ts"
import { type Receiver, startReceiver } from "../receiving.ts"
import { median } from "../rounds.ts"

const schema = "benchmark_rates"

// They are longer than those of other sections.
const mostRounds = 3

/** A backlog, and who delivers it. */
interface Case {
  /** Of as many projects. */
  readonly webhooks: number
  /** How long the receiver takes to answer. */
  readonly delayMillis: number
  readonly processes: number
  /** About as many as one process delivers in a second. */
  readonly rate: number
}

const cases = {
  one: { webhooks: 1, delayMillis: 0, processes: 1, rate: 1800 },
  oneLate: { webhooks: 1, delayMillis: 25, processes: 1, rate: 500 },
  many: { webhooks: 20, delayMillis: 0, processes: 1, rate: 4000 },
  manyByThree: { webhooks: 20, delayMillis: 0, processes: 3, rate: 4000 },
  manyLate: { webhooks: 20, delayMillis: 25, processes: 1, rate: 4000 },
  manyLateByThree: { webhooks: 20, delayMillis: 25, processes: 3, rate: 4000 },
} satisfies Record<string, Case>

type Name = keyof typeof cases

const names = ["one", "oneLate", "many", "manyByThree", "manyLate", "manyLateByThree"] as const

const profile =
  "One process keeps both processors busy, with 370 µs for a delivery in sender, receiver and PostgreSQL. With three it takes 600: none claims ahead for a webhook of which another has claims, so 37 deliveries are claimed at once rather than 138, and 22 settled at once rather than 45. The clock runs from the first arrival, so starting them is not counted."

const rowsOf = (rateOf: (name: Name) => number): ReadonlyArray<Row> => {
  const row = (measured: string, name: Name, atLeast?: number): Row => ({
    measured: `deliveries to ${measured}`,
    unit: "/s",
    figure: rateOf(name),
    ...(atLeast !== undefined && { target: { of: "figure", atLeast } }),
  })
  const beside = (measured: string, name: Name, one: Name): Row => ({
    ...row(`${measured}, by three processes`, name),
    yardstick: { name: "by one process", figure: rateOf(one) },
    target: { of: "ratio", atLeast: 1, profile },
  })
  return [
    row("one webhook", "one", 1800),
    row("one webhook that takes 25 ms", "oneLate", 500),
    row("20 webhooks", "many", 4000),
    beside("20 webhooks", "manyByThree", "many"),
    row("20 webhooks that take 25 ms", "manyLate"),
    beside("20 webhooks that take 25 ms", "manyLateByThree", "manyLate"),
  ]
}

const projectsOf = (name: Name): ReadonlyArray<string> =>
  Array.from({ length: cases[name].webhooks }, (_, index) => `${name}-${index}`)

const register = async (url: string, receiver: Receiver): Promise<void> => {
  const tenure = await startTenure(url, schema)
  for (const name of names) {
    await receiver.register(tenure, projectsOf(name), cases[name].delayMillis)
  }
  await tenure.close()
}

/** The processes that take part. */
interface Parties {
  readonly url: string
  readonly receiver: Receiver
  readonly senders: ReadonlyArray<Child>
}

/**
 * Delivers a backlog for about twice as many seconds, so that its beginning matters little. Returns the
 * deliveries a second.
 */
const deliver = async (
  { receiver, senders: all, url }: Parties,
  name: Name,
  seconds: number,
): Promise<number> => {
  const { processes, rate } = cases[name]
  const senders = all.slice(0, processes)
  const toggle = () => Promise.all(senders.map(({ ask }) => ask({})))
  const count = Math.ceil(2 * rate * seconds)
  await fillBacklog({ url, schema }, projectsOf(name), count)
  const { distinct } = await receiver.report()
  await toggle()
  const received = await receiver.until(distinct + count)
  await toggle()
  return received.rate
}

/** How fast backlogs are delivered, from process to process. */
export const deliveryRates: Section = {
  name: "delivery-rates",
  measure: async ({ database, rounds, seconds }) => {
    const { sql, url } = await database()
    await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const receiver = await startReceiver()
    await register(url, receiver)
    const args = [url, schema]
    const senders = await Promise.all(
      Array.from({ length: 3 }, () => start("./servers/sender.ts", { args })),
    )
    const rates = new Map<Name, Array<number>>(names.map((name) => [name, []]))
    for (let round = 0; round < Math.min(rounds, mostRounds); round++) {
      for (const [name, samples] of rates) {
        samples.push(await deliver({ url, receiver, senders }, name, seconds))
      }
    }
    for (const { stop } of [receiver, ...senders]) stop()
    await sql(`DROP SCHEMA ${schema} CASCADE`)
    return { rows: rowsOf((name) => median(rates.get(name) ?? [])) }
  },
}
