/**
 * Breaks servers, database and network by seed, and checks what clients and receivers see. Fails if
 * anything is wrong. With `--jobs`, so many seeds run at the same time, each on its own PostgreSQL. With
 * `--slack`, things may happen that many seconds later than documented, because others keep the machine
 * busy. With `--sabotage` it also falsifies what it has recorded, to prove that every check can fail: while no run
 * had anything to falsify in some way, up to five more seeds follow.
 * `--histories FILE` appends each membership's history to a file.
 */

import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { parseInteger, parseSeeds } from "../../arguments.ts"
import { type Table, markdown, sum } from "../figures.ts"
import { type Outcomes, missedIn, untried } from "../sabotage.ts"
import type { Ended, Performed } from "../worker.ts"
import type { Scenario } from "../world/stage.ts"

// With `--sabotage`.
const maxMoreSeeds = 5

const worker = fileURLToPath(new URL("../worker.ts", import.meta.url))

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({
    args,
    options: {
      seeds: { type: "string", default: "1-5" },
      seconds: { type: "string", default: "20" },
      slack: { type: "string", default: "0" },
      jobs: { type: "string", default: "1" },
      sabotage: { type: "boolean", default: false },
      histories: { type: "string", default: "" },
    },
  })
  const seeds = parseSeeds(values.seeds)
  const seconds = Number(values.seconds)
  const jobs = parseInteger("jobs", values.jobs, 1)
  if (!(Number(values.slack) >= 0)) throw new Error("--slack takes a number of seconds")
  // Checks tell a clock that has jumped by an hour from one that has not.
  if (!(seconds >= 1 && seconds <= 3000)) throw new Error("--seconds takes a number from 1 to 3000")

  const program = await stage.program()
  let table: Table = new Map()
  const outcomes: Array<Outcomes> = []
  let failures = 0
  const waiting = [...seeds]
  const more = Array.from({ length: maxMoreSeeds }, (_, index) => Math.max(...seeds) + 1 + index)

  const nextSeed = (): number | undefined =>
    waiting.shift() ?? (values.sabotage && untried(outcomes).length > 0 ? more.shift() : undefined)

  /** Has another process perform one seed after the other, until none is left. */
  const work = async (): Promise<void> => {
    const options = [
      program,
      values.seconds,
      values.slack,
      String(values.sabotage),
      values.histories,
    ]
    const child = fork(worker, options, { execArgv: process.execArgv })
    const left = once(child, "exit").then(([code]) => {
      throw new Error(`a worker ended with ${code}`)
    })
    left.catch(() => {})
    const ask = async (message: string): Promise<string> => {
      const answer = once(child, "message")
      child.send(message)
      const [text] = await Promise.race([answer, left])
      return String(text)
    }
    for (let seed = nextSeed(); seed !== undefined; seed = nextSeed()) {
      const performed: Performed = JSON.parse(await ask(String(seed)))
      for (const text of performed.texts) console.log(text)
      table = sum(table, new Map(performed.figures))
      const found = new Map(performed.outcomes)
      outcomes.push(found)
      const missed = missedIn(found)
      for (const name of missed) console.log(`seed ${seed}: not caught: ${name}`)
      failures += performed.violations + missed.length
    }
    const { texts }: Ended = JSON.parse(await ask("end"))
    for (const text of texts) console.log(text)
    failures += texts.length
    child.disconnect()
  }

  await Promise.all(Array.from({ length: Math.min(jobs, seeds.length) }, work))
  if (values.sabotage) {
    const names = untried(outcomes)
    for (const name of names) console.log(`no seed had anything to falsify: ${name}`)
    failures += names.length
  }
  console.log(`\n${markdown(table)}\n`)
  console.log(`${outcomes.length} seeds, ${failures} violations`)
  return failures === 0
}
