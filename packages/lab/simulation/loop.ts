/**
 * Runs several machines in one program, on one simulated time. A seed decides which task runs
 * next, and between which steps a fiber gives way.
 */

import type { MonotonicClock } from "@tenure/core/internal"
import { seededCrypto } from "@tenure/testing/internal/seeded-crypto"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import type { Random as Choices } from "../faults/random.ts"
import { makeClock, makeTimers } from "../timers.ts"
import { type Globals, installGlobals } from "./globals.ts"

/** The true time at which all begins, in milliseconds since the epoch. */
export const beginning = Date.UTC(2030, 0, 1)

/** A computer: its clock, and what runs on it. */
export interface Machine {
  readonly name: string
  /** What effects need to run on it. */
  readonly services: Context.Context<never>
  readonly isUp: () => boolean
  /** Ends it at once: what runs on it makes no further step. */
  readonly kill: () => void
  /** Sets its wall clock forward, or back. */
  readonly setClock: (byMillis: number) => void
  /** The time by its wall clock. */
  readonly wallMillis: () => number
  /** The time since its start, by the clock that nobody sets, in whole milliseconds. */
  readonly tick: () => number
  /** Has something run on it, when its turn comes. */
  readonly schedule: (task: () => void) => void
  /** Tells it that what its polls look for may be due at another time. */
  readonly poll: () => void
  /** Counts the connections that wait for events on it. */
  readonly listen: (change: 1 | -1) => void
}

/** A sleep between two polls. */
interface Poll {
  isOver: boolean
  /** When the next poll that finds something takes place, in true time. */
  readonly at: () => number
  readonly wake: () => void
}

/** What runs on the machines. */
export interface Loop {
  /** The true time, in milliseconds since the epoch. */
  readonly now: () => number
  /** Has something happen after a time. */
  readonly after: (millis: number, run: () => void) => void
  /**
   * Starts a machine, whose clock may run faster or slower than the true one.
   *
   * @param server - the machine by whose clock things become due that this one polls for
   * @param choices - its randomness, if it has its own
   */
  readonly machine: (name: string, rate: number, server?: Machine, choices?: Choices) => Machine
  /** When something happens next, in true time; `Infinity` for never. */
  readonly nextAt: () => number
  /** Makes all steps until an instant. Then nothing can run any more without time going on. */
  readonly runUntil: (instant: number) => Promise<void>
  /** Tells that something loads modules, which takes no time here. */
  readonly loads: () => void
  /** Runs code that makes promises, once nothing else can run. They continue until all wait. */
  readonly enter: (run: () => void) => void
  /** Waits for something outside the simulation before the next step. It takes no time in it. */
  readonly wait: (work: Promise<unknown>) => void
  /** What code that makes promises finds in place of this process's globals. */
  readonly useGlobals: (globals: Globals) => void
  /** How many steps were made. */
  readonly steps: () => number
}

/** More steps than a run takes. */
const maxSteps = 2_000_000

// Listeners look at the time so often, and for events more often.
const longPoll = 1000

// What is new is found in this time, also if the first poll after it fails.
const newsMillis = 2000

// A fiber gives way after up to so many operations.
const maxOperations = 400

/**
 * Makes a loop without machines.
 *
 * @param longestPause - after which time a poll finds what is due for another reason than the one that it knows
 */
