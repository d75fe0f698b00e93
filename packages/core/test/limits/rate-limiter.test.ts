import { createHash } from "node:crypto"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { ErrorReporter } from "../../src/base/faults.ts"
import * as Setting from "../../src/base/setting.ts"
import { Micros, Millis, currentMoment, toMicros } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import {
  type LimitedClient,
  RateLimitStore,
  type TakeResult,
  bucketPolicy,
  makeBucketTable,
} from "../../src/limits/buckets.ts"
import { makeEmptyBucketCache } from "../../src/limits/empty-buckets.ts"
import {
  type LimitDecision,
  RateLimiter,
  type RateLimiterOptions,
  rateLimiterOptions as limiterOptions,
} from "../../src/limits/rate-limiter.ts"
import {
  type SuspensionOptions,
  makeSuspensions,
  suspensionOptions,
} from "../../src/limits/suspensions.ts"
import { test } from "../support/test.ts"

const key = ApiKeyId("key")
const known: LimitedClient = { address: "203.0.113.7", keyId: key }
const addressOnly: LimitedClient = { address: "203.0.113.7", keyId: undefined }
const otherKey: LimitedClient = { ...known, keyId: ApiKeyId("other") }

const start = 1_795_000_000

/** Returns a limiter at a known time, and the clients its store is asked for. The store can be down. */
const limiterWith = Effect.fnUntraced(function* (options: RateLimiterOptions = {}) {
  yield* TestClock.setTime(start * 1000)
  const table = makeBucketTable()
  const seen: Array<LimitedClient> = []
  const store = { isDown: false }
  const layer = Layer.succeed(RateLimitStore, {
    ping: Effect.void,
    take: (client, policies) =>
      Effect.flatMap(currentMoment, ({ tick }) => {
        seen.push(client)
        return store.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "down" }))
          : Effect.succeed(table.take(client, policies, toMicros(tick)))
      }),
  })
  const settings = Setting.parse(limiterOptions, options)
  const context = yield* Layer.build(Layer.provide(RateLimiter.layer(settings), layer))
  const limiter = Context.get(context, RateLimiter)
  return {
    ...limiter,
    take: (client = known) => limiter.take(client),
    /** Takes again and again. */
    takeAll: (count: number, client = known) => Effect.replicateEffect(limiter.take(client), count),
    beginAt: (address: string) => Effect.map(currentMoment, (now) => limiter.begin(address, now)),
    seen,
    store,
  }
})

const tags = (decisions: ReadonlyArray<LimitDecision>) => decisions.map(({ _tag }) => _tag)

/** Returns the report on a key, with the seconds until all its requests are back. */
const ofKey = (remaining: number, reset: number, refill = 1) => ({
  bucket: "key",
  limit: 100,
  remaining,
  reset: start + reset,
  refill,
})

