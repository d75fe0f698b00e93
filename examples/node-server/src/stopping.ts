/** How the process stops: on which signals, and within which time. */

import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"

/** A signal to stop. */
export type Signal = "SIGTERM" | "SIGINT"

/** The first signal that this process receives. Further ones have no effect. */
export const firstSignal = (): Promise<Signal> =>
  new Promise((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => resolve(name))
  })

// How long a server that has not started yet may take to give back what it holds.
const startUpMillis = 1000

const pause = (millis: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, millis)
  })

/** How a server ended. */
export type End<E> =
  | { readonly _tag: "Ended"; readonly exit: Exit.Exit<void, E> }
  | { readonly _tag: "StoppedStarting" }
  | { readonly _tag: "Overdue" }

/**
 * Runs a server to its end. A signal before it has started interrupts it.
 *
 * @param server - stops by itself after a signal, once it has called `started`
 * @param signal - the signal
 * @param stopMillis - how long it may take to stop
 */
export const run = async <E>(
  server: (started: Effect.Effect<void>) => Effect.Effect<void, E>,
  signal: Promise<Signal>,
  stopMillis: number,
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
    return Promise.race([end, pause(stopMillis).then((): End<E> => ({ _tag: "Overdue" }))])
  }
  fiber.interruptUnsafe()
  await Promise.race([ended, pause(startUpMillis)])
  return { _tag: "StoppedStarting" }
}
