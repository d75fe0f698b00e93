import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  Micros,
  Millis,
  addMicros,
  currentMonotonicClock,
  readMonotonicMillis,
  sleepAside,
  sleepPoll,
  subtractMicros,
  toMicros,
  toSeconds,
} from "../../src/base/time.ts"
import { test } from "../support/test.ts"

const second = 1_000_000_000n

describe("units of time", () => {
  it("are plain numbers at run time, which are converted, added and subtracted", () => {
    expect([Millis(5), Micros(5)]).toEqual([5, 5])
    expect(toMicros(Millis(1500))).toBe(1_500_000)
    expect([1, 1_000_000, 1_000_001].map((micros) => toSeconds(Micros(micros)))).toEqual([1, 1, 2])
    expect(addMicros(Micros(2), Micros(3))).toBe(5)
    expect(subtractMicros(Micros(2), Micros(3))).toBe(-1)
  })

  it("do not mix", () => {
    // @ts-expect-error: milliseconds are not microseconds
    expect(toSeconds(Millis(1))).toBe(1)
    // @ts-expect-error: nor are plain numbers
    expect(toSeconds(1)).toBe(1)
    // @ts-expect-error: microseconds are not milliseconds
    expect(toMicros(Micros(1))).toBe(1000)
  })
})

describe("the clock of a host whose test replaces the timers", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 5000 }))
  afterEach(() => void vi.useRealTimers())

  const forkSleep = (sleep: Effect.Effect<void>) =>
    Effect.runFork(Effect.provideService(sleep, Clock.Clock, Effect.runSync(currentMonotonicClock)))

  it("goes as these timers go", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const nanos = clock.monotonicTimeNanosUnsafe()
    const millis = clock.monotonicMillisUnsafe()
    vi.advanceTimersByTime(3000)
    expect(clock.monotonicTimeNanosUnsafe() - nanos).toBe(3n * second)
    expect(Effect.runSync(clock.monotonicTimeNanos) - nanos).toBe(3n * second)
    expect(clock.monotonicMillisUnsafe() - millis).toBe(3000)
    const tick = Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
    expect(readMonotonicMillis(clock)).toBe(tick)
    expect(clock.currentTimeMillisUnsafe()).toBe(8000)
    expect(Effect.runSync(clock.currentTimeMillis)).toBe(8000)
  })

  it("ends a sleep between polls, and stops the timer of one that is interrupted", () => {
    const sleeping = forkSleep(sleepPoll(1000))
    vi.advanceTimersByTime(999)
    expect(sleeping.pollUnsafe()).toBeUndefined()
    vi.advanceTimersByTime(1)
    expect(sleeping.pollUnsafe()).toBeDefined()
    const interrupted = forkSleep(sleepPoll(1000))
    expect(vi.getTimerCount()).toBe(1)
    interrupted.interruptUnsafe()
    expect(vi.getTimerCount()).toBe(0)
  })

  it("sleeps by timers that are numbers, as those of browsers are", () => {
    let wake = (): void => {}
    vi.stubGlobal("setTimeout", (then: () => void) => {
      wake = then
      return 7
    })
    const sleeping = forkSleep(sleepPoll(1))
    vi.unstubAllGlobals()
    expect(sleeping.pollUnsafe()).toBeUndefined()
    wake()
    expect(sleeping.pollUnsafe()).toMatchObject({ _tag: "Success" })
  })

  it("keeps its monotonic time if the clock is set back", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const start = clock.monotonicTimeNanosUnsafe()
    vi.setSystemTime(0)
    vi.advanceTimersByTime(1000)
    expect(clock.currentTimeMillisUnsafe()).toBe(1000)
    expect(clock.monotonicTimeNanosUnsafe() - start).toBe(second)
  })
})

it.each([
  [sleepPoll(60_000), 0],
  [Effect.sleep(60_000), 1],
  [sleepAside(60_000), 1],
])("a sleep between polls does not keep the process running, others do", async (sleep, timers) => {
  const count = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
  const before = count()
  const clock = Effect.runSync(currentMonotonicClock)
  const sleeping = Effect.runFork(Effect.provideService(sleep, Clock.Clock, clock))
  expect(count() - before).toBe(timers)
  await Effect.runPromise(Fiber.interrupt(sleeping))
})

test("the clock is that of the running effect in all else", function* () {
  const clock = yield* currentMonotonicClock
  yield* TestClock.adjust("3 seconds")
  expect([clock.currentTimeMillisUnsafe(), yield* clock.currentTimeMillis]).toEqual([3000, 3000])
  const nanos = [clock.currentTimeNanosUnsafe(), yield* clock.currentTimeNanos]
  expect(nanos).toEqual([3n * second, 3n * second])
  for (const sleep of [
    Effect.provideService(Effect.sleep(1000), Clock.Clock, clock),
    sleepAside(1000),
    Effect.provideService(sleepAside(1000), Clock.Clock, clock),
  ]) {
    const sleeping = yield* Effect.forkChild(sleep)
    yield* TestClock.adjust("999 millis")
    expect(sleeping.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(sleeping)
  }
})
