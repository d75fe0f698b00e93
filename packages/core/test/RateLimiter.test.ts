import { describe, expect, it } from "@effect/vitest"
import { ApiKeyId } from "@tenure/core/ApiKey"
import * as BucketTable from "@tenure/core/BucketTable"
import { type Client, type Decision, type Options, RateLimiter } from "@tenure/core/RateLimiter"
import { RateLimitStore } from "@tenure/core/RateLimitStore"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import fc from "fast-check"

const key = ApiKeyId("key")
const known: Client = { address: "203.0.113.7", keyId: key }
const stranger: Client = { address: "203.0.113.7", keyId: undefined }

/** A store that counts how often it is asked, and can be out of order. */
const watchedStore = () => {
  const table = BucketTable.make()
  const seen: Array<Client> = []
  const state = { isDown: false, seen }
  const layer = Layer.succeed(RateLimitStore, {
    take: (client, policies) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        seen.push(client)
        return state.isDown
          ? Effect.fail(new StoreUnavailable({ cause: "down" }))
          : Effect.succeed(table.take(client, policies, now * 1000))
      }),
  })
  return { ...state, state, layer }
}

const limited = <A, E>(
  options: Options,
  test: (
    take: (client?: Client) => Effect.Effect<Decision>,
    store: ReturnType<typeof watchedStore>["state"],
  ) => Effect.Effect<A, E>,
) => {
  const { layer, state } = watchedStore()
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    const { take } = yield* RateLimiter
    return yield* test((client = known) => take(client), state)
  }).pipe(Effect.provide(Layer.provide(RateLimiter.layer(options), layer)))
}

const repeat = (times: number, take: Effect.Effect<Decision>) =>
  Effect.forEach(Array.from({ length: times }), () => take)

const tags = (decisions: ReadonlyArray<Decision>) => decisions.map(({ _tag }) => _tag)

describe("a request with a key", () => {
  it.effect("draws on the key's minute, the address's minute and the burst", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* take()
        const elsewhere = yield* take({ ...known, address: "203.0.113.8" })
        expect(elsewhere.report).toMatchObject({ limit: 100, remaining: 98 })
        expect((yield* take(stranger)).report).toMatchObject({ limit: 300, remaining: 298 })
        yield* repeat(18, take())
        expect((yield* take()).report).toMatchObject({ limit: 20, remaining: 0 })
      }),
    ),
  )

  it.effect("is told of the key's minute, never of the burst", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(20, take())
        expect(tags(decisions).every((tag) => tag === "Admitted")).toBe(true)
        expect(decisions[0]?.report).toEqual({ limit: 100, remaining: 99, reset: 1_795_000_001 })
        expect(decisions[19]?.report).toEqual({ limit: 100, remaining: 80, reset: 1_795_000_012 })
      }),
    ),
  )

  it.effect("is told of the address's minute where that has fewer left", () =>
    limited({ perAddress: { limit: 30, window: "1 minute" } }, (take) =>
      Effect.gen(function* () {
        expect((yield* take()).report).toMatchObject({ limit: 30, remaining: 29 })
      }),
    ),
  )

  it.effect("is refused by the burst after 20 in a second, and admitted a second later", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        expect(yield* take()).toEqual({
          _tag: "Refused",
          report: { limit: 20, remaining: 0, reset: 1_795_000_001 },
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

  it.effect("is refused by the minute at the 101st", () =>
    limited({ burst: { limit: 1000, window: "1 second" } }, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(101, take())
        expect(decisions[99]).toMatchObject({ _tag: "Admitted", report: { remaining: 0 } })
        expect(decisions[100]).toEqual({
          _tag: "Refused",
          report: { limit: 100, remaining: 0, reset: 1_795_000_060 },
          retryAfter: 1,
        })
      }),
    ),
  )

  it.effect("is told of the bucket that refuses longest", () =>
    limited({ perKey: { limit: 20, window: "20 minutes" } }, (take) =>
      Effect.gen(function* () {
        yield* repeat(20, take())
        expect(yield* take()).toMatchObject({ report: { limit: 20 }, retryAfter: 60 })
      }),
    ),
  )

  it.effect("spends nothing when it is refused", () =>
    limited({ perAddress: { limit: 300, window: "5 hours" } }, (take) =>
      Effect.gen(function* () {
        yield* repeat(40, take())
        expect((yield* take(stranger)).report).toMatchObject({ limit: 300, remaining: 279 })
      }),
    ),
  )
})

