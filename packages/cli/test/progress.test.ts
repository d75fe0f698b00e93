/** Progress in long work. */

import { expect, it } from "vitest"
import { makeProgress } from "../src/support/progress.ts"

const writing = (isTTY: boolean) => {
  const written: Array<string> = []
  return { written, isTTY, write: (text: string) => written.push(text) }
}

it("on a terminal is a bar with the rate and the time left", () => {
  const output = writing(true)
  const { end, show } = makeProgress(output, "members")
  show({ done: 25, of: 100, items: 12_500, millis: 5000 })
  end()
  expect(output.written).toEqual([
    "\r\u001B[K[#######-----------------------] 25 %  12,500 members  2,500/s  15 s left",
    "\r\u001B[K",
  ])
})

it("without a known end is how much and how fast", () => {
  const output = writing(true)
  makeProgress(output, "members").show({ done: 9, of: undefined, items: 10, millis: 1000 })
  expect(output.written).toEqual(["\r\u001B[K10 members  10/s"])
})

it("elsewhere is a line every ten seconds", () => {
  const output = writing(false)
  const { show } = makeProgress(output, "rows")
  for (const millis of [1000, 9999, 10_000, 15_000, 20_001])
    show({ done: millis, of: 100_000_000, items: millis, millis })
  expect(output.written).toEqual([
    "0 %  10,000 rows  1,000/s  1666 min 30 s left\n",
    "0 %  20,001 rows  1,000/s  1666 min 20 s left\n",
  ])
})
