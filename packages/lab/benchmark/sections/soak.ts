/** A long run with a mixed load: does anything grow, or get slower? */

import type { Answered, Load } from "../load-generator.ts"
import type { Row, Section } from "../measurement.ts"
import { start } from "../processes.ts"
import { median } from "../rounds.ts"
import type { Health } from "../servers/soaked.ts"
import { endDate, requests } from "../servers/workload.ts"

// One request in this many is refused, because its date is missing.
const refusedEvery = 20

// Fewer than can be delivered, or the deliveries that wait would pile up. 32 connections.
const [connections, restMillis] = [32, 160]

const samplesWanted = 60
const warmUpShare = 0.1

/** Looks at a process in equal steps. */
const watch = async (
  ask: () => Promise<Health>,
  seconds: number,
): Promise<ReadonlyArray<Health>> => {
  const samples: Array<Health> = []
  for (let taken = 0; taken < samplesWanted; taken++) {
    await new Promise((resolve) => setTimeout(resolve, (1000 * seconds) / samplesWanted))
    samples.push(await ask())
  }
  return samples
}

/** The last tenth beside the first after the warm-up. */
const rowsOf = (samples: ReadonlyArray<Health>): ReadonlyArray<Row> => {
  const warm = samples.slice(Math.floor(warmUpShare * samples.length))
  const tenth = Math.ceil(warm.length / 10)
  const row = (
    measured: string,
    unit: string,
    atMost: number,
    of: (health: Health) => number,
  ): Row => ({
    measured: `soak: ${measured}, last tenth`,
    unit,
    figure: median(warm.slice(-tenth).map(of)),
    yardstick: { name: "first tenth", figure: median(warm.slice(0, tenth).map(of)) },
    target: { of: "ratio", atMost },
  })
  return [
    row("memory of the process", "MB", 1.1, ({ rss }) => rss / 1_000_000),
    row("heap after a collection", "MB", 1.1, ({ heap }) => heap / 1_000_000),
    row("delay of the event loop, p99", "ms", 1.5, ({ delay }) => delay),
    row("open resources", "", 1.1, ({ resources }) => resources),
  ]
}

const isRefused = (index: number): boolean => index % refusedEvery === 0

/** The share of requests that were refused, which is known beforehand. */
const refusals = ({ failures, responses }: Answered): Row => ({
  measured: "soak: requests refused",
  unit: "%",
  figure: (100 * failures) / responses,
  yardstick: { name: "those that ask for no date", figure: 100 / refusedEvery },
  target: { of: "ratio", atLeast: 0.95, atMost: 1.05 },
})

/** Ten minutes, or `SOAK_SECONDS`. */
export const soak: Section = {
  name: "soak",
  measure: async ({ pick }) => {
    const seconds = pick(Number(process.env["SOAK_SECONDS"] ?? 600), 3)
    const receiver = await start<number>("./servers/flaky.ts")
    const server = await start<number>("./servers/soaked.ts", {
      args: [String(receiver.greeting)],
      flags: ["--expose-gc"],
    })
    const generator = await start("./load-generator.ts")
    const load: Load = {
      port: server.greeting,
      connections,
      restMillis,
      // Somewhat longer than is measured, so that the end of the load is not part of it.
      seconds: 1.05 * seconds + 1,
      requests: requests((index) => (isRefused(index) ? "tomorrow" : endDate)),
    }
    const answering = generator.ask<Answered>(load)
    const samples = await watch(() => server.ask<Health>({}), seconds)
    const answered = await answering
    for (const { stop } of [generator, server, receiver]) stop()
    return { rows: [...rowsOf(samples), refusals(answered)] }
  },
}
