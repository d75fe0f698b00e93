/** Tables on terminals. */

import { displayWidth } from "effect/cli/CliOutput"
import { expect, it } from "vitest"
import { attemptLine } from "../src/commands/webhooks.ts"
import { formatAge, layOut } from "../src/support/text.ts"

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

it("writes a webhook's latest attempt as people say it", () => {
  const now = Date.parse("2027-01-01T00:10:00.000Z")
  const last = {
    at: "2027-01-01T00:08:00.000Z",
    event_id: id,
    duration_ms: 12,
    error: null,
    status: null,
  }
  const answered = { ...last, status: 500 }
  expect(
    attemptLine({ last_attempt: answered, next_attempt_at: "2027-01-01T00:14:00.000Z" }, now),
  ).toBe("HTTP 500 · 2 min ago · next in 4 min")
  const refused = { ...last, error: "ECONNREFUSED" }
  expect(attemptLine({ last_attempt: refused, next_attempt_at: null }, now)).toBe(
    "ECONNREFUSED · 2 min ago",
  )
  const due = { last_attempt: null, next_attempt_at: "2027-01-01T00:09:00.000Z" }
  expect(attemptLine(due, now)).toBe("next now")
  expect(attemptLine({ ...due, next_attempt_at: null }, now)).toBeNull()
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