describe("without a limit for addresses, a request", () => {
  test("with a key is limited by the key alone, from wherever it comes", function* () {
    const perKey = { limit: 2, window: "1 minute" } as const
    const { seen, take, takeAll } = yield* limiterWith({ perAddress: false, perKey })
    const decisions = yield* takeAll(3)
    expect(tags(decisions)).toEqual(["Admitted", "Admitted", "Refused"])
    expect(decisions.map(({ report }) => report.remaining)).toEqual([1, 0, 0])
    expect(seen).toEqual([1, 2].map(() => ({ address: key, keyId: key })))
    expect((yield* take({ ...known, address: "203.0.113.8" }))._tag).toBe("Refused")
    expect((yield* take(otherKey)).report).toMatchObject({ limit: 2, remaining: 1 })
  })

  test("without a key is admitted, and asks no store", function* () {
    const { seen, takeAll } = yield* limiterWith({ perAddress: false })
    const decisions = yield* takeAll(500, addressOnly)
    expect(tags(decisions)).not.toContain("Refused")
    expect(decisions[499]?.report).toEqual({ ...ofKey(100, 0, 0), bucket: "address" })
    expect(seen).toEqual([])
  })

  test("is refused for no address, whoever has sent requests from there", function* () {
    const perKey = { limit: 1, window: "1 minute" } as const
    const { beginAt } = yield* limiterWith({ perAddress: false, perKey })
    const both = [yield* beginAt(known.address), yield* beginAt(known.address)]
    const decisions = yield* Effect.forEach(both, (request) => request.take(key))
    expect(tags(decisions)).toEqual(["Admitted", "Refused"])
    const other = yield* beginAt(known.address)
    expect([...both, other].map(({ refusal }) => refusal)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect((yield* other.take(ApiKeyId("other")))._tag).toBe("Admitted")
  })
})

describe("a request with a key", () => {
  test("takes from the buckets of the key, the address and the burst", function* () {
    const { take, takeAll } = yield* limiterWith()
    yield* take()
    const elsewhere = yield* take({ ...known, address: "203.0.113.8" })
    expect(elsewhere.report).toMatchObject({ limit: 100, remaining: 98 })
    expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 298 })
    yield* takeAll(18)
    expect((yield* take()).report).toMatchObject({ limit: 20, remaining: 0 })
  })

  test("is told the state of the key's bucket, never that of the burst", function* () {
    const { takeAll } = yield* limiterWith()
    const decisions = yield* takeAll(20)
    expect(tags(decisions)).not.toContain("Refused")
    expect(decisions[0]?.report).toEqual(ofKey(99, 1))
    expect(decisions[19]?.report).toEqual(ofKey(80, 12))
  })

  test("is told the state of the address's bucket only if that has fewer tokens", function* () {
    const few = yield* limiterWith({ perAddress: { limit: 30, window: "1 minute" } })
    expect((yield* few.take()).report).toMatchObject({ limit: 30, remaining: 29 })
    const equal = yield* limiterWith({ perAddress: { limit: 100, window: "100 minutes" } })
    expect((yield* equal.take()).report).toEqual(ofKey(99, 1))
  })

  test("is refused by the burst after 20 in a second, which takes nothing", function* () {
    const { take, takeAll } = yield* limiterWith({ perAddress: { limit: 300, window: "5 hours" } })
    yield* takeAll(20)
    expect(yield* take()).toEqual({
      _tag: "Refused",
      by: "burst",
      report: { bucket: "burst", limit: 20, remaining: 0, reset: start + 1, refill: 1 },
      retryAfter: 1,
    })
    yield* takeAll(20)
    expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 279 })
    yield* TestClock.adjust("1 second")
    expect(tags(yield* takeAll(21)).indexOf("Refused")).toBe(20)
  })

  test("is refused as the 101st in a minute", function* () {
    const { takeAll } = yield* limiterWith({ burst: { limit: 1000, window: "1 second" } })
    const decisions = yield* takeAll(101)
    expect(decisions[99]).toMatchObject({ _tag: "Admitted", report: { remaining: 0 } })
    const refusal = { _tag: "Refused", by: "key", report: ofKey(0, 60), retryAfter: 1 }
    expect(decisions[100]).toEqual(refusal)
  })

  test("is told the state of the bucket that is empty longest", function* () {
    const { take, takeAll } = yield* limiterWith({ perKey: { limit: 20, window: "20 minutes" } })
    yield* takeAll(20)
    expect(yield* take()).toMatchObject({ report: { limit: 20 }, retryAfter: 60 })
  })
})

test("a request without a valid key takes from the bucket of the address, and is told its state", function* () {
  const { seen, take, takeAll } = yield* limiterWith()
  const report = { limit: 300, remaining: 299 }
  expect(yield* take(addressOnly)).toMatchObject({ _tag: "Admitted", report })
  expect(seen).toEqual([addressOnly])
  yield* takeAll(299, addressOnly)
  const refused = { _tag: "Refused", by: "address", report: { bucket: "address" } }
  expect(yield* take(addressOnly)).toMatchObject(refused)
  expect((yield* take())._tag).toBe("Refused")
})

