/** How the process stops: on which signals, and within which time. */

import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"

/** The signals to stop. SIGHUP comes when a terminal closes, or from a supervisor. */
const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const

/** A signal to stop. */
export type Signal = (typeof signals)[number]

/** The first signal that this process receives. */
export const firstSignal = (): Promise<Signal> =>
  new Promise((resolve) => {
    for (const name of signals) process.on(name, () => resolve(name))
  })

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

// npm passes the Ctrl+C of a terminal on to what has received it already: that is no second one.
const sameSignalMillis = 500

/** Waits for a Ctrl+C after the first signal, by somebody who does not want to wait for the requests in flight. */
export const secondInterrupt = async (first: Promise<Signal>): Promise<void> => {
  await first
  await pause(sameSignalMillis)
  await new Promise((resolve) => process.once("SIGINT", resolve))
}

// How long a server that has not started yet may take to give back what it holds.
const startUpMillis = 1000

/** How a server ended. */
export type End<E> =
  | { readonly _tag: "Ended"; readonly exit: Exit.Exit<void, E> }
  | { readonly _tag: "StoppedStarting" }
  | { readonly _tag: "Overdue" }
  /** Somebody did not want to wait for its end. */
  | { readonly _tag: "CutShort" }

/**
 * Runs a server to its end. A signal before it has started interrupts it.
 *
 * @param server - stops by itself after a signal, once it has called `started`
 * @param signal - the signal
 * @param stopMillis - how long it may take to stop
 * @param cut - does not wait for its end any longer
 */
export const run = async <E>(
  server: (started: Effect.Effect<void>) => Effect.Effect<void, E>,
  signal: Promise<Signal>,
  stopMillis: number,
  cut: Promise<void> = new Promise(() => {}),
): Promise<End<E>> => {
  let hasStarted = false
  const started = Effect.sync(() => {
    hasStarted = true
  })
  const fiber = Effect.runFork(server(started))
  const ended = new Promise<Exit.Exit<void, E>>((resolve) => fiber.addObserver(resolve))

  const end = ended.then((exit): End<E> => ({ _tag: "Ended", exit }))

  const first = await Promise.race([end, signal])
  if (typeof first === "object") return first
  if (hasStarted) {
    return Promise.race([
      end,
      pause(stopMillis).then((): End<E> => ({ _tag: "Overdue" })),
      cut.then((): End<E> => ({ _tag: "CutShort" })),
    ])
  }
  fiber.interruptUnsafe()
  await Promise.race([ended, pause(startUpMillis)])
  return { _tag: "StoppedStarting" }
}
