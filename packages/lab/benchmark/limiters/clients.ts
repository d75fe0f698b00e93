/** The clients of a limiter, and the order in which they come. */

import { ApiKeyId } from "@tenure/core/store"

/** A key and an address; a request draws on two buckets of the key and on one of the address. */
export interface LimiterClient {
  readonly key: ApiKeyId
  readonly address: string
}

/** The client of a number: a key's id, and an address. */
export const clientOf = (index: number): LimiterClient => ({
  key: ApiKeyId(`b9019cc1-e966-4695-ad2c-${index.toString(16).padStart(12, "0")}`),
  address: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
})

/** So many clients. */
export const clientsOf = (count: number): ReadonlyArray<LimiterClient> =>
  Array.from({ length: count }, (_, index) => clientOf(index))

/** All equally often, or the n-th client n times as rarely as the first. */
export type Distribution = "uniform" | "zipf"

/** Clients in a random order. */
export const drawsOf = (
  clients: ReadonlyArray<LimiterClient>,
  distribution: Distribution,
): ReadonlyArray<LimiterClient> => {
  const draw = distribution === "uniform" ? Math.random : zipf(clients.length)
  return Array.from({ length: 1 << 18 }, () => clients[Math.floor(draw() * clients.length)]).filter(
    (client) => client !== undefined,
  )
}

/** Returns shares of the whole, below 1. */
const zipf = (count: number): (() => number) => {
  const sums = new Float64Array(count)
  let sum = 0
  for (let index = 0; index < count; index++) sums[index] = sum += 1 / (index + 1)
  return () => {
    const wanted = Math.random() * sum
    let [low, high] = [0, count - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] ?? sum) < wanted) low = middle + 1
      else high = middle
    }
    return low / count
  }
}
