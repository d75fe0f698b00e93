/**
 * Kills hosts in transactions that record a payment and extend a membership, and counts what is left:
 * `npm run payments -- --seeds 1-200`.
 */

import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import { parseSeeds } from "../arguments.ts"
import { start } from "./payments/pay.ts"

const { values } = parseArgs({ options: { seeds: { type: "string", default: "1-5" } } })
const seeds = parseSeeds(values.seeds)

const server = await startPostgres()
const { pay, stop } = await start(server.url)
const figures = { all: 0, nothing: 0, parts: 0 }

for (const seed of seeds) {
  const left = await pay(seed)
  if (typeof left === "string") figures[left]++
  else {
    figures.parts++
    console.log(`seed ${seed}:`, left.part)
  }
}

console.log(figures)
await stop()
await server.stop()
process.exitCode = figures.parts === 0 ? 0 : 1
