/** A process that fills a limiter with clients, and tells how many bytes each costs. */

import { clientOf } from "./clients.ts"
import { limiterNamed } from "./limiters.ts"

const used = (): number => {
  globalThis.gc?.()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

const [name = "", count = ""] = process.argv.slice(2)
const clients = Number(count)
const limiter = limiterNamed(name, "admitted", clients)

// The first requests compile the code, which no client has to pay for. Then each client comes once.
const fill = async (from: number, to: number): Promise<void> => {
  for (let index = from; index < to; index++) await limiter.takeAll([clientOf(index)])
}
const warmUp = Math.ceil(clients / 10)
await fill(0, warmUp)
const before = used()
await fill(warmUp, clients)
process.send?.((used() - before) / (clients - warmUp))
// Keeps the limiter from being collected before this point.
await limiter.takeAll([])
process.disconnect()
