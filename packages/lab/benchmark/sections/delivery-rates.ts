/** Deliveries a second, by how many webhooks, receivers and processes there are, and what each costs. */

import { type Delivered, deliverBacklog, fillBacklog } from "../backlog.ts"
import { type Database, startTenure, withSchema } from "../database.ts"
import type { Row, Section, Settings } from "../measurement.ts"
import { start } from "../processes.ts"
import { startReceiver } from "../receiving.ts"
import { median } from "../rounds.ts"

const schema = "benchmark_rates"

/** A backlog, and who delivers it. */
interface Case {
  /** Each in its own project. */
  readonly webhooks: number
  /** How long the receiver takes to answer. */
  readonly delayMillis: number
  readonly processes: number
  /** About as many as are delivered in a second. */
  readonly rate: number
  /** The rate that is aimed at. */
  readonly atLeast?: number
}

// Attempts that take 500 ms are so long that one machine's processors can serve several processes. Claims are
// dearer the more webhooks have something to deliver.
const shapes: ReadonlyArray<
  readonly [webhooks: number, delay: number, processes: number, rate: number, atLeast?: number]
> = [
  [1, 0, 1, 3500, 1800],
  [1, 25, 1, 550, 500],
  [20, 0, 1, 4500, 4000],
  [20, 0, 3, 4000],
  [20, 25, 1, 4500],
  [20, 25, 3, 4000],
  [100, 500, 1, 1100],
  [100, 500, 2, 2000],
  [100, 500, 4, 2500],
  [1000, 500, 1, 1800],
]

const inWords = ["no", "one", "two", "three", "four"]

const nameOf = (webhooks: number, delay: number, processes: number): string =>
  [
    webhooks === 1 ? "one webhook" : `${webhooks.toLocaleString("en")} webhooks`,
    delay === 0 ? "" : ` that take${webhooks === 1 ? "s" : ""} ${delay} ms`,
    processes === 1 ? "" : `, by ${inWords[processes]} processes`,
  ].join("")

/** The cases, by their names. */
export const cases: ReadonlyMap<string, Case> = new Map(
  shapes.map(([webhooks, delayMillis, processes, rate, atLeast]) => [
    nameOf(webhooks, delayMillis, processes),
    { webhooks, delayMillis, processes, rate, ...(atLeast !== undefined && { atLeast }) },
  ]),
)

/** What a delivery from a backlog costs. */
interface Costs extends Delivered {
  /** How many were claimed at a time. */
  readonly atATime: number
  /** How many were settled at a time. */
  readonly settledAtATime: number
  /** How long a claim took, in microseconds. */
  readonly claim: number
  /** Bytes in the write-ahead log. */
  readonly logBytes: number
}

/** What PostgreSQL has used so far, and done. */
interface Used {
  readonly bytes: number
  readonly calls: number
  readonly commits: number
  readonly micros: number
}

const usedBy = async ({ sql }: Database): Promise<Used> => {
  const [used] = await sql<Used>(
    `SELECT coalesce(sum(calls), 0)::float8 AS calls,
            coalesce(sum(total_time), 0)::float8 * 1000 AS micros,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes,
            (SELECT xact_commit FROM pg_stat_database
             WHERE datname = current_database())::float8 AS commits
     FROM pg_stat_user_functions WHERE schemaname = $1 AND funcname = 'claim'`,
    [schema],
  )
  return used ?? { bytes: 0, calls: 0, commits: 0, micros: 0 }
}

// It counts function calls and their time.
const counting = (url: string): string => {
  const counted = new URL(url)
  counted.searchParams.set("options", "-c track_functions=pl")
  return counted.href
}

// Their ids are in URLs.
const projectsOf = (name: string): ReadonlyArray<string> =>
  Array.from(
    { length: cases.get(name)?.webhooks ?? 0 },
    (_, index) => `${name.replaceAll(/\W+/g, "-")}-${index}`,
  )

// They are longer than in other sections.
const maxRounds = 3

