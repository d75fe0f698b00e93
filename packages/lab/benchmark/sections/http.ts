/** Extensions over HTTP, in memory and in a folder: beside other servers, with metrics, and mounted in hosts. */

import { type Row, type Section, type Settings, type Target, rowsOf } from "../measurement.ts"
import { overHttp, startGenerator, startServer } from "../processes.ts"
import {
  type Contestant,
  type Field,
  type Rounds,
  type Score,
  compare,
  takeTurns,
} from "../rounds.ts"
import { requests, tokens } from "../servers/workload.ts"

/** A contestant in its own process: its name, a module from the folder `servers`, and its arguments. */
type Served = readonly [name: string, ...server: ReadonlyArray<string>]

const measured = "extension over HTTP, in memory"

/** Has servers take turns in being asked. */
const compareServers = async (
  tenure: Served,
  peers: ReadonlyArray<Served>,
  rounds: Rounds,
): Promise<Field<Score>> => {
  const generator = await startGenerator()
  const running = [generator.stop]
  const contestant = async ([name, ...server]: Served): Promise<Contestant> => {
    const process = await startServer(...server)
    running.push(process.stop)
    return overHttp(name, process, generator)
  }
  try {
    const others = await Promise.all(peers.map(contestant))
    return await compare({ tenure: await contestant(tenure), peers: others }, rounds)
  } finally {
    for (const stop of running) stop()
  }
}

const raw = "node:http, by hand"
const fastify = "Fastify + @fastify/rate-limit + JSON schema"
const express = "Express + express-rate-limit + zod"
const logged = "Tenure, access log on"

// The rest of the processor time is spent in the kernel and in the virtual machine.
const profile =
  "The adapter with a constant answer costs as much as node:http by hand, batched. What is above that are the functions of a request, which the table further down lists: they alone make it 1.5 ×. The steps of Effect between them are a twentieth of the time."

const cpuTargets: Record<string, Target> = { [raw]: { of: "ratio", atMost: 1.3, profile } }
const rateTargets: Record<string, Target> = {
  [fastify]: { of: "ratio", atLeast: 1.1, profile },
  [express]: { of: "ratio", atLeast: 1.6 },
}

/** A process's throughput and processor time, beside implementations on frameworks. */
export const http: Section = {
  name: "http",
  measure: async (settings) => {
    const servers: ReadonlyArray<Served> = [
      [logged, "tenure", "logged"],
      [raw, "raw"],
      [`${raw}, batched`, "raw", "batched"],
      [fastify, "fastify"],
      [express, "express"],
    ]
    const { peers: all, tenure } = await compareServers(["Tenure", "tenure"], servers, settings)
    const [withLog = tenure, ...peers] = all
    return {
      rows: [
        ...rowsOf(measured, "cpu", { tenure, peers }, cpuTargets),
        ...rowsOf(`${measured}, access log on`, "cpu", { tenure: withLog, peers }, cpuTargets),
        ...rowsOf(measured, "rate", { tenure, peers }, rateTargets),
      ],
    }
  },
}

const without = "Tenure without metrics"

const metricsProfile =
  "A request updates three histograms: of the request, of the take from its buckets, and of the change. For that, it reads the clock five times more."

/** Shorter rounds, and more: noise that lasts longer than a round is noise for both. */
const often = ({ pick, rounds, seconds }: Settings): Rounds =>
  pick({ rounds: 8 * rounds, seconds: seconds / 8 }, { rounds, seconds })

/** What metrics cost. */
export const metrics: Section = {
  name: "metrics",
  measure: async (settings) => {
    const counting: Served = ["Tenure with metrics", "tenure", "metrics"]
    const scores = await compareServers(counting, [[without, "tenure"]], often(settings))
    const target = { of: "ratio", atMost: 1.05, profile: metricsProfile } as const
    return { rows: rowsOf(`${measured}, metrics on`, "cpu", scores, { [without]: target }) }
  },
}

const mountedProfile =
  "With a core that answers a constant, the adapters for fetch and Fastify take no longer than the hosts that answer one: all of the difference is the core. Its functions take 12 µs in any host, none of them more than a twentieth of that, and the garbage that they leave takes 2: the table further down lists them."

/** What Tenure adds to a host that answers a constant. */
export const mounted: Section = {
  name: "mounted",
  measure: async (settings) => {
    const rows: Array<Row> = []
    for (const host of ["Express", "Fastify", "fetch"]) {
      const bare = `${host}, a constant`
      const scores = await compareServers(
        [`Tenure in ${host}`, "mounted", host],
        [[bare, "mounted", host, "bare"]],
        settings,
      )
      const target = { of: "difference", atMost: 6, profile: mountedProfile } as const
      const title = `extension over HTTP, mounted in ${host}`
      rows.push(
        ...rowsOf(title, "cpu", scores, { [bare]: target }),
        ...rowsOf(title, "rate", scores),
      )
    }
    return { rows }
  },
}

const ways = [
  { name: "one at a time", connections: 1, members: undefined, atLeast: 400 },
  { name: "64 at a time", connections: 64, members: undefined, atLeast: 4000 },
  { name: "64 at a time, of one member", connections: 64, members: 1, atLeast: 2500 },
] as const

/** A process's throughput while commits wait for the disk. */
export const folder: Section = {
  name: "folder",
  measure: async (settings) => {
    const server = await startServer("tenure", "folder")
    const generator = await startGenerator()
    const contestants = ways.map(({ connections, members, name }) =>
      overHttp(name, server, generator, { connections, requests: requests(tokens, members) }),
    )
    const scores = await takeTurns(contestants, settings)
    for (const { stop } of [generator, server]) stop()
    return {
      rows: ways.flatMap(({ atLeast, name }, index): ReadonlyArray<Row> => {
        const { cpu = NaN, rate = NaN } = scores[index] ?? {}
        const target = { of: "figure", atLeast } as const
        return [
          {
            measured: `extension over HTTP, in a folder, ${name}`,
            unit: "/s",
            figure: rate,
            target,
          },
          {
            measured: `processor time of an extension in a folder, ${name}`,
            unit: "µs CPU",
            figure: cpu,
          },
        ]
      }),
    }
  },
}
