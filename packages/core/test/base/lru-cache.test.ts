import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeLruCache } from "../../src/base/lru-cache.ts"

const keys = fc.nat({ max: 30 })

describe("an LRU cache", () => {
  it("returns the latest value of a key or nothing, and holds at most its limit", () => {
    const steps = fc.array(fc.tuple(fc.constantFrom("get", "set", "delete"), keys))
    fc.assert(
      fc.property(steps, (sequence) => {
        const cache = makeLruCache<number, number>(10)
        const model = new Map<number, number>()
        for (const [at, [step, key]] of sequence.entries()) {
          if (step === "set") {
            cache.set(key, at)
            model.set(key, at)
          } else if (step === "delete") {
            cache.delete(key)
            model.delete(key)
          }
          const found = cache.get(key)
          expect([undefined, model.get(key)]).toContain(found)
          if (step === "set") expect(found).toBe(at)
        }
        const left = Array.from({ length: 31 }, (_, key) => key).filter(
          (key) => cache.get(key) !== undefined,
        )
        expect(left.length).toBeLessThanOrEqual(10)
      }),
    )
  })

  it("keeps a key that is read again and again, however many others are set", () => {
    const cache = makeLruCache<number, string>(10)
    cache.set(-1, "read")
    for (let key = 0; key < 1000; key++) {
      cache.set(key, "passing")
      expect(cache.get(-1)).toBe("read")
    }
  })

  it("deletes all entries whose value matches", () => {
    const cache = makeLruCache<number, number>(10)
    for (let key = 0; key < 8; key++) cache.set(key, key % 2)
    cache.deleteWhere((value) => value === 1)
    const left = Array.from({ length: 8 }, (_, key) => cache.get(key))
    expect(left).toEqual([0, undefined, 0, undefined, 0, undefined, 0, undefined])
  })

  // If each insertion passed over the keys deleted before it, this would take a minute.
  it("is as fast at its limit as below", () => {
    const cache = makeLruCache<number, number>(10_000)
    for (let key = 0; key < 1_000_000; key++) cache.set(key, key)
    expect(cache.get(999_999)).toBe(999_999)
  })
})
