/**
 * A runtime whose time stands still until the program moves it. It runs what is due in time order, and knows when
 * nothing is left to do. The rest of the process keeps its own time.
 */

// A test runner's fake timers replace the global ones.
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from "node:timers"
import type { MonotonicClock } from "@tenure/core/internal"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import { makeCrypto, seededCrypto } from "./seeded-crypto.ts"

/** A fiber that sleeps. */
interface Sleeper {
  /** When it wakes, in milliseconds since the epoch. */
  readonly at: number
  /** Returns when the clock must not go on without waking it. */
  readonly stopAt: () => number
  readonly wake: () => void
}

/** A clock, and its sleeping fibers. */
interface Sleepers {
  readonly clock: MonotonicClock
  readonly now: () => number
  /** Returns when the first one must be woken; `Infinity` for never. */
  readonly nextAt: () => number
  /** Moves the clock, and wakes the sleepers due, earliest first. */
  readonly moveTo: (time: number) => void
  /** Moves the clock to the end of the shortest sleep, if any, also if it is between two polls. */
  readonly moveOn: () => boolean
}

const makeSleepers = (start: number): Sleepers => {
  const sleepers = new Set<Sleeper>()
  let now = start

  const sleepUntil = (at: number, stopAt: () => number): Effect.Effect<void> =>
    Effect.callback((resume) => {
      const sleeper = { at, stopAt, wake: () => resume(Effect.void) }
      sleepers.add(sleeper)
      return Effect.sync(() => sleepers.delete(sleeper))
    })

  const earliest = (timeOf: (sleeper: Sleeper) => number): number => {
    let first = Infinity
    for (const sleeper of sleepers) first = Math.min(first, timeOf(sleeper))
    return first
  }

  // Without fractions, which no clock shows.
  const after = (millis: number): number => now + Math.ceil(millis)
  const nanos = (): bigint => BigInt(now) * 1_000_000n
  const monotonicNanos = (): bigint => BigInt(now - start) * 1_000_000n

  const clock: MonotonicClock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicMillisUnsafe: () => now - start,
    monotonicTimeNanosUnsafe: monotonicNanos,
    monotonicTimeNanos: Effect.sync(monotonicNanos),
    sleep: (duration) =>
      Effect.suspend(() => {
        const at = after(Duration.toMillis(duration))
        return at <= now ? Effect.yieldNow : sleepUntil(at, () => at)
      }),
    sleepPoll: (millis, dueAt) => Effect.suspend(() => sleepUntil(after(millis), dueAt)),
    sleepAside: () => Effect.yieldNow,
  }

  const moveTo = (time: number): void => {
    now = time
    const due = [...sleepers]
      .filter(({ at, stopAt }) => at <= now || stopAt() <= now)
      .toSorted((one, other) => one.at - other.at)
    for (const sleeper of due) {
      // The one before may have interrupted it.
      if (sleepers.delete(sleeper)) sleeper.wake()
    }
  }

  return {
    clock,
    now: () => now,
    nextAt: () => earliest(({ stopAt }) => stopAt()),
    moveTo,
    moveOn: () => {
      const next = earliest(({ at }) => at)
      if (next === Infinity) return false
      moveTo(Math.max(now, next))
      return true
    },
  }
}

/** Work that does not sleep: scheduler tasks, and promises from other threads and from the host. */
interface Activity {
  readonly scheduler: Scheduler.Scheduler
  /** Counts a promise as work until it settles. */
  readonly track: (work: unknown) => void
  /**
   * Waits until there is no work.
   *
   * @returns `true` when all has ended; `false` if promises do not settle within `limitMillis`
   */
  readonly ended: (limitMillis: number) => Promise<boolean>
}

const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve)
  })

/** Waits for promises, but not longer than `millis`. Returns whether all have settled. */
const allSettled = (promises: Iterable<Promise<unknown>>, millis: number): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), millis)
    void Promise.allSettled(promises).then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })

const makeActivity = (): Activity => {
  const promises = new Set<Promise<unknown>>()
  let tasks = 0

  const schedule = (task: () => void): (() => void) => {
    tasks++
    const immediate = setImmediate(() => {
      tasks--
      task()
    })
    return () => {
      tasks--
      clearImmediate(immediate)
    }
  }

  return {
    scheduler: new Scheduler.MixedScheduler("async", schedule),
    track: (work) => {
      if (!(work instanceof Promise)) return
      promises.add(work)
      const end = () => void promises.delete(work)
      work.then(end, end)
    },
    ended: async (limitMillis) => {
      for (;;) {
        // Promises that are settled already continue within this event loop turn.
        await turn()
        if (tasks > 0) continue
        if (promises.size === 0) return true
        if (!(await allSettled(promises, limitMillis))) return false
      }
    },
  }
}

