import { expect, it } from "vitest"
import { parseInteger, parseSeeds } from "../arguments.ts"

it("seeds are numbers and ranges", () => {
  expect(parseSeeds("1-3,9")).toEqual([1, 2, 3, 9])
  expect(() => parseSeeds("3-1")).toThrow("--seeds takes")
  expect(() => parseSeeds("all")).toThrow("--seeds takes")
})

it("integers are not less than allowed", () => {
  expect(parseInteger("moves", "0", 0)).toBe(0)
  expect(parseInteger("cells", "16", 2)).toBe(16)
  for (const text of ["1", "2.5", "10k", "", " ", "-3", "Infinity"]) {
    expect(() => parseInteger("cells", text, 2)).toThrow(
      `--cells takes an integer from 2 on, not "${text}"`,
    )
  }
})
