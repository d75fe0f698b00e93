import { createHash } from "node:crypto"
import {
  type ApiKeyId,
  type BucketPolicies,
  Micros,
  Millis,
  type StoreUnavailable,
  type TakeResult,
  bucketPolicy,
  bucketSpan,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import type { Redis } from "./client.ts"
import { type SettleCall, clusterBreakers, makeCircuitBreakers, serverBreaker } from "./guard.ts"

/**
 * Takes tokens for several clients, one after the other: from every bucket of a client, or from none if
 * one of them lacks a token. The arithmetic is that of `TokenBucket`, in microseconds: whole numbers
 * below 2^53, which Lua has exactly.
 *
 * The bucket of an address is stored at one key, the two of an API key at another, as doubles: when each
 * will be full, then when Redis is to delete them. To move that costs more than everything else, so it
 * is moved only if they would be deleted too early, and then to a minute after they are full.
 *
 * `KEYS` are those of the first client, then those of the second, and so on. `ARGV` are the tokens, the
 * part, and then the increment and the span of each bucket. No token only looks, and brings back buckets that
 * lie too far ahead; -1 gives one back.
 *
 * Returns the time, then for each client whether it was admitted, and when each bucket will be full:
 * now, for those that are not in the part.
 *
 * Each key is read once and written once in a script. What would be shorter with loops over the buckets
 * is written out, because their tables would take Redis up to half as long again.
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

/** Which buckets a client has in a script: that of its address, the two of its API key, or all three. */
export type ClusterPart = "address" | "key" | "both"

/** The arguments of the script. */
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

/** Reads the reply of the script for clients with so many keys together. */
const takesOf = (reply: unknown, part: ClusterPart, keys: number): ReadonlyArray<TakeResult> => {
  // Numbers are texts if the host's client says so.
  const [now = NaN, ...numbers] = Array.isArray(reply) ? reply.map(Number) : []
  const clients = keys / keysIn(part)
  if (!Number.isSafeInteger(now) || numbers.length !== clients * numbersOfClient) {
    throw new Error("Redis has replied something else")
  }
  return Array.from({ length: clients }, (_, client) => {
    const first = client * numbersOfClient
    const [admitted, address = now, key = now, burst = now] = numbers.slice(
      first,
      first + numbersOfClient,
    )
    return {
      admitted: admitted === 1,
      now: Micros(now),
      address: Micros(address),
      key: Micros(key),
      burst: Micros(burst),
    }
  })
}

/** Runs a script by its digest, so that its text is sent only to a server that does not have it. */

/** Runs the script. Returns what it replies. */
type Script = (keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Promise<unknown>

const isUnknown = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("NOSCRIPT")

/** Makes a function that runs a script. */
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

/** Takes tokens from buckets in Redis, as far as it answers. */

/** The buckets. */
export interface RedisBuckets {
  /**
   * Takes tokens for each client in turn. In a cluster, all keys have to be in the same slot.
   *
   * @param part - which buckets each client has; the outcome tells of the others that they are full
   * @param keys - the names of the keys of the first client, of its address first, then of the second…
   * @param settle - is told the outcome of each client. With a fiber instead, a take that is alone would
   * cost a twentieth more
   */
  readonly take: (
    tokens: Tokens,
    part: ClusterPart,
    keys: ReadonlyArray<string>,
    policies: BucketPolicies,
    settle: SettleCall<ReadonlyArray<TakeResult>>,
  ) => void
  /** Takes tokens for one client, which has one key. */
  readonly takeOne: (
    tokens: Tokens,
    part: Exclude<ClusterPart, "both">,
    key: string,
    policies: BucketPolicies,
  ) => Effect.Effect<TakeResult, StoreUnavailable>
  /** From now on, every call fails. */
  readonly close: () => void
}

// Looking brings back what lies too far ahead for the policy, so this one, of 30 years, has nothing brought back.
const anyPolicy = bucketPolicy({ limit: 1, window: Millis(30 * 365 * 86_400_000) })
const anyPolicies = { address: anyPolicy, key: anyPolicy, burst: anyPolicy }

const only = ([taken]: ReadonlyArray<TakeResult>): Effect.Effect<TakeResult> =>
  taken === undefined ? Effect.die("a script has no outcome") : Effect.succeed(taken)

/** Makes the buckets. `timeoutMillis` is the longest that a call waits. */
export const makeRedisBuckets = (redis: Redis, timeoutMillis: number): RedisBuckets => {
  const script = makeScript(redis, take)
  const look = (name: string) => script([name], takeArgs(0, "address", anyPolicies))
  const partOf = redis.isCluster ? clusterBreakers : serverBreaker
  const guards = makeCircuitBreakers(partOf, look, timeoutMillis)

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

/** The names of keys in Redis. */

/** Names keys. */
export interface Names {
  /** Where the bucket of an address is. */
  readonly ofAddress: (address: string) => string
  /** Where the two buckets of an API key are: its own, and the one for its bursts. */
  readonly ofKey: (keyId: ApiKeyId) => string
}

/** Names keys with a common prefix. */
export const bucketNames = (prefix: string): Names => ({
  ofAddress: (address) => `${prefix}address:${address}`,
  ofKey: (keyId) => `${prefix}key:${keyId}`,
})
