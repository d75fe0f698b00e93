/** Makes changes with an idempotency key once: stores each key with its response, and replays the response. */

import {
  type IdempotencyConflict,
  IdempotencyInProgress,
  type IdempotencyKey,
  IdempotencyMismatch,
  type ProjectId,
  ProjectNotFound,
  type ReplayedResponse,
  StoreUnavailable,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { isTakenIn, waitedForLock } from "./connection/errors.ts"
import type { Executor } from "./connection/executor.ts"
import { type KeyClause, keyProjectExists, pickForm, withAndWithoutKey } from "./sql/clauses.ts"
import { textParam } from "./sql/values.ts"

/**
 * Returns the stored response for an idempotency key, and the request's fingerprint, if the key is known. A
 * move may have brought several requests together: then it is the one with the fingerprint `$3`.
 */
const findResponse = (schema: string): string => `
  SELECT k.fingerprint, k.response FROM ${schema}.idempotency_keys k
  WHERE k.owner = $1::text AND k.key = $2::text AND ${keyProjectExists(schema)}
  ORDER BY k.fingerprint = $3::text DESC
  LIMIT 1
`

/** The row from `findResponse`. */
interface ResponseRow {
  readonly fingerprint: string
  readonly response: string
}

/** Stores an idempotency key for the project `$1`, unless the key is known. Returns a row if it is stored. */
const keep = (schema: string, idempotency: KeyClause): string => `
  WITH found AS MATERIALIZED (
    SELECT p.number AS project_number FROM ${schema}.projects p
    WHERE p.id = $1::text ${idempotency.condition}
  )${idempotency.keeping("found")}
  SELECT 1 FROM found
`

/** The stored responses to requests with an idempotency key. */
export interface IdempotencyStore {
  /** Returns the stored response to a request, or `undefined`. */
  readonly recall: (
    idempotency: IdempotencyKey,
  ) => Effect.Effect<ReplayedResponse | undefined, IdempotencyMismatch | StoreUnavailable>
  /**
   * Makes a change with a statement that has the clause for `idempotency`. If the change fails, it may have been
   * made before. A change without a key is simply made.
   */
  readonly change: <A, E>(
    idempotency: IdempotencyKey | undefined,
    change: Effect.Effect<A, E | StoreUnavailable>,
  ) => Effect.Effect<A | ReplayedResponse, E | IdempotencyConflict | StoreUnavailable>
  /** Stores the key for a change that changes nothing, with the response in `idempotency`. */
  readonly keep: (
    idempotency: IdempotencyKey,
    projectId: ProjectId,
  ) => Effect.Effect<
    ReplayedResponse | void,
    ProjectNotFound | IdempotencyConflict | StoreUnavailable
  >
}

// A repetition usually waits not for the key, but for what the first request has locked.
const hasWaited = (error: unknown): boolean =>
  error instanceof StoreUnavailable && waitedForLock(error)

// Only in a host's transaction, because elsewhere the losing statement runs again.
const wasOvertaken = (defect: unknown): boolean =>
  isSqlError(defect) && isTakenIn(defect, "idempotency_keys")

/** Makes the store for idempotency keys. */
export const makeIdempotencyStore = (executor: Executor): IdempotencyStore => {
  const statement = findResponse(executor.schema)

  const find: IdempotencyStore["recall"] = Effect.fnUntraced(function* ({
    fingerprint,
    key,
    owner,
  }) {
    const params = [textParam(owner), textParam(key), textParam(fingerprint)]
    const [row] = yield* executor.execute<ResponseRow>(statement, params, { owner })
    if (row === undefined) return undefined
    return row.fingerprint === fingerprint
      ? replayedResponse(row.response)
      : yield* new IdempotencyMismatch()
  })

  const changeOnce: IdempotencyStore["change"] = <A, E>(
    idempotency: IdempotencyKey | undefined,
    change: Effect.Effect<A, E | StoreUnavailable>,
  ): Effect.Effect<A | ReplayedResponse, E | IdempotencyConflict | StoreUnavailable> => {
    if (idempotency === undefined) return change
    const repeatable = Effect.catch(
      executor.recoverably(change),
      Effect.fnUntraced(function* (error: E | StoreUnavailable) {
        if (hasWaited(error)) return yield* new IdempotencyInProgress()
        if (error instanceof StoreUnavailable) return yield* Effect.fail(error)
        return (yield* find(idempotency)) ?? (yield* Effect.fail(error))
      }),
    )
    // The response may be newer than the transaction's snapshot.
    const overtaken = Effect.flatMap(find(idempotency), (known) =>
      known === undefined ? Effect.fail(new IdempotencyInProgress()) : Effect.succeed(known),
    )
    return Effect.catchDefect(repeatable, (defect) =>
      wasOvertaken(defect) ? overtaken : Effect.die(defect),
    )
  }

  const keepForms = withAndWithoutKey(executor.schema, keep, 1)

  const keepOne = Effect.fnUntraced(function* (idempotency: IdempotencyKey, projectId: ProjectId) {
    const form = pickForm(keepForms, [textParam(projectId)], idempotency)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  return {
    recall: find,
    change: changeOnce,
    keep: (idempotency, projectId) => changeOnce(idempotency, keepOne(idempotency, projectId)),
  }
}