/** Random 32-bit integers, the same in each run (sfc32). */
const makeRandom = (): (() => number) => {
  let [a, b, c, counter] = [0x9e37_79b9, 0x243f_6a88, 0xb7e1_5162, 1]
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    return sum >>> 0
  }
  // The first ones depend on few bits.
  for (let skipped = 0; skipped < 16; skipped++) next()
  return next
}

/** How long promises may take while time stands still, in real milliseconds: test runners wait 5 s. */
const maxWaitMillis = 4000

/** The same while Tenure closes. */
const maxClosingWaitMillis = 500

/** After so many moves without progress, something repeats itself for ever. */
const maxMovesInPlace = 10_000

/** Work does not end at one point in time, so the clock cannot go on. */
export class EndlessWork extends Error {
  override readonly name = "EndlessWork"
  readonly _tag = "EndlessWork"
}

/** A runtime, and its control. */
export interface ControlledRuntime {
  /** The services to run effects with: the clock, the scheduler, and random numbers from a seed. */
  readonly services: Context.Context<never>
  /** The time in milliseconds since the epoch. */
  readonly now: () => number
  /** Counts a host's promise as work until it settles. */
  readonly track: (work: unknown) => void
  /**
   * Runs everything that is due until a time, in time order, and then stands there. Calls run one after the other.
   * Rejects with `EndlessWork` if a step does not end.
   *
   * @param targetOf - returns the time, from the one at which the call's turn comes
   * @param isStopped - asked between two steps; time stands where it first returns `true`
   */
  readonly advance: (targetOf: (now: number) => number, isStopped?: () => boolean) => Promise<void>
  /** Moves time until a promise settles, for example a shutdown with time limits. */
  readonly runUntil: (settled: Promise<void>) => Promise<void>
}

const never = (): boolean => false

export interface ControlledRuntimeOptions {
  /** Its time, in milliseconds since the epoch. */
  readonly start: number
  /** Whether each run has the same ids, secrets and tokens, which everybody can then know. */
  readonly isSeeded: boolean
}

/** Makes a runtime. */
export const makeControlledRuntime = ({
  isSeeded,
  start,
}: ControlledRuntimeOptions): ControlledRuntime => {
  const { clock, moveOn, moveTo, nextAt, now } = makeSleepers(start)
  const { ended, scheduler, track } = makeActivity()
  const random = makeRandom()

  const rest = async (): Promise<void> => {
    if (await ended(maxWaitMillis)) return
    const time = new Date(now()).toISOString()
    const limit = `${maxWaitMillis / 1000} s`
    throw new EndlessWork(`The promises of onEvent at ${time} did not settle within ${limit}`)
  }

  const advanceTo = async (target: number, isStopped: () => boolean): Promise<void> => {
    await rest()
    for (let moves = 0; now() < target || nextAt() <= target; moves++) {
      if (isStopped()) return
      if (moves === maxMovesInPlace) {
        const time = new Date(now()).toISOString()
        throw new EndlessWork(`Something repeats itself at ${time}, after ${moves} times`)
      }
      const next = Math.max(now(), Math.min(nextAt(), target))
      if (next > now()) moves = 0
      moveTo(next)
      await rest()
    }
  }

  let last: Promise<unknown> = Promise.resolve()

  return {
    services: Context.make(Clock.Clock, clock).pipe(
      Context.add(Scheduler.Scheduler, scheduler),
      Context.add(WebCrypto, isSeeded ? seededCrypto(random, track) : makeCrypto(new Map(), track)),
      Context.add(Random.Random, {
        nextIntUnsafe: random,
        nextDoubleUnsafe: () => random() / 2 ** 32,
      }),
    ),
    now,
    track,
    advance: (targetOf, isStopped = never) => {
      const own = last.then(() => advanceTo(targetOf(now()), isStopped))
      last = own.catch(() => {})
      return own
    },
    runUntil: async (settled) => {
      const isSettled = settled.then(
        () => true,
        () => true,
      )
      for (;;) {
        await ended(maxClosingWaitMillis)
        const isOver = await Promise.race([isSettled, Promise.resolve(false)])
        if (isOver || !moveOn()) return settled
      }
    },
  }
}
