import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Faults } from "../../src/base/faults.ts"
import * as Setting from "../../src/base/setting.ts"
import { Micros, currentMoment, toMicros } from "../../src/base/time.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import { type LimitedClient, RateLimitStore, makeBucketTable } from "../../src/limits/buckets.ts"
import {
  type LimitDecision,
  RateLimiter,
  type RateLimiterOptions,
  rateLimiterOptions as limiterOptions,
} from "../../src/limits/rate-limiter.ts"

const key = ApiKeyId("key")
const known: LimitedClient = { address: "203.0.113.7", keyId: key }
const addressOnly: LimitedClient = { address: "203.0.113.7", keyId: undefined }

/** A store that lists the clients it is asked for, and can be down. */
const watchedStore = () => {
  const table = makeBucketTable()
  const seen: Array<LimitedClient> = []
  const state = { isDown: false, seen }
  const layer = Layer.succeed(RateLimitStore, {
    ping: Effect.void,
    take: (client, policies) =>
      Effect.flatMap(currentMoment, ({ tick }) => {
        seen.push(client)
        return state.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "down" }))
          : Effect.succeed(table.take(client, policies, toMicros(tick)))
      }),
  })
  return { ...state, state, layer }
}

const limited = <A, E>(
  options: RateLimiterOptions,
  test: (
    take: (client?: LimitedClient) => Effect.Effect<LimitDecision>,
    store: ReturnType<typeof watchedStore>["state"],
  ) => Effect.Effect<A, E, RateLimiter>,
) => {
  const { layer, state } = watchedStore()
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    const { take } = yield* RateLimiter
    return yield* test((client = known) => take(client), state)
  }).pipe(
    Effect.provide(Layer.provide(RateLimiter.layer(Setting.parse(limiterOptions, options)), layer)),
  )
}

const repeat = (times: number, take: Effect.Effect<LimitDecision>) =>
  Effect.forEach(Array.from({ length: times }), () => take)

const tags = (decisions: ReadonlyArray<LimitDecision>) => decisions.map(({ _tag }) => _tag)

