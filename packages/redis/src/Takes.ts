/** Takes on one server. Those that arrive together share a script, which decides on each in turn. */

import type { Client, Policies, RateLimitStore, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Buckets } from "./Buckets.ts"
import type { Names } from "./Names.ts"
import type { Taken } from "./take.lua.ts"

// A script holds up all other clients of the server: this many takes do for less than half a millisecond.
// While the server runs one, this process can make the next.
const mostInScript = 32

/** A take, and who waits for its outcome. */
interface Waiting {
  readonly keys: ReadonlyArray<string>
  readonly policies: Policies
  readonly resume: (take: Exit.Exit<Take, StoreUnavailable>) => void
}

/** Takes that share a script: with as many keys each, and the same policies. */
interface Batch {
  readonly width: number
  readonly policies: Policies
  readonly takes: Array<Waiting>
}

const canJoin = ({ keys, policies }: Waiting, batch: Batch): boolean =>
  batch.width === keys.length && batch.policies === policies && batch.takes.length < mostInScript

/** Divides takes into batches. Nearly all have the same policies: there are few to choose from. */
const batchesOf = (takes: Iterable<Waiting>): ReadonlyArray<Batch> => {
  const batches: Array<Batch> = []
  for (const take of takes) {
    const open = batches.findLast((batch) => canJoin(take, batch))
    if (open !== undefined) open.takes.push(take)
    else batches.push({ width: take.keys.length, policies: take.policies, takes: [take] })
  }
  return batches
}

/** The buckets of a key that a client does not have are full. */
const outcomeOf = ({ admitted, now, tats }: Taken): Take => {
  const [address = now, key = now, burst = now] = tats
  return { admitted, now, address, key, burst }
}

const settle = (
  { takes }: Batch,
  exit: Exit.Exit<ReadonlyArray<Taken>, StoreUnavailable>,
): void => {
  if (Exit.isSuccess(exit)) {
    for (const [index, taken] of exit.value.entries()) {
      takes[index]?.resume(Exit.succeed(outcomeOf(taken)))
    }
  } else for (const { resume } of takes) resume(Exit.failCause(exit.cause))
}

/** Makes the function that takes. */
export const make = (buckets: Buckets, names: Names): RateLimitStore["Service"]["take"] => {
  let waiting = new Set<Waiting>()

  const ask = ({ policies: { address, burst, key }, takes, width }: Batch) => {
    const clients = takes.map(({ keys }) => keys)
    return buckets.take(1, clients, [[address], [key, burst]].slice(0, width))
  }

  const flush = (): void => {
    const batches = batchesOf(waiting)
    waiting = new Set()
    for (const batch of batches) {
      Effect.runFork(ask(batch)).addObserver((exit) => settle(batch, exit))
    }
  }

  const keysOf = ({ address, keyId }: Client): ReadonlyArray<string> =>
    keyId === undefined
      ? [names.ofAddress(address)]
      : [names.ofAddress(address), names.ofKey(keyId)]

  return (client, policies) =>
    Effect.callback((resume) => {
      const take = { keys: keysOf(client), policies, resume }
      // Takes that arrive in the same turn of the event loop share a script.
      if (waiting.size === 0) setImmediate(flush)
      waiting.add(take)
      return Effect.sync(() => void waiting.delete(take))
    })
}
