/** What the capacity tests simulate. */

import type { Costs, Setup } from "../../capacity/deliveries.ts"

// None is measured.
export const costs: Costs = {
  claim: { fixed: 1000, each: 50 },
  settlement: 50,
  sending: 150,
  receiving: 50,
  roundTrip: 300,
}

export const setup = (processes: number, over: Partial<Setup> = {}): Setup => ({
  processes,
  webhooks: 20,
  delayMillis: 500,
  processors: { of: "database", count: 4 },
  ...over,
})
