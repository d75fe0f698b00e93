/** The Lua script that takes tokens, and how it is called. */

import { createHash } from "node:crypto"
import { bucketSpan } from "@tenure/core/internal"
import {
  type ApiKeyId,
  type BucketPolicies,
  Micros,
  Millis,
  type StoreUnavailable,
  type TakeResult,
  bucketPolicy,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { Redis } from "./client.ts"
import { type SettleCall, clusterBreakers, makeCircuitBreakers, serverBreaker } from "./guard.ts"

/**
 * Takes tokens for several clients, one after the other: from all buckets of a client, or from none if
 * one lacks a token. Calculates as `takeToken` does, in microseconds below 2^53, which Lua represents
 * exactly.
 *
 * An address's bucket is stored at one key, an API key's two buckets at another, as doubles: first when
 * each will be full, then when Redis deletes them. Moving this time costs more than everything else.
 * The script therefore moves it only if Redis would delete the buckets too early, and then to a minute
 * after they are full.
 *
 * `KEYS` lists the first client's keys, then the second's, and so on. `ARGV` contains the number of
 * tokens, the part, and each bucket's increment and span. 0 tokens only read, and reset buckets too far
 * ahead; -1 returns a token.
 *
 * Returns the time, then for each client whether it was admitted and when each bucket will be full:
 * now, for buckets outside the part.
 *
 * A script reads and writes each key once. It repeats code instead of looping over buckets, because
 * tables would take Redis up to half as long again.
 */
const take = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens = tonumber(ARGV[1])
local hasAddress, hasKey = ARGV[2] ~= 'key', ARGV[2] ~= 'address'
local width = hasAddress and hasKey and 2 or 1
local addressSpent, addressEmpty = hasAddress and tokens * ARGV[3] or 0, now + ARGV[4]
local keySpent, keyEmpty = hasKey and tokens * ARGV[5] or 0, now + ARGV[6]
local burstSpent, burstEmpty = hasKey and tokens * ARGV[7] or 0, now + ARGV[8]

local pack, read = struct.pack, struct.unpack
local stored = redis.call('MGET', unpack(KEYS))
local changed, moved = {}, {}
local reply, size = { now }, 1

local function within(tat, empty)
  if tat < now then return now end
  return tat > empty and empty or tat
end

local function expiryOf(name, full, expiry)
  if full <= expiry then return expiry end
  moved[name] = full + 60000000
  return moved[name]
end

for i = 1, #KEYS, width do
  local addressName, keyName = KEYS[i], KEYS[i + width - 1]
  local address, key, burst = now, now, now
  local addressExpiry, keyExpiry = 0, 0
  if hasAddress then
    local value = changed[addressName] or stored[i]
    if value then address, addressExpiry = read('<dd', value) end
  end
  if hasKey then
    local value = changed[keyName] or stored[i + width - 1]
    if value then key, burst, keyExpiry = read('<ddd', value) end
  end

  -- Later than that was stored before the clock was set back.
  local isLate = address > addressEmpty or key > keyEmpty or burst > burstEmpty
  address = within(address, addressEmpty)
  key = within(key, keyEmpty)
  burst = within(burst, burstEmpty)
  local admitted = address + addressSpent <= addressEmpty
    and key + keySpent <= keyEmpty
    and burst + burstSpent <= burstEmpty
  if admitted then
    address = address + addressSpent
    key = key + keySpent
    burst = burst + burstSpent
  end

  -- Who only looks stores nothing else.
  if admitted and tokens ~= 0 or isLate then
    if hasAddress then
      local expiry = expiryOf(addressName, address, addressExpiry)
      changed[addressName] = pack('<dd', address, expiry)
    end
    if hasKey then
      local expiry = expiryOf(keyName, key > burst and key or burst, keyExpiry)
      changed[keyName] = pack('<ddd', key, burst, expiry)
    end
  end
  reply[size + 1] = admitted and 1 or 0
  reply[size + 2] = address
  reply[size + 3] = key
  reply[size + 4] = burst
  size = size + 4
end

for name, value in pairs(changed) do
  local expiry = moved[name]
  if expiry then
    redis.call('SET', name, value, 'PXAT', math.ceil(expiry / 1000))
  else
    redis.call('SETRANGE', name, '0', value)
  end
end
return reply
`

/** How many tokens to take from each bucket. */
export type Tokens = 1 | 0 | -1

/** A client's buckets in a script: the address's, the API key's two, or all three. */
export type ClusterPart = "address" | "key" | "both"

/** Returns the script's arguments. */
const takeArgs = (
  tokens: Tokens,
  part: ClusterPart,
  { address, burst, key }: BucketPolicies,
): ReadonlyArray<string> => [
  String(tokens),
  part,
  ...[address, key, burst].flatMap((policy) => [
    String(policy.increment),
    String(bucketSpan(policy)),
  ]),
]

/** How many keys a client has in a part. */
const keysIn = (part: ClusterPart): number => (part === "both" ? 2 : 1)

// Whether a client was admitted, and its three buckets.
const numbersOfClient = 4

const unknownReply = (): Error => new Error("Redis has replied something else")

/** Reads an instant, which is text if the host's client says so. */
const microsAt = (reply: ReadonlyArray<unknown>, index: number): Micros => {
  const instant = Number(reply[index])
  if (!Number.isSafeInteger(instant)) throw unknownReply()
  return Micros(instant)
}

/** Parses a reply for clients with this number of keys in total. */
const takesOf = (reply: unknown, part: ClusterPart, keys: number): ReadonlyArray<TakeResult> => {
  const clients = keys / keysIn(part)
  if (!Array.isArray(reply) || reply.length !== 1 + clients * numbersOfClient) throw unknownReply()
  const now = microsAt(reply, 0)
  const takes: Array<TakeResult> = []
  for (let first = 1; first < reply.length; first += numbersOfClient) {
    takes.push({
      admitted: Number(reply[first]) === 1,
      now,
      address: microsAt(reply, first + 1),
      key: microsAt(reply, first + 2),
      burst: microsAt(reply, first + 3),
    })
  }
  return takes
}

/** Runs the script and returns its reply. Sends its digest, and its text only to a server without it. */
type Script = (keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Promise<unknown>

const isUnknown = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("NOSCRIPT")

const makeScript = (redis: Redis, text: string): Script => {
  const sha = createHash("sha1").update(text).digest("hex")
  return async (keys, args) => {
    try {
      return await redis.evalSha(sha, keys, args)
    } catch (error) {
      // The server has it from now on.
      if (isUnknown(error)) return redis.eval(text, keys, args)
      throw error
    }
  }
}

/** The buckets. */
export interface RedisBuckets {
  /**
   * Takes tokens for each client in turn. In a cluster, all keys must share a slot.
   *
   * @param part - the buckets each client has; the result reports the others as full
   * @param keys - the first client's key names, address first, then the second's…
   * @param settle - receives each client's result. A fiber instead would cost a lone take 5 % more
   */
  readonly take: (
    tokens: Tokens,
    part: ClusterPart,
    keys: ReadonlyArray<string>,
    policies: BucketPolicies,
    settle: SettleCall<ReadonlyArray<TakeResult>>,
  ) => void
  /** Takes tokens for one client with a single key. */
  readonly takeOne: (
    tokens: Tokens,
    part: Exclude<ClusterPart, "both">,
    key: string,
    policies: BucketPolicies,
  ) => Effect.Effect<TakeResult, StoreUnavailable>
  /** From now on, every call fails. */
  readonly close: () => void
}

// Reading resets buckets too far ahead for the policy. This policy spans 30 years, so it resets none.
const anyPolicy = bucketPolicy({ limit: 1, window: Millis(30 * 365 * 86_400_000) })
const anyPolicies = { address: anyPolicy, key: anyPolicy, burst: anyPolicy }

const only = ([taken]: ReadonlyArray<TakeResult>): Effect.Effect<TakeResult> =>
  taken === undefined ? Effect.die("a script has no outcome") : Effect.succeed(taken)

/** Creates the buckets. A call waits at most `timeoutMillis`. */
export const makeRedisBuckets = (redis: Redis, timeoutMillis: number): RedisBuckets => {
  const script = makeScript(redis, take)
  const read = (name: string) => script([name], takeArgs(0, "address", anyPolicies))
  const partOf = redis.isCluster ? clusterBreakers : serverBreaker
  const guards = makeCircuitBreakers(partOf, read, timeoutMillis)

  const buckets: RedisBuckets = {
    take: (tokens, part, keys, policies, settle) => {
      const [first = ""] = keys
      const args = takeArgs(tokens, part, policies)
      const run = async () => takesOf(await script(keys, args), part, keys.length)
      guards.of(first).ask(run, settle)
    },
    takeOne: (tokens, part, key, policies) =>
      Effect.callback((resume) =>
        buckets.take(tokens, part, [key], policies, (taken) => resume(Effect.flatMap(taken, only))),
      ),
    close: guards.close,
  }
  return buckets
}

/** Names keys. */
export interface Names {
  /** Returns the key for an address's bucket. */
  readonly ofAddress: (address: string) => string
  /** Returns the key for an API key's two buckets: requests and bursts. */
  readonly ofKey: (keyId: ApiKeyId) => string
}

/** Names keys with a common prefix. */
export const bucketNames = (prefix: string): Names => ({
  ofAddress: (address) => `${prefix}address:${address}`,
  ofKey: (keyId) => `${prefix}key:${keyId}`,
})