test("Retry-After is exact: a client that waits that long is admitted, whatever came before", function* () {
  const run = Effect.runPromiseWith(yield* Effect.context())
  const options: RateLimiterOptions = {
    perKey: { limit: 7, window: "1 minute" },
    perAddress: { limit: 11, window: "1 minute" },
    burst: { limit: 3, window: "1 second" },
    suspension: false,
  }
  const steps = fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 3000 })), { maxLength: 80 })
  const holds = Effect.fnUntraced(function* (sequence: ReadonlyArray<readonly [boolean, number]>) {
    const { take } = yield* limiterWith(options)
    for (const [isKnown, pause] of sequence) {
      const client = isKnown ? known : addressOnly
      const decision = yield* take(client)
      yield* TestClock.adjust(pause)
      if (decision._tag !== "Refused" || pause > 10) continue
      yield* TestClock.adjust(decision.retryAfter * 1000 - pause)
      expect((yield* take(client))._tag).toBe("Admitted")
    }
  }, Effect.scoped)
  const property = fc.asyncProperty(steps, (sequence) => run(holds(sequence)))
  yield* Effect.promise(async () => fc.assert(property))
})

describe("refusals", () => {
  test("are cached: repeated ones do not ask the store", function* () {
    const { seen, take, takeAll } = yield* limiterWith()
    yield* takeAll(20)
    expect(tags(yield* takeAll(20))).not.toContain("Admitted")
    expect(seen).toHaveLength(20)
    yield* TestClock.adjust(50)
    expect((yield* take())._tag).toBe("Admitted")
  })

  test("end after Retry-After even if the clock is set back, and name the new time", function* () {
    const perKey = { limit: 20, window: "20 minutes" } as const
    const { seen, take, takeAll } = yield* limiterWith({ perKey })
    yield* takeAll(20)
    yield* TestClock.adjust("10 seconds")
    expect(yield* take()).toMatchObject({ retryAfter: 50 })
    yield* TestClock.setTime((start - 3600) * 1000)
    expect(yield* take()).toEqual({
      _tag: "Refused",
      by: "key",
      report: { ...ofKey(0, -3600 + 1190, 50), limit: 20 },
      retryAfter: 50,
    })
    expect(seen).toHaveLength(20)
    yield* TestClock.adjust("50 seconds")
    const report = { reset: start - 3600 + 50 + 1200 }
    expect(yield* take()).toMatchObject({ _tag: "Admitted", report })
  })

  test("of an address are recalled without the store, and count against nobody", function* () {
    const perAddress = { limit: 20, window: "20 minutes" } as const
    const { beginAt, seen, take, takeAll } = yield* limiterWith({ perAddress })
    yield* takeAll(19, addressOnly)
    expect((yield* beginAt(known.address)).refusal).toBeUndefined()
    yield* take(addressOnly)
    expect((yield* beginAt(known.address)).refusal).toEqual(yield* take(addressOnly))
    expect((yield* beginAt("203.0.113.8")).refusal).toBeUndefined()
    expect(seen).toHaveLength(20)
    yield* TestClock.adjust("1 minute")
    const admission = yield* beginAt(known.address)
    expect(admission.refusal).toBeUndefined()
    expect(yield* admission.take(key)).toMatchObject({ report: { limit: 20, remaining: 0 } })
    expect(seen.at(-1)).toEqual(known)
  })
})

