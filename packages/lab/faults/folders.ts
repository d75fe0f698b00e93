/**
 * Kills processes that have a database in a folder, and compares what is left with what they answered:
 * `npm run folders -- --seeds 1-200`.
 */

import { rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { parseSeeds } from "../arguments.ts"
import { start } from "./folders/kill.ts"

const { values } = parseArgs({ options: { seeds: { type: "string", default: "1-5" } } })

const path = await mkdtemp(join(tmpdir(), "tenure-folder-"))
process.on("exit", () => rmSync(path, { recursive: true }))
const { kill } = await start(path)
const figures = { kills: 0, whileOpening: 0, answered: 0, unanswered: 0, wrong: 0 }

for (const seed of parseSeeds(values.seeds)) {
  const { answered, left, wrong } = await kill(seed)
  figures.kills++
  if (answered === 0) figures.whileOpening++
  figures.answered += answered
  figures.unanswered += left - answered
  figures.wrong += wrong.length
  if (wrong.length > 0) console.log(`seed ${seed}:`, wrong)
}

console.log(figures)
process.exitCode = figures.wrong === 0 ? 0 : 1
