import * as TokenBucket from "@tenure/core/TokenBucket"
import fc from "fast-check"
import { describe, expect, it } from "vitest"

const policies = fc
  .record({
    limit: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
    windowMillis: fc.integer({ min: 1, max: 86_400_000 }),
    capacity: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
  })
  .map(TokenBucket.policy)

/** Microseconds of a day in 2026, and steps between requests, mostly of the order of an increment. */
const start = 1_795_000_000_000_000
const stepsFor = (policy: TokenBucket.Policy) =>
  fc.array(
    fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: Math.max(1, 3 * policy.increment) }),
      fc.integer({ min: 0, max: Math.max(1, 2 * TokenBucket.span(policy)) }),
    ),
    { minLength: 1, maxLength: 200 },
  )

const policyWithSteps = policies.chain((policy) =>
  fc.record({ policy: fc.constant(policy), steps: stepsFor(policy) }),
)

/** Takes at each instant, and gives those at which a token was had. */
const admissions = (
  policy: TokenBucket.Policy,
  instants: ReadonlyArray<number>,
): ReadonlyArray<number> => {
  let tat: TokenBucket.Tat
  return instants.filter((now) => {
    const taken = TokenBucket.take(tat, now, policy)
    tat = taken.tat
    return taken.admitted
  })
}

const instantsOf = (steps: ReadonlyArray<number>): ReadonlyArray<number> => {
  let now = start
  return steps.map((step) => (now += step))
}

describe("a token bucket", () => {
  it("admits in no window more than its capacity and what came back meanwhile", () => {
    fc.assert(
      fc.property(policyWithSteps, ({ policy, steps }) => {
        const admitted = admissions(policy, instantsOf(steps))
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

  it("gives exactly its capacity at once", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        fc.pre(policy.capacity <= 1000)
        const instants = Array.from({ length: policy.capacity + 5 }, () => start)
        expect(admissions(policy, instants)).toHaveLength(policy.capacity)
      }),
    )
  })

  it("counts what remains exactly: so many takes are admitted and not one more", () => {
    fc.assert(
      fc.property(policyWithSteps, ({ policy, steps }) => {
        fc.pre(policy.capacity <= 1000)
        let tat: TokenBucket.Tat
        let now = start
        for (const step of steps) {
          now += step
          tat = TokenBucket.take(tat, now, policy).tat
        }
        const remaining = TokenBucket.remaining(tat, now, policy)
        for (let take = 1; take <= remaining; take++) {
          const taken = TokenBucket.take(tat, now, policy)
          expect(taken.admitted).toBe(true)
          tat = taken.tat
        }
        expect(TokenBucket.take(tat, now, policy).admitted).toBe(false)
        expect(TokenBucket.remaining(tat, now, policy)).toBe(0)
      }),
    )
  })

  it("names the wait exactly: it admits after the wait, and not a microsecond before", () => {
    fc.assert(
      fc.property(policyWithSteps, ({ policy, steps }) => {
        let tat: TokenBucket.Tat
        for (const now of instantsOf(steps)) {
          const taken = TokenBucket.take(tat, now, policy)
          if (!taken.admitted) {
            expect(TokenBucket.take(taken.tat, now + taken.wait, policy).admitted).toBe(true)
            expect(TokenBucket.take(taken.tat, now + taken.wait - 1, policy).admitted).toBe(false)
          }
          tat = taken.tat
        }
      }),
    )
  })

  it("is full at its tat, and not before", () => {
    fc.assert(
      fc.property(policyWithSteps, ({ policy, steps }) => {
        let tat: TokenBucket.Tat
        let now = start
        for (const step of steps) {
          now += step
          tat = TokenBucket.take(tat, now, policy).tat
        }
        fc.pre(tat !== undefined && tat > now)
        expect(TokenBucket.remaining(tat, tat ?? 0, policy)).toBe(policy.capacity)
        expect(TokenBucket.remaining(tat, (tat ?? 0) - 1, policy)).toBe(policy.capacity - 1)
      }),
    )
  })

  it("is left as it was by a refusal", () => {
    fc.assert(
      fc.property(policyWithSteps, ({ policy, steps }) => {
        let tat: TokenBucket.Tat
        for (const now of instantsOf(steps)) {
          const taken = TokenBucket.take(tat, now, policy)
          if (!taken.admitted) expect(taken.tat).toBe(tat)
          tat = taken.tat
        }
      }),
    )
  })

  it("suffers no harm from a clock that jumps: one increment later there is a token again", () => {
    const jumps = fc.array(fc.integer({ min: -(10 ** 12), max: 10 ** 12 }), { maxLength: 50 })
    fc.assert(
      fc.property(policies, jumps, (policy, steps) => {
        let tat: TokenBucket.Tat
        for (const now of instantsOf(steps)) {
          const taken = TokenBucket.take(tat, now, policy)
          expect(taken.wait).toBeLessThanOrEqual(policy.increment)
          expect(taken.tat).toBeLessThanOrEqual(now + TokenBucket.span(policy))
          tat = taken.tat
        }
      }),
    )
  })

  it("reckons in whole microseconds, whatever the window is divided by", () => {
    const seven = TokenBucket.policy({ limit: 7, windowMillis: 60_000 })
    expect(seven.increment).toBe(8_571_429)
    expect(
      admissions(
        seven,
        Array.from({ length: 8 }, () => start),
      ),
    ).toHaveLength(7)
  })
})
