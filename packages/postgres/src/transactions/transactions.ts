/** Transactions of the host, opened with a library of its choice. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import { type Join, TransactionFailed, type Transactions } from "@tenure/core/Transactions"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Executor } from "../connection/Executor.ts"
import { sqlStateOf } from "../connection/sqlErrors.ts"
import * as Commits from "./Commits.ts"
import * as HostTransaction from "./HostTransaction.ts"

const failedBy = (error: SqlError): TransactionFailed =>
  new TransactionFailed({ code: sqlStateOf(error), cause: error.reason.cause })

const toFailed = <E>(error: E): E | TransactionFailed =>
  error instanceof StoreUnavailable && isSqlError(error.cause) ? failedBy(error.cause) : error

/** Makes the ability of the stores to work in transactions of the host. */
export const make = Effect.fnUntraced(function* (client: PgClient, executor: Executor) {
  const untilCommit = yield* Commits.make(executor)

  const joinTo = (transaction: HostTransaction.HostTransaction): Join => {
    // Some libraries do not queue statements. And one call must not undo the savepoint of another.
    const turn = Semaphore.makeUnsafe(1)
    return (work) =>
      work.pipe(
        Effect.mapError(toFailed),
        Effect.catchDefect((defect) =>
          isSqlError(defect) ? Effect.fail(failedBy(defect)) : Effect.die(defect),
        ),
        Effect.provideService(HostTransaction.HostTransaction, transaction),
        Effect.provideService(client.transactionService, [transaction.connection, 0]),
        turn.withPermit,
      )
  }

  const transactions: Transactions["Service"] = {
    within: (connection) => joinTo(HostTransaction.make(connection)),

    afterCommit: (eventId, effect) =>
      Effect.flatMap(HostTransaction.HostTransaction, (transaction) => {
        const transactionId = transaction?.id()
        return transactionId === undefined
          ? client.afterCommit(effect)
          : untilCommit({ transactionId, eventId, effect })
      }),
  }
  return transactions
})
