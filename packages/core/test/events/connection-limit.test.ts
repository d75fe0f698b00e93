import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { giveSlotBack, makeConnectionLimit } from "../../src/events/connection-limit.ts"

it("a slot that is given back twice is a reported defect, and makes no room for another", () => {
  const slots = makeConnectionLimit({ perClient: 1, perProject: 1, inAll: 1 })
  const defects: Array<unknown> = []
  const faults = {
    failure: () => Effect.void,
    defect: (_: string, cause: Cause.Cause<unknown>) =>
      Effect.sync(() => void defects.push(Cause.squash(cause))),
  }
  const giveBack = () => Effect.runSync(giveSlotBack(slots, faults, "me", "p1"))
  expect(slots.take("me", "p1")).toBe(true)
  giveBack()
  expect(defects).toEqual([])
  giveBack()
  expect(defects).toEqual([new Error("a connection slot was given back twice")])
  expect([slots.take("me", "p1"), slots.take("me", "p1")]).toEqual([true, false])
})
