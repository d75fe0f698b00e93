import { ApiKeyId } from "@tenure/core/ApiKey"
import * as Suspension from "@tenure/core/Suspension"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"

const minute = 60_000_000
const make = (options: Suspension.Options) => Effect.runSync(Suspension.make(options))

const key = ApiKeyId("key")

describe("a suspension", () => {
  it("begins with the fiftieth refusal within ten minutes, and lasts ten minutes", () => {
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

  it("counts refusals of the last ten minutes only, wherever those begin", () => {
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

  it("leaves a clean slate behind", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    suspensions.refuse(key, 1)
    expect(suspensions.until(key, 2 * minute)).toBeUndefined()
    expect(suspensions.refuse(key, 2 * minute)).toBeUndefined()
  })

  it("leaves a clean slate behind whoever asks first", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    suspensions.refuse(key, 1)
    expect(suspensions.refuse(key, 2 * minute)).toBeUndefined()
    expect(suspensions.refuse(key, 3 * minute)).toBe(4 * minute)
  })

  it("is not prolonged by what is refused meanwhile", () => {
    const suspensions = make({ refusals: 2, duration: "1 minute" })
    suspensions.refuse(key, 0)
    expect(suspensions.refuse(key, 1)).toBe(1 + minute)
    expect(suspensions.refuse(key, minute / 2)).toBe(1 + minute)
  })

  it("is of one key, and not of another", () => {
    const suspensions = make({ refusals: 1 })
    suspensions.refuse(key, 0)
    expect(suspensions.until(ApiKeyId("other"), 0)).toBeUndefined()
  })

  it("ends when the clock is set back", () => {
    const suspensions = make({ refusals: 1 })
    suspensions.refuse(key, 60 * minute)
    expect(suspensions.until(key, 0)).toBeUndefined()
  })
})
