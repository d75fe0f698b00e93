import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import type { Fault } from "../../src/base/faults.ts"
import { type ExpiryStore } from "../../src/memberships/expiry-store.ts"
import { stepSize } from "../../src/memberships/expiry-sweeper.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type TenureOptions, tenureLayer } from "../../src/tenure.ts"
import { test } from "../support/test.ts"

type Change = (expiry: ExpiryStore) => ExpiryStore | undefined

/** Returns Tenure on memory stores with changeable announcements, and records event types as they come. */
const tenureWith = Effect.fnUntraced(function* (
  options: TenureOptions,
  change: Change = (expiry) => expiry,
) {
  const said: Array<string> = []
  const onEvent: TenureOptions["onEvent"] = ({ type }) => void said.push(type)
  const store = Layer.effect(
    MembershipStore,
    Effect.map(MembershipStore, (own) => ({ ...own, expiry: own.expiry && change(own.expiry) })),
  )
  const stores = Layer.provideMerge(store, memory())
  const services = yield* Layer.build(Layer.provide(tenureLayer({ onEvent, ...options }), stores))
  const memberships = Context.get(services, Memberships)
  return {
    ...memberships,
    /** Creates the project with `count` members. */
    grantUntil: (millis: number, count = 1) =>
      Effect.andThen(
        memberships.createProject("p1"),
        Effect.forEach(Array.from({ length: count }), (_, n) =>
          memberships.grant({ projectId: "p1", userId: String(n), endDate: new Date(millis) }),
        ),
      ),
    said,
    expired: () => said.filter((type) => type === "membership.expired").length,
  }
})

const member = { projectId: "p1", userId: "0" }

