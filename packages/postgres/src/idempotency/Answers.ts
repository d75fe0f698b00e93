/** Makes changes with an idempotency key once. */

import {
  type Conflict,
  IdempotencyInProgress,
  IdempotencyMismatch,
  type Once,
  type Replayed,
  replayed,
} from "@tenure/core/Once"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import type { Executor } from "../connection/Executor.ts"
import { text } from "../connection/parameters.ts"
import { isLockTimeout, isTakenIn } from "../connection/sqlErrors.ts"
import { formOf, forms } from "./fragments.sql.ts"
import { type AnswerRow, keep, recall } from "./recall.sql.ts"

/** The answers to requests with an idempotency key. */
export interface Answers {
  /** Returns what was answered to a request; `undefined` if nothing was. */
  readonly recall: (
    once: Once,
  ) => Effect.Effect<Replayed | undefined, IdempotencyMismatch | StoreUnavailable>
  /**
   * Makes a change by a statement with the parts of `once`. If the change fails, it may have been made
   * before. A change without a key is made.
   */
  readonly change: <A, E>(
    once: Once | undefined,
    change: Effect.Effect<A, E | StoreUnavailable>,
  ) => Effect.Effect<A | Replayed, E | Conflict | StoreUnavailable>
  /** Stores the key of a change that changes nothing, with the answer that `once` has. */
  readonly keep: (
    once: Once,
    projectId: ProjectId,
  ) => Effect.Effect<Replayed | void, ProjectNotFound | Conflict | StoreUnavailable>
}

// What a repetition waits for is as a rule not the key, but what the first request has locked.
const hasWaited = (error: unknown): boolean =>
  error instanceof StoreUnavailable && isSqlError(error.cause) && isLockTimeout(error.cause)

// Only in a transaction of the host: elsewhere, the statement that has lost the race is repeated.
const wasOvertaken = (defect: unknown): boolean =>
  isSqlError(defect) && isTakenIn(defect, "answers")

/** Makes the answers. */
export const make = (executor: Executor): Answers => {
  const statement = recall(executor.schema)

  const find: Answers["recall"] = Effect.fnUntraced(function* ({ fingerprint, key, owner }) {
    const params = [text(owner), text(key), text(fingerprint)]
    const [row] = yield* executor.execute<AnswerRow>(statement, params, { owner })
    if (row === undefined) return undefined
    return row.fingerprint === fingerprint ? replayed(row.answer) : yield* new IdempotencyMismatch()
  })

  const changeOnce: Answers["change"] = <A, E>(
    once: Once | undefined,
    change: Effect.Effect<A, E | StoreUnavailable>,
  ): Effect.Effect<A | Replayed, E | Conflict | StoreUnavailable> => {
    if (once === undefined) return change
    const repeatable = Effect.catch(
      executor.recoverably(change),
      Effect.fnUntraced(function* (error: E | StoreUnavailable) {
        if (hasWaited(error)) return yield* new IdempotencyInProgress()
        if (error instanceof StoreUnavailable) return yield* Effect.fail(error)
        return (yield* find(once)) ?? (yield* Effect.fail(error))
      }),
    )
    // The answer may be newer than what the transaction sees.
    const overtaken = Effect.flatMap(find(once), (known) =>
      known === undefined ? Effect.fail(new IdempotencyInProgress()) : Effect.succeed(known),
    )
    return Effect.catchDefect(repeatable, (defect) =>
      wasOvertaken(defect) ? overtaken : Effect.die(defect),
    )
  }

  const keepForms = forms(executor.schema, keep, 1)

  const keepOne = Effect.fnUntraced(function* (once: Once, projectId: ProjectId) {
    const form = formOf(keepForms, [text(projectId)], once)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  return {
    recall: find,
    change: changeOnce,
    keep: (once, projectId) => changeOnce(once, keepOne(once, projectId)),
  }
}
