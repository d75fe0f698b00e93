import { assert, describe, it } from "@effect/vitest"
import { type Aimed, type Target, verdictOf } from "../../benchmark/target.ts"

const row = (target: Target | undefined, figure = 12, yardstick = 4): Aimed => ({
  figure,
  yardstick: { figure: yardstick },
  ...(target && { target }),
})

describe("verdictOf", () => {
  it("bounds the figure, the ratio or the difference, and a bound itself is still met", () => {
    assert.strictEqual(verdictOf(row({ of: "figure", atLeast: 12 })), "met")
    assert.strictEqual(verdictOf(row({ of: "figure", atLeast: 12.1 })), "missed")
    assert.strictEqual(verdictOf(row({ of: "ratio", atMost: 3 })), "met")
    assert.strictEqual(verdictOf(row({ of: "ratio", atMost: 2.9 })), "missed")
    assert.strictEqual(verdictOf(row({ of: "difference", atMost: 8 })), "met")
    assert.strictEqual(verdictOf(row({ of: "difference", atMost: 7.9 })), "missed")
  })

  it("keeps both bounds", () => {
    const between: Target = { of: "figure", atLeast: 10, atMost: 20 }
    assert.deepStrictEqual(
      [9, 10, 20, 21].map((figure) => verdictOf(row(between, figure))),
      ["missed", "met", "met", "missed"],
    )
  })

  it("is none without a target", () => {
    assert.strictEqual(verdictOf(row(undefined)), "none")
    assert.strictEqual(verdictOf(row(undefined, NaN)), "none")
  })

  it("is missed where nothing was measured", () => {
    assert.strictEqual(verdictOf(row({ of: "figure", atMost: 1 }, NaN)), "missed")
    assert.strictEqual(verdictOf(row({ of: "ratio", atMost: 1 }, 1, NaN)), "missed")
    assert.strictEqual(verdictOf({ figure: 1, target: { of: "ratio", atMost: 1 } }), "missed")
  })
})
