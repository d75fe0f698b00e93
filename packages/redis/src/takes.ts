/**
 * Takes tokens on one server or in a cluster. Takes that arrive together share a script, which decides them in turn.
 */

import {
  type ApiKeyId,
  type BucketPolicies,
  type LimitedClient,
  Micros,
  type RateLimitStore,
  type StoreUnavailable,
  type TakeResult,
} from "@tenure/core/store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ClusterPart, Names, RedisBuckets, Tokens } from "./script.ts"

// A script blocks the server's other clients: 32 takes block it for 0.25 ms. Meanwhile, this process
// can prepare the next script.
const maxInScript = 32

/** A take and its callback. */
interface Waiting {
  readonly part: ClusterPart
  readonly keys: ReadonlyArray<string>
  readonly policies: BucketPolicies
  readonly resume: (take: Exit.Exit<TakeResult, StoreUnavailable>) => void
}

/** Takes sharing a script: same part, same policies. */
interface Batch {
  readonly part: ClusterPart
  readonly policies: BucketPolicies
  readonly takes: Array<Waiting>
}

const canJoin = ({ part, policies }: Waiting, batch: Batch): boolean =>
  batch.part === part && batch.policies === policies && batch.takes.length < maxInScript

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

const settle = (
  { takes }: Batch,
  exit: Exit.Exit<ReadonlyArray<TakeResult>, StoreUnavailable>,
): void => {
  if (Exit.isSuccess(exit)) {
    for (const [index, take] of exit.value.entries()) takes[index]?.resume(Exit.succeed(take))
  } else for (const { resume } of takes) resume(Exit.failCause(exit.cause))
}

export const makeServerTakes = (
  buckets: RedisBuckets,
  names: Names,
): RateLimitStore["Service"]["take"] => {
  let waiting = new Set<Waiting>()
  // Scripts that Redis has not answered.
  let unanswered = 0

  const ask = (batch: Batch): void => {
    const { part, policies, takes } = batch
    const keys = takes.flatMap((take) => take.keys)
    unanswered++
    buckets.take(1, part, keys, policies, (exit) => {
      unanswered--
      settle(batch, exit)
    })
  }

  const flush = (): void => {
    const batches = batchesOf(waiting)
    waiting = new Set()
    for (const batch of batches) ask(batch)
  }

  const drawOf = ({ address, keyId }: LimitedClient): Pick<Waiting, "part" | "keys"> =>
    keyId === undefined
      ? { part: "address", keys: [names.ofAddress(address)] }
      : { part: "both", keys: [names.ofAddress(address), names.ofKey(keyId)] }

  return (client, policies) =>
    Effect.callback((resume) => {
      const take = { ...drawOf(client), policies, resume }
      // Takes in one turn of the event loop share a script. An idle Redis gets the first ones at once.
      if (waiting.size === 0) {
        if (unanswered === 0) process.nextTick(flush)
        else setImmediate(flush)
      }
      waiting.add(take)
      return Effect.sync(() => void waiting.delete(take))
    })
}

/** Takes in this process holding an API key's tokens until the address's bucket has decided. */
interface PendingReturns {
  /** Registers a take holding a key's tokens while it runs. It returns them unless it is admitted. */
  readonly during: <E>(
    keyId: ApiKeyId,
    take: Effect.Effect<TakeResult, E>,
  ) => Effect.Effect<TakeResult, E>
  /** Waits for the takes now holding a key's tokens. Returns whether any returned some. */
  readonly anyGivenBack: (keyId: ApiKeyId) => Effect.Effect<boolean>
}

