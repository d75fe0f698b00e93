/**
 * Whether the database answers. While it does not, queries fail at once, both those in flight and
 * those that arrive, until a probe succeeds.
 */

import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

// Most queries take a millisecond. A query that takes this long triggers a probe, which shows whether
// the database is down or the query only waits for a lock or a connection.
const suspicionMillis = 500

const probeTimeoutMillis = 500

const probeIntervalMillis = 500

// The longest that a query may take while the database answers probes.
const queryTimeoutMillis = 30_000

/** Guards queries against a database that does not answer. */
export interface Health {
  /**
   * Runs a query in a new fiber, without the caller's context. Fails with `StoreUnavailable` as soon
   * as the database is known not to answer, or if the query takes longer than 30 seconds.
   */
  readonly guard: <A, E>(query: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
  /** Triggers a probe. Call it when a connection breaks. */
  readonly suspect: () => void
}

/** Timers that can be cleared together. */
const makeTimers = () => {
  const timers = new Set<NodeJS.Timeout>()
  return {
    start: (millis: number, run: () => void): NodeJS.Timeout => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        run()
      }, millis)
      timers.add(timer)
      return timer
    },
    clear: (timer: NodeJS.Timeout): void => {
      clearTimeout(timer)
      timers.delete(timer)
    },
    clearAll: (): void => {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

/**
 * Watches a database for as long as the scope is open.
 *
 * @param probe - a query that a healthy database answers at once, however busy it is
 */
export const make = Effect.fnUntraced(function* (
  probe: Effect.Effect<unknown, unknown>,
): Effect.fn.Return<Health, never, Scope.Scope> {
  const fork = Effect.runForkWith(yield* Effect.context())
  // Functions that fail the queries in flight.
  const inFlight = new Set<(cause: unknown) => void>()
  const timers = makeTimers()
  let unavailable: StoreUnavailable | undefined
  let isProbing = false
  let isClosed = false

  /** Runs a query. Does not wait for an interruption, which a dead server never acknowledges. */
  const run = <A, E>(
    query: Effect.Effect<A, E>,
    timeoutMillis: number,
    done: (exit: Exit.Exit<A, E | StoreUnavailable>) => void,
  ): Fiber.Fiber<A, E> => {
    const end = (exit: Exit.Exit<A, E | StoreUnavailable>): void => {
      if (!inFlight.delete(fail)) return
      timers.clear(timeout)
      done(exit)
    }
    const fail = (cause: unknown): void => {
      end(Exit.fail(new StoreUnavailable({ cause })))
      fiber.interruptUnsafe()
    }
    inFlight.add(fail)
    const timeout = timers.start(timeoutMillis, () => fail("timeout"))
    const fiber = fork(query)
    fiber.addObserver(end)
    return fiber
  }

  const failAll = (cause: unknown): void => {
    for (const fail of inFlight) fail(cause)
  }

  const markUnavailable = (cause: unknown): void => {
    if (isClosed) return
    unavailable = new StoreUnavailable({ cause })
    failAll(cause)
    timers.start(probeIntervalMillis, suspect)
  }

  const suspect = (): void => {
    if (isProbing || isClosed) return
    isProbing = true
    run(probe, probeTimeoutMillis, (exit) => {
      isProbing = false
      if (Exit.isSuccess(exit)) unavailable = undefined
      else markUnavailable(Cause.squash(exit.cause))
    })
  }

  const guard: Health["guard"] = (query) =>
    Effect.callback((resume) => {
      if (unavailable !== undefined) return resume(Effect.fail(unavailable))
      const suspicion = timers.start(suspicionMillis, suspect)
      const fiber = run(query, queryTimeoutMillis, (exit) => {
        timers.clear(suspicion)
        resume(exit)
      })
      return Effect.sync(() => fiber.interruptUnsafe())
    })

  const close = Effect.sync(() => {
    isClosed = true
    failAll("closed")
    timers.clearAll()
  })
  yield* Effect.addFinalizer(() => close)

  return { guard, suspect }
})
