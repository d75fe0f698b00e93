/**
 * Runs the whole system under a seeded scheduler, on a simulated time, while networks, processes, clocks and
 * receivers fail.
 *
 * `npm run simulate -- --seeds 1-10000` runs seeds, `--seed 42` tells what happens in one, and `--sabotages` shows
 * how soon each way to break the system is found; `--sabotage NAME` breaks all seeds in one way. With
 * `--store postgres`, the stores are PostgreSQL's. `--histories FILE` appends each membership's history
 * to a file.
 */

import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { parseInteger } from "../arguments.ts"
import { appendHistories } from "../member-history.ts"
import { memberHistoriesOf } from "./member-histories.ts"
import { sabotages } from "./sabotages.ts"
import { type Outcome, simulate } from "./simulate.ts"
import type { WorldOptions } from "./world.ts"

// Errors are many here, and nobody reads their stacks.
Error.stackTraceLimit = 0

/** What a process has found. */
interface Found {
  readonly seeds: number
  readonly simulatedMillis: number
  readonly failed: ReadonlyArray<Pick<Outcome, "seed" | "violations">>
}

/** What is run. */
interface Setting {
  readonly store: Store
  /** A sabotage's name. */
  readonly sabotage: string | undefined
  /** The file for histories. */
  readonly histories: string | undefined
}

/** A process's seeds. */
interface Part extends Setting {
  readonly first: number
  readonly last: number
  readonly step: number
}

const kinds = ["memory", "postgres"] as const

/** Where the stores are. */
type Store = (typeof kinds)[number]

const storeOf = (given: string): Store => {
  const store = kinds.find((kind) => kind === given)
  if (store === undefined) throw new Error(`--store must be one of ${kinds.join(" and ")}`)
  return store
}

const sabotageOf = (given: string | undefined): WorldOptions => {
  if (given === undefined) return {}
  const sabotage = sabotages.find(({ name }) => name === given)
  if (sabotage === undefined) throw new Error(`no sabotage is named "${given}"`)
  return { sabotage }
}

/** Does something with the options for a store and a sabotage. */
const withStore = async (
  { sabotage, store }: Pick<Setting, "sabotage" | "store">,
  work: (options: WorldOptions) => Promise<void>,
): Promise<void> => {
  const options = sabotageOf(sabotage)
  if (store === "memory") return work(options)
  const { openDatabase } = await import("./postgres.ts")
  const database = await openDatabase()
  try {
    await work({ ...options, database })
  } finally {
    await database.close()
  }
}

const runPart = async ({ first, histories, last, step, ...setting }: Part): Promise<Found> => {
  const failed: Array<Pick<Outcome, "seed" | "violations">> = []
  let simulatedMillis = 0
  let seeds = 0
  await withStore(setting, async (options) => {
    for (let seed = first; seed <= last; seed += step) {
      const outcome = await simulate(seed, options)
      simulatedMillis += outcome.simulatedMillis
      seeds++
      if (histories !== undefined)
        appendHistories(histories, memberHistoriesOf(outcome, setting.sabotage))
      if (outcome.violations.length > 0) failed.push({ seed, violations: outcome.violations })
    }
  })
  return { seeds, simulatedMillis, failed }
}

const tell = (seed: number, setting: Setting): Promise<void> =>
  withStore(setting, async (options) => {
    const { told, violations, weather } = await simulate(seed, { ...options, isTold: true })
    console.log(JSON.stringify(weather, null, 2))
    for (const { at, what, who } of told) {
      console.log(`${new Date(at).toISOString().slice(11, 23)} ${who.padEnd(10)} ${what}`)
    }
    report([{ seed, violations }])
  })

const report = (failed: Found["failed"]): void => {
  for (const { seed, violations } of failed) {
    for (const { invariant, text } of violations) console.log(`seed ${seed}: ${invariant}: ${text}`)
  }
}

const runSabotages = async (options: WorldOptions): Promise<void> => {
  for (const sabotage of sabotages) {
    const { invariant, name, within } = sabotage
    let found: number | undefined
    for (let seed = 1; seed <= within && found === undefined; seed++) {
      const { violations } = await simulate(seed, { ...options, sabotage })
      if (violations.some((violation) => violation.invariant === invariant)) found = seed
    }
    if (found === undefined) process.exitCode = 1
    console.log(`${name}: ${found === undefined ? `not found within ${within}` : `seed ${found}`}`)
  }
}

const runAll = async (jobs: number, { first, ...whole }: Omit<Part, "step">): Promise<void> => {
  const begin = performance.now()
  const parts = Array.from({ length: jobs }, (_, job): Part => ({
    ...whole,
    first: first + job,
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
      store: { type: "string", default: "memory" },
      histories: { type: "string" },
      sabotage: { type: "string" },
      sabotages: { type: "boolean", default: false },
    },
  })
  const { histories, sabotage, seed } = values
  const setting = { store: storeOf(values.store), sabotage, histories }
  if (values.sabotages) return withStore(setting, runSabotages)
  if (seed !== undefined) return tell(parseInteger("seed", seed, 0), setting)
  const [first = "", last = first] = values.seeds.split("-")
  await runAll(parseInteger("jobs", values.jobs, 1), {
    first: parseInteger("seeds", first, 0),
    last: parseInteger("seeds", last, 0),
    ...setting,
  })
}

const { SIMULATED_PART: part } = process.env
if (part === undefined) await main()
else process.send?.(await runPart(JSON.parse(part)))
