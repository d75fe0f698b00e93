/** Tables on terminals. */

import { displayWidth } from "effect/cli/CliOutput"
import { expect, it } from "vitest"
import { attemptLine } from "../src/commands/webhooks.ts"
import { formatAge, layOut } from "../src/support/text.ts"

const id = "86eb81ef-0c8e-43af-82b8-f50f8499efac"

const long = { id, url: "x".repeat(200), state: "enabled" }

it.each([
  ["is as wide as its cells without a terminal", long, Infinity, `${id}  ${long.url}  enabled`],
  ["shortens texts, so that what follows is seen", long, 100, `${id}  ${"x".repeat(52)}…  enabled`],
  ["counts wide characters as two columns", { name: "日本語".repeat(10) }, 11, "日本語日本…"],
])("%s", (_, row, width, line) => {
  expect(layOut([row], width).lines[1]).toBe(line)
})

it("leaves ids whole, and ends at the edge", () => {
  const row = { id, at: "2098-01-01T00:00:00.000Z", state: "enabled", url: "x".repeat(200) }
  expect(layOut([row], 70).lines).toEqual([
    `ID${" ".repeat(36)}AT${" ".repeat(24)}STATE…`,
    `${id}  2098-01-01T00:00:00.000Z  enabl…`,
  ])
})

it("never wraps, in no part", () => {
  const short = { id, name: "日", count: 1 }
  const wide = { id, name: "日本語 e\u0301".repeat(20), count: 123_456 }
  for (let width = 1; width < 120; width += 1) {
    const { lines, widths } = layOut([short], width)
    const all = [...lines, ...layOut([wide, short], width, widths).lines]
    expect(all.filter((line) => displayWidth(line) > width)).toEqual([])
  }
})

const last = { at: "2027-01-01T00:08:00.000Z", event_id: id, duration_ms: 12 }

it.each([
  [{ ...last, error: null, status: 500 }, "14", "HTTP 500 · 2 min ago · next in 4 min"],
  [{ ...last, error: "ECONNREFUSED", status: null }, null, "ECONNREFUSED · 2 min ago"],
  [null, "09", "next now"],
  [null, null, null],
])("writes a webhook's latest attempt as people say it", (last_attempt, minute, line) => {
  const now = Date.parse("2027-01-01T00:10:00.000Z")
  const next_attempt_at = minute === null ? null : `2027-01-01T00:${minute}:00.000Z`
  expect(attemptLine({ last_attempt, next_attempt_at }, now)).toBe(line)
})

it.each([
  [-1000, "0 s"],
  [119_999, "119 s"],
  [120_000, "2 min"],
  [2 * 3_600_000, "2 h"],
  [10 * 86_400_000, "10 d"],
])("writes %i ms as %s", (millis, text) => {
  expect(formatAge(millis)).toBe(text)
})