describe("without a limit for addresses, a request", () => {
  it.effect("with a key is limited by the key alone, from wherever it comes", () =>
    limited({ perAddress: false, perKey: { limit: 2, window: "1 minute" } }, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(3, take())
        expect(tags(decisions)).toEqual(["Admitted", "Admitted", "Refused"])
        expect(decisions.map(({ report }) => report.remaining)).toEqual([1, 0, 0])
        const elsewhere = yield* take({ ...known, address: "203.0.113.8" })
        expect(elsewhere._tag).toBe("Refused")
        const other = yield* take({ ...known, keyId: ApiKeyId("other") })
        expect(other.report).toMatchObject({ limit: 2, remaining: 1 })
      }),
    ),
  )

  it.effect("without a key is admitted, and asks no store", () =>
    limited({ perAddress: false }, (take, { seen }) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(500, take(addressOnly))
        expect(tags(decisions)).not.toContain("Refused")
        expect(decisions[499]?.report).toEqual({
          bucket: "address",
          limit: 100,
          remaining: 100,
          reset: 1_795_000_000,
          refill: 0,
        })
        expect(seen).toEqual([])
      }),
    ),
  )

  it.effect("is refused for no address, whoever has sent requests from there", () =>
    limited({ perAddress: false, perKey: { limit: 1, window: "1 minute" } }, () =>
      Effect.gen(function* () {
        const { begin } = yield* RateLimiter
        const now = yield* currentMoment
        const requests = [1, 2].map(() => begin(known.address, now))
        expect(requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined])
        const decisions = yield* Effect.forEach(requests, (request) => request.take(key))
        expect(tags(decisions)).toEqual(["Admitted", "Refused"])
        const other = begin(known.address, yield* currentMoment)
        expect(other.refusal).toBeUndefined()
        expect((yield* other.take(ApiKeyId("other")))._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("is known to the store by its key, not by its address", () =>
    limited({ perAddress: false }, (take, { seen }) =>
      Effect.gen(function* () {
        yield* take()
        expect(seen).toEqual([{ address: key, keyId: key }])
      }),
    ),
  )
})

describe("a request with a key", () => {
  it.effect("takes from the buckets of the key, the address and the burst", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* take()
        const elsewhere = yield* take({ ...known, address: "203.0.113.8" })
        expect(elsewhere.report).toMatchObject({ limit: 100, remaining: 98 })
        expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 298 })
        yield* repeat(18, take())
        expect((yield* take()).report).toMatchObject({ limit: 20, remaining: 0 })
      }),
    ),
  )

  it.effect("is told the state of the key's bucket, never that of the burst", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(20, take())
        expect(tags(decisions).every((tag) => tag === "Admitted")).toBe(true)
        expect(decisions[0]?.report).toEqual({
          bucket: "key",
          limit: 100,
          remaining: 99,
          reset: 1_795_000_001,
          refill: 1,
        })
        expect(decisions[19]?.report).toEqual({
          bucket: "key",
          limit: 100,
          remaining: 80,
          reset: 1_795_000_012,
          refill: 1,
        })
      }),
    ),
  )

  it.effect("is told the state of the address's bucket if that has fewer tokens", () =>
    limited({ perAddress: { limit: 30, window: "1 minute" } }, (take) =>
      Effect.gen(function* () {
        expect((yield* take()).report).toMatchObject({ limit: 30, remaining: 29 })
      }),
    ),
  )

  it.effect("is told the state of the key's bucket if both have the same number of tokens", () =>
    limited({ perAddress: { limit: 100, window: "100 minutes" } }, (take) =>
      Effect.gen(function* () {
        expect((yield* take()).report).toEqual({
          bucket: "key",
          limit: 100,
          remaining: 99,
          reset: 1_795_000_001,
          refill: 1,
        })
      }),
    ),
  )

  it.effect("is refused by the burst after 20 in a second, and admitted a second later", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        expect(yield* take()).toEqual({
          _tag: "Refused",
          by: "burst",
          report: { bucket: "burst", limit: 20, remaining: 0, reset: 1_795_000_001, refill: 1 },
          retryAfter: 1,
        })
        yield* TestClock.adjust("1 second")
        expect(tags(yield* repeat(21, take()))).toEqual([
          ...Array.from({ length: 20 }, () => "Admitted"),
          "Refused",
        ])
      }),
    ),
  )

  it.effect("is refused as the 101st in a minute", () =>
    limited({ burst: { limit: 1000, window: "1 second" } }, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(101, take())
        expect(decisions[99]).toMatchObject({ _tag: "Admitted", report: { remaining: 0 } })
        expect(decisions[100]).toEqual({
          _tag: "Refused",
          by: "key",
          report: { bucket: "key", limit: 100, remaining: 0, reset: 1_795_000_060, refill: 1 },
          retryAfter: 1,
        })
      }),
    ),
  )

  it.effect("is told the state of the bucket that is empty longest", () =>
    limited({ perKey: { limit: 20, window: "20 minutes" } }, (take) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        expect(yield* take()).toMatchObject({ report: { limit: 20 }, retryAfter: 60 })
      }),
    ),
  )

  it.effect("takes nothing if it is refused", () =>
    limited({ perAddress: { limit: 300, window: "5 hours" } }, (take) =>
      Effect.gen(function* () {
        yield* repeat(40, take())
        expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 279 })
      }),
    ),
  )
})

describe("a request without a valid key", () => {
  it.effect("takes from the bucket of the address, and is told its state", () =>
    limited({}, (take, { seen }) =>
      Effect.gen(function* () {
        expect(yield* take(addressOnly)).toMatchObject({
          _tag: "Admitted",
          report: { limit: 300, remaining: 299 },
        })
        expect(seen).toEqual([addressOnly])
        yield* repeat(299, take(addressOnly))
        expect(yield* take(addressOnly)).toMatchObject({
          _tag: "Refused",
          by: "address",
          report: { bucket: "address" },
        })
        expect((yield* take(known))._tag).toBe("Refused")
      }),
    ),
  )
})

describe("Retry-After", () => {
  it.effect("is exact: a client that waits that long is admitted, whatever came before", () =>
    Effect.gen(function* () {
      const run = Effect.runPromiseWith(yield* Effect.context())
      const steps = fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 3000 })), { maxLength: 80 })
      const options: RateLimiterOptions = {
        perKey: { limit: 7, window: "1 minute" },
        perAddress: { limit: 11, window: "1 minute" },
        burst: { limit: 3, window: "1 second" },
        suspension: false,
      }
      const holds = fc.asyncProperty(steps, (sequence) =>
        run(
          limited(options, (take) =>
            Effect.gen(function* () {
              for (const [isKnown, pause] of sequence) {
                const decision = yield* take(isKnown ? known : addressOnly)
                yield* TestClock.adjust(pause)
                if (decision._tag !== "Refused" || pause > 10) continue
                yield* TestClock.adjust(decision.retryAfter * 1000 - pause)
                expect((yield* take(isKnown ? known : addressOnly))._tag).toBe("Admitted")
              }
            }),
          ),
        ),
      )
      yield* Effect.promise(async () => fc.assert(holds))
    }),
  )
})

