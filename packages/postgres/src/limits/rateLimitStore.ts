/** Token buckets on PostgreSQL. */

import type { RateLimitStore } from "@tenure/core/RateLimitStore"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isSqlError } from "effect/sql/SqlError"
import * as Batch from "../connection/Batch.ts"
import type { Executor, Manner } from "../connection/Executor.ts"
import { regularly } from "../connection/housekeeping.ts"
import { isLockTimeout } from "../connection/sqlErrors.ts"
import { type Answer, type FoundRow, outcomesOf } from "./Answer.ts"
import { findLocked, findLockedParams, type LockedRow } from "./findLocked.sql.ts"
import * as Lines from "./Lines.ts"
import { sweep } from "./sweep.sql.ts"
import { take, takeParams } from "./take.sql.ts"
import { takeMany, takeManyParams, type TakeManyRow } from "./takeMany.sql.ts"

// A request does not wait for locks of buckets: it is limited without the store.
const manner: Manner = { owner: "limits", isBrief: true }

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

const toDemand = ({ line: { buckets }, takes }: Lines.Demand) => ({ buckets, count: takes.length })

/** Splits the rows of a batch among its demands. */
const answersOf = (
  demands: ReadonlyArray<Lines.Demand>,
  rows: ReadonlyArray<TakeManyRow>,
): ReadonlyArray<Answer> => {
  let next = 0
  return demands.map(({ line }) => {
    const own = rows.slice(next, (next += line.buckets.length))
    return { rows: own, isFinal: own.every(({ most, taken }) => taken === most) }
  })
}

/**
 * Makes the store. Takes that arrive while a statement is in flight share the next one: those of the
 * same client as one demand, those of different clients side by side.
 */
export const make = Effect.fnUntraced(function* (executor: Executor) {
  const { schema } = executor
  const sql = {
    ofAddress: take(schema, 1),
    ofKey: take(schema, 3),
    many: takeMany(schema),
    findLocked: findLocked(schema),
  }
  const lines = Lines.make(bounds)
  let inFlight = 0
  let isScheduled = false

  // Cheaper for a single client.
  const takeFor = ({ line: { buckets }, takes }: Lines.Demand) =>
    Effect.map(
      executor.executeApart<FoundRow>(
        buckets.length === 1 ? sql.ofAddress : sql.ofKey,
        takeParams(buckets, takes.length),
        manner,
      ),
      (rows): ReadonlyArray<Answer> => [{ rows, isFinal: true }],
    )

  const takeForAll = (demands: ReadonlyArray<Lines.Demand>) =>
    Effect.map(
      executor.executeApart<TakeManyRow>(sql.many, takeManyParams(demands.map(toDemand)), manner),
      (rows) => answersOf(demands, rows),
    )

  /** Returns for each demand whether none of its buckets is locked. */
  const findUnlocked = (demands: ReadonlyArray<Lines.Demand>) => {
    const keys = demands.flatMap(({ line }) => line.buckets.map(({ key }) => key))
    return Effect.map(
      executor.executeApart<LockedRow>(sql.findLocked, findLockedParams(keys), manner),
      (rows) => {
        const locked = new Set(rows.map(({ key }) => key))
        return demands.map(({ line }) => line.buckets.every(({ key }) => !locked.has(key)))
      },
    )
  }

  const start = yield* Batch.make<Lines.Demand, Answer, StoreUnavailable>({
    run: (demands) => {
      const [first, ...others] = demands
      return first === undefined || others.length > 0 ? takeForAll(demands) : takeFor(first)
    },
    findSound: findUnlocked,
    isOwn: waitedForLock,
  })

  /** Ends a demand. Who is undecided waits again. */
  const settle = (demand: Lines.Demand, exit: Exit.Exit<Answer, StoreUnavailable>): void => {
    const { line, takes } = demand
    if (Exit.isFailure(exit)) {
      lines.settle(demand, [])
      for (const { resume } of takes) resume(Exit.failCause(exit.cause))
      return schedule()
    }
    const outcomes = outcomesOf(line.buckets, exit.value, takes.length)
    lines.settle(demand, takes.slice(outcomes.length))
    for (const [index, outcome] of outcomes.entries()) takes[index]?.resume(Exit.succeed(outcome))
    schedule()
  }

  const flush = (): void => {
    isScheduled = false
    while (inFlight < maxInFlight) {
      const demands = lines.next(performance.now())
      if (demands.length === 0) return
      inFlight++
      const batch = demands.map((item) => ({
        item,
        resume: (exit: Exit.Exit<Answer, StoreUnavailable>) => settle(item, exit),
      }))
      start(batch, () => {
        inFlight--
        schedule()
      })
    }
  }

  // Takes that arrive in the same turn of the event loop share a statement.
  const schedule = (): void => {
    if (isScheduled || inFlight >= maxInFlight) return
    isScheduled = true
    queueMicrotask(flush)
  }

  yield* regularly("1 minute", executor.executeApart(sweep(schema), []))

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
