/** Runs effects until it drains: then it waits for the ones that are running, and runs no others. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Step from "./base/Step.ts"
import type { StoreUnavailable } from "./base/StoreUnavailable.ts"

/**
 * Runs an effect, and calls `done` with its exit: before it returns, if nothing waits.
 *
 * @param closed - returns what runs instead from then on. It needs no store
 */
export type Start = <A, E>(
  effect: Effect.Effect<A, E>,
  closed: () => Effect.Effect<A, E | StoreUnavailable>,
  done: (exit: Exit.Exit<A, E | StoreUnavailable>) => void,
) => void

const timeout = "10 seconds"

/**
 * Makes a function that runs effects, and an effect that waits up to 10 seconds for those that have begun. Others
 * could not be waited for: the stores would be closed under them, and nobody would know what they have done.
 */
export const make = (
  services: Context.Context<never>,
): { readonly start: Start; readonly drain: Effect.Effect<void> } => {
  const clock = Context.get(services, Clock.Clock)
  const fork = Effect.runForkWith(services)
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  let isDraining = false
  return {
    start: (effect, closed, done) => {
      const begun = Step.begin(isDraining ? closed() : effect, clock)
      if (Step.isDone(begun)) return done(begun)
      const fiber = fork(begun)
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return done(exit)
      running.add(fiber)
      fiber.addObserver((later) => {
        running.delete(fiber)
        done(later)
      })
    },
    drain: Effect.suspend(() => {
      isDraining = true
      return Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll([...running]), timeout))
    }),
  }
}