export const makeLoop = (choose: Choices, longestPause = 300_000): Loop => {
  const ready: Array<{ readonly machine: () => boolean; readonly run: () => void }> = []
  const timers = makeTimers()
  let now = beginning
  let steps = 0
  let isLoading = false
  let entering: Array<() => void> = []
  let outside: Promise<unknown> | undefined
  let globals: Globals | undefined

  const after = (millis: number, run: () => void): void =>
    timers.add({ at: now + Math.max(0, millis), run })

  /** Runs a task that can run. */
  const step = (): boolean => {
    const place = choose.below(ready.length)
    const task = ready[place]
    const last = ready.pop()
    if (task === undefined || last === undefined) return false
    if (task !== last) ready[place] = last
    if (++steps > maxSteps) throw new Error("The simulation does not end.")
    if (task.machine()) task.run()
    return true
  }

  const machine: Loop["machine"] = (name, rate, server, own = choose) => {
    const bootedAt = now
    let offset = 0
    let isUp = true
    let listeners = 0
    let newsAt = -Infinity
    const polls = new Set<Poll>()
    let operations = 1 + own.below(maxOperations)
    const isRunning = (): boolean => isUp

    const monotonic = (): number => (now - bootedAt) * rate
    const wallMillis = (): number => Math.floor(bootedAt + monotonic() + offset)

    const sleepUntil = (at: number): Effect.Effect<void> =>
      Effect.callback((resume) => {
        let isOver = false
        const wake = (): void => {
          if (isOver || !isUp) return
          isOver = true
          schedule(() => resume(Effect.void))
        }
        timers.add({ at, run: wake })
        return Effect.sync(() => {
          isOver = true
        })
      })

    const sleep = (millis: number): Effect.Effect<void> =>
      Effect.suspend(() => (millis <= 0 ? Effect.yieldNow : sleepUntil(now + millis / rate)))

    /** Has a poll take place when something is due. */
    const arm = (poll: Poll): void => {
      const at = poll.at()
      const run = (): void => {
        if (poll.isOver || !isUp) return
        poll.isOver = true
        polls.delete(poll)
        poll.wake()
      }
      timers.add({ at, run })
    }

    const clock: MonotonicClock = {
      ...makeClock((duration) => sleep(Duration.toMillis(duration)), wallMillis, monotonic),
      monotonicMillisUnsafe: monotonic,
      sleepAside: sleep,
      // Polls that find nothing would take most time, so they are skipped.
      sleepPoll: (millis, dueAt) =>
        Effect.callback((resume) => {
          const least = now + millis / rate
          // Short ones are for events, which the machine hears about, and others are for connections.
          const isDue = (): boolean =>
            listeners > 0 &&
            dueAt() === Infinity &&
            (millis >= longPoll || now - newsAt < newsMillis)
          const poll: Poll = {
            isOver: false,
            at: () =>
              Math.max(
                least,
                Math.min(
                  isDue() ? least : least + longestPause,
                  now + dueAt() - (server?.wallMillis() ?? wallMillis()),
                ),
              ),
            wake: () => schedule(() => resume(Effect.void)),
          }
          polls.add(poll)
          arm(poll)
          return Effect.sync(() => {
            poll.isOver = true
            polls.delete(poll)
          })
        }),
    }

    const schedule = (run: () => void): void => {
      if (isUp) ready.push({ machine: isRunning, run })
    }

    const scheduler: Scheduler.Scheduler = {
      executionMode: "async",
      shouldYield: () => {
        if (--operations > 0) return false
        operations = 1 + own.below(maxOperations)
        return true
      },
      makeDispatcher: () => ({
        scheduleTask: schedule,
        flush: () => {
          throw new Error("A simulated fiber cannot be flushed.")
        },
      }),
    }

    const poll = (): void => {
      newsAt = now
      if (isUp) for (const each of polls) arm(each)
    }

    const random = (): number => Math.floor(own.next() * 2 ** 32)

    return {
      name,
      services: Context.make(Clock.Clock, clock).pipe(
        Context.add(Scheduler.Scheduler, scheduler),
        Context.add(Logger.CurrentLoggers, new Set()),
        Context.add(WebCrypto, seededCrypto(random, refusePromise)),
        Context.add(Random.Random, { nextIntUnsafe: random, nextDoubleUnsafe: own.next }),
      ),
      isUp: isRunning,
      kill: () => {
        isUp = false
      },
      setClock: (byMillis) => {
        offset += byMillis
      },
      wallMillis,
      tick: () => Math.floor(monotonic()),
      schedule,
      poll,
      listen: (change) => {
        listeners += change
        poll()
      },
    }
  }

  /** Runs what was entered. */
  const runEntering = async (): Promise<void> => {
    const runs = entering
    entering = []
    const restore = globals === undefined ? undefined : installGlobals(globals)
    for (const run of runs) run()
    await turns(1)
    restore?.()
  }

  return {
    now: () => now,
    after,
    machine,
    nextAt: () => (ready.length > 0 ? now : timers.nextAt()),
    steps: () => steps,
    loads: () => {
      isLoading = true
    },
    enter: (run) => {
      entering.push(run)
    },
    wait: (work) => {
      outside = work
    },
    useGlobals: (given) => {
      globals = given
    },
    runUntil: async (instant) => {
      for (;;) {
        if (outside !== undefined) {
          const work = outside
          outside = undefined
          await work
        }
        while (ready.length > 0) step()
        // Only here do promises continue, so that they do so at the same step each time.
        if (entering.length > 0) {
          await runEntering()
          continue
        }
        if (isLoading) {
          isLoading = false
          await turns(loadingTurns)
          continue
        }
        if (timers.nextAt() > instant) break
        const timer = timers.take()
        if (timer === undefined) break
        // What became due earlier by another clock is due now.
        now = Math.max(now, timer.at)
        timer.run()
      }
      now = Math.max(now, instant)
    },
  }
}

// A module that was loaded before is there after the first one.
const loadingTurns = 2

// Browsers have no setImmediate.
const startTurn: (resume: (value: unknown) => void) => unknown =
  "setImmediate" in globalThis ? setImmediate : setTimeout

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise(startTurn)
}

const refusePromise = (work: unknown): void => {
  if (work instanceof Promise) throw new Error("A simulated machine has no other threads.")
}
