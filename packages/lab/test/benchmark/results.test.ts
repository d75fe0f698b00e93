import { assert, it } from "@effect/vitest"
import { type Measured, latest } from "../../benchmark/results.ts"

const section = (name: string, at: string): Measured => ({ name, at, on: "Node", rows: [] })

it("the latest results of each section that there is, in order", () => {
  const older = { sections: [section("a", "2026-01-02"), section("b", "2026-01-02")] }
  const newer = { sections: [section("b", "2026-01-03"), section("gone", "2026-01-03")] }
  const stale = { sections: [section("a", "2026-01-01")] }
  assert.deepStrictEqual(latest([older, newer, stale], ["b", "a", "never measured"]), {
    sections: [section("b", "2026-01-03"), section("a", "2026-01-02")],
  })
})
