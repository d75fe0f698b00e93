/** The simulation by a few seeds, and how soon some ways to break the system are found. */

import { expect, it } from "vitest"
import { sabotages } from "../../simulation/sabotages.ts"
import { simulate } from "../../simulation/simulate.ts"
import { testSimulation } from "./tests.ts"

/** One each in the store, deliveries, the feed, announcements, and the client. */
const some = [
  "an extension is answered and not stored",
  "a delivery is taken for made before it was",
  "the feed skips an event",
  "an end is announced twice",
  "a client repeats a request with another idempotency key",
]

testSimulation({ repeated: 3, sabotages: sabotages.filter(({ name }) => some.includes(name)) })

it("knows the ways to break the system by their names", () => {
  expect(sabotages.map(({ name }) => name)).toEqual(expect.arrayContaining(some))
})

it("tells the same whether or not it is listened to", async () => {
  const silent = await simulate(7)
  const { told, ...loud } = await simulate(7, { isTold: true })
  expect({ ...silent, told: undefined }).toEqual({ ...loud, told: undefined })
  expect(told).not.toEqual([])
})

it("finds nothing wrong in 20 seeds", async () => {
  for (let seed = 1; seed <= 20; seed++)
    expect((await simulate(seed)).violations, `seed ${seed}`).toEqual([])
})
