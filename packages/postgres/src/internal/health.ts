/**
 * Whether the database answers. While it does not, nobody waits for it: what is under way fails at
 * once, and so does all that comes, until a probe has succeeded.
 */

import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

// A statement that takes longer makes the database suspect. Most take a millisecond; one that waits
// for a lock or a connection may well take longer, which is what the probe is for.
const suspicionMillis = 500

const probeMillis = 500

const probeEveryMillis = 500

// The longest that anybody waits for a statement of a database that is well.
const statementMillis = 30_000

/** Runs what needs the database. */
export interface Health {
  /**
   * Runs a query in a fiber of its own for as long as the database is well. Its context is none of
   * the caller's.
   */
  readonly guard: <A, E>(query: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
  /** Says that a connection broke, which may mean that the database is gone. */
  readonly suspect: () => void
}

/**
 * Watches over a database.
 *
 * @param probe - what any database that is well answers at once, whatever else it has to do
 */
export const make = Effect.fnUntraced(function* (
  probe: Effect.Effect<unknown, unknown>,
): Effect.fn.Return<Health, never, Scope.Scope> {
  const fork = Effect.runForkWith(yield* Effect.context())
  // What fails the queries under way.
  const pending = new Set<(cause: unknown) => void>()
  const timers = new Set<NodeJS.Timeout>()
  let down: StoreUnavailable | undefined
  let isProbing = false
  let isClosed = false

  const after = (millis: number, run: () => void): NodeJS.Timeout => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      run()
    }, millis)
    timers.add(timer)
    return timer
  }

  const forget = (timer: NodeJS.Timeout): void => {
    clearTimeout(timer)
    timers.delete(timer)
  }

  /** Runs a query; an interruption is not waited for, since a dead server does not answer it. */
  const run = <A, E>(
    query: Effect.Effect<A, E>,
    millis: number,
    done: (exit: Exit.Exit<A, E | StoreUnavailable>) => void,
  ): Fiber.Fiber<A, E> => {
    const end = (exit: Exit.Exit<A, E | StoreUnavailable>): void => {
      if (!pending.delete(fail)) return
      forget(deadline)
      done(exit)
    }
    const fail = (cause: unknown): void => {
      end(Exit.fail(new StoreUnavailable({ cause })))
      fiber.interruptUnsafe()
    }
    pending.add(fail)
    const deadline = after(millis, () => fail("timeout"))
    const fiber = fork(query)
    fiber.addObserver(end)
    return fiber
  }

  const markDown = (cause: unknown): void => {
    if (isClosed) return
    down = new StoreUnavailable({ cause })
    for (const fail of pending) fail(cause)
    after(probeEveryMillis, suspect)
  }

  const suspect = (): void => {
    if (isProbing || isClosed) return
    isProbing = true
    run(probe, probeMillis, (exit) => {
      isProbing = false
      if (Exit.isSuccess(exit)) down = undefined
      else markDown(Cause.squash(exit.cause))
    })
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      for (const fail of pending) fail("closed")
      for (const timer of timers) clearTimeout(timer)
    }),
  )

  return {
    suspect,
    guard: (query) =>
      Effect.callback((resume) => {
        if (down !== undefined) return resume(Effect.fail(down))
        const suspicion = after(suspicionMillis, suspect)
        const fiber = run(query, statementMillis, (exit) => {
          forget(suspicion)
          resume(exit)
        })
        return Effect.sync(() => fiber.interruptUnsafe())
      }),
  }
})
