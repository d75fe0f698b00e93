/** A process with one limiter, so that no limiter pays for the heap of another. */

import { type Sample, batches } from "../rounds.ts"
import { type Distribution, clientsOf, drawsOf } from "./clients.ts"
import { type Outcome, limiterNamed } from "./limiters.ts"

/** The task. */
export interface Turn {
  readonly distribution: Distribution
  readonly seconds: number
}

const [name = "", outcomeGiven, count] = process.argv.slice(2)
const outcome: Outcome = outcomeGiven === "refused" ? "refused" : "admitted"
const clients = clientsOf(Number(count))
const limiter = limiterNamed(name, outcome, clients.length)

const draws = { uniform: drawsOf(clients, "uniform"), zipf: drawsOf(clients, "zipf") }
const batchSize = 500
let at = 0

/** Takes for the next clients, and checks whether the requests are admitted. */
const batch = async (distribution: Distribution): Promise<void> => {
  const some = draws[distribution].slice(at, at + batchSize)
  at = (at + batchSize) % (draws[distribution].length - batchSize)
  const admitted = await limiter.takeAll(some)
  const expected = outcome === "admitted" ? batchSize : 0
  if (admitted !== expected) throw new Error(`${name} admitted ${admitted} of ${batchSize}`)
}

const take = ({ distribution, seconds }: Turn): Promise<Sample> =>
  batches(batchSize, seconds, () => batch(distribution))

process.on("message", (turn: Turn) => {
  void take(turn).then((sample) => process.send?.(sample))
})
process.on("disconnect", () => process.exit())

// It knows all clients beforehand; for those with a limit of one that was the one.
await limiter.takeAll(clients)
process.send?.(limiter.name)