describe("refusals", () => {
  it.effect("are cached: repeated ones do not ask the store", () =>
    limited({}, (take, { seen }) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        const refusals = yield* repeat(20, take())
        expect(tags(refusals).every((tag) => tag === "Refused")).toBe(true)
        expect(seen).toHaveLength(20)
        yield* TestClock.adjust(50)
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("end after Retry-After even if the clock is set back, and name the new time", () =>
    limited({ perKey: { limit: 20, window: "20 minutes" } }, (take, { seen }) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        yield* TestClock.adjust("10 seconds")
        expect(yield* take()).toMatchObject({ retryAfter: 50 })
        yield* TestClock.setTime(1_794_996_400_000)
        expect(yield* take()).toEqual({
          _tag: "Refused",
          by: "key",
          report: {
            bucket: "key",
            limit: 20,
            remaining: 0,
            reset: 1_794_996_400 + 1190,
            refill: 50,
          },
          retryAfter: 50,
        })
        expect(seen).toHaveLength(20)
        yield* TestClock.adjust("50 seconds")
        expect(yield* take()).toMatchObject({
          _tag: "Admitted",
          report: { reset: 1_794_996_450 + 1200 },
        })
      }),
    ),
  )

  it.effect("of an address are recalled without the store, and count against nobody", () =>
    limited({ perAddress: { limit: 20, window: "20 minutes" } }, (take, { seen }) =>
      Effect.gen(function* () {
        const { begin } = yield* RateLimiter
        yield* repeat(19, take(addressOnly))
        expect(begin(addressOnly.address, yield* currentMoment).refusal).toBeUndefined()
        yield* take(addressOnly)
        expect(begin(addressOnly.address, yield* currentMoment).refusal).toEqual(
          yield* take(addressOnly),
        )
        expect(begin("203.0.113.8", yield* currentMoment).refusal).toBeUndefined()
        expect(seen).toHaveLength(20)
        yield* TestClock.adjust("1 minute")
        const admission = begin(addressOnly.address, yield* currentMoment)
        expect(admission.refusal).toBeUndefined()
        expect(yield* admission.take(key)).toMatchObject({ report: { limit: 20, remaining: 0 } })
        expect(seen.at(-1)).toEqual(known)
      }),
    ),
  )
})

describe("suspension", () => {
  it.effect("follows 50 refusals, and ends after retryAfter", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(70, take())
        expect(decisions[68]).toMatchObject({ retryAfter: 1, report: { limit: 20 } })
        expect(decisions[69]).toEqual({
          _tag: "Refused",
          by: "suspension",
          report: { bucket: "key", limit: 100, remaining: 0, reset: 1_795_000_600, refill: 600 },
          retryAfter: 600,
        })
        const { suspended } = yield* RateLimiter
        expect(yield* suspended).toEqual([key])
        yield* TestClock.adjust("599 seconds")
        expect(yield* take()).toMatchObject({ retryAfter: 1, report: { limit: 100 } })
        yield* TestClock.adjust("1 second")
        expect(yield* suspended).toEqual([])
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("applies to the key, not to others at its address", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(70, take())
        const other = yield* take({ ...known, keyId: ApiKeyId("other") })
        expect(other._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("does not follow refusals that others at the address have caused", () =>
    limited(
      {
        perAddress: { limit: 60, window: "1 hour" },
        burst: { limit: 1000, window: "1 second" },
        suspension: { refusals: 3 },
      },
      (take) =>
        Effect.gen(function* () {
          yield* repeat(60, take(addressOnly))
          const decisions = yield* repeat(100, take())
          expect(decisions[99]).toMatchObject({ report: { limit: 60 }, retryAfter: 60 })
          expect((yield* take({ ...known, address: "203.0.113.8" }))._tag).toBe("Admitted")
        }),
    ),
  )

  it.effect("follows refusals by the key's buckets, even if the address is refused longer", () =>
    limited(
      {
        perAddress: { limit: 20, window: "1 hour" },
        suspension: { refusals: 3, duration: "2 hours" },
      },
      (take) =>
        Effect.gen(function* () {
          yield* repeat(22, take())
          expect(yield* take()).toMatchObject({ report: { limit: 100 }, retryAfter: 7200 })
        }),
    ),
  )

  it.effect("ends on time even if the clock is set back", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(70, take())
        yield* TestClock.setTime(1_794_996_400_000)
        yield* TestClock.adjust("599 seconds")
        expect(yield* take()).toMatchObject({
          report: { reset: 1_794_996_400 + 600 },
          retryAfter: 1,
        })
        yield* TestClock.adjust("1 second")
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("can be turned off", () =>
    limited({ suspension: false }, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(200, take())
        expect(decisions[199]).toMatchObject({ retryAfter: 1 })
        expect(yield* (yield* RateLimiter).suspended).toEqual([])
      }),
    ),
  )
})

describe("if the store is down", () => {
  it.effect("this process keeps the limits, by default", () =>
    limited({}, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        expect(tags(yield* repeat(21, take())).indexOf("Refused")).toBe(20)
      }),
    ),
  )

  it.effect("`open` admits all requests", () =>
    limited({ onStoreFailure: "open" }, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        const decisions = yield* repeat(500, take())
        expect(decisions[499]).toEqual({
          _tag: "Admitted",
          report: { bucket: "key", limit: 100, remaining: 100, reset: 1_795_000_000, refill: 0 },
        })
      }),
    ),
  )

  it.effect("`closed` serves no request", () =>
    limited({ onStoreFailure: "closed" }, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        expect(yield* take()).toEqual({
          _tag: "Unavailable",
          report: { bucket: "key", limit: 100, remaining: 0, reset: 1_795_000_000, refill: 0 },
        })
        store.isDown = false
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("a request without a valid key is told the limit of the address", () =>
    limited({ onStoreFailure: "closed" }, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        expect((yield* take(addressOnly)).report).toMatchObject({ limit: 300, remaining: 0 })
      }),
    ),
  )
})