describe("suspension", () => {
  test("follows 50 refusals of the key, and ends after retryAfter", function* () {
    const { suspended, take, takeAll } = yield* limiterWith()
    const decisions = yield* takeAll(70)
    expect(decisions[68]).toMatchObject({ retryAfter: 1, report: { limit: 20 } })
    expect(decisions[69]).toEqual({
      _tag: "Refused",
      by: "suspension",
      report: ofKey(0, 600, 600),
      retryAfter: 600,
    })
    expect((yield* take(otherKey))._tag).toBe("Admitted")
    expect(yield* suspended).toEqual([key])
    yield* TestClock.adjust("599 seconds")
    expect(yield* take()).toMatchObject({ retryAfter: 1, report: { limit: 100 } })
    yield* TestClock.adjust("1 second")
    expect(yield* suspended).toEqual([])
    expect((yield* take())._tag).toBe("Admitted")
  })

  test("does not follow refusals that others at the address have caused", function* () {
    const { take, takeAll } = yield* limiterWith({
      perAddress: { limit: 60, window: "1 hour" },
      burst: { limit: 1000, window: "1 second" },
      suspension: { refusals: 3 },
    })
    yield* takeAll(60, addressOnly)
    const decisions = yield* takeAll(100)
    expect(decisions[99]).toMatchObject({ report: { limit: 60 }, retryAfter: 60 })
    expect((yield* take({ ...known, address: "203.0.113.8" }))._tag).toBe("Admitted")
  })

  test("follows refusals by the key's buckets, even if the address is refused longer", function* () {
    const { take, takeAll } = yield* limiterWith({
      perAddress: { limit: 20, window: "1 hour" },
      suspension: { refusals: 3, duration: "2 hours" },
    })
    yield* takeAll(22)
    expect(yield* take()).toMatchObject({ report: { limit: 100 }, retryAfter: 7200 })
  })

  test("ends on time even if the clock is set back", function* () {
    const { take, takeAll } = yield* limiterWith()
    yield* takeAll(70)
    yield* TestClock.setTime((start - 3600) * 1000)
    yield* TestClock.adjust("599 seconds")
    expect(yield* take()).toMatchObject({ report: { reset: start - 3600 + 600 }, retryAfter: 1 })
    yield* TestClock.adjust("1 second")
    expect((yield* take())._tag).toBe("Admitted")
  })

  test("can be turned off", function* () {
    const { suspended, takeAll } = yield* limiterWith({ suspension: false })
    expect((yield* takeAll(200))[199]).toMatchObject({ retryAfter: 1 })
    expect(yield* suspended).toEqual([])
  })
})

describe("if the store is down", () => {
  test("this process keeps the limits, by default", function* () {
    const { store, takeAll } = yield* limiterWith()
    store.isDown = true
    expect(tags(yield* takeAll(21)).indexOf("Refused")).toBe(20)
  })

  test("`open` admits all requests", function* () {
    const { store, takeAll } = yield* limiterWith({ onStoreFailure: "open" })
    store.isDown = true
    expect((yield* takeAll(500))[499]).toEqual({ _tag: "Admitted", report: ofKey(100, 0, 0) })
  })

  test("`closed` serves no request, and names the limit of the key or the address", function* () {
    const { store, take } = yield* limiterWith({ onStoreFailure: "closed" })
    store.isDown = true
    expect(yield* take()).toEqual({ _tag: "Unavailable", report: ofKey(0, 0, 0) })
    expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 0 })
    store.isDown = false
    expect((yield* take())._tag).toBe("Admitted")
  })

  const message = "The store of rate limits does not answer"
  const defect = ["defect", "The store of rate limits has a defect", "a bug"]

  test.each<readonly [string, Effect.Effect<never, StoreUnavailable>, ReadonlyArray<unknown>]>([
    [
      "reason",
      Effect.fail(new StoreUnavailable({ cause: "down" })),
      [["failure", message, "down"]],
    ],
    ["defect", Effect.die("a bug"), [defect, ["failure", message, "a bug"]]],
  ])(
    "it is reported with its %s, and the request is limited without it",
    function* ([, take, expected]) {
      const reported: Array<readonly [string, string, unknown]> = []
      const faults = Layer.succeed(ErrorReporter, {
        failure: (text, cause) => Effect.sync(() => void reported.push(["failure", text, cause])),
        defect: (text, cause) =>
          Effect.sync(() => void reported.push(["defect", text, Cause.squash(cause)])),
      })
      const store = Layer.succeed(RateLimitStore, { ping: Effect.void, take: () => take })
      const layer = RateLimiter.layer().pipe(Layer.provide(store), Layer.provide(faults))
      const decision = RateLimiter.use((limiter) => limiter.take(known))
      expect((yield* Effect.provide(decision, layer))._tag).toBe("Admitted")
      expect(reported).toEqual(expected)
    },
  )
})

