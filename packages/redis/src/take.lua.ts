import * as TokenBucket from "@tenure/core/TokenBucket"
import { Micros } from "@tenure/core/Units"

/**
 * Takes tokens for several clients, one after the other: from every bucket of a client, or from none if
 * one of them lacks a token. The arithmetic is that of `TokenBucket`, in microseconds: whole numbers
 * below 2^53, which Lua has exactly.
 *
 * A key has one bucket or two, stored together as doubles: when each will be full, then when Redis is
 * to delete the key. To move that costs more than everything else, so it is moved only if the key would
 * be deleted too early, and then to a minute after its buckets are full.
 *
 * `KEYS` are the keys of the first client, then those of the second, and so on, the same number for
 * each. `ARGV` are the tokens, for each key of a client a digit, the number of its buckets, and then for
 * each bucket of a client its increment and its span. No token only looks; -1 gives one back.
 *
 * Returns the time, then for each client whether it was admitted, and when each bucket will be full.
 */
export const take = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens = tonumber(ARGV[1])
local formats = { '<dd', '<ddd' }
local sizes, spent, empty = {}, {}, {}
for size in string.gmatch(ARGV[2], '%d') do
  sizes[#sizes + 1] = tonumber(size)
end
for i = 3, #ARGV, 2 do
  spent[#spent + 1] = tokens * ARGV[i]
  empty[#empty + 1] = now + ARGV[i + 1]
end
local stored = redis.call('MGET', unpack(KEYS))
local found, changed, reply = {}, {}, { now }

for before = 0, #KEYS - 1, #sizes do
  local admitted = true
  local bucket = 0
  for i, size in ipairs(sizes) do
    local key, value = KEYS[before + i], stored[before + i]
    local tats = found[key] or value and { struct.unpack(formats[size], value) } or {}
    found[key] = tats
    for j = 1, size do
      bucket = bucket + 1
      local tat = tats[j] or now
      -- Later than that was stored before the clock was set back.
      if tat > empty[bucket] then changed[key] = size end
      tats[j] = math.min(math.max(tat, now), empty[bucket])
      if tats[j] + spent[bucket] > empty[bucket] then admitted = false end
    end
  end
  reply[#reply + 1] = admitted and 1 or 0
  bucket = 0
  for i, size in ipairs(sizes) do
    local key = KEYS[before + i]
    local tats = found[key]
    if admitted then changed[key] = size end
    for j = 1, size do
      bucket = bucket + 1
      if admitted then tats[j] = tats[j] + spent[bucket] end
      reply[#reply + 1] = tats[j]
    end
  end
end

if tokens ~= 0 then
  for key, size in pairs(changed) do
    local tats = found[key]
    local full, expiry = math.max(unpack(tats, 1, size)), tats[size + 1] or 0
    local inTime = full <= expiry
    tats[size + 1] = inTime and expiry or full + 60000000
    local value = struct.pack(formats[size], unpack(tats, 1, size + 1))
    if inTime then
      redis.call('SETRANGE', key, 0, value)
    else
      redis.call('SET', key, value, 'PXAT', math.ceil(tats[size + 1] / 1000))
    end
  end
end
return reply
`

/** How many tokens to take from each bucket. */
export type Tokens = 1 | 0 | -1

/** The arguments of the script, for the policies of the buckets of each key of a client. */
export const takeArgs = (
  tokens: Tokens,
  policies: ReadonlyArray<ReadonlyArray<TokenBucket.Policy>>,
): ReadonlyArray<string> =>
  [
    tokens,
    policies.map(({ length }) => length).join(""),
    ...policies.flat().flatMap((policy) => [policy.increment, TokenBucket.span(policy)]),
  ].map(String)

/** What the script returns for a client. */
export interface Taken {
  readonly admitted: boolean
  /** The time by the clock of the server. */
  readonly now: Micros
  /** When each bucket will be full. */
  readonly tats: ReadonlyArray<Micros>
}

/** Reads the reply of the script for so many clients. */
export const takenOf = (reply: unknown, clients: number): ReadonlyArray<Taken> => {
  // Numbers are texts if the host's client says so.
  const numbers = Array.isArray(reply) ? reply.map(Number) : []
  const [now = NaN] = numbers
  const size = (numbers.length - 1) / clients
  if (!Number.isSafeInteger(now + size)) throw new Error("Redis has replied something else")
  return Array.from({ length: clients }, (_, index) => {
    const first = 1 + index * size
    const tats = numbers.slice(first + 1, first + size)
    return {
      admitted: numbers[first] === 1,
      now: Micros(now),
      tats: tats.map((tat) => Micros(tat)),
    }
  })
}
