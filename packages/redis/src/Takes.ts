/** Takes on one server. Those that arrive together share a script, which decides on each in turn. */

import type { Client, Policies, RateLimitStore, Take } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Buckets } from "./Buckets.ts"
import type { Names } from "./Names.ts"
import type { Part } from "./take.lua.ts"

// A script holds up all other clients of the server: this many takes do for a quarter of a millisecond.
// While the server runs one, this process can make the next.
const mostInScript = 32

/** A take, and who waits for its outcome. */
interface Waiting {
  readonly part: Part
  readonly keys: ReadonlyArray<string>
  readonly policies: Policies
  readonly resume: (take: Exit.Exit<Take, StoreUnavailable>) => void
}

/** Takes that share a script: from the same part, by the same policies. */
interface Batch {
  readonly part: Part
  readonly policies: Policies
  readonly takes: Array<Waiting>
}

const canJoin = ({ part, policies }: Waiting, batch: Batch): boolean =>
  batch.part === part && batch.policies === policies && batch.takes.length < mostInScript

/** Divides takes into batches. Nearly all have the same policies: there are few to choose from. */
const batchesOf = (takes: Iterable<Waiting>): ReadonlyArray<Batch> => {
  const batches: Array<Batch> = []
  for (const take of takes) {
    const open = batches.findLast((batch) => canJoin(take, batch))
    if (open !== undefined) open.takes.push(take)
    else batches.push({ part: take.part, policies: take.policies, takes: [take] })
  }
  return batches
}

const settle = ({ takes }: Batch, exit: Exit.Exit<ReadonlyArray<Take>, StoreUnavailable>): void => {
  if (Exit.isSuccess(exit)) {
    for (const [index, take] of exit.value.entries()) takes[index]?.resume(Exit.succeed(take))
  } else for (const { resume } of takes) resume(Exit.failCause(exit.cause))
}

/** Makes the function that takes. */
export const make = (buckets: Buckets, names: Names): RateLimitStore["Service"]["take"] => {
  let waiting = new Set<Waiting>()

  const ask = (batch: Batch): void => {
    const { part, policies, takes } = batch
    const keys = takes.flatMap((take) => take.keys)
    buckets.take(1, part, keys, policies, (exit) => settle(batch, exit))
  }

  const flush = (): void => {
    const batches = batchesOf(waiting)
    waiting = new Set()
    for (const batch of batches) ask(batch)
  }

  const drawOf = ({ address, keyId }: Client): Pick<Waiting, "part" | "keys"> =>
    keyId === undefined
      ? { part: "address", keys: [names.ofAddress(address)] }
      : { part: "both", keys: [names.ofAddress(address), names.ofKey(keyId)] }

  return (client, policies) =>
    Effect.callback((resume) => {
      const take = { ...drawOf(client), policies, resume }
      // Takes that arrive in the same turn of the event loop share a script.
      if (waiting.size === 0) setImmediate(flush)
      waiting.add(take)
      return Effect.sync(() => void waiting.delete(take))
    })
}
