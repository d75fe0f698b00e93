/**
 * Whether the database answers, and each connection with it. While the database does not, calls fail
 * at once, both those in flight and those that arrive. A connection that has died in silence is
 * destroyed, and replaced by the next call.
 */

import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Connections } from "./Connections.ts"
import * as Monitor from "./Monitor.ts"
import * as Patience from "./Patience.ts"
import * as Silence from "./Silence.ts"

// How often calls in flight are looked at.
const tickMillis = 100

// While the database does not answer, a new attempt starts this often, beside those that still wait.
const attemptMillis = 1000

/** Guards calls against a database that does not answer. */
export interface Health {
  /**
   * Runs a call in a new fiber, without the caller's context. Fails with `StoreUnavailable` as soon as
   * the database is known not to answer, or if the call takes longer than the limit.
   */
  readonly guard: <A, E>(
    call: Effect.Effect<A, E>,
    limitMillis: number,
  ) => Effect.Effect<A, E | StoreUnavailable>
  /** Asks the database whether it answers. Call it when a connection breaks. */
  readonly suspect: () => void
  /** Asks the database, on a connection of its own, and returns whether it refuses changes. */
  readonly isReadOnly: Effect.Effect<boolean, StoreUnavailable>
}

/** A call in flight. */
interface Call {
  readonly since: number
  readonly until: number
  readonly fail: (cause: unknown) => void
}

/** Watches a database for as long as the scope is open. Closes the connections. */
export const make = Effect.fnUntraced(function* (
  connections: Connections,
): Effect.fn.Return<Health, never, Scope.Scope> {
  const fork = Effect.runForkWith(yield* Effect.context())
  const monitor = Monitor.make(connections)
  const silence = Silence.make(connections)
  const calls = new Set<Call>()
  const working = new Set<Fiber.Fiber<unknown, unknown>>()
  let unavailable: StoreUnavailable | undefined
  let checking: Deferred.Deferred<boolean, StoreUnavailable> | undefined
  let isClosed = false

  /** Runs an effect that ends with the scope. */
  const start = <A, E>(
    effect: Effect.Effect<A, E>,
    done: (exit: Exit.Exit<A, E>) => void,
  ): void => {
    const fiber = fork(effect)
    working.add(fiber)
    fiber.addObserver((exit) => {
      working.delete(fiber)
      done(exit)
    })
  }

  const failAll = (cause: unknown): void => {
    for (const { fail } of calls) fail(cause)
  }

  /** Refuses all calls until the database answers. */
  const refuse = (cause: unknown): StoreUnavailable => {
    const refusal = new StoreUnavailable({ cause })
    if (isClosed) return refusal
    unavailable = refusal
    failAll(cause)
    connections.destroyAll()
    start(monitor.untilAnswered(attemptMillis), () => {
      if (!isClosed) unavailable = undefined
    })
    return refusal
  }

  /** Judges the outcome of a question. */
  const judge = (
    exit: Exit.Exit<Monitor.Answer, unknown>,
    answeredBefore: number,
  ): Exit.Exit<boolean, StoreUnavailable> => {
    if (Exit.isSuccess(exit)) {
      silence.end(exit.value.working)
      return Exit.succeed(exit.value.isReadOnly)
    }
    const cause = Cause.squash(exit.cause)
    // It does answer, if more slowly than it used to.
    const isAlive = connections.answered() > answeredBefore
    return Exit.fail(isAlive ? new StoreUnavailable({ cause }) : refuse(cause))
  }

  /** Asks the database, unless the question is already on its way. */
  const check = (): Deferred.Deferred<boolean, StoreUnavailable> => {
    if (checking !== undefined) return checking
    const asked = Deferred.makeUnsafe<boolean, StoreUnavailable>()
    checking = asked
    const answeredBefore = connections.answered()
    start(monitor.ask(silence.suspects()), (exit) => {
      checking = undefined
      Deferred.doneUnsafe(asked, judge(exit, answeredBefore))
    })
    return asked
  }

  const suspect = (): void => {
    if (unavailable === undefined && !isClosed) check()
  }

  const tick = (): void => {
    const now = performance.now()
    const overdueMillis = Patience.overdueMillis(connections.latency())
    let isOverdue = false
    for (const { fail, since, until } of calls) {
      if (now >= until) {
        fail("timeout")
        // Behind a pooler, this is the only sign of connections that have died in silence.
        if (connections.isPooled()) connections.destroyIdle()
      } else if (now - since >= overdueMillis) isOverdue = true
    }
    if (isOverdue) suspect()
  }

  const guard: Health["guard"] = (call, limitMillis) =>
    Effect.callback((resume) => {
      if (unavailable !== undefined) return resume(Effect.fail(unavailable))
      const since = performance.now()
      const fiber = fork(call)
      // Does not wait for an interruption, which a dead server never acknowledges.
      const fail = (cause: unknown): void => {
        if (!calls.delete(entry)) return
        resume(Effect.fail(new StoreUnavailable({ cause })))
        fiber.interruptUnsafe()
      }
      const entry = { since, until: since + limitMillis, fail }
      calls.add(entry)
      fiber.addObserver((exit) => {
        if (calls.delete(entry)) resume(exit)
      })
      return Effect.sync(() => fiber.interruptUnsafe())
    })

  const close = Effect.sync(() => {
    isClosed = true
    unavailable = new StoreUnavailable({ cause: "closed" })
    failAll("closed")
    for (const fiber of working) fiber.interruptUnsafe()
    connections.close()
  })

  yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(tick), tickMillis)))
  yield* Effect.addFinalizer(() => close)

  return {
    guard,
    suspect,
    isReadOnly: Effect.suspend(() =>
      unavailable === undefined ? Deferred.await(check()) : Effect.fail(unavailable),
    ),
  }
})
