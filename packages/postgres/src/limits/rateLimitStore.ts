/** Token buckets on PostgreSQL. */

import type { RateLimitStore } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isSqlError } from "effect/sql/SqlError"
import * as Batch from "../connection/Batch.ts"
import type { Executor } from "../connection/Executor.ts"
import { regularly } from "../connection/housekeeping.ts"
import { isLockTimeout } from "../connection/sqlErrors.ts"
import { type Answer, outcomesOf } from "./Demand.ts"
import * as Lines from "./Lines.ts"
import { sweep } from "./sweep.sql.ts"
import * as Takes from "./Takes.ts"

const maxInFlight = 2

const bounds: Lines.Bounds = {
  clients: 256,
  examined: 2048,
  takes: 1000,
  waitingOfClient: 1000,
  waiting: 10_000,
  millis: 10_000,
  rounds: 3,
}

const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

/**
 * Makes the store. Takes that arrive while statements are in flight share the next one: those of the
 * same client are counted together, those of different clients stand side by side.
 */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  const takes = Takes.make(executor)
  const lines = Lines.make(bounds)
  let inFlight = 0
  let isScheduled = false

  const start = yield* Batch.make<Lines.Turn, Answer, StoreUnavailable>({
    run: takes.take,
    findSound: takes.areUnlocked,
    isOwn: waitedForLock,
  })

  /** Ends a turn. Takes that are undecided wait for another. */
  const settle = (turn: Lines.Turn, exit: Exit.Exit<Answer, StoreUnavailable>): void => {
    const outcomes = Exit.isSuccess(exit)
      ? outcomesOf(turn, exit.value).map(Exit.succeed)
      : turn.takes.map(() => Exit.failCause(exit.cause))
    lines.settle(turn, turn.takes.slice(outcomes.length))
    for (const [index, outcome] of outcomes.entries()) turn.takes[index]?.resume(outcome)
    schedule()
  }

  const flush = (): void => {
    isScheduled = false
    while (inFlight < maxInFlight) {
      const turns = lines.next(performance.now())
      if (turns.length === 0) return
      inFlight++
      start(
        turns.map((turn) => ({ item: turn, resume: (exit) => settle(turn, exit) })),
        () => {
          inFlight--
          schedule()
        },
      )
    }
  }

  // Takes that arrive in the same turn of the event loop share a statement.
  const schedule = (): void => {
    if (isScheduled || inFlight >= maxInFlight) return
    isScheduled = true
    queueMicrotask(flush)
  }

  yield* regularly("1 minute", executor.executeApart(sweep(executor.schema), []))

  const store: RateLimitStore["Service"] = {
    ping: executor.ping,

    take: (client, policies) =>
      Effect.callback((resume) => {
        const remove = lines.add(client, policies, { resume, since: performance.now() })
        schedule()
        return Effect.sync(remove)
      }),
  }
  return store
})
