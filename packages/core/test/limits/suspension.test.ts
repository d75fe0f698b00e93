import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import { Micros } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type SuspensionOptions,
  makeSuspensions,
  suspensionOptions,
} from "../../src/limits/rate-limiter.ts"

const minute = 60_000_000
const key = ApiKeyId("key")

/** Suspensions whose instants are plain microseconds. */
const make = (options: SuspensionOptions) => {
  const { refuse, suspended, until } = makeSuspensions(Setting.parse(suspensionOptions, options))
  return {
    suspended: (now: number) => suspended(Micros(now)),
    refuse: (keyId: ApiKeyId, now: number) => refuse(keyId, Micros(now)),
    until: (keyId: ApiKeyId, now: number) => until(keyId, Micros(now)),
  }
}

describe("a suspension", () => {
  it("is listed as long as it lasts", () => {
    const suspensions = make({ refusals: 2 })
    const other = ApiKeyId("another key")
    suspensions.refuse(key, 1)
    suspensions.refuse(other, 1)
    expect(suspensions.suspended(2)).toEqual([])
    suspensions.refuse(key, 2)
    expect(suspensions.suspended(2)).toEqual([key])
    suspensions.refuse(other, minute)
    expect(suspensions.suspended(1 + 10 * minute)).toEqual([key, other])
    expect(suspensions.suspended(2 + 10 * minute)).toEqual([other])
    expect(suspensions.suspended(11 * minute)).toEqual([])
  })

  it("begins with the 50th refusal within ten minutes, and lasts ten minutes", () => {
    const suspensions = make({})
    for (let refusal = 1; refusal < 50; refusal++) {
      expect(suspensions.refuse(key, refusal)).toBeUndefined()
    }
    expect(suspensions.until(key, 50)).toBeUndefined()
    expect(suspensions.refuse(key, 50)).toBe(50 + 10 * minute)
    expect(suspensions.until(key, 50)).toBe(50 + 10 * minute)
    expect(suspensions.until(key, 49 + 10 * minute)).toBe(50 + 10 * minute)
    expect(suspensions.until(key, 50 + 10 * minute)).toBeUndefined()
  })

  it("counts only the refusals of the last ten minutes", () => {
    const suspensions = make({ refusals: 3 })
    const refusals = [0, 5, 11, 12, 15.5, 16].map((at) => suspensions.refuse(key, at * minute))
    expect(refusals.map((until) => until !== undefined)).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
    ])
  })

  it("counts a refusal that is exactly ten minutes old, and none that is older", () => {
    const [exact, late] = [make({ refusals: 2 }), make({ refusals: 2 })]
    exact.refuse(key, 0)
    late.refuse(key, 0)
    expect(exact.refuse(key, 10 * minute)).toBe(20 * minute)
    expect(late.refuse(key, 10 * minute + 1)).toBeUndefined()
  })

  it("clears the refusals when it is over", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    suspensions.refuse(key, 1)
    expect(suspensions.until(key, 2 * minute)).toBeUndefined()
    expect(suspensions.refuse(key, 2 * minute)).toBeUndefined()
  })

  it("clears the refusals when it is over, even if the next request is refused", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    suspensions.refuse(key, 1)
    expect(suspensions.refuse(key, 2 * minute)).toBeUndefined()
    expect(suspensions.refuse(key, 3 * minute)).toBe(4 * minute)
  })

  it("is not prolonged by refusals during it", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    expect(suspensions.refuse(key, 1)).toBe(1 + minute)
    expect(suspensions.refuse(key, minute / 2)).toBe(1 + minute)
  })

  it("applies to one key only", () => {
    const suspensions = make({ refusals: 1 })
    suspensions.refuse(key, 0)
    expect(suspensions.until(ApiKeyId("other"), 0)).toBeUndefined()
  })
})
