/**
 * Runs the whole system under a seeded scheduler, on a simulated time, while networks, processes, clocks and
 * receivers fail.
 *
 * `npm run simulate -- --seeds 1-10000` runs seeds, `--seed 42` tells what happens in one, and `--sabotages` shows
 * how soon each way to break the system is found.
 */

import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { parseInteger } from "../arguments.ts"
import { sabotages } from "./sabotages.ts"
import { type Outcome, simulate } from "./simulate.ts"

// Errors are many here, and nobody reads their stacks.
Error.stackTraceLimit = 0

/** What a process has found. */
interface Found {
  readonly seeds: number
  readonly simulatedMillis: number
  readonly failed: ReadonlyArray<Pick<Outcome, "seed" | "violations">>
}

/** The seeds of a process. */
interface Part {
  readonly first: number
  readonly last: number
  readonly step: number
}

const runPart = async ({ first, last, step }: Part): Promise<Found> => {
  const failed: Array<Pick<Outcome, "seed" | "violations">> = []
  let simulatedMillis = 0
  let seeds = 0
  for (let seed = first; seed <= last; seed += step) {
    const outcome = await simulate(seed)
    simulatedMillis += outcome.simulatedMillis
    seeds++
    if (outcome.violations.length > 0) failed.push({ seed, violations: outcome.violations })
  }
  return { seeds, simulatedMillis, failed }
}

const tell = async (seed: number): Promise<void> => {
  const { told, violations, weather } = await simulate(seed, { isTold: true })
  console.log(JSON.stringify(weather, null, 2))
  for (const { at, what, who } of told) {
    console.log(`${new Date(at).toISOString().slice(11, 23)} ${who.padEnd(10)} ${what}`)
  }
  report([{ seed, violations }])
}

const report = (failed: Found["failed"]): void => {
  for (const { seed, violations } of failed) {
    for (const { invariant, text } of violations) console.log(`seed ${seed}: ${invariant}: ${text}`)
  }
}

const runSabotages = async (): Promise<void> => {
  for (const sabotage of sabotages) {
    const { invariant, name, within } = sabotage
    let found: number | undefined
    for (let seed = 1; seed <= within && found === undefined; seed++) {
      const { violations } = await simulate(seed, { sabotage })
      if (violations.some((violation) => violation.invariant === invariant)) found = seed
    }
    if (found === undefined) process.exitCode = 1
    console.log(`${name}: ${found === undefined ? `not found within ${within}` : `seed ${found}`}`)
  }
}

const runAll = async (first: number, last: number, jobs: number): Promise<void> => {
  const begin = performance.now()
  const parts = Array.from({ length: jobs }, (_, job): Part => ({
    first: first + job,
    last,
    step: jobs,
  }))
  const found: ReadonlyArray<Found> = await Promise.all(
    parts.map(async (part) => {
      const child = fork(fileURLToPath(import.meta.url), [], {
        env: { ...process.env, SIMULATED_PART: JSON.stringify(part) },
      })
      const [result] = await once(child, "message")
      return result
    }),
  )
  const failed = found.flatMap((one) => one.failed).toSorted((one, other) => one.seed - other.seed)
  report(failed)
  const seeds = found.reduce((sum, one) => sum + one.seeds, 0)
  const simulated = found.reduce((sum, one) => sum + one.simulatedMillis, 0)
  const millis = performance.now() - begin
  console.log(
    `${seeds} seeds in ${(millis / 1000).toFixed(1)} s, ${(simulated / millis).toFixed(0)} times as fast as time; ${failed.length} failed`,
  )
  if (failed.length > 0) process.exitCode = 1
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "1-10000" },
      seed: { type: "string" },
      jobs: { type: "string", default: "2" },
      sabotages: { type: "boolean", default: false },
    },
  })
  if (values.sabotages) return runSabotages()
  if (values.seed !== undefined) return tell(parseInteger("seed", values.seed, 0))
  const [first = "", last = first] = values.seeds.split("-")
  await runAll(
    parseInteger("seeds", first, 0),
    parseInteger("seeds", last, 0),
    parseInteger("jobs", values.jobs, 1),
  )
}

const { SIMULATED_PART: part } = process.env
if (part === undefined) await main()
else process.send?.(await runPart(JSON.parse(part)))