describe("expiry", () => {
  test("announces ends within half a second, and tells the host", function* () {
    const { grantUntil, said } = yield* tenureWith({ expiry: { reminders: ["2 seconds"] } })
    yield* grantUntil(10_000)
    yield* TestClock.adjust("7 seconds")
    expect(said).toEqual(["membership.granted"])
    yield* TestClock.adjust("1500 millis")
    expect(said.slice(1)).toEqual(["membership.expiring"])
    yield* TestClock.adjust("2 seconds")
    expect(said.slice(2)).toEqual(["membership.expired"])
    yield* TestClock.adjust("1 minute")
    expect(said).toHaveLength(3)
  })

  test("is on by default, with reminders", function* () {
    const { grant, grantUntil, said } = yield* tenureWith({})
    yield* grantUntil(86_400_000 + 5000)
    yield* grant({ ...member, userId: "soon", endDate: new Date(15_000) })
    yield* TestClock.adjust("10 seconds")
    expect(said.slice(2)).toEqual(["membership.expiring"])
    yield* TestClock.adjust("10 seconds")
    expect(said.slice(3)).toEqual(["membership.expired"])
  })

  test("has no reminder whose time had come when the date was set", function* () {
    const reminders = ["70 seconds", "10 seconds"] as const
    const { extend, grantUntil, said } = yield* tenureWith({ expiry: { reminders } })
    yield* grantUntil(70_000)
    yield* extend({ ...member, endDate: new Date(60_000) })
    yield* TestClock.adjust("40 seconds")
    expect(said).toEqual(["membership.granted", "membership.extended"])
    yield* TestClock.adjust("12 seconds")
    expect(said.slice(2)).toEqual(["membership.expiring"])
    yield* extend({ ...member, endDate: new Date(55_000) })
    yield* TestClock.adjust("5 seconds")
    expect(said.slice(3)).toEqual(["membership.extended", "membership.expired"])
  })

  test("sends a reminder whose time had come when the date was set, if the host says so", function* () {
    const expiry = { reminders: ["70 seconds", "10 seconds"], late: "send" } as const
    const { grantUntil, said } = yield* tenureWith({ expiry })
    yield* grantUntil(60_000)
    yield* TestClock.adjust("1 second")
    expect(said.slice(1)).toEqual(["membership.expiring"])
    yield* TestClock.adjust("51 seconds")
    expect(said.slice(2)).toEqual(["membership.expiring"])
    yield* TestClock.adjust("10 seconds")
    expect(said.slice(3)).toEqual(["membership.expired"])
  })

  test("can be turned off", function* () {
    const { grantUntil, said } = yield* tenureWith({ expiry: false })
    yield* grantUntil(1000)
    yield* TestClock.adjust("1 minute")
    expect(said).toEqual(["membership.granted"])
  })

  test("keeps its pace", function* () {
    const expiry = { reminders: [], announcementsPerSecond: 10 }
    const { expired, grantUntil } = yield* tenureWith({ expiry })
    yield* grantUntil(1000, 100)
    yield* Effect.replicateEffect(TestClock.adjust("500 millis"), 8)
    expect(expired()).toBeGreaterThanOrEqual(30)
    expect(expired()).toBeLessThanOrEqual(50)
    yield* TestClock.adjust("10 seconds")
    expect(expired()).toBe(100)
  })

  it("looks at more memberships in a step while the store is slow, up to a bound", () => {
    const sizes = [0, 5, 20, 30, 1000].map((taken) => stepSize(2000, taken))
    expect(sizes).toEqual([40, 40, 60, 90, 100])
    expect([stepSize(100_000, 1000), stepSize(1, 0)]).toEqual([500, 1])
  })

  test("leaves a slow store to others for a third of the time, and goes on", function* () {
    const times: Array<number> = []
    yield* tenureWith({ expiry: {} }, ({ watch, watchedSince }) => ({
      watch,
      watchedSince,
      sweep: Effect.fnUntraced(function* () {
        times.push(yield* Clock.currentTimeMillis)
        // Steps are not interrupted, so none may be running when the test is over.
        const isMore = times.length < 4
        if (isMore) yield* Effect.sleep("200 millis")
        return { events: [], isMore, nextDueMillis: undefined }
      }),
    }))
    yield* TestClock.adjust("5 seconds")
    expect(times.slice(0, 4)).toEqual([0, 300, 600, 900])
  })

  test.each([
    ["at once after the time that the store names", 300, 300],
    ["after a second if the next end is far away", Infinity, 1000],
    ["after 50 milliseconds if it is near", 0, 50],
    ["after half a second if the store names none", undefined, 500],
  ])("looks again %s", function* ([, nextDueMillis, pause]) {
    const times: Array<number> = []
    yield* tenureWith({ expiry: {} }, ({ watch, watchedSince }) => ({
      watch,
      watchedSince,
      sweep: () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          times.push(now)
          return { events: [], isMore: false, nextDueMillis }
        }),
    }))
    yield* TestClock.adjust("5 seconds")
    const [first = NaN, second = NaN] = times
    expect(second - first).toBe(pause)
  })

  test("goes on after errors of the store, which are reported once", function* () {
    let isDown = true
    const faults: Array<Fault> = []
    const onError = (fault: Fault) => void faults.push(fault)
    const down = new StoreUnavailable({ cause: "down" })
    const failing = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
      Effect.suspend(() => (isDown ? Effect.fail(down) : effect))
    const { expired, grantUntil } = yield* tenureWith(
      { expiry: {}, onError },
      ({ sweep, watch, watchedSince }) => ({
        watchedSince,
        watch: (leads) => failing(watch(leads)),
        sweep: (limit, decide) => failing(sweep(limit, decide)),
      }),
    )
    yield* TestClock.adjust("3 seconds")
    isDown = false
    yield* TestClock.adjust("2 seconds")
    yield* grantUntil(20_000)
    isDown = true
    yield* TestClock.adjust("30 seconds")
    expect(expired()).toBe(0)
    isDown = false
    yield* TestClock.adjust("2 seconds")
    expect(expired()).toBe(1)
    const message = "Ends of memberships cannot be announced"
    expect(faults).toMatchObject([{ message }, { message }])
  })

  test("is watched before the first change, which is announced then however busy the store is", function* () {
    let isWatched = false
    yield* tenureWith({}, (expiry) => ({
      ...expiry,
      watch: (leads) =>
        Effect.tap(Effect.andThen(Effect.yieldNow, expiry.watch(leads)), () =>
          Effect.sync(() => (isWatched = true)),
        ),
    }))
    expect(isWatched).toBe(true)
  })

  test("is refused by a store that cannot announce ends, and is then off by default", function* () {
    const error = yield* Effect.flip(tenureWith({ expiry: {} }, () => undefined))
    expect(error.message).toBe(
      "expiry must be false: the store of memberships cannot announce ends (its expiry is undefined)",
    )
    yield* tenureWith({}, () => undefined)
  })

  test.each<readonly [TenureOptions["expiry"], string]>([
    [{ reminders: ["1500 millis"] }, "expiry.reminders[0] must be whole seconds"],
    [{ reminders: Array.from({ length: 11 }, () => 1000) }, "expiry.reminders must have at most"],
    [{ reminders: [0] }, "expiry.reminders[0] must be a duration from 1 second"],
    [JSON.parse('{"late":"never"}'), "expiry.late must be"],
    [{ holdAfterBulk: "1.5 millis" }, "expiry.holdAfterBulk must be whole milliseconds"],
    [{ holdAfterBulk: "25 hours" }, "expiry.holdAfterBulk must be"],
    [{ announcementsPerSecond: 0 }, "expiry.announcementsPerSecond must be"],
  ])("refuses %j", function* ([expiry, message]) {
    const error = yield* Effect.flip(tenureWith({ expiry }))
    expect(error.message).toContain(message)
  })
})
