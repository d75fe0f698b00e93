/** Limiters in memory: takes a second, and what they keep. */

import { type Client, clientsOf, drawsOf } from "../limiters/clients.ts"
import type { Flooded } from "../limiters/flood.ts"
import * as Limiters from "../limiters/limiters.ts"
import { type Row, rowsOf, type Section, type Settings, type Target } from "../measurement.ts"
import { start } from "../processes.ts"
import { batches, brief, compare, type Contestant, type Field, type Score } from "../rounds.ts"

const makers = {
  tenure: Limiters.tenureStore,
  peers: [
    Limiters.flexible,
    Limiters.flexibleUnion,
    Limiters.expressStores,
    Limiters.effectLimiter,
    Limiters.tenureTable,
    Limiters.tenureService,
  ],
}

const targets: Record<string, Target> = {
  "rate-limiter-flexible": { of: "ratio", atLeast: 6 },
}

const batchSize = 500

/** Takes for clients in their order, and makes sure of what becomes of the requests. */
const contestant = (
  { name, takeAll }: Limiters.Limiter,
  draws: ReadonlyArray<Client>,
  outcome: Limiters.Outcome,
): Contestant => {
  let at = 0
  const batch = async (): Promise<void> => {
    const admitted = await takeAll(draws.slice(at, at + batchSize))
    at = (at + batchSize) % (draws.length - batchSize)
    const expected = outcome === "admitted" ? batchSize : 0
    if (admitted !== expected) throw new Error(`${name} admitted ${admitted} of ${batchSize}`)
  }
  return { name, run: (seconds) => batches(batchSize, seconds, batch) }
}

const isTenure = ({ name }: Score): boolean => name.startsWith("Tenure")

/** The store beside all others; the table and the service beside the one that there is a target for. */
const rowsOfAll = (measured: string, { peers, tenure }: Field<Score>): ReadonlyArray<Row> => {
  const others = peers.filter((score) => !isTenure(score))
  const aimedAt = others.filter(({ name }) => name in targets)
  const rows = (one: Score, beside: ReadonlyArray<Score>) =>
    rowsOf(`${measured}: ${one.name}`, "rate", { tenure: one, peers: beside }, targets)
  return [
    ...rows(tenure, others),
    ...peers.filter(isTenure).flatMap((score) => rows(score, aimedAt)),
  ]
}

const rowsFor = async (outcome: Limiters.Outcome, settings: Settings) => {
  const clients = clientsOf(settings.pick(100_000, 1000))
  const make = (maker: Limiters.Make) => maker(outcome, clients.length)
  const limiters = { tenure: make(makers.tenure), peers: makers.peers.map(make) }
  const all = [limiters.tenure, ...limiters.peers]
  // Everybody knows all clients; for those with a limit of one that was the one.
  for (const { takeAll } of all) await takeAll(clients)
  const rows: Array<Row> = []
  for (const distribution of ["uniform", "zipf"] as const) {
    const draws = drawsOf(clients, distribution)
    const field = {
      tenure: contestant(limiters.tenure, draws, outcome),
      peers: limiters.peers.map((limiter) => contestant(limiter, draws, outcome)),
    }
    const measured = `take of three buckets, ${distribution}, ${outcome}`
    rows.push(...rowsOfAll(measured, await compare(field, brief(settings))))
  }
  for (const { close } of all) await close()
  return rows
}

const inProcess = async <Result>(module: string, args: ReadonlyArray<string>): Promise<Result> => {
  const child = await start<Result>(module, { args, flags: ["--expose-gc"] })
  return child.greeting
}

const measureIdle = async ({ pick }: Settings): Promise<ReadonlyArray<Row>> => {
  const bytes = (limiter: keyof typeof Limiters) =>
    inProcess<number>("./limiters/idleBytes.ts", [limiter, String(pick(100_000, 1000))])
  const figure = await bytes("tenureStore")
  const peers = [
    { name: "rate-limiter-flexible", limiter: "flexible" },
    { name: "express-rate-limit's MemoryStore", limiter: "expressStores" },
    { name: "Effect's RateLimiter", limiter: "effectLimiter" },
  ] as const
  const rows: Array<Row> = []
  for (const { limiter, name } of peers) {
    rows.push({
      measured: "an idle key and its address",
      unit: "bytes",
      figure,
      yardstick: { name, figure: await bytes(limiter) },
      target: { of: "figure", atMost: 250 },
    })
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
