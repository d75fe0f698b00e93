/** Runs effects as promises, waits for the ones that are running, and runs no others then. */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { StoreUnavailable } from "./base/StoreUnavailable.ts"

/**
 * Runs an effect. The promise rejects with the error of the effect.
 *
 * @param closed - returns what runs instead once the stores are closed. By default it fails with
 *   `StoreUnavailable`
 */
export type Run = <A, E>(effect: Effect.Effect<A, E>, closed?: () => Effect.Effect<A>) => Promise<A>

const timeout = "10 seconds"

const refuse = () => Effect.fail(new StoreUnavailable({ cause: "closed" }))

/**
 * Makes a function that runs effects, and an effect that waits up to 10 seconds for them and ends it.
 */
export const make = (
  services: Context.Context<never>,
): { readonly run: Run; readonly drain: Effect.Effect<void> } => {
  const fork = Effect.runForkWith(services)
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  let isClosed = false
  return {
    run: <A, E>(effect: Effect.Effect<A, E>, closed: () => Effect.Effect<A, unknown> = refuse) => {
      const fiber = fork<A, unknown>(isClosed ? closed() : effect)
      running.add(fiber)
      return new Promise<A>((resolve, reject) => {
        fiber.addObserver((exit) => {
          running.delete(fiber)
          if (Exit.isSuccess(exit)) resolve(exit.value)
          else reject(Cause.squash(exit.cause))
        })
      })
    },
    drain: Effect.suspend(() => Effect.timeoutOption(Fiber.awaitAll([...running]), timeout)).pipe(
      Effect.andThen(
        Effect.sync(() => {
          isClosed = true
        }),
      ),
    ),
  }
}