test.each([
  ["refused: other processes have emptied a bucket", 1_000_000, "Refused", { limit: 20 }],
  [
    "admitted if no bucket is empty: there is nothing to wait for",
    0,
    "Admitted",
    { remaining: 100 },
  ],
] as const)("a request that only the store refuses is %s", function* ([, burst, _tag, report]) {
  const now = Micros(0)
  const take = { admitted: false, now, address: now, key: now, burst: Micros(burst) }
  const store = Layer.succeed(RateLimitStore, {
    ping: Effect.void,
    take: () => Effect.succeed(take),
  })
  const decision = RateLimiter.use((limiter) => limiter.take(known)).pipe(
    Effect.provide(Layer.provide(RateLimiter.layer(), store)),
  )
  expect(yield* decision).toMatchObject({ _tag, report })
})

describe("the fields of the IETF draft", () => {
  const pkOf = (partition: string) =>
    `pk=:${createHash("sha256").update(partition).digest().subarray(0, 6).toString("base64")}:`

  const [ofKnown, ofAddress] = [pkOf("key"), pkOf("203.0.113.7")]
  const policy = '"key";q=100;w=60, "burst";q=20;w=1, "address";q=300;w=60'
  const idempotency = { limit: 1, window: "1 minute" } as const

  test("are not sent by default", function* () {
    expect((yield* limiterWith()).fieldsOf).toBeUndefined()
  })

  test.each<readonly [string, number, RateLimiterOptions, LimitedClient, string, string]>([
    ["of a key", 2, {}, known, policy, `"key";r=98;t=1;${ofKnown}`],
    ["of an address", 2, {}, addressOnly, policy, `"address";r=298;t=1;${ofAddress}`],
    ["of the bucket that refuses", 25, {}, known, policy, `"burst";r=0;t=1;${ofKnown}`],
    [
      "of the address whose key has more requests left",
      2,
      { perAddress: { limit: 7, window: "1 minute" } },
      known,
      '"key";q=100;w=60, "burst";q=20;w=1, "address";q=7;w=60',
      `"address";r=5;t=9;${ofAddress}`,
    ],
    [
      "of no address if there is no limit for it",
      1,
      { perAddress: false },
      known,
      '"key";q=100;w=60, "burst";q=20;w=1',
      `"key";r=99;t=1;${ofKnown}`,
    ],
    [
      "in whole seconds, rounded up",
      1,
      { perAddress: false, burst: { limit: 1000, window: 1001 } },
      known,
      '"key";q=100;w=60, "burst";q=1000;w=2',
      `"key";r=99;t=1;${ofKnown}`,
    ],
    ...[1, 2].map(
      (count) =>
        [
          `of the wait for one request more, ${count} of 1`,
          count,
          { perKey: idempotency, burst: { ...idempotency, limit: 7 } },
          known,
          '"key";q=1;w=60, "burst";q=7;w=60, "address";q=300;w=60',
          `"key";r=0;t=60;${ofKnown}`,
        ] as const,
    ),
  ])("tell the policies, and what is left %s", function* ([, count, options, client, ...fields]) {
    const { fieldsOf, takeAll } = yield* limiterWith({ draftFields: true, ...options })
    const reported = (yield* takeAll(count, client)).map(({ report }) => fieldsOf?.(report, client))
    const [policies, limit] = fields
    expect(reported.at(-1)).toEqual({ "RateLimit-Policy": policies, RateLimit: limit })
  })
})

