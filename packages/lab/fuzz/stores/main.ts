/**
 * Has all stores take the same random steps, and compares their answers. Each seed is a run, on
 * empty stores. Fails if there is a difference; the first `--failures` are shrunk and printed.
 */

import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import { parseInteger, parseSeeds } from "../../arguments.ts"
import { playSeed, report, shrink } from "./run.ts"
import { inFolder, inMemory, onServer } from "./sides.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1-60" },
    steps: { type: "string", default: "250" },
    failures: { type: "string", default: "5" },
    // The most runs to find the fewest steps that show a difference.
    shrink: { type: "string", default: "60" },
  },
})

const seeds = parseSeeds(values.seeds)
const steps = parseInteger("steps", values.steps, 1)
const most = parseInteger("failures", values.failures, 0)
const maxRuns = parseInteger("shrink", values.shrink, 0)

const server = await startPostgres({ settings: { fsync: "off" } })
const folder = await mkdtemp(join(tmpdir(), "tenure-fuzz-"))
const stores = [inMemory, await inFolder(folder), await onServer(server.url)]
const begun = Date.now()
// When the day began: on the next day, stores tell differently how far back the audit trail is kept.
const start = begun - (begun % 86_400_000)

let requests = 0
let valid = 0
let differences = 0
for (const seed of seeds) {
  const ran = await playSeed(stores, start, seed, steps)
  requests += ran.requests
  valid += ran.valid
  console.log(`seed ${seed}: ${ran.requests} requests, ${ran.valid} answered with 200`)
  if (ran.difference === undefined) continue
  if (differences++ < most) {
    console.error(report(seed, await shrink(stores, start, ran.difference, maxRuns)))
  }
}
const seconds = (Date.now() - begun) / 1000

for (const store of stores) await store.close()
await server.stop()
await rm(folder, { recursive: true })

console.log(
  `${requests} requests to each of ${stores.length} stores in ${seconds.toFixed(1)} s, ` +
    `${((100 * valid) / requests).toFixed(0)} % answered with 200; ${differences} differences`,
)
process.exit(differences > 0 ? 1 : 0)
