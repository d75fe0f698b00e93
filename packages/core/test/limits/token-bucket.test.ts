import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Micros, Millis } from "../../src/base/time.ts"
import {
  type BucketPolicy,
  type TheoreticalArrivalTime,
  type TokenTake,
  bucketPolicy,
  bucketSpan,
  refillSeconds,
  remainingTokens,
  takeToken,
} from "../../src/limits/buckets.ts"

const policies = fc
  .record({
    limit: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
    window: fc.integer({ min: 1, max: 86_400_000 }).map(Millis),
    capacity: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
  })
  .map(bucketPolicy)

// An instant in 2026.
const start = Micros(1_795_000_000_000_000)

/** Times between takes, most of them of the order of an increment. */
const pausesFor = (policy: BucketPolicy) =>
  fc.array(
    fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: Math.max(1, 3 * policy.increment) }),
      fc.integer({ min: 0, max: Math.max(1, 2 * bucketSpan(policy)) }),
    ),
    { minLength: 1, maxLength: 200 },
  )

const instantsOf = (pauses: ReadonlyArray<number>): ReadonlyArray<Micros> => {
  let now: number = start
  return pauses.map((pause) => Micros((now += pause)))
}

const policyAndInstants = policies.chain((policy) =>
  fc.record({ policy: fc.constant(policy), instants: pausesFor(policy).map(instantsOf) }),
)

/** Takes a token at each instant. */
const takeAll = (
  policy: BucketPolicy,
  instants: ReadonlyArray<Micros>,
): ReadonlyArray<TokenTake & { readonly now: Micros }> => {
  let tat: TheoreticalArrivalTime
  return instants.map((now) => {
    const take = takeToken(tat, now, policy)
    tat = take.tat
    return { ...take, now }
  })
}

/** The instants at which a take is admitted. */
const admissions = (policy: BucketPolicy, instants: ReadonlyArray<Micros>) =>
  takeAll(policy, instants).flatMap(({ admitted, now }) => (admitted ? [now] : []))

/** The state of the bucket after a take at each instant. */
const afterAll = (policy: BucketPolicy, instants: ReadonlyArray<Micros>) =>
  takeAll(policy, instants).at(-1) ?? expect.fail("no instants")

const times = (count: number, instant: Micros): ReadonlyArray<Micros> =>
  Array.from({ length: count }, () => instant)

describe("a token bucket", () => {
  it("admits in any window at most its capacity and the tokens that come back meanwhile", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        const admitted = admissions(policy, instants)
        for (const [first, from] of admitted.entries()) {
          for (const [last, to] of admitted.entries()) {
            if (last < first) continue
            const allowed = policy.capacity + (to - from) / policy.increment
            expect(last - first + 1).toBeLessThanOrEqual(allowed)
          }
        }
      }),
    )
  })

  it("admits exactly its capacity at once", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        fc.pre(policy.capacity <= 1000)
        const admitted = admissions(policy, times(policy.capacity + 5, start))
        expect(admitted).toHaveLength(policy.capacity)
      }),
    )
  })

  it("admits exactly as many takes as it has tokens left", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        fc.pre(policy.capacity <= 1000)
        const before = afterAll(policy, instants)
        const left = remainingTokens(before.tat, before.now, policy)
        const takes = takeAll(policy, [...instants, ...times(left + 1, before.now)])
        const admitted = takes.slice(instants.length).map((take) => take.admitted)
        expect(admitted).toEqual([...Array.from({ length: left }, () => true), false])
      }),
    )
  })

  it("admits a take after the wait, and not a microsecond before", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        for (const { admitted, now, tat, wait } of takeAll(policy, instants)) {
          if (admitted) continue
          const retry = Micros(now + wait)
          expect(takeToken(tat, retry, policy).admitted).toBe(true)
          expect(takeToken(tat, Micros(retry - 1), policy).admitted).toBe(false)
        }
      }),
    )
  })

  it("is full at its tat, and not a microsecond before", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        const { tat } = afterAll(policy, instants)
        expect(remainingTokens(tat, tat, policy)).toBe(policy.capacity)
        expect(remainingTokens(tat, Micros(tat - 1), policy)).toBe(policy.capacity - 1)
      }),
    )
  })

  it("has one more token after its refill, and not a microsecond before", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        const { now, tat } = afterAll(policy, instants)
        const left = remainingTokens(tat, now, policy)
        const refill = refillSeconds(tat, now, policy)
        expect(remainingTokens(tat, Micros(now + refill), policy)).toBe(left + 1)
        expect(remainingTokens(tat, Micros(now + refill - 1), policy)).toBe(left)
        expect(refillSeconds(tat, tat, policy)).toBe(0)
      }),
    )
  })

  it("is not changed by a refusal", () => {
    fc.assert(
      fc.property(policyAndInstants, ({ instants, policy }) => {
        const takes = takeAll(policy, instants)
        for (const [index, { admitted, tat }] of takes.entries()) {
          if (!admitted) expect(tat).toBe(takes[index - 1]?.tat)
        }
      }),
    )
  })

  it("has a token within one increment, however the clock jumps", () => {
    const jumps = fc.array(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), { maxLength: 50 })
    fc.assert(
      fc.property(policies, jumps.map(instantsOf), (policy, instants) => {
        for (const { now, tat, wait } of takeAll(policy, instants)) {
          expect(wait).toBeLessThanOrEqual(policy.increment)
          expect(tat).toBeLessThanOrEqual(now + bucketSpan(policy))
        }
      }),
    )
  })

  it("counts in whole microseconds if its limit does not divide the window", () => {
    const seven = bucketPolicy({ limit: 7, window: Millis(60_000) })
    expect(seven.increment).toBe(8_571_429)
    expect(admissions(seven, times(8, start))).toHaveLength(7)
  })
})
