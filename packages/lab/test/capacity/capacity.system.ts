/** Deliveries by several simulated processes, and on one machine that does everything. */

import { assert, it } from "@effect/vitest"
import { rateOf } from "../../capacity/deliveries.ts"
import { costs, setup } from "./setup.ts"

it("simulated deliveries are bounded by the attempts in flight of a process, and two processes have twice as many", () => {
  const many = { webhooks: 100 }
  const [one, two] = [1, 2].map((processes) => rateOf(setup(processes, many), costs, 2500))
  assert.isAbove((two ?? 0) / (one ?? 0), 1.7)
})

it("simulated deliveries are bounded by the processors of one machine, however many processes it has", () => {
  const processors = { of: "everything", count: 1 } as const
  const rate = rateOf(setup(3, { delayMillis: 0, processors }), costs, 2000)
  assert.isAtMost(rate, 1_000_000 / (150 + 50 + 50 + 50))
})
