import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import type { Fault } from "../../src/base/faults.ts"
import { stepSize } from "../../src/memberships/expiry-sweeper.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type ExpiryStore, MembershipStore } from "../../src/memberships/store.ts"
import { type StorePorts, type TenureOptions, tenureLayer } from "../../src/tenure.ts"

/** Stores in memory whose announcements are changed. */
const memoryWith = (change: (expiry: ExpiryStore) => ExpiryStore | undefined) =>
  Layer.effectContext(
    Effect.map(Effect.context<StorePorts>(), (context) => {
      const store = Context.get(context, MembershipStore)
      const expiry = store.expiry && change(store.expiry)
      return Context.add(context, MembershipStore, { ...store, expiry })
    }),
  ).pipe(Layer.provideMerge(memory()))

/** Runs a test with Tenure, and with the types of the events as they come. */
const withTenure = <E>(
  options: TenureOptions,
  test: (said: ReadonlyArray<string>) => Effect.Effect<unknown, E, Memberships>,
  stores: ReturnType<typeof memoryWith> = memory(),
) =>
  Effect.suspend(() => {
    const said: Array<string> = []
    const onEvent: TenureOptions["onEvent"] = ({ type }) => void said.push(type)
    const layer = tenureLayer({ onEvent, ...options }).pipe(Layer.provide(stores))
    return Effect.provide(test(said), layer)
  })

const member = { projectId: "p1", userId: "1001" }

const grantUntil = (millis: number, count = 1) =>
  Effect.gen(function* () {
    const memberships = yield* Memberships
    yield* memberships.createProject("p1")
    for (let n = 0; n < count; n++) {
      yield* memberships.grant({ ...member, userId: String(n), endDate: new Date(millis) })
    }
  })

const expired = (said: ReadonlyArray<string>) =>
  said.filter((type) => type === "membership.expired").length