describe("a request that only the store refuses", () => {
  const now = Micros(0)

  /** The decision if the store refuses, and only the bucket of bursts may be empty. */
  const refusedWith = (burst: Micros) => {
    const store = Layer.succeed(RateLimitStore, {
      ping: Effect.void,
      take: () => Effect.succeed({ admitted: false, now, address: now, key: now, burst }),
    })
    return RateLimiter.use(({ take }) => take(known)).pipe(
      Effect.provide(Layer.provide(RateLimiter.layer(), store)),
    )
  }

  it.effect("is refused: other processes have emptied a bucket", () =>
    Effect.gen(function* () {
      const decision = yield* refusedWith(Micros(1_000_000))
      expect(decision).toMatchObject({ _tag: "Refused", report: { limit: 20 } })
    }),
  )

  it.effect("is admitted if no bucket is empty: there is nothing to wait for", () =>
    Effect.gen(function* () {
      const decision = yield* refusedWith(now)
      expect(decision).toMatchObject({ _tag: "Admitted", report: { remaining: 100 } })
    }),
  )
})

describe("a store that fails", () => {
  /** The decision on the first request if takes from the store end so, and what is reported. */
  const outcomeOf = (take: Effect.Effect<never, StoreUnavailable>, halfSeconds = 0) => {
    const reported: Array<readonly [string, string, unknown]> = []
    const faults: Faults = {
      failure: (text, cause) => Effect.sync(() => void reported.push(["failure", text, cause])),
      defect: (text, cause) =>
        Effect.sync(() => void reported.push(["defect", text, Cause.squash(cause)])),
    }
    const store = Layer.succeed(RateLimitStore, { ping: Effect.void, take: () => take })
    return Effect.gen(function* () {
      const limiter = yield* RateLimiter
      const { _tag } = yield* limiter.take(known)
      for (let count = 0; count < halfSeconds; count++) {
        yield* repeat(50, limiter.take(addressOnly))
        yield* TestClock.adjust("500 millis")
      }
      return { _tag, reported }
    }).pipe(
      Effect.provide(Layer.provide(RateLimiter.layer(), store)),
      Effect.provideService(Faults, faults),
    )
  }

  it.effect("is reported with the reason, and the request is limited without it", () =>
    Effect.gen(function* () {
      expect(yield* outcomeOf(Effect.fail(new StoreUnavailable({ cause: "down" })))).toEqual({
        _tag: "Admitted",
        reported: [["failure", "The store of rate limits does not answer", "down"]],
      })
    }),
  )

  it.effect("is reported once, whatever the number of requests", () =>
    Effect.gen(function* () {
      const down = Effect.fail(new StoreUnavailable({ cause: "down" }))
      const { reported } = yield* outcomeOf(down, 60)
      expect(reported.length).toBe(1)
    }),
  )

  it.effect("by a defect is reported as both, and the request is limited without it", () =>
    Effect.gen(function* () {
      expect(yield* outcomeOf(Effect.die("a bug"))).toEqual({
        _tag: "Admitted",
        reported: [
          ["defect", "The store of rate limits has a defect", "a bug"],
          ["failure", "The store of rate limits does not answer", "a bug"],
        ],
      })
    }),
  )
})

