import { it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, expect, it as test, vi } from "vitest"
import {
  currentMonotonicClock,
  readMonotonicMillis,
  sleepAside,
  sleepPoll,
} from "../../src/base/time.ts"

const second = 1_000_000_000n

describe("the clock of a host whose test replaces the timers", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 5000 }))
  afterEach(() => void vi.useRealTimers())

  test("goes as these timers go", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const start = clock.monotonicTimeNanosUnsafe()
    vi.advanceTimersByTime(3000)
    expect(clock.monotonicTimeNanosUnsafe() - start).toBe(3n * second)
    expect(Effect.runSync(clock.monotonicTimeNanos) - start).toBe(3n * second)
    expect(clock.currentTimeMillisUnsafe()).toBe(8000)
    expect(Effect.runSync(clock.currentTimeMillis)).toBe(8000)
  })

  test("tells the monotonic time in milliseconds, too", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const start = clock.monotonicMillisUnsafe()
    vi.advanceTimersByTime(3000)
    expect(clock.monotonicMillisUnsafe() - start).toBe(3000)
    const tick = Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
    expect(readMonotonicMillis(clock)).toBe(tick)
  })

  test("ends a sleep between polls, and stops the timer of one that is interrupted", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const sleep = Effect.provideService(sleepPoll(1000), Clock.Clock, clock)
    const sleeping = Effect.runFork(sleep)
    vi.advanceTimersByTime(999)
    expect(sleeping.pollUnsafe()).toBeUndefined()
    vi.advanceTimersByTime(1)
    expect(sleeping.pollUnsafe()).toBeDefined()
    const interrupted = Effect.runFork(sleep)
    expect(vi.getTimerCount()).toBe(1)
    interrupted.interruptUnsafe()
    expect(vi.getTimerCount()).toBe(0)
  })

  test("sleeps by timers that are numbers, as those of browsers are", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    let wake = (): void => {}
    vi.stubGlobal("setTimeout", (then: () => void) => {
      wake = then
      return 7
    })
    const sleeping = Effect.runFork(Effect.provideService(sleepPoll(1), Clock.Clock, clock))
    vi.unstubAllGlobals()
    expect(sleeping.pollUnsafe()).toBeUndefined()
    wake()
    expect(sleeping.pollUnsafe()).toMatchObject({ _tag: "Success" })
  })

  test("keeps its monotonic time if the clock is set back", () => {
    const clock = Effect.runSync(currentMonotonicClock)
    const start = clock.monotonicTimeNanosUnsafe()
    vi.setSystemTime(0)
    vi.advanceTimersByTime(1000)
    expect(clock.currentTimeMillisUnsafe()).toBe(1000)
    expect(clock.monotonicTimeNanosUnsafe() - start).toBe(second)
  })
})

test.each([
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

it.effect("is the clock of the running effect in all else", () =>
  Effect.gen(function* () {
    const clock = yield* currentMonotonicClock
    yield* TestClock.adjust("3 seconds")
    expect(clock.currentTimeMillisUnsafe()).toBe(3000)
    expect(yield* clock.currentTimeMillis).toBe(3000)
    expect(clock.currentTimeNanosUnsafe()).toBe(3n * second)
    expect(yield* clock.currentTimeNanos).toBe(3n * second)
    const sleeping = yield* Effect.forkChild(
      Effect.provideService(Effect.sleep("1 minute"), Clock.Clock, clock),
    )
    yield* TestClock.adjust("59 seconds")
    expect(sleeping.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(sleeping)
  }),
)

it.effect("sleeps aside as long as the clock of the running effect", () =>
  Effect.gen(function* () {
    const clock = yield* currentMonotonicClock
    const sleep = sleepAside(1000)
    for (const one of [sleep, Effect.provideService(sleep, Clock.Clock, clock)]) {
      const sleeping = yield* Effect.forkChild(one)
      yield* TestClock.adjust("999 millis")
      expect(sleeping.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(sleeping)
    }
  }),
)
