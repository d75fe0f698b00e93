import { describe, expect, it } from "vitest"
import {
  Micros,
  Millis,
  addMicros,
  subtractMicros,
  toMicros,
  toSeconds,
} from "../../src/base/time.ts"

describe("units of time", () => {
  it("are plain numbers at run time", () => {
    expect([Millis(5), Micros(5)]).toEqual([5, 5])
  })

  it("are converted", () => {
    expect(toMicros(Millis(1500))).toBe(1_500_000)
    expect([1, 1_000_000, 1_000_001].map((micros) => toSeconds(Micros(micros)))).toEqual([1, 1, 2])
  })

  it("are added and subtracted", () => {
    expect(addMicros(Micros(2), Micros(3))).toBe(5)
    expect(subtractMicros(Micros(2), Micros(3))).toBe(-1)
  })

  it("do not mix", () => {
    // @ts-expect-error: milliseconds are not microseconds
    expect(toSeconds(Millis(1))).toBe(1)
    // @ts-expect-error: nor are plain numbers
    expect(toSeconds(1)).toBe(1)
    // @ts-expect-error: microseconds are not milliseconds
    expect(toMicros(Micros(1))).toBe(1000)
  })
})
