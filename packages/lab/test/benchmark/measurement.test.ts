import { assert, describe, it } from "@effect/vitest"
import { type Row, type Target, type Verdict, judged } from "../../benchmark/measurement.ts"

const alone: Row = { measured: "m", unit: "", figure: 1 }

const row = (target: Target | undefined, figure = 12, yardstick = 4): Row => ({
  ...alone,
  figure,
  yardstick: { name: "x", figure: yardstick },
  ...(target && { target }),
})

describe("the verdict", () => {
  const between: Target = { of: "figure", atLeast: 10, atMost: 20 }

  it.each<[string, Row, Verdict]>([
    ["at least a figure", row({ of: "figure", atLeast: 12 }), "met"],
    ["at least a figure", row({ of: "figure", atLeast: 12.1 }), "missed"],
    ["at most a ratio", row({ of: "ratio", atMost: 3 }), "met"],
    ["at most a ratio", row({ of: "ratio", atMost: 2.9 }), "missed"],
    ["at most a difference", row({ of: "difference", atMost: 8 }), "met"],
    ["at most a difference", row({ of: "difference", atMost: 7.9 }), "missed"],
    ["two bounds, below them", row(between, 9), "missed"],
    ["two bounds, at the lower one", row(between, 10), "met"],
    ["two bounds, at the upper one", row(between, 20), "met"],
    ["two bounds, above them", row(between, 21), "missed"],
    ["no target", row(undefined), "none"],
    ["no target, with nothing measured", row(undefined, NaN), "none"],
    ["a figure that was not measured", row({ of: "figure", atMost: 1 }, NaN), "missed"],
    ["a yardstick that was not measured", row({ of: "ratio", atMost: 1 }, 1, NaN), "missed"],
    ["no yardstick", { ...alone, target: { of: "ratio", atMost: 1 } }, "missed"],
  ])("for %s", (_, given, verdict) => {
    assert.strictEqual(judged(given).verdict, verdict)
  })
})
