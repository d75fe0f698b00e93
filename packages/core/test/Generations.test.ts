import { ApiKeyId } from "@tenure/core/ApiKey"
import * as Suspension from "@tenure/core/Suspension"
import * as TokenBucket from "@tenure/core/TokenBucket"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Generations from "../src/internal/generations.ts"
import * as Refusals from "../src/internal/refusals.ts"

const keys = fc.nat({ max: 30 })

describe("a map in two generations", () => {
  it("gives what was set last, or forgets it, and holds no more than its limit", () => {
    const steps = fc.array(fc.tuple(fc.constantFrom("get", "set", "delete"), keys))
    fc.assert(
      fc.property(steps, (sequence) => {
        const generations = Generations.make<number, number>(10)
        const model = new Map<number, number>()
        for (const [at, [step, key]] of sequence.entries()) {
          if (step === "set") {
            generations.set(key, at)
            model.set(key, at)
          } else if (step === "delete") {
            generations.delete(key)
            model.delete(key)
          }
          const found = generations.get(key)
          expect([undefined, model.get(key)]).toContain(found)
          if (step === "set") expect(found).toBe(at)
        }
        const left = Array.from({ length: 31 }, (_, key) => key).filter(
          (key) => generations.get(key) !== undefined,
        )
        expect(left.length).toBeLessThanOrEqual(10)
      }),
    )
  })

  it("keeps what is asked for, whatever else comes", () => {
    const generations = Generations.make<number, string>(10)
    generations.set(-1, "asked for")
    for (let key = 0; key < 1000; key++) {
      generations.set(key, "passing")
      expect(generations.get(-1)).toBe("asked for")
    }
  })

  it("forgets all that match, young and old", () => {
    const generations = Generations.make<number, number>(10)
    for (let key = 0; key < 8; key++) generations.set(key, key % 2)
    generations.deleteWhere((value) => value === 1)
    const left = Array.from({ length: 8 }, (_, key) => generations.get(key))
    expect(left).toEqual([0, undefined, 0, undefined, 0, undefined, 0, undefined])
  })
})

// At the limit an addition must cost no more than below it. If each walked over what was forgotten,
// these would take a minute.
describe("a flood far beyond what is remembered is over soon", () => {
  const count = 1_000_000

  it("of refusals", () => {
    const refusals = Refusals.make([TokenBucket.policy({ limit: 1, windowMillis: 1 })])
    for (let one = 0; one < count; one++) refusals.learn(`client ${one}`, 0, 1000, 0, 0)
    expect(refusals.find(`client ${count - 1}`, 0)).toBeDefined()
  })

  it("of offenders", () => {
    const suspensions = Effect.runSync(Suspension.make({ refusals: 2 }))
    for (let one = 0; one < count; one++) suspensions.refuse(ApiKeyId(`key ${one}`), 0)
    expect(suspensions.refuse(ApiKeyId(`key ${count - 1}`), 0)).toBeDefined()
  })
})
