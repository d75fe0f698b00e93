/** A process that performs runs on its own PostgreSQL, for `main.ts`. */

import { startPostgres } from "@tenure/testing/postgres-server"
import { appendHistories } from "../member-history.ts"
import { violationsOf } from "./checks/checks.ts"
import { endDates } from "./checks/end-dates.ts"
import { grown } from "./checks/processes.ts"
import { type Table, figures } from "./figures.ts"
import type { Holding } from "./history.ts"
import { memberHistoriesOf } from "./member-histories.ts"
import { explain, line, livesIn } from "./report.ts"
import { perform } from "./run.ts"
import { sabotage, spoil } from "./sabotage.ts"
import { describe, schedule } from "./schedule.ts"
import { settings } from "./world/database.ts"
import { holdingOf } from "./world/server.ts"
import { places } from "./world/world.ts"

type Entries<M> = M extends ReadonlyMap<infer K, infer V> ? ReadonlyArray<readonly [K, V]> : never

/** What is told about a run. */
export interface Performed {
  readonly texts: ReadonlyArray<string>
  readonly violations: number
  readonly figures: Entries<Table>
  readonly outcomes: Entries<ReturnType<typeof sabotage>>
}

/** What is told about the process in the end. */
export interface Ended {
  readonly texts: ReadonlyArray<string>
}

const [program = "", seconds, slack, isSabotaged, histories = ""] = process.argv.slice(2)

// A crashed server's processes lose nothing, with or without fsync.
const server = await startPostgres({ settings: { ...settings, fsync: "off" } })

/** What this process holds itself, which is also what the hosts have left in it. */
const ownHolding = async (): Promise<Holding> => {
  globalThis.gc?.()
  const { handles } = await holdingOf(process.pid)
  return { bytes: process.memoryUsage().heapUsed, handles }
}

// Everything has been loaded and used after a few runs.
const settledAfter = 4

let count = 0
let settled: Holding | undefined

const run = async (seed: number): Promise<Performed> => {
  const planned = schedule(seed, Number(seconds), places, 1000 * Number(slack))
  const performed = await perform({ server, program }, seed, planned, 1000 * Number(slack))
  const violations = violationsOf(performed)
  if (histories !== "") {
    const kind = `faults ${seed}`
    appendHistories(histories, memberHistoriesOf(performed, kind))
    for (const [name, spoiled] of isSabotaged === "true" ? spoil(endDates, performed) : []) {
      appendHistories(histories, memberHistoriesOf(spoiled, `${kind}, ${name}`))
    }
  }
  const told = [line(performed, describe(planned), violations), ...livesIn(performed)]
  if (++count === settledAfter) settled = await ownHolding()
  return {
    texts: violations.length > 0 ? [...told, explain(performed, violations)] : told,
    violations: violations.length,
    figures: [...figures(performed)],
    outcomes: isSabotaged === "true" ? [...sabotage(performed)] : [],
  }
}

const end = async (): Promise<Ended> => {
  const found = settled === undefined ? [] : grown("the harness", settled, await ownHolding())
  await server.stop()
  return { texts: found.map(({ text }) => text) }
}

process.on("message", (message) => {
  const answering = message === "end" ? end() : run(Number(message))
  answering.then(
    (answer) => process.send?.(JSON.stringify(answer)),
    (fault: unknown) => {
      console.error(fault)
      process.exit(1)
    },
  )
})

process.on("disconnect", () => process.exit())
