import { assert, it } from "@effect/vitest"
import { comparisonsOf, unansweredOf } from "../../benchmark/comparisons.ts"
import type { Row } from "../../benchmark/measurement.ts"
import { ownTableRows } from "../../benchmark/sections/own-table.ts"
import { queueRows } from "../../benchmark/sections/queues.ts"
import { timesOf } from "../../benchmark/tables.ts"

const row = (given: Partial<Row>): Row => ({ measured: "m", unit: "/s", figure: 1, ...given })

const beside = (name: string, figure: number) => ({ yardstick: { name, figure } })

it("comparisons say how many times better Tenure is, the best alternative first", () => {
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
