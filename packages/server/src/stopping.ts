/** Stops the server on signals, within a time limit. */

import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"

/** The signals for stopping. SIGHUP comes when a terminal closes, or from a supervisor. */
const signals = ["SIGTERM", "SIGINT", "SIGHUP"] as const

/** A signal for stopping. */
export type Signal = (typeof signals)[number]

/** Waits for the first signal. From now on, signals do not end the process by themselves. */
export const firstSignal = (): Promise<Signal> =>
  new Promise((resolve) => {
    for (const name of signals) process.on(name, () => resolve(name))
  })

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

// After a Ctrl+C in a terminal, npm sends the signal again to its child: this is not a second Ctrl+C.
const sameSignalMillis = 500

/** Waits for a Ctrl+C after the first signal: the operator does not want to wait for requests in flight. */
export const secondInterrupt = async (first: Promise<Signal>): Promise<void> => {
  await first
  await pause(sameSignalMillis)
  await new Promise((resolve) => process.once("SIGINT", resolve))
}

// How long a server that is still starting may take to release its resources.
const startUpMillis = 1000

/** How a server ended. */
export type ServerEnd<E> =
  | { readonly _tag: "Ended"; readonly exit: Exit.Exit<void, E> }
  | { readonly _tag: "StoppedStarting" }
  | { readonly _tag: "Overdue" }
  /** A second Ctrl+C came before its end. */
  | { readonly _tag: "CutShort" }

/**
 * Runs a server to its end. A signal before it has started interrupts it.
 *
 * @param server - stops by itself after a signal, once it has called `started`
 * @param signal - resolves with the first signal
 * @param stopMillis - how long it may take to stop
 * @param cut - resolves to return before the server's end
 */
export const runUntilStopped = async <E>(
  server: (started: Effect.Effect<void>) => Effect.Effect<void, E>,
  signal: Promise<Signal>,
  stopMillis: number,
  cut: Promise<void> = new Promise(() => {}),
): Promise<ServerEnd<E>> => {
  let hasStarted = false
  const started = Effect.sync(() => {
    hasStarted = true
  })
  const fiber = Effect.runFork(server(started))
  const ended = new Promise<Exit.Exit<void, E>>((resolve) => fiber.addObserver(resolve))

  const end = ended.then((exit): ServerEnd<E> => ({ _tag: "Ended", exit }))

  const first = await Promise.race([end, signal])
  if (typeof first === "object") return first
  if (hasStarted) {
    return Promise.race([
      end,
      pause(stopMillis).then((): ServerEnd<E> => ({ _tag: "Overdue" })),
      cut.then((): ServerEnd<E> => ({ _tag: "CutShort" })),
    ])
  }
  fiber.interruptUnsafe()
  await Promise.race([ended, pause(startUpMillis)])
  return { _tag: "StoppedStarting" }
}
