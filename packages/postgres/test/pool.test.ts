import { describe, expect, it } from "vitest"
import * as Patience from "../src/connection/pool.ts"
import {
  answerTimeoutMillis,
  maxTimeoutMillis,
  openTimeoutMillis,
  overdueAfterMillis,
} from "../src/connection/pool.ts"

const { updateRoundTrip: learn, capRoundTrip: learnAtMost, unknownRoundTrip: unknown } = Patience

describe("patience", () => {
  it("is short with a database that is near", () => {
    const near = learn(unknown, { roundTrip: 1, opening: 10 })
    expect(overdueAfterMillis(near)).toBe(500)
    expect(answerTimeoutMillis(near)).toBe(250)
    expect(openTimeoutMillis(near)).toBe(1000)
  })

  it("is as long as can be before anything is known", () => {
    expect(answerTimeoutMillis(unknown)).toBe(maxTimeoutMillis)
    expect(openTimeoutMillis(unknown)).toBe(maxTimeoutMillis)
  })

  it("is longer with a database that is far away, and has an end", () => {
    const far = learn(unknown, { roundTrip: 400, opening: 2000 })
    expect(overdueAfterMillis(far)).toBe(1200)
    expect(answerTimeoutMillis(far)).toBe(1200)
    expect(openTimeoutMillis(far)).toBe(6000)
    expect(openTimeoutMillis(learn(far, { opening: 60_000 }))).toBe(maxTimeoutMillis)
  })

  it("grows at once, and shrinks by and by", () => {
    const slow = learn(learn(unknown, { opening: 100 }), { opening: 1000 })
    expect(slow.opening).toBe(1000)
    expect(learn(slow, { opening: 100 }).opening).toBe(550)
  })

  it("learns from any statement that a round trip takes no longer", () => {
    const known = learn(unknown, { roundTrip: 400 })
    expect(learnAtMost(known, 500)).toEqual(known)
    expect(learnAtMost(known, 3).roundTrip).toBe(3)
  })
})
