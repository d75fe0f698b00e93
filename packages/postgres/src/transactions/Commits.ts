/**
 * What waits for transactions of the host to be committed. Only the host's library knows when that is,
 * so Tenure looks.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Executor } from "../connection/Executor.ts"
import { type EndedRow, findEnded, findEndedParams, type Stored } from "./ended.sql.ts"

// How often it looks, while something waits.
const lookMillis = 100

// What is stored after that, in transactions that stay open, is not waited for.
const mostWaiting = 10_000

interface Waiting extends Stored {
  readonly effect: Effect.Effect<void>
}

/**
 * Makes a function that runs an effect once an event is committed, and never if it is rolled back. It
 * looks for as long as the scope is open.
 */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  const sql = findEnded(executor.schema)
  const waiting = new Set<Waiting>()
  const isWaiting = yield* Latch.make()

  const look = Effect.gen(function* () {
    const asked = [...waiting]
    const rows = yield* executor.executeApart<EndedRow>(sql, findEndedParams(asked), {
      owner: "commits",
    })
    for (const { is_committed, n } of rows) {
      const one = asked[n - 1]
      if (one === undefined) continue
      waiting.delete(one)
      if (is_committed) yield* one.effect
    }
    if (waiting.size === 0) isWaiting.closeUnsafe()
  })

  yield* isWaiting.await.pipe(
    Effect.andThen(Effect.sleep(lookMillis)),
    // A database that does not answer is asked again.
    Effect.andThen(Effect.ignoreCause(look)),
    Effect.forever,
    Effect.forkScoped,
  )

  return (one: Waiting): Effect.Effect<void> => {
    if (waiting.size >= mostWaiting) {
      return Effect.logWarning("Too many transactions are open to wait for the commit of an event")
    }
    return Effect.sync(() => {
      waiting.add(one)
      isWaiting.openUnsafe()
    })
  }
})
