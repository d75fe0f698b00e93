/** A simulated machine's globals, for code that takes time and randomness from there. */

import type { Random } from "../faults/random.ts"
import type { Loop, Machine } from "./loop.ts"

/** What code finds in place of this process's globals. */
export interface Globals {
  readonly setTimeout: (run: () => void, millis: number) => object
  readonly clearTimeout: (timer: object | undefined) => void
  readonly now: () => number
  readonly random: () => number
  readonly randomUUID: () => string
}

const hex = (choose: Random, digits: number): string =>
  Array.from({ length: digits }, () => choose.below(16).toString(16)).join("")

/** Makes a machine's globals. */
export const makeGlobals = (loop: Loop, machine: Machine, choose: Random): Globals => {
  const running = new Set<object>()
  return {
    setTimeout: (run, millis) => {
      const timer = {}
      running.add(timer)
      loop.after(millis, () => {
        if (running.delete(timer)) loop.enter(run)
      })
      return timer
    },
    clearTimeout: (timer) => {
      if (timer !== undefined) running.delete(timer)
    },
    now: machine.wallMillis,
    random: choose.next,
    randomUUID: () =>
      `${hex(choose, 8)}-${hex(choose, 4)}-4${hex(choose, 3)}-8${hex(choose, 3)}-${hex(choose, 12)}`,
  }
}

const { clearTimeout, setTimeout } = globalThis
const { random } = Math

/** Replaces this process's globals. Returns what puts them back. */
export const installGlobals = (globals: Globals): (() => void) => {
  // A database may have replaced it.
  const { now } = Date
  Object.assign(globalThis, {
    setTimeout: globals.setTimeout,
    clearTimeout: globals.clearTimeout,
  })
  Object.assign(Date, { now: globals.now })
  Object.assign(Math, { random: globals.random })
  Object.assign(crypto, { randomUUID: globals.randomUUID })
  return () => {
    Object.assign(globalThis, { setTimeout, clearTimeout })
    Object.assign(Date, { now })
    Object.assign(Math, { random })
    // The prototype has this process's.
    Reflect.deleteProperty(crypto, "randomUUID")
  }
}
