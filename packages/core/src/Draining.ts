/** Runs effects as promises, and waits for the ones that are running. */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"

/** Runs an effect. The promise rejects with the error of the effect. */
export type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

const timeout = "10 seconds"

/** Makes a function that runs effects, and an effect that waits up to 10 seconds for them. */
export const make = (
  services: Context.Context<never>,
): { readonly run: Run; readonly drain: Effect.Effect<void> } => {
  const fork = Effect.runForkWith(services)
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  return {
    run: (effect) => {
      const fiber = fork(effect)
      running.add(fiber)
      return new Promise((resolve, reject) => {
        fiber.addObserver((exit) => {
          running.delete(fiber)
          if (Exit.isSuccess(exit)) resolve(exit.value)
          else reject(Cause.squash(exit.cause))
        })
      })
    },
    drain: Effect.suspend(() =>
      Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll([...running]), timeout)),
    ),
  }
}
