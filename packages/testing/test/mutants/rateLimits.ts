/** Stores of token buckets that are wrong. */

import {
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  type Micros,
  RateLimitStore,
  type StoreUnavailable,
  type TakeResult,
  type TheoreticalArrivalTime,
  brandMicros,
  bucketSpan,
  currentTat,
  currentUnixMillis,
  takeToken,
  toMicros,
} from "@tenure/core/store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Bucket = keyof BucketPolicies
type Store = RateLimitStore["Service"]

/** The parts of a store of token buckets. */
interface Parts {
  /** Returns the name of a client's bucket, or `undefined` if the client has none. */
  readonly nameOf: (bucket: Bucket, client: LimitedClient) => string | undefined
  readonly policyOf: (policy: BucketPolicy) => BucketPolicy
  /** Returns the state of a bucket that was stored. */
  readonly load: (tat: Micros, now: Micros, policy: BucketPolicy) => TheoreticalArrivalTime
  /** Returns the state of a bucket to store. */
  readonly save: (tat: Micros) => Micros
  /** Tells whether a bucket is stored after a take. */
  readonly isStored: (isAdmitted: boolean) => boolean
  /** Tells whether a bucket loses a token. */
  readonly isTaken: (isAdmitted: boolean, hasToken: boolean) => boolean
  /** What happens between reading the buckets and writing them. */
  readonly pause: Effect.Effect<void>
  /** The most buckets that are kept. */
  readonly most: number
}

const correct: Parts = {
  nameOf: (bucket, { address, keyId }) => {
    if (bucket === "address") return `address ${address}`
    return keyId && `${bucket} ${keyId}`
  },
  policyOf: (policy) => policy,
  load: (tat) => tat,
  save: (tat) => tat,
  isStored: () => true,
  isTaken: (isAdmitted) => isAdmitted,
  pause: Effect.void,
  most: Infinity,
}

/** Makes a store of which some parts are wrong. It has a clock that can be set, unlike the right one. */
const built = (wrong: Partial<Parts>) => (): Partial<Store> => {
  const parts = { ...correct, ...wrong }
  const tats = new Map<string, Micros>()

  const put = (name: string, tat: Micros): void => {
    tats.delete(name)
    tats.set(name, parts.save(tat))
    for (const oldest of tats.keys()) if (tats.size > parts.most) tats.delete(oldest)
  }

  const read = (bucket: Bucket, client: LimitedClient, given: BucketPolicy, now: Micros) => {
    const name = parts.nameOf(bucket, client)
    const policy = parts.policyOf(given)
    const stored = name === undefined ? undefined : tats.get(name)
    const tat = stored && parts.load(stored, now, policy)
    const before = currentTat(tat, now, policy)
    return { name, before, after: takeToken(before, now, policy) }
  }

  const write = ({ after, before, name }: ReturnType<typeof read>, admitted: boolean): Micros => {
    if (name === undefined) return before
    const tat = parts.isTaken(admitted, after.admitted) ? after.tat : before
    if (parts.isStored(admitted)) put(name, tat)
    return parts.save(tat)
  }

  return {
    take: Effect.fnUntraced(function* (client, policies) {
      const now = toMicros(yield* currentUnixMillis)
      const address = read("address", client, policies.address, now)
      const key = read("key", client, policies.key, now)
      const burst = read("burst", client, policies.burst, now)
      yield* parts.pause
      const admitted = [address, key, burst].every(({ after }) => after.admitted)
      return {
        admitted,
        now,
        address: write(address, admitted),
        key: write(key, admitted),
        burst: write(burst, admitted),
      }
    }),
  }
}

/** A take that waits for the others of its batch. */
interface Gathered {
  readonly client: LimitedClient
  readonly policies: BucketPolicies
  readonly outcome: Deferred.Deferred<TakeResult, StoreUnavailable>
}

/** Makes a store that gathers takes at the same time, and answers them together. */
const gathering =
  (answer: (batch: ReadonlyArray<Gathered>, right: Store) => Effect.Effect<unknown>) =>
  (right: Store): Partial<Store> => {
    let waiting: Array<Gathered> = []
    return {
      take: (client, policies) =>
        Effect.gen(function* () {
          const outcome = yield* Deferred.make<TakeResult, StoreUnavailable>()
          waiting.push({ client, policies, outcome })
          yield* Effect.yieldNow
          const batch = waiting
          waiting = []
          yield* answer(batch, right)
          return yield* Deferred.await(outcome)
        }),
    }
  }

const answerWith = ({ outcome }: Gathered, take: Effect.Effect<TakeResult, StoreUnavailable>) =>
  Effect.flatMap(Effect.exit(take), (exit) => Deferred.done(outcome, exit))