describe("the fields of the IETF draft", () => {
  const pkOf = (partition: string) =>
    `:${createHash("sha256").update(partition).digest().subarray(0, 6).toString("base64")}:`

  /** The fields of the second request of a client. */
  const fieldsWith = (options: RateLimiterOptions, client: LimitedClient) =>
    limited(options, (take) =>
      Effect.gen(function* () {
        const { fieldsOf } = yield* RateLimiter
        const { report } = yield* take(client)
        fieldsOf?.(report, client)
        return fieldsOf?.((yield* take(client)).report, client)
      }),
    )

  it.effect("are not sent by default", () =>
    Effect.gen(function* () {
      expect(yield* fieldsWith({}, known)).toBeUndefined()
    }),
  )

  it.effect("tell the policies, what is left, and to whom it belongs without naming it", () =>
    Effect.gen(function* () {
      const policy = '"key";q=100;w=60, "burst";q=20;w=1, "address";q=300;w=60'
      expect(yield* fieldsWith({ draftFields: true }, known)).toEqual({
        "RateLimit-Policy": policy,
        RateLimit: `"key";r=98;t=1;pk=${pkOf("key")}`,
      })
      expect(yield* fieldsWith({ draftFields: true }, addressOnly)).toEqual({
        "RateLimit-Policy": policy,
        RateLimit: `"address";r=298;t=1;pk=${pkOf("203.0.113.7")}`,
      })
    }),
  )

  it.effect("of a key whose address has fewer requests left belong to the address", () =>
    Effect.gen(function* () {
      const perAddress = { limit: 7, window: "1 minute" } as const
      expect(yield* fieldsWith({ draftFields: true, perAddress }, known)).toEqual({
        "RateLimit-Policy": '"key";q=100;w=60, "burst";q=20;w=1, "address";q=7;w=60',
        RateLimit: `"address";r=5;t=9;pk=${pkOf("203.0.113.7")}`,
      })
    }),
  )

  it.effect("tell no policy of addresses if there is none", () =>
    Effect.gen(function* () {
      expect(yield* fieldsWith({ draftFields: true, perAddress: false }, known)).toMatchObject({
        "RateLimit-Policy": '"key";q=100;w=60, "burst";q=20;w=1',
      })
    }),
  )

  it.effect("have windows in whole seconds, rounded up", () =>
    Effect.gen(function* () {
      const options = {
        draftFields: true,
        perAddress: false,
        burst: { limit: 1000, window: 1001 },
      } as const
      expect(yield* fieldsWith(options, known)).toMatchObject({
        "RateLimit-Policy": '"key";q=100;w=60, "burst";q=1000;w=2',
      })
    }),
  )
})

describe("options", () => {
  it.effect.each([
    ["perKey", "limit", { limit: 0, window: "1 minute" }],
    ["perAddress", "limit", { limit: 1.5, window: "1 minute" }],
    ["burst", "limit", { limit: NaN, window: "1 second" }],
    ["burst", "window", { limit: 20, window: 0 }],
    ["burst", "capacity", { limit: 20, window: "1 second", capacity: -1 }],
    ["suspension", "refusals", { refusals: 10_001 }],
  ] as const)("are refused by name: %s.%s %o", ([name, field, limit]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Setting.decode(limiterOptions, { [name]: limit }))
      expect(error).toMatchObject({ _tag: "InvalidInput", field: `${name}.${field}` })
    }),
  )

  it.effect("allow an empty bucket at most 366 days to become full", () =>
    Effect.gen(function* () {
      const read = (capacity: number) =>
        Setting.decode(limiterOptions, { perKey: { limit: 1, window: "183 days", capacity } })
      expect((yield* read(2)).perKey.capacity).toBe(2)
      expect(yield* Effect.flip(read(3))).toMatchObject({
        field: "perKey.capacity",
        problem: "is too large: an empty bucket must be full again within 366 days",
      })
    }),
  )
})
