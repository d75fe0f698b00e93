/**
 * Runs all interleavings in which the second operation runs completely while the first stands at one gate. Fails if one
 * has come out as neither order. `--first` and `--second` choose operations by how their names begin, `--scene` chooses
 * scenes, and `--workers` says how many pairs run at a time.
 */

import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import { explain, judge, stopsOf, titleOf, warmUp } from "./judging.ts"
import type { Pair } from "./meeting.ts"
import { operations } from "./operations.ts"
import { makeWorld, scenes } from "./world.ts"

const { values } = parseArgs({
  options: {
    first: { type: "string", default: "" },
    second: { type: "string", default: "" },
    scene: { type: "string", default: "" },
    workers: { type: "string", default: "2" },
  },
})

const print = (line: string): void => void process.stdout.write(`${line}\n`)
const named = (beginning: string) => operations.filter(({ name }) => name.startsWith(beginning))
const total = { pairs: 0, met: 0, blocked: 0, violations: 0 }

const began = performance.now()
const server = await startPostgres({ settings: { fsync: "off" } })
try {
  for (const scene of scenes.filter((one) => one.startsWith(values.scene))) {
    const pairs: Array<Pair> = named(values.first).flatMap((first) =>
      named(values.second).map((second) => ({ first, second })),
    )
    print(`${scene}: ${pairs.length} pairs`)
    const work = async (number: number): Promise<void> => {
      const world = await makeWorld(server.url, scene, number)
      await warmUp(world)
      for (let pair = pairs.shift(); pair !== undefined; pair = pairs.shift()) {
        const stops = await stopsOf(world, pair.first)
        const { blocked, met, violations } = await judge(world, pair, stops)
        total.pairs++
        total.met += met
        total.blocked += blocked
        total.violations += violations.length
        for (const [index, one] of violations.entries())
          print(index === 0 ? `\n${explain(one)}` : `  also ${titleOf(one)}`)
        if (total.pairs % 50 === 0) print(`\n(${total.pairs} pairs, ${total.met} gates)`)
      }
      await world.end()
    }
    await Promise.all(Array.from({ length: Number(values.workers) }, (_, index) => work(index + 1)))
  }
} finally {
  await server.stop()
}

const seconds = Math.round((performance.now() - began) / 1000)
print(
  `\n${total.pairs} pairs met at ${total.met} gates, ${total.blocked} of them waiting for a lock, in ${seconds} s: ${total.violations} violations`,
)
process.exit(total.violations > 0 ? 1 : 0)