describe("options", () => {
  it.each([
    ["perKey", "limit", { limit: 0, window: "1 minute" }],
    ["perAddress", "limit", { limit: 1.5, window: "1 minute" }],
    ["burst", "limit", { limit: NaN, window: "1 second" }],
    ["burst", "window", { limit: 20, window: 0 }],
    ["burst", "capacity", { limit: 20, window: "1 second", capacity: -1 }],
    ["suspension", "refusals", { refusals: 10_001 }],
  ] as const)("are refused by name: %s.%s %o", (name, field, limit) => {
    expect(limiterOptions.read({ [name]: limit }, "")).toMatchObject({
      failure: { _tag: "InvalidInput", field: `${name}.${field}` },
    })
  })

  it("allow an empty bucket at most 366 days to become full", () => {
    const read = (capacity: number) =>
      limiterOptions.read({ perKey: { limit: 1, window: "183 days", capacity } }, "")
    expect(read(2)).toMatchObject({ success: { perKey: { capacity: 2 } } })
    expect(read(3)).toMatchObject({
      failure: {
        field: "perKey.capacity",
        problem: "is too large: an empty bucket must be full again within 366 days",
      },
    })
  })
})

describe("a suspension of a key", () => {
  const minute = 60_000_000

  /** Makes suspensions with plain microseconds as instants. */
  const make = (options: SuspensionOptions) => {
    const { refuse, suspended, until } = makeSuspensions(Setting.parse(suspensionOptions, options))
    return {
      suspended: (now: number) => suspended(Micros(now)),
      refuse: (now: number, keyId = key) => refuse(keyId, Micros(now)),
      until: (now: number, keyId = key) => until(keyId, Micros(now)),
    }
  }

  it("is listed as long as it lasts", () => {
    const { refuse, suspended } = make({ refusals: 2 })
    const other = ApiKeyId("another key")
    refuse(1)
    refuse(1, other)
    expect(suspended(2)).toEqual([])
    refuse(2)
    expect(suspended(2)).toEqual([key])
    refuse(minute, other)
    expect(suspended(1 + 10 * minute)).toEqual([key, other])
    expect(suspended(2 + 10 * minute)).toEqual([other])
    expect(suspended(11 * minute)).toEqual([])
  })

  it("begins with the 50th refusal within ten minutes, and lasts ten minutes", () => {
    const { refuse, until } = make({})
    for (let refusal = 1; refusal < 50; refusal++) expect(refuse(refusal)).toBeUndefined()
    expect(until(50)).toBeUndefined()
    const end = 50 + 10 * minute
    expect([refuse(50), until(50), until(end - 1), until(end)]).toEqual([end, end, end, undefined])
    expect(until(50, ApiKeyId("other"))).toBeUndefined()
  })

  it("counts the refusals of the last ten minutes, and none that is older", () => {
    const { refuse } = make({ refusals: 3 })
    const refusals = [0, 5, 11, 12, 15.5, 16].map((at) => refuse(at * minute) !== undefined)
    expect(refusals).toEqual([false, false, false, true, true, true])
    const [exact, late] = [make({ refusals: 2 }), make({ refusals: 2 })]
    exact.refuse(0)
    late.refuse(0)
    expect(exact.refuse(10 * minute)).toBe(20 * minute)
    expect(late.refuse(10 * minute + 1)).toBeUndefined()
  })

  it.each([true, false])("clears the refusals when it is over, asked before: %s", (isAsked) => {
    const { refuse, until } = make({ refusals: 2, duration: "1 minute" })
    refuse(0)
    refuse(1)
    if (isAsked) expect(until(2 * minute)).toBeUndefined()
    expect(refuse(2 * minute)).toBeUndefined()
    expect(refuse(3 * minute)).toBe(4 * minute)
  })

  it("is not prolonged by refusals during it", () => {
    const { refuse } = make({ refusals: 2, duration: "1 minute" })
    const end = 1 + minute
    expect([refuse(0), refuse(1), refuse(minute / 2)]).toEqual([undefined, end, end])
  })
})

