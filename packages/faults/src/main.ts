/**
 * Breaks servers, database and network by seed, and checks what clients and receivers see. Fails if
 * anything is wrong. With `--slack`, things may happen that many seconds later than documented, because
 * others keep the machine busy. With `--sabotage` it falsifies what it has recorded instead, to prove that every
 * check can fail.
 */

import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/PostgresServer"
import { violationsOf } from "./checks/checks.ts"
import { grown } from "./checks/processes.ts"
import { figures, markdown, sum, type Table } from "./figures.ts"
import type { Holding } from "./history.ts"
import { explain, line } from "./report.ts"
import { perform } from "./run.ts"
import { sabotage, uncaught } from "./sabotage.ts"
import { describe, schedule } from "./schedule.ts"
import { parseSeeds } from "./seeds.ts"
import { holdingOf } from "./world/server.ts"
import { places } from "./world/World.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1-5" },
    seconds: { type: "string", default: "20" },
    slack: { type: "string", default: "0" },
    sabotage: { type: "boolean", default: false },
  },
})

const seeds = parseSeeds(values.seeds)
const seconds = Number(values.seconds)
const slack = Number(values.slack)
if (!(slack >= 0)) throw new Error("--slack takes a number of seconds")
if (!(seconds >= 1 && seconds <= 3600)) throw new Error("--seconds takes a number from 1 to 3600")

// The processes of a crashed server lose nothing, with or without fsync.
const server = await startPostgres({ settings: { fsync: "off" } })

/** What the harness holds itself, which is also what the hosts have left in it. */
const ownHolding = async (): Promise<Holding> => {
  globalThis.gc?.()
  const { handles } = await holdingOf(process.pid)
  return { bytes: process.memoryUsage().heapUsed, handles }
}

// Everything has been loaded and used after a few runs.
const settledAfter = 3

let table: Table = new Map()
const outcomes: Array<ReturnType<typeof sabotage>> = []
let failures = 0
let settled: Holding | undefined
try {
  for (const seed of seeds) {
    const planned = schedule(seed, seconds, places)
    const run = await perform(server, seed, planned, 1000 * slack)
    const violations = violationsOf(run)
    console.log(line(run, describe(planned), violations))
    if (violations.length > 0) console.log(explain(run, violations))
    failures += violations.length
    table = sum(table, figures(run))
    if (seeds.indexOf(seed) === settledAfter) settled = await ownHolding()
    if (values.sabotage) outcomes.push(sabotage(run))
  }
} finally {
  await server.stop()
}

if (settled !== undefined) {
  const found = grown("the harness", settled, await ownHolding())
  for (const { text } of found) console.log(text)
  failures += found.length
}

if (values.sabotage) {
  const missed = uncaught(outcomes)
  for (const name of missed) console.log(`not caught: ${name}`)
  failures += missed.length
}

console.log(`\n${markdown(table)}\n`)
console.log(`${seeds.length} seeds, ${failures} violations`)
process.exit(failures > 0 ? 1 : 0)
