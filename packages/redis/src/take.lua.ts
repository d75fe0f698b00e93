import * as TokenBucket from "@tenure/core/TokenBucket"
import { Micros } from "@tenure/core/Units"

/**
 * Takes tokens for several clients, one after the other: from every bucket of a client, or from none if
 * one of them lacks a token. The arithmetic is that of `TokenBucket`, in microseconds: whole numbers
 * below 2^53, which Lua has exactly. A bucket is deleted by Redis when it is full.
 *
 * `KEYS` are the buckets of the first client, then those of the second, and so on, the same number for
 * each. `ARGV` are the tokens, then for each bucket of a client its increment and its span. No token
 * only looks; -1 gives one back.
 *
 * Returns the time, then for each client whether it was admitted, and when each bucket will be full.
 */
export const take = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tokens = tonumber(ARGV[1])
local spent, empty = {}, {}
for i = 2, #ARGV, 2 do
  spent[#spent + 1] = tokens * ARGV[i]
  empty[#empty + 1] = now + ARGV[i + 1]
end
local width = #spent
local stored = redis.call('MGET', unpack(KEYS))
local tats, changed, reply = {}, {}, { now }

for before = 0, #KEYS - 1, width do
  local admitted = true
  for i = 1, width do
    local key = KEYS[before + i]
    local tat = tats[key] or tonumber(stored[before + i] or now)
    -- Later than that was stored before the clock was set back.
    if tat > empty[i] then changed[key] = true end
    tat = math.min(math.max(tat, now), empty[i])
    tats[key] = tat
    if tat + spent[i] > empty[i] then admitted = false end
  end
  reply[#reply + 1] = admitted and 1 or 0
  for i = 1, width do
    local key = KEYS[before + i]
    if admitted then
      tats[key] = tats[key] + spent[i]
      changed[key] = true
    end
    reply[#reply + 1] = tats[key]
  end
end

if tokens ~= 0 then
  for key in pairs(changed) do
    redis.call('SET', key, tats[key], 'PXAT', math.ceil(tats[key] / 1000))
  end
end
return reply
`

/** How many tokens to take from each bucket. */
export type Tokens = 1 | 0 | -1

/** The arguments of the script, for the policies of a client's buckets. */
export const takeArgs = (
  tokens: Tokens,
  policies: ReadonlyArray<TokenBucket.Policy>,
): ReadonlyArray<string> =>
  [tokens, ...policies.flatMap((policy) => [policy.increment, TokenBucket.span(policy)])].map(
    String,
  )

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
  const [now = NaN, ...rest] = Array.isArray(reply) ? reply.map(Number) : []
  const size = rest.length / clients
  if (!Number.isSafeInteger(now + size)) throw new Error("Redis has replied something else")
  return Array.from({ length: clients }, (_, index) => {
    const [admitted, ...tats] = rest.slice(index * size, (index + 1) * size)
    return { admitted: admitted === 1, now: Micros(now), tats: tats.map((tat) => Micros(tat)) }
  })
}
