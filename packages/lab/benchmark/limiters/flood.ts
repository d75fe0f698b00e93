/** A process whose limiter meets addresses that never come twice; it tells how its heap grows. */

import { RateLimiter } from "@tenure/core/effect"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Bytes on the heap after a tenth of the addresses, and after all. */
export interface Flooded {
  readonly before: number
  readonly after: number
}

const used = (): number => {
  globalThis.gc?.()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}

const count = Number(process.argv[2])

const flood = Effect.gen(function* () {
  const limiter = yield* RateLimiter
  const take = Effect.fnUntraced(function* (from: number, to: number) {
    for (let index = from; index < to; index++) {
      yield* limiter.take({ address: `address-${index}`, keyId: undefined })
    }
  })
  const tenth = Math.ceil(count / 10)
  yield* take(0, tenth)
  const before = used()
  yield* take(tenth, count)
  return { before, after: used() } satisfies Flooded
})

const layer = Layer.provide(RateLimiter.layer(), memory())
process.send?.(await Effect.runPromise(Effect.provide(flood, layer)))
process.disconnect()