const inTurn = (batch: ReadonlyArray<Gathered>, { take }: Store) =>
  Effect.forEach(batch, (one) => answerWith(one, take(one.client, one.policies)))

/** Answers each with the take of another one in the batch. */
const shifted = (batch: ReadonlyArray<Gathered>, { take }: Store) =>
  Effect.forEach(batch, (one, index) => {
    const { client, policies } = batch[(index + 1) % batch.length] ?? one
    return answerWith(one, take(client, policies))
  })

/** Takes once for each client, however often it asks. */
const merged = Effect.fnUntraced(function* (batch: ReadonlyArray<Gathered>, { take }: Store) {
  const takes = new Map<string, Effect.Effect<TakeResult, StoreUnavailable>>()
  for (const one of batch) {
    const name = `${one.client.address} ${one.client.keyId}`
    const known = takes.get(name) ?? (yield* Effect.exit(take(one.client, one.policies)))
    takes.set(name, known)
    yield* answerWith(one, known)
  }
})

/** Refuses those whose address or key others in the batch have asked for before, and were refused. */
const shadowed = Effect.fnUntraced(function* (batch: ReadonlyArray<Gathered>, { take }: Store) {
  const short = new Set<string | undefined>()
  for (const one of batch) {
    const { address, keyId } = one.client
    const outcome = yield* Effect.orDie(take(one.client, one.policies))
    const isShadowed = short.has(address) || (keyId !== undefined && short.has(keyId))
    if (isShadowed || !outcome.admitted) short.add(address).add(keyId)
    yield* answerWith(
      one,
      Effect.succeed({ ...outcome, admitted: outcome.admitted && !isShadowed }),
    )
  }
})

const seconds = (count: number): number => count * 1_000_000

const rounded = (unit: number) => brandMicros((tat: Micros) => Math.ceil(tat / unit) * unit)

/** What the parts make if none is wrong. */
export const rightRateLimits = mutantsOf(RateLimitStore, {
  "is right": built({}),
  "gathers takes, and is right": gathering(inTurn),
})

/** Stores of token buckets that are wrong. */
export const rateLimits = mutantsOf(RateLimitStore, {
  "forgets buckets five seconds before they are full": built({
    load: (tat, now) => (tat - now < seconds(5) ? undefined : tat),
  }),

  "forgets buckets that are half full": built({
    load: (tat, now, policy) => (tat - now < bucketSpan(policy) / 2 ? undefined : tat),
  }),

  "keeps a hundred buckets": built({ most: 100 }),

  "rounds times to seconds": built({ save: rounded(1_000_000) }),

  "rounds times to milliseconds": built({ save: rounded(1000) }),

  "does not know capacities": built({
    policyOf: (policy) => ({ ...policy, capacity: policy.limit }),
  }),

  "takes tokens for refusals from the buckets that have some": built({
    isTaken: (_, hasToken) => hasToken,
  }),

  "leaves a bucket that lies in the future as it is when it refuses": built({
    isStored: (isAdmitted) => isAdmitted,
  }),

  "fills a bucket that lies in the future": built({
    load: (tat, now, policy) => (tat > now + bucketSpan(policy) ? undefined : tat),
  }),

  "takes no tokens": built({ isTaken: () => false }),

  "reads buckets before its turn": built({ pause: Effect.yieldNow }),

  "gives takes at the same time the outcomes of each other": gathering(shifted),

  "counts takes of a client at the same time as one": gathering(merged),

  "refuses takes because of others that were refused at the same time": gathering(shadowed),

  "compares names without regard to case": built({
    nameOf: (...of) => correct.nameOf(...of)?.toLowerCase(),
  }),

  "keeps one bucket for a key and an address of the same name": built({
    nameOf: (bucket, { address, keyId }) => (bucket === "address" ? address : keyId),
  }),

  "keeps one bucket of a key for its limit and its bursts": built({
    nameOf: (bucket, client) => correct.nameOf(bucket === "burst" ? "key" : bucket, client),
  }),

  "keeps a bucket for each address of a key": built({
    nameOf: (bucket, client) =>
      correct.nameOf(bucket, client) && `${correct.nameOf(bucket, client)} ${client.address}`,
  }),

  "keeps buckets for clients without a key": built({
    nameOf: (bucket, { address, keyId }) => `${bucket} ${bucket === "address" ? address : keyId}`,
  }),

  "counts clients with a key by their key alone": built({
    nameOf: (bucket, client) =>
      bucket === "address" && client.keyId !== undefined
        ? undefined
        : correct.nameOf(bucket, client),
  }),
})