describe("expiry", () => {
  it.effect("announces ends within half a second, and tells the host", () =>
    withTenure({ expiry: { reminders: ["2 seconds"] } }, (said) =>
      Effect.gen(function* () {
        yield* grantUntil(10_000)
        yield* TestClock.adjust("7 seconds")
        expect(said).toEqual(["membership.granted"])
        yield* TestClock.adjust("1500 millis")
        expect(said.slice(1)).toEqual(["membership.expiring"])
        yield* TestClock.adjust("2 seconds")
        expect(said.slice(2)).toEqual(["membership.expired"])
        yield* TestClock.adjust("1 minute")
        expect(said).toHaveLength(3)
      }),
    ),
  )

  it.effect("is on by default, with reminders", () =>
    withTenure({}, (said) =>
      Effect.gen(function* () {
        yield* grantUntil(86_400_000 + 5000)
        const { grant } = yield* Memberships
        yield* grant({ ...member, userId: "soon", endDate: new Date(15_000) })
        yield* TestClock.adjust("10 seconds")
        expect(said.slice(2)).toEqual(["membership.expiring"])
        yield* TestClock.adjust("10 seconds")
        expect(said.slice(3)).toEqual(["membership.expired"])
      }),
    ),
  )

  it.effect("has no reminder whose time had come when the date was set", () =>
    withTenure({ expiry: { reminders: ["70 seconds", "10 seconds"] } }, (said) =>
      Effect.gen(function* () {
        yield* grantUntil(70_000)
        const memberships = yield* Memberships
        yield* memberships.extend({ ...member, userId: "0", endDate: new Date(60_000) })
        yield* TestClock.adjust("40 seconds")
        expect(said).toEqual(["membership.granted", "membership.extended"])
        yield* TestClock.adjust("12 seconds")
        expect(said.slice(2)).toEqual(["membership.expiring"])
        yield* memberships.extend({ ...member, userId: "0", endDate: new Date(55_000) })
        yield* TestClock.adjust("5 seconds")
        expect(said.slice(3)).toEqual(["membership.extended", "membership.expired"])
      }),
    ),
  )

  it.effect("can be turned off", () =>
    withTenure({ expiry: false }, (said) =>
      Effect.gen(function* () {
        yield* grantUntil(1000)
        yield* TestClock.adjust("1 minute")
        expect(said).toEqual(["membership.granted"])
      }),
    ),
  )

  it.effect("keeps its pace", () =>
    withTenure({ expiry: { reminders: [], announcementsPerSecond: 10 } }, (said) =>
      Effect.gen(function* () {
        yield* grantUntil(1000, 100)
        for (let passed = 0; passed < 4; passed += 0.5) yield* TestClock.adjust("500 millis")
        expect(expired(said)).toBeGreaterThanOrEqual(30)
        expect(expired(said)).toBeLessThanOrEqual(50)
        yield* TestClock.adjust("10 seconds")
        expect(expired(said)).toBe(100)
      }),
    ),
  )

  it("looks at more memberships in a step while the store is slow, up to a bound", () => {
    expect([0, 5, 20, 30, 1000].map((taken) => stepSize(2000, taken))).toEqual([
      40, 40, 60, 90, 100,
    ])
    expect(stepSize(100_000, 1000)).toBe(500)
    expect(stepSize(1, 0)).toBe(1)
  })

  it.effect("leaves a slow store to others for a third of the time, and goes on", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const stores = memoryWith(({ watch }) => ({
        watch,
        sweep: Effect.fnUntraced(function* () {
          times.push(yield* Clock.currentTimeMillis)
          // Not in the middle of a step when the test is over: steps are not interrupted.
          const isMore = times.length < 4
          if (isMore) yield* Effect.sleep("200 millis")
          return { events: [], isMore, nextDueMillis: undefined }
        }),
      }))
      const sweeping = Effect.gen(function* () {
        yield* TestClock.adjust("5 seconds")
        expect(times.slice(0, 4)).toEqual([0, 300, 600, 900])
      })
      yield* withTenure({ expiry: {} }, () => sweeping, stores)
    }),
  )

  it.effect.each([
    ["at once after the time that the store names", 300, 300],
    ["after a second if the next end is far away", Infinity, 1000],
    ["after 50 milliseconds if it is near", 0, 50],
    ["after half a second if the store names none", undefined, 500],
  ] as const)("looks again %s", ([, nextDueMillis, pause]) =>
    Effect.gen(function* () {
      const times: Array<number> = []
      const stores = memoryWith(({ watch }) => ({
        watch,
        sweep: () =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            times.push(now)
            return { events: [], isMore: false, nextDueMillis }
          }),
      }))
      const looking = Effect.gen(function* () {
        yield* TestClock.adjust("5 seconds")
        const [first = NaN, second = NaN] = times
        expect(second - first).toBe(pause)
      })
      yield* withTenure({ expiry: {} }, () => looking, stores)
    }),
  )

  it.effect("goes on after errors of the store, which are reported once", () =>
    Effect.gen(function* () {
      let isDown = true
      const faults: Array<Fault> = []
      const down = new StoreUnavailable({ cause: "down" })
      const failing = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
        Effect.suspend(() => (isDown ? Effect.fail(down) : effect))
      const stores = memoryWith(({ sweep, watch }) => ({
        watch: (leads) => failing(watch(leads)),
        sweep: (limit, judge) => failing(sweep(limit, judge)),
      }))
      yield* withTenure(
        { expiry: {}, onError: (fault) => void faults.push(fault) },
        (said) =>
          Effect.gen(function* () {
            yield* TestClock.adjust("3 seconds")
            isDown = false
            yield* TestClock.adjust("2 seconds")
            yield* grantUntil(20_000)
            isDown = true
            yield* TestClock.adjust("30 seconds")
            expect(expired(said)).toBe(0)
            isDown = false
            yield* TestClock.adjust("2 seconds")
            expect(expired(said)).toBe(1)
          }),
        stores,
      )
      const message = "Ends of memberships cannot be announced"
      expect(faults.map((fault) => fault.message)).toEqual([message, message])
    }),
  )

  it.effect(
    "is watched before the first change, which is announced then however busy the store is",
    () => {
      let isWatched = false
      const stores = memoryWith((expiry) => ({
        ...expiry,
        watch: (leads) =>
          Effect.tap(Effect.andThen(Effect.yieldNow, expiry.watch(leads)), () =>
            Effect.sync(() => {
              isWatched = true
            }),
          ),
      }))
      return withTenure({}, () => Effect.sync(() => expect(isWatched).toBe(true)), stores)
    },
  )

  it.effect("is refused by a store that cannot announce ends", () =>
    Effect.gen(function* () {
      const stores = memoryWith(() => undefined)
      const start = Layer.build(tenureLayer({ expiry: {} }).pipe(Layer.provide(stores)))
      const error = yield* Effect.flip(Effect.scoped(start))
      expect(error.message).toBe(
        "expiry must be false: the store of memberships cannot announce ends (its expiry is undefined)",
      )
      yield* Effect.scoped(Layer.build(tenureLayer().pipe(Layer.provide(stores))))
    }),
  )

  it.effect.each<readonly [TenureOptions["expiry"], string]>([
    [{ reminders: ["1500 millis"] }, "expiry.reminders[0] must be whole seconds"],
    [{ reminders: Array.from({ length: 11 }, () => 1000) }, "expiry.reminders must have at most"],
    [{ reminders: [0] }, "expiry.reminders[0] must be a duration from 1 second"],
    [{ announcementsPerSecond: 0 }, "expiry.announcementsPerSecond must be"],
  ])("refuses %j", ([expiry, message]) =>
    Effect.gen(function* () {
      const start = Layer.build(tenureLayer({ expiry }).pipe(Layer.provide(memory())))
      expect((yield* Effect.flip(Effect.scoped(start))).message).toContain(message)
    }),
  )
})
