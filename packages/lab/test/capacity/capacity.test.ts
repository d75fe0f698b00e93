/** Simulated time, one process's deliveries in it, and what a load takes. */

import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { rateOf } from "../../capacity/deliveries.ts"
import { serversFor, takenBy } from "../../capacity/growth.ts"
import { run } from "../../capacity/simulated.ts"
import { costs, setup } from "./setup.ts"

describe("simulated time", () => {
  // Were it the machine's time, the test would not end.
  it("passes in the order of its instants, and as fast as the work allows", () => {
    const order = run(
      Effect.gen(function* () {
        const woken: Array<readonly [string, number]> = []
        const start = yield* Clock.currentTimeMillis
        const sleeper = (name: string, duration: `${number} hours`) =>
          Effect.gen(function* () {
            yield* Effect.sleep(duration)
            woken.push([name, (yield* Clock.currentTimeMillis) - start])
          })
        const all = [
          sleeper("last", "9 hours"),
          sleeper("first", "1 hours"),
          sleeper("second", "5 hours"),
        ]
        yield* Effect.all(all, { concurrency: "unbounded" })
        return woken
      }),
    )
    assert.deepStrictEqual(order, [
      ["first", 3_600_000],
      ["second", 18_000_000],
      ["last", 32_400_000],
    ])
  })

  it("ends with an error where something waits for anything else", () => {
    assert.throws(() => run(Effect.never), /something else than the clock/)
  })
})

it("simulated deliveries are bounded by the attempts in flight for each webhook", () => {
  // 16 at a time, each taking half a second.
  const rate = rateOf(setup(1), costs, 1000)
  assert.isAbove(rate, 0.8 * 20 * 32)
  // They end in waves, and one more may fall into the seconds that count.
  assert.isAtMost(rate, 1.25 * 20 * 32)
})

it("what a load takes is what was measured, times what comes while it is kept", () => {
  const row = (measured: string, figure: number) => ({ measured, unit: "bytes", figure })
  const rows = [
    row("a membership, with its indexes", 100),
    row("an audit row, with its indexes", 200),
    row("an event, with its indexes", 300),
    row("a delivery, with its indexes", 400),
    row("write-ahead log of an extension", 500),
  ]
  const load = {
    members: 10,
    extensionsPerSecond: 2,
    deliveriesPerSecond: 3,
    eventDays: 1,
    auditDays: 5,
  }
  assert.deepStrictEqual(takenBy(load, rows, 600), {
    memberships: 1000,
    audit: 2 * 5 * 86_400 * 200,
    events: 2 * 86_400 * 300,
    deliveries: 3 * 86_400 * 400,
    log: 2 * 500 + 3 * 600,
  })
  const large = { ...load, extensionsPerSecond: 40_000, deliveriesPerSecond: 80_000 }
  assert.strictEqual(serversFor(large, { extension: 100, delivery: 150 }), 2)
  assert.strictEqual(serversFor(load, { extension: 100, delivery: 150 }), 1)
})
