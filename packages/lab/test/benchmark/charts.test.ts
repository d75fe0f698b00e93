import { assert, describe, it } from "@effect/vitest"
import { comparisonsOf, timesOf, unansweredOf } from "../../benchmark/charts/alternatives.ts"
import { casesOf, groupOf, growthOf } from "../../benchmark/charts/bars.ts"
import type { Row } from "../../benchmark/measurement.ts"
import { ownTableRows } from "../../benchmark/sections/own-table.ts"
import { queueRows } from "../../benchmark/sections/queues.ts"

const row = (given: Partial<Row>): Row => ({ measured: "m", unit: "/s", figure: 1, ...given })

const valuesOf = ({ bars }: Pick<ReturnType<typeof groupOf>, "bars">) =>
  bars.map(({ label, target, value }) => [label, value, target])

describe("bars", () => {
  it("are longest first, once for each, and Tenure's has the hardest target", () => {
    const rows = [
      row({
        figure: 300,
        yardstick: { name: "x", figure: 100 },
        target: { of: "ratio", atLeast: 2 },
      }),
      row({ figure: 300, yardstick: { name: "y", figure: 400 } }),
      row({ figure: 300, target: { of: "figure", atLeast: 350 } }),
      row({ figure: 300, yardstick: { name: "x", figure: 100 } }),
      row({ measured: "another", figure: 900 }),
      row({ unit: "ms", figure: 900 }),
    ]
    const { bars } = groupOf("group", rows, [{ measured: "m", unit: "/s", as: "Tenure" }])
    assert.deepStrictEqual(bars, [
      { label: "y", who: "y", value: 400, target: undefined },
      { label: "Tenure", who: "Tenure", value: 300, target: 350 },
      { label: "x", who: "x", value: 100, target: undefined },
    ])
  })

  it("are missing where nothing was measured", () => {
    const all = [
      { measured: "m", unit: "/s", as: "one" },
      { measured: "gone", unit: "/s", as: "other" },
    ]
    const { bars, missing } = casesOf("group", [row({ figure: NaN }), row({ measured: "n" })], all)
    assert.deepStrictEqual([bars, missing], [[], ["gone"]])
  })

  it("turn times into operations a second, and targets with them", () => {
    const unit = "µs CPU"
    const beside = (name: string, figure: number, target: NonNullable<Row["target"]>) =>
      row({ unit, figure: 50, yardstick: { name, figure }, target })
    const rows = [
      beside("x", 20, { of: "difference", atMost: 5 }),
      beside("y", 25, { of: "ratio", atMost: 2 }),
    ]
    assert.deepStrictEqual(
      valuesOf(groupOf("group", rows, [{ measured: "m", unit, as: "Tenure" }])),
      [
        ["x", 50_000, undefined],
        ["y", 40_000, undefined],
        ["Tenure", 20_000, 40_000],
      ],
    )
  })

  it("show growth from the smallest size to the largest", () => {
    const points = [[1, 10] as const, [1000, 20] as const]
    const curves = [{ name: "c", points, target: { of: "ratio", atMost: 1.25 } as const }]
    assert.deepStrictEqual(valuesOf(growthOf("group", curves, "c")), [
      ["1", 100_000, undefined],
      ["1,000", 50_000, 80_000],
    ])
    assert.deepStrictEqual(growthOf("group", curves, "another").bars, [])
  })
})

describe("comparisons with alternatives", () => {
  const beside = (name: string, figure: number) => ({ yardstick: { name, figure } })

  it("say how many times better Tenure is, the best alternative first", () => {
    const rows = [
      row({ measured: ownTableRows.answered, figure: 300, ...beside("x", 100) }),
      row({ measured: ownTableRows.answered, unit: "µs CPU", figure: 1, ...beside("x", 9) }),
      row({ measured: queueRows.p99, unit: "ms", figure: 10, ...beside("slow", 40) }),
      row({ measured: queueRows.p99, unit: "ms", figure: 10, ...beside("quick", 5) }),
    ]
    assert.deepStrictEqual(
      comparisonsOf(rows).map(({ alternatives }) =>
        alternatives.map(({ better, name }) => [name, timesOf(better)]),
      ),
      [
        [["x", "3.0 ×"]],
        [
          ["quick", "0.50 ×"],
          ["slow", "4.0 ×"],
        ],
      ],
    )
    assert.lengthOf(unansweredOf(rows), 3)
  })
})