/** Delivers a backlog in each case, several times. */
const deliverAll = async (
  database: Database,
  { rounds, seconds }: Settings,
): Promise<ReadonlyMap<string, ReadonlyArray<Costs>>> => {
  const { url } = database
  const receiver = await startReceiver()
  const tenure = await startTenure(url, schema)
  for (const [name, { delayMillis }] of cases) {
    await receiver.register(tenure, projectsOf(name), delayMillis)
  }
  await tenure.close()
  const most = Math.max(...[...cases.values()].map(({ processes }) => processes))
  const setup = JSON.stringify({ url: counting(url), schema, webhooks: [] })
  const all = await Promise.all(
    Array.from({ length: most }, () =>
      start("./servers/deliverer.ts", { args: ["Tenure", setup] }),
    ),
  )

  /** Delivers a backlog for about twice as many seconds, so that its beginning matters little. */
  const deliver = async (name: string, { processes, rate }: Case, span: number) => {
    const count = Math.ceil(2 * rate * span)
    await fillBacklog({ url, schema }, projectsOf(name), count)
    const before = await usedBy(database)
    const delivered = await deliverBacklog(database, receiver, all.slice(0, processes), count)
    const after = await usedBy(database)
    const claims = after.calls - before.calls
    return {
      ...delivered,
      atATime: count / claims,
      // Hardly anything else is committed meanwhile.
      settledAtATime: count / (after.commits - before.commits - claims),
      claim: (after.micros - before.micros) / claims,
      logBytes: (after.bytes - before.bytes) / count,
    }
  }

  // Compilation is not measured.
  for (const [name, one] of cases) await deliver(name, one, seconds / 4)
  const samples = new Map<string, Array<Costs>>()
  for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
    for (const [name, one] of cases) {
      const delivered = await deliver(name, one, seconds)
      samples.set(name, [...(samples.get(name) ?? []), delivered])
    }
  }
  for (const { stop } of [receiver, ...all]) stop()
  return samples
}

const profile =
  "One process keeps both processors busy, with 360 µs for a delivery in sender, receiver and PostgreSQL. With three it takes 600: none claims ahead for a webhook of which another has claims, so 119 deliveries are claimed at once rather than 237, and 38 settled at once rather than 90. The clock runs from the first arrival, so starting them is not counted."

/** The name of a case's row. */
export const measuredOf = (name: string): string => `deliveries to ${name}`

/** What a delivery costs: the row's name and unit. */
const costs = {
  sending: ["processor time where it is sent", "µs CPU"],
  receiving: ["processor time in the receiver", "µs CPU"],
  database: ["processor time in PostgreSQL", "µs CPU"],
  atATime: ["deliveries in a claim", ""],
  settledAtATime: ["deliveries in a settlement", ""],
  claim: ["time of a claim", "µs"],
  logBytes: ["write-ahead log", "bytes"],
} as const satisfies Partial<Record<keyof Costs, readonly [string, string]>>

type Cost = keyof typeof costs

const isCost = (name: string): name is Cost => name in costs

/** The name of a cost's row. */
export const costOf = (name: string, cost: Cost): string => `${measuredOf(name)}, ${costs[cost][0]}`

/** The cases whose costs are shown: they have only one process, whose claims wait for nobody. */
const plain = ["one webhook", "20 webhooks"] as const

/** How fast backlogs are delivered, from process to process. */
export const deliveryRates: Section = {
  name: "delivery-rates",
  measure: async (settings) => {
    const database = await settings.database()
    const samples = await withSchema(database, schema, () => deliverAll(database, settings))
    const figureOf = (name: string, figure: keyof Costs): number =>
      median((samples.get(name) ?? []).map((one) => one[figure]))
    const rateRow = (name: string, { atLeast, processes }: Case): Row => {
      const row: Row = { measured: measuredOf(name), unit: "/s", figure: figureOf(name, "rate") }
      if (atLeast !== undefined) return { ...row, target: { of: "figure", atLeast } }
      if (processes === 1) return row
      const single = figureOf(name.replace(/, by .*/, ""), "rate")
      const yardstick = { name: "by one process", figure: single }
      return { ...row, yardstick, target: { of: "ratio", atLeast: 1, profile } }
    }
    const costRow = (name: string, cost: Cost): Row => ({
      measured: costOf(name, cost),
      unit: costs[cost][1],
      figure: figureOf(name, cost),
    })
    return {
      rows: [
        ...Array.from(cases, ([name, one]) => rateRow(name, one)),
        ...plain.flatMap((name) =>
          Object.keys(costs)
            .filter(isCost)
            .map((cost) => costRow(name, cost)),
        ),
      ],
    }
  },
}