describe("a request without a valid key", () => {
  it.effect("draws on the address alone, and is told of that", () =>
    limited({}, (take, { seen }) =>
      Effect.gen(function* () {
        expect((yield* take(stranger)).report).toMatchObject({ limit: 300, remaining: 299 })
        expect(seen).toEqual([stranger])
        yield* repeat(299, take(stranger))
        expect((yield* take(stranger))._tag).toBe("Refused")
        expect((yield* take(known))._tag).toBe("Refused")
      }),
    ),
  )
})

describe("Retry-After", () => {
  it.effect("is exact: who waits it out is admitted, whatever came before", () =>
    Effect.gen(function* () {
      const run = Effect.runPromiseWith(yield* Effect.context())
      const steps = fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 3000 })), { maxLength: 80 })
      const options: Options = {
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
                const decision = yield* take(isKnown ? known : stranger)
                yield* TestClock.adjust(pause)
                if (decision._tag !== "Refused" || pause > 10) continue
                yield* TestClock.adjust(decision.retryAfter * 1000 - pause)
                expect((yield* take(isKnown ? known : stranger))._tag).toBe("Admitted")
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
  it.effect("are remembered: repeated ones do not ask the store", () =>
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

  it.effect("are not remembered beyond a clock that is set back", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(21, take())
        yield* TestClock.setTime(1_794_000_000_000)
        expect(yield* take()).toMatchObject({ _tag: "Refused", retryAfter: 1 })
        yield* TestClock.adjust("1 second")
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )
})

describe("suspension", () => {
  it.effect("follows 50 refusals, and is over when it says", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(70, take())
        expect(decisions[68]).toMatchObject({ retryAfter: 1, report: { limit: 20 } })
        expect(decisions[69]).toEqual({
          _tag: "Refused",
          report: { limit: 100, remaining: 0, reset: 1_795_000_600 },
          retryAfter: 600,
        })
        yield* TestClock.adjust("599 seconds")
        expect(yield* take()).toMatchObject({ retryAfter: 1, report: { limit: 100 } })
        yield* TestClock.adjust("1 second")
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("concerns the key, not others at its address", () =>
    limited({}, (take) =>
      Effect.gen(function* () {
        yield* repeat(70, take())
        const other = yield* take({ ...known, keyId: ApiKeyId("other") })
        expect(other._tag).toBe("Admitted")
      }),
    ),
  )

  it.effect("can be turned off", () =>
    limited({ suspension: false }, (take) =>
      Effect.gen(function* () {
        const decisions = yield* repeat(200, take())
        expect(decisions[199]).toMatchObject({ retryAfter: 1 })
      }),
    ),
  )
})

describe("without the store", () => {
  it.effect("limits are kept in this process by default", () =>
    limited({}, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        expect(tags(yield* repeat(21, take())).indexOf("Refused")).toBe(20)
      }),
    ),
  )

  it.effect("all requests are admitted with `open`", () =>
    limited({ onStoreFailure: "open" }, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        const decisions = yield* repeat(500, take())
        expect(decisions[499]).toEqual({
          _tag: "Admitted",
          report: { limit: 100, remaining: 100, reset: 1_795_000_000 },
        })
      }),
    ),
  )

  it.effect("no request is answered with `closed`", () =>
    limited({ onStoreFailure: "closed" }, (take, store) =>
      Effect.gen(function* () {
        store.isDown = true
        expect(yield* take()).toEqual({
          _tag: "Unavailable",
          report: { limit: 100, remaining: 0, reset: 1_795_000_000 },
        })
        store.isDown = false
        expect((yield* take())._tag).toBe("Admitted")
      }),
    ),
  )
})

describe("options", () => {
  it.effect.each([
    ["perKey", "limit", { limit: 0, window: "1 minute" }],
    ["perAddress", "limit", { limit: 1.5, window: "1 minute" }],
    ["burst", "limit", { limit: NaN, window: "1 second" }],
    ["burst", "window", { limit: 20, window: 0 }],
    ["burst", "capacity", { limit: 20, window: "1 second", capacity: -1 }],
  ] as const)("are refused by name: %s.%s %o", ([name, field, limit]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(limited({ [name]: limit }, () => Effect.void))
      expect(error).toMatchObject({ _tag: "InvalidInput", field: `rateLimits.${name}.${field}` })
    }),
  )
})
