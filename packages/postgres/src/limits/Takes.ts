/** Takes from the buckets in the database: for one client, or for several in one statement. */

import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import type { Executor, Manner } from "../connection/Executor.ts"
import { type Answer, answersOf, type Demand } from "./Demand.ts"
import { findLocked, findLockedParams, type LockedRow } from "./findLocked.sql.ts"
import { take, takeParams, type TakeRow } from "./take.sql.ts"
import { takeMany, takeManyParams, type TakeManyRow } from "./takeMany.sql.ts"

/** Asks the database. */
export interface Takes {
  /** Takes for clients, all in one statement. Returns an answer for each. */
  readonly take: (
    demands: ReadonlyArray<Demand>,
  ) => Effect.Effect<ReadonlyArray<Answer>, StoreUnavailable>
  /** Returns for each client whether none of its buckets is locked. */
  readonly areUnlocked: (
    demands: ReadonlyArray<Demand>,
  ) => Effect.Effect<ReadonlyArray<boolean>, StoreUnavailable>
}

// A request does not wait for locks of buckets: it is limited without the store.
const manner: Manner = { owner: "limits", isBrief: true }

const answerOf = (rows: ReadonlyArray<TakeRow>): Answer => ({
  taken: rows[0]?.taken ?? 0,
  isFinal: true,
  now: rows[0]?.now ?? 0,
  tats: rows.map(({ tat }) => tat),
})

/** Makes the functions for one schema. */
export const make = ({ executeApart, schema }: Executor): Takes => {
  const sql = {
    ofAddress: take(schema, 1),
    ofKey: take(schema, 3),
    many: takeMany(schema),
    findLocked: findLocked(schema),
  }

  const takeOne = (demand: Demand) =>
    executeApart<TakeRow>(
      demand.buckets.length === 1 ? sql.ofAddress : sql.ofKey,
      takeParams(demand),
      manner,
    ).pipe(Effect.map((rows) => [answerOf(rows)]))

  const takeAll = (demands: ReadonlyArray<Demand>) =>
    executeApart<TakeManyRow>(sql.many, takeManyParams(demands), manner).pipe(
      Effect.map((rows) =>
        answersOf(
          demands,
          rows.map(({ address, burst, key, ...row }) => ({ ...row, tats: [address, key, burst] })),
        ),
      ),
    )

  return {
    take: (demands) => {
      const [first, ...others] = demands
      // Cheaper for a single client.
      return first !== undefined && others.length === 0 ? takeOne(first) : takeAll(demands)
    },

    areUnlocked: (demands) => {
      const keys = demands.flatMap(({ buckets }) => buckets.map(({ key }) => key))
      return Effect.map(
        executeApart<LockedRow>(sql.findLocked, findLockedParams(keys), manner),
        (rows) => {
          const locked = new Set(rows.map(({ key }) => key))
          return demands.map(({ buckets }) => buckets.every(({ key }) => !locked.has(key)))
        },
      )
    },
  }
}
