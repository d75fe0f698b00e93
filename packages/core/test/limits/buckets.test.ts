import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Micros, Millis } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type BucketPolicy,
  type LimitedClient,
  type TheoreticalArrivalTime,
  type TokenTake,
  bucketPolicy,
  bucketSpan,
  makeBucketTable,
  makeExpiryTable,
  refillSeconds,
  remainingTokens,
  takeToken,
} from "../../src/limits/buckets.ts"

// An instant in 2026.
const start = Micros(1_795_000_000_000_000)

describe("a token bucket", () => {
  const policies = fc
    .record({
      limit: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
      window: fc.integer({ min: 1, max: 86_400_000 }).map(Millis),
      capacity: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
    })
    .map(bucketPolicy)

  /** Generates times between takes, mostly comparable to an increment. */
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

  /** Takes a token at each instant. */
  const takeAll = (policy: BucketPolicy, instants: ReadonlyArray<Micros>) => {
    let tat: TheoreticalArrivalTime
    return instants.map((now): TokenTake & { readonly now: Micros } => {
      const take = takeToken(tat, now, policy)
      tat = take.tat
      return { ...take, now }
    })
  }

  /** Returns the instants with an admitted take. */
  const admissions = (policy: BucketPolicy, instants: ReadonlyArray<Micros>) =>
    takeAll(policy, instants).flatMap(({ admitted, now }) => (admitted ? [now] : []))

  /** Returns the bucket's state after a take at each instant. */
  const afterAll = (policy: BucketPolicy, instants: ReadonlyArray<Micros>) =>
    takeAll(policy, instants).at(-1) ?? expect.fail("no instants")

  const times = (count: number, instant: Micros): ReadonlyArray<Micros> =>
    Array.from({ length: count }, () => instant)

  /** Declares a property for any policy and any take times. */
  const always = (
    name: string,
    holds: (policy: BucketPolicy, instants: ReadonlyArray<Micros>) => void,
  ): void => {
    const cases = policies.chain((policy) =>
      pausesFor(policy).map((pauses) => [policy, instantsOf(pauses)] as const),
    )
    it(name, () => fc.assert(fc.property(cases, (one) => holds(...one))))
  }

  always(
    "admits in any window at most its capacity and the tokens that come back meanwhile",
    (policy, instants) => {
      const admitted = admissions(policy, instants)
      for (const [first, from] of admitted.entries()) {
        for (const [index, to] of admitted.slice(first).entries()) {
          const allowed = policy.capacity + (to - from) / policy.increment
          expect(index + 1).toBeLessThanOrEqual(allowed)
        }
      }
    },
  )

  always("admits exactly its capacity at once", (policy) => {
    fc.pre(policy.capacity <= 1000)
    const admitted = admissions(policy, times(policy.capacity + 5, start))
    expect(admitted).toHaveLength(policy.capacity)
  })

  always("admits exactly as many takes as it has tokens left", (policy, instants) => {
    fc.pre(policy.capacity <= 1000)
    const before = afterAll(policy, instants)
    const left = remainingTokens(before.tat, before.now, policy)
    const takes = takeAll(policy, [...instants, ...times(left + 1, before.now)])
    const admitted = takes.slice(instants.length).map((take) => take.admitted)
    expect(admitted).toEqual([...Array.from({ length: left }, () => true), false])
  })

  always("admits a take after the wait, and not a microsecond before", (policy, instants) => {
    for (const { admitted, now, tat, wait } of takeAll(policy, instants)) {
      if (admitted) continue
      const retry = Micros(now + wait)
      expect(takeToken(tat, retry, policy).admitted).toBe(true)
      expect(takeToken(tat, Micros(retry - 1), policy).admitted).toBe(false)
    }
  })

  always("is full at its tat, and not a microsecond before", (policy, instants) => {
    const { tat } = afterAll(policy, instants)
    expect(remainingTokens(tat, tat, policy)).toBe(policy.capacity)
    expect(remainingTokens(tat, Micros(tat - 1), policy)).toBe(policy.capacity - 1)
  })

  always(
    "has one more token after its refill, and not a microsecond before",
    (policy, instants) => {
      const { now, tat } = afterAll(policy, instants)
      const left = remainingTokens(tat, now, policy)
      const refill = refillSeconds(tat, now, policy)
      expect(remainingTokens(tat, Micros(now + refill), policy)).toBe(left + 1)
      expect(remainingTokens(tat, Micros(now + refill - 1), policy)).toBe(left)
      expect(refillSeconds(tat, tat, policy)).toBe(0)
    },
  )

  always("is not changed by a refusal", (policy, instants) => {
    const takes = takeAll(policy, instants)
    for (const [index, { admitted, tat }] of takes.entries()) {
      if (!admitted) expect(tat).toBe(takes[index - 1]?.tat)
    }
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

describe("a bucket table", () => {
  const minute = 60_000_000
  const perMinute = bucketPolicy({ limit: 100, window: Millis(60_000) })
  const policies = { address: perMinute, key: perMinute, burst: perMinute }
  const idempotency = bucketPolicy({ limit: 1, window: Millis(60_000) })
  const after = (micros: number): Micros => Micros(start + micros)

  const addressOnly = (address: string): LimitedClient => ({ address, keyId: undefined })
  const client = (name: string): LimitedClient => ({ address: name, keyId: ApiKeyId(name) })

  it("removes full buckets while others are added", () => {
    const table = makeBucketTable()
    for (let one = 0; one < 10_000; one++) table.take(client(`old ${one}`), policies, start)
    expect(table.size()).toBe(20_000)
    for (let one = 0; one < 4000; one++) table.take(client(`new ${one}`), policies, after(minute))
    expect(table.size()).toBeLessThan(8200)
  })

  it("keeps buckets that are not full, however many are added", () => {
    const table = makeBucketTable()
    for (let take = 0; take < 100; take++) table.take(client("exhausted"), policies, start)
    for (let one = 0; one < 10_000; one++) table.take(client(`${one}`), policies, after(one))
    expect(table.take(client("exhausted"), policies, after(10_000)).admitted).toBe(false)
  })

  it.each(["key", "burst"])("keeps a key until both of its buckets are full: %s", (name) => {
    const slow = bucketPolicy({ limit: 1, window: Millis(3_600_000) })
    const table = makeBucketTable()
    const either = { ...policies, [name]: slow }
    table.take(client("slow"), either, start)
    for (let one = 0; one < 100; one++) table.take(client(`${one}`), policies, after(minute))
    expect(table.take(client("slow"), either, after(minute)).admitted).toBe(false)
  })

  it("holds at most its limit of addresses and its limit of keys", () => {
    const table = makeBucketTable(100)
    for (let one = 0; one < 1000; one++) {
      table.take(client(String(one)), policies, start)
      expect(table.size()).toBeLessThanOrEqual(200)
    }
  })

  it("evicts no key under a flood of addresses", () => {
    const table = makeBucketTable(10)
    table.take(client("known"), policies, start)
    for (let one = 0; one < 1000; one++) table.take(addressOnly(`flood ${one}`), policies, start)
    const { key } = table.take(client("known"), policies, start)
    expect(remainingTokens(key, start, perMinute)).toBe(98)
  })

  it.each(["address", "key", "burst"])(
    "takes from all buckets of a client or from none: %s",
    (name) => {
      const table = makeBucketTable()
      const mixed = { ...policies, [name]: idempotency }
      const admitted = table.take(client("a"), mixed, start)
      expect(admitted.admitted).toBe(true)
      expect(table.take(client("a"), mixed, start)).toEqual({ ...admitted, admitted: false })
    },
  )

  it("keeps nothing of a key that a request does not have, whose buckets are full", () => {
    const table = makeBucketTable()
    const full = { key: start, burst: start }
    expect(table.take(addressOnly("a"), policies, start)).toMatchObject(full)
    expect(table.size()).toBe(1)
  })

  it("keeps nothing of a client whose first request is refused", () => {
    const table = makeBucketTable()
    const one = client("one")
    table.take(one, { address: idempotency, key: idempotency, burst: idempotency }, start)
    const refused = [
      table.take({ ...one, address: "other" }, { ...policies, key: idempotency }, start),
      table.take(
        { ...one, keyId: ApiKeyId("other") },
        { ...policies, address: idempotency },
        start,
      ),
    ]
    expect(refused.map(({ admitted }) => admitted)).toEqual([false, false])
    expect(table.size()).toBe(2)
  })

  it("refills within one increment after the clock was set back", () => {
    const table = makeBucketTable()
    for (let take = 0; take < 101; take++) table.take(client("a"), policies, after(10 * minute))
    expect(table.take(client("a"), policies, start).admitted).toBe(false)
    expect(table.take(client("a"), policies, after(perMinute.increment)).admitted).toBe(true)
  })
})

describe("a table of instants", () => {
  const tableOf = (limit: number) => {
    const { add, find, get, set, size } = makeExpiryTable(2, limit)
    return {
      size,
      /** Adds a row with its instants. */
      add: (id: string, now: number, instants: ReadonlyArray<number>): void => {
        const row = add(id, Micros(now))
        for (const column of instants.keys()) expect(get(row, column)).toBe(0)
        for (const [column, instant] of instants.entries()) set(row, column, Micros(instant))
      },
      find: (id: string) => {
        const row = find(id)
        return row === undefined ? undefined : [get(row, 0), get(row, 1)].map(Number)
      },
    }
  }

  it("keeps each row until its instants have passed, and its instants as they are", () => {
    const instants = fc.tuple(fc.nat({ max: 60 }), fc.nat({ max: 60 }))
    const rows = fc.array(fc.tuple(fc.nat({ max: 2 }), instants), { maxLength: 60 })
    fc.assert(
      fc.property(rows, (added) => {
        const table = tableOf(60)
        const known = new Map<string, ReadonlyArray<number>>()
        let now = 0
        for (const [index, [passed, ends]] of added.entries()) {
          now += passed
          table.add(String(index), now, ends)
          known.set(String(index), ends)
          for (const [id, expected] of known) {
            const found = table.find(id)
            if (found === undefined) expect(Math.max(...expected)).toBeLessThanOrEqual(now)
            else expect(found).toEqual(expected)
          }
        }
        const left = [...known.keys()].filter((id) => table.find(id) !== undefined)
        expect(table.size()).toBe(left.length)
      }),
    )
  })

  it("removes four rows for each that is added, if their instants have passed", () => {
    const table = tableOf(100)
    for (let row = 0; row < 40; row++) table.add(`old ${row}`, 0, [0, 1])
    const sizes = [1, 2, 3].map((row) => {
      table.add(`new ${row}`, 1, [9, 9])
      return table.size()
    })
    expect(sizes).toEqual([37, 34, 31])
  })

  it("keeps the instants of more rows than it has room for at first", () => {
    const rows = Array.from({ length: 300 }, (_, row) => row)
    const table = tableOf(rows.length)
    for (const row of rows) table.add(String(row), 0, [row + 1, 2 * row])
    for (const row of rows) expect(table.find(String(row))).toEqual([row + 1, 2 * row])
  })

  it("evicts the row whose instants pass soonest, if it is full", () => {
    const limit = 8
    const instants = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), {
      minLength: limit,
      maxLength: 3 * limit,
    })
    fc.assert(
      fc.property(instants, (ends) => {
        const table = tableOf(limit)
        let kept: ReadonlyArray<number> = []
        for (const end of ends) {
          table.add(String(end), 0, [1, end])
          kept = [...(kept.length < limit ? kept : kept.toSorted((a, b) => a - b).slice(1)), end]
          const found = ends.filter((one) => table.find(String(one)) !== undefined)
          expect(found).toEqual(ends.filter((one) => kept.includes(one)))
        }
      }),
    )
  })
})