describe("the cache of empty buckets", () => {
  const seconds = (count: number): Micros => Micros(count * 1_000_000)

  // One token per second for an address, one per two seconds for a key, and one per three seconds for bursts.
  const perSeconds = (count: number) => bucketPolicy({ limit: 1, window: Millis(1000 * count) })
  const policies = { address: perSeconds(1), key: perSeconds(2), burst: perSeconds(3) }

  /** Returns the result of a take, with the seconds until each bucket is full. */
  const takeAt = (
    now: number,
    full: Partial<Record<"address" | "key" | "burst", number>>,
  ): TakeResult => ({
    admitted: false,
    now: seconds(now),
    address: seconds(now + (full.address ?? 0)),
    key: seconds(now + (full.key ?? 0)),
    burst: seconds(now + (full.burst ?? 0)),
  })

  const emptyUntil = (name: "key" | "burst", until: number) => ({
    name,
    policy: policies[name],
    until: seconds(until),
    full: seconds(until),
    isByKey: true,
  })

  it("returns the bucket that is empty longest, until it has a token", () => {
    const { find, record } = makeEmptyBucketCache(policies)
    const take = takeAt(10, { address: 1, key: 2, burst: 3 })
    expect(record(known, take, seconds(10))).toEqual(emptyUntil("burst", 13))
    expect(find(known, seconds(10))?.policy).toBe(policies.burst)
    expect(find(addressOnly, seconds(10))?.policy).toBe(policies.address)
    expect(find(known, Micros(seconds(13) - 1))?.policy).toBe(policies.burst)
    expect(find(known, seconds(13))).toBeUndefined()
    expect(find(addressOnly, seconds(11))).toBeUndefined()
  })

  it("returns the key's bucket, or the burst's, if others are empty as long", () => {
    const equal = { ...policies, key: perSeconds(3), address: perSeconds(3) }
    const { find, record } = makeEmptyBucketCache(equal)
    const take = takeAt(10, { address: 3, key: 3, burst: 3 })
    expect(record(known, take, seconds(10))?.name).toBe("key")
    const other = { address: "2", keyId: ApiKeyId("b") }
    record(other, takeAt(10, { address: 3, burst: 3 }), seconds(10))
    expect(find(other, seconds(10))?.name).toBe("burst")
    expect(find(known, seconds(10))).toMatchObject({ name: "key", full: seconds(13) })
  })

  it("does not cache buckets that have tokens", () => {
    const { find, record } = makeEmptyBucketCache(policies)
    expect(record(known, takeAt(10, {}), seconds(10))).toBeUndefined()
    expect(find(known, seconds(10))).toBeUndefined()
  })

  it("measures waits by the store's clock, and their ends by that of this process", () => {
    const { record } = makeEmptyBucketCache(policies)
    expect(record(known, takeAt(500, { key: 2 }), seconds(10))).toEqual(emptyUntil("key", 12))
  })

  it("tells whether a bucket of the key is empty, even if that of the address is empty longer", () => {
    const long = { ...policies, address: perSeconds(5) }
    const { find, findAddress, record } = makeEmptyBucketCache(long)
    record(known, takeAt(10, { address: 5, key: 2 }), seconds(10))
    expect(find(known, seconds(11))).toMatchObject({ policy: long.address, isByKey: true })
    expect(find(known, seconds(13))).toMatchObject({ policy: long.address, isByKey: false })
    expect(findAddress(known.address, seconds(11))?.isByKey).toBe(false)
  })
})
