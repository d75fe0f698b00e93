/** Tables on terminals. */

import { displayWidth } from "effect/cli/CliOutput"
import { expect, it } from "vitest"
import { layOut } from "../src/support/text.ts"

const id = "86eb81ef-0c8e-43af-82b8-f50f8499efac"

it("is as wide as its cells where no terminal limits it", () => {
  const { lines } = layOut([{ id, url: "x".repeat(200), state: "enabled" }], Infinity)
  expect(lines[1]).toBe(`${id}  ${"x".repeat(200)}  enabled`)
})

it("shortens long texts, so that what follows them is seen", () => {
  const { lines } = layOut([{ id, url: "x".repeat(200), state: "enabled" }], 100)
  expect(lines[1]).toBe(`${id}  ${"x".repeat(52)}…  enabled`)
})

it("leaves ids whole, and ends at the edge", () => {
  const row = { id, at: "2098-01-01T00:00:00.000Z", state: "enabled", url: "x".repeat(200) }
  const { lines } = layOut([row], 70)
  expect(lines).toEqual([
    `ID${" ".repeat(36)}AT${" ".repeat(24)}STATE…`,
    `${id}  2098-01-01T00:00:00.000Z  enabl…`,
  ])
})

it("counts the columns of wide characters", () => {
  const { lines } = layOut([{ name: "日本語".repeat(10) }], 11)
  expect(lines[1]).toBe("日本語日本…")
})

it("never wraps, in no part", () => {
  const short = { id, name: "日", count: 1 }
  const long = { id, name: "日本語 e\u0301".repeat(20), count: 123_456 }
  for (let width = 1; width < 120; width += 1) {
    const { lines, widths } = layOut([short], width)
    const all = [...lines, ...layOut([long, short], width, widths).lines]
    expect(all.filter((line) => displayWidth(line) > width)).toEqual([])
  }
})