/** Makes a record without takes. */
const makePendingReturns = (): PendingReturns => {
  const endsOf = new Map<ApiKeyId, Set<Deferred.Deferred<boolean>>>()

  const begin = (keyId: ApiKeyId): Deferred.Deferred<boolean> => {
    const isGivenBack = Deferred.makeUnsafe<boolean>()
    const ends = endsOf.get(keyId) ?? new Set()
    endsOf.set(keyId, ends.add(isGivenBack))
    return isGivenBack
  }

  const end = (keyId: ApiKeyId, isGivenBack: Deferred.Deferred<boolean>, value: boolean): void => {
    const ends = endsOf.get(keyId)
    ends?.delete(isGivenBack)
    if (ends?.size === 0) endsOf.delete(keyId)
    Deferred.doneUnsafe(isGivenBack, Effect.succeed(value))
  }

  return {
    during: (keyId, take) =>
      Effect.suspend(() => {
        const isGivenBack = begin(keyId)
        return Effect.onExit(take, (exit) =>
          Effect.sync(() =>
            end(keyId, isGivenBack, !(Exit.isSuccess(exit) && exit.value.admitted)),
          ),
        )
      }),

    anyGivenBack: (keyId) =>
      Effect.suspend(() =>
        Effect.map(
          Effect.forEach([...(endsOf.get(keyId) ?? [])], (isGivenBack) =>
            Deferred.await(isGivenBack),
          ),
          (areGivenBack) => areGivenBack.includes(true),
        ),
      ),
  }
}

// How often a take is tried again after others have given tokens back.
const maxRetries = 3

/** Combines both results, by the clock on the key's server. */
const outcomeOf = (ofKey: TakeResult, ofAddress: TakeResult): TakeResult => ({
  ...ofKey,
  admitted: ofKey.admitted && ofAddress.admitted,
  address: Micros(ofAddress.address - ofAddress.now + ofKey.now),
})

/**
 * Takes in a cluster. No script can reach both a key's and an address's buckets, because they may be on different servers. A
 * take therefore first takes from the key's buckets, then from the address's, and returns the key's tokens if the address
 * refuses.
 *
 * No bucket ever gives more than it holds. If the process dies in between, the key loses a token until the bucket refills.
 * Before a token is returned, other takes miss it: those in this process wait for it, those in other processes are refused.
 */
export const makeClusterTakes = (
  buckets: RedisBuckets,
  names: Names,
): RateLimitStore["Service"]["take"] => {
  const holds = makePendingReturns()

  const askAddress = (tokens: Tokens, { address }: LimitedClient, policies: BucketPolicies) =>
    buckets.takeOne(tokens, "address", names.ofAddress(address), policies)

  const askKey = (tokens: Tokens, keyId: ApiKeyId, policies: BucketPolicies) =>
    buckets.takeOne(tokens, "key", names.ofKey(keyId), policies)

  /** Returns a key's tokens. If that fails, they stay taken. */
  const giveBack = (ofKey: TakeResult, keyId: ApiKeyId, policies: BucketPolicies) =>
    Effect.orElseSucceed(askKey(-1, keyId, policies), () => ofKey)

  /** Takes from the address too. If it refuses, or does not answer, the key gets its tokens back. */
  const complete = Effect.fnUntraced(function* (
    ofKey: TakeResult,
    client: LimitedClient,
    keyId: ApiKeyId,
    policies: BucketPolicies,
  ) {
    const ofAddress = yield* Effect.tapError(askAddress(1, client, policies), () =>
      giveBack(ofKey, keyId, policies),
    )
    return ofAddress.admitted
      ? outcomeOf(ofKey, ofAddress)
      : outcomeOf(yield* giveBack(ofKey, keyId, policies), ofAddress)
  })

  const takeOfKey = (
    client: LimitedClient,
    keyId: ApiKeyId,
    policies: BucketPolicies,
    retries: number,
  ): Effect.Effect<TakeResult, StoreUnavailable> =>
    Effect.gen(function* () {
      const ofKey = yield* askKey(1, keyId, policies)
      if (ofKey.admitted) {
        return yield* holds.during(keyId, complete(ofKey, client, keyId, policies))
      }
      if (retries > 0 && (yield* holds.anyGivenBack(keyId))) {
        return yield* takeOfKey(client, keyId, policies, retries - 1)
      }
      return outcomeOf(ofKey, yield* askAddress(0, client, policies))
    })

  return (client, policies) =>
    client.keyId === undefined
      ? askAddress(1, client, policies)
      : Effect.uninterruptible(takeOfKey(client, client.keyId, policies, maxRetries))
}
