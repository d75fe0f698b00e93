/** Limiters in memory: takes per second, and memory per client. */

import type { Distribution } from "../limiters/clients.ts"
import type { Flooded } from "../limiters/flood.ts"
import type { LimiterName, Outcome } from "../limiters/limiters.ts"
import type { Turn } from "../limiters/takes.ts"
import { type Row, type Section, type Settings, rowsOf } from "../measurement.ts"
import { type Child, start } from "../processes.ts"
import { type Contestant, type Field, type Score, brief, compare } from "../rounds.ts"
import type { Target } from "../target.ts"

const contenders: ReadonlyArray<LimiterName> = [
  "flexible",
  "flexibleUnion",
  "expressStores",
  "effectLimiter",
  "tenureTable",
  "tenureService",
]

const targets: Record<string, Target> = {
  "rate-limiter-flexible": {
    of: "ratio",
    atLeast: 4,
    profile:
      "Most of a take is two look-ups in maps of 100,000 ids, which miss the caches of the processor. For a refusal rate-limiter-flexible needs one look-up of its three, since it stops at the first empty bucket: it takes about half as long as for an admission. Tenure takes as long for both, since it tells the longest wait. Two look-ups, three instants and a clock, without any rule, reach 3.5 × for refusals; among 1,000 clients, the table alone reaches 7.6 ×. A step of a fiber adds 0.1 µs, and reading Effect's clock 0.07 µs.",
  },
}

/** A limiter in its process. */
type Running = Child & { readonly greeting: string }

const contestant = ({ ask, greeting }: Running, distribution: Distribution): Contestant => ({
  name: greeting,
  run: (seconds) => ask({ distribution, seconds } satisfies Turn),
})

const isTenure = ({ name }: Score): boolean => name.startsWith("Tenure")

/** The store beside all others; the table and the service beside the one that the store aims at. */
const rowsOfAll = (measured: string, { peers, tenure }: Field<Score>): ReadonlyArray<Row> => {
  const others = peers.filter((score) => !isTenure(score))
  const aimedAt = others.filter(({ name }) => name in targets)
  const label = ({ name }: Score): string => `${measured}: ${name}`
  return [
    ...rowsOf(label(tenure), "rate", { tenure, peers: others }, targets),
    ...peers
      .filter(isTenure)
      .flatMap((one) => rowsOf(label(one), "rate", { tenure: one, peers: aimedAt })),
  ]
}

const rowsFor = async (outcome: Outcome, settings: Settings): Promise<ReadonlyArray<Row>> => {
  const count = String(settings.pick(100_000, 1000))
  const run = (name: LimiterName) =>
    start<string>("./limiters/takes.ts", { args: [name, outcome, count] })
  const tenure = await run("tenureStore")
  const others = await Promise.all(contenders.map(run))
  const rows: Array<Row> = []
  for (const distribution of ["uniform", "zipf"] as const) {
    const field = {
      tenure: contestant(tenure, distribution),
      peers: others.map((other) => contestant(other, distribution)),
    }
    const measured = `take of three buckets, ${distribution}, ${outcome}`
    rows.push(...rowsOfAll(measured, await compare(field, brief(settings))))
  }
  for (const { stop } of [tenure, ...others]) stop()
  return rows
}

const inProcess = async <Result>(module: string, args: ReadonlyArray<string>): Promise<Result> => {
  const child = await start<Result>(module, { args, flags: ["--expose-gc"] })
  return child.greeting
}

const measureIdle = async ({ pick }: Settings): Promise<ReadonlyArray<Row>> => {
  const bytes = (limiter: LimiterName) =>
    inProcess<number>("./limiters/idle-bytes.ts", [limiter, String(pick(100_000, 1000))])
  const figure = await bytes("tenureStore")
  const peers = [
    { name: "rate-limiter-flexible", limiter: "flexible" },
    { name: "express-rate-limit's MemoryStore", limiter: "expressStores" },
    { name: "Effect's RateLimiter", limiter: "effectLimiter" },
  ] as const
  const idle = { measured: "an idle key and its address", unit: "bytes", figure }
  const rows: Array<Row> = [{ ...idle, target: { of: "figure", atMost: 250 } }]
  for (const { limiter, name } of peers) {
    rows.push({ ...idle, yardstick: { name, figure: await bytes(limiter) } })
  }
  return rows
}

const megabytes = (bytes: number): number => bytes / 1_000_000

const measureFlood = async ({ pick }: Settings): Promise<Row> => {
  const count = pick(10_000_000, 20_000)
  const { after, before } = await inProcess<Flooded>("./limiters/flood.ts", [String(count)])
  return {
    measured: `heap after ${count.toLocaleString("en")} addresses that came once`,
    unit: "MB",
    figure: megabytes(after),
    yardstick: { name: "after a tenth of them", figure: megabytes(before) },
    target: { of: "ratio", atMost: 1.1 },
  }
}

/** Speed and memory of limiters. */
export const limiter: Section = {
  name: "limiter",
  measure: async (settings) => ({
    rows: [
      ...(await rowsFor("admitted", settings)),
      ...(await rowsFor("refused", settings)),
      ...(await measureIdle(settings)),
      await measureFlood(settings),
    ],
  }),
}
