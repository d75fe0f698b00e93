/** A host that is killed in a transaction with `tenure.within` leaves all or nothing. */

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startPayments } from "../../faults/scenarios/payments.ts"
import { makeStage } from "../../faults/world/stage.ts"

const stage = makeStage()
let pay: Awaited<ReturnType<typeof startPayments>>

beforeAll(async () => {
  const { url } = await stage.postgres({ fsync: "off" })
  pay = await startPayments(stage, url)
})
afterAll(stage.end)

describe("a host that is killed between its own insert and the commit", () => {
  it.each([1, 2, 3])("leaves both or neither (seed %i)", async (seed) => {
    expect(["all", "nothing"]).toContain(await pay(seed))
  })
})
