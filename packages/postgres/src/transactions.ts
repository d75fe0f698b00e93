/** Joins a host's transactions, and watches for their commits. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import {
  type Join,
  type ProjectId,
  StoreUnavailable,
  TransactionFailed,
  type Transactions,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import type { Connection } from "effect/sql/SqlConnection"
import { type SqlError, isSqlError } from "effect/sql/SqlError"
import { sqlStateOf } from "./connection/errors.ts"
import type { Executor } from "./connection/executor.ts"
import { HostTransaction, makeHostTransaction } from "./connection/host-transaction.ts"
import { textsParam, uuidsParam } from "./sql/values.ts"

/**
 * Returns the positions, from 1, of the transactions `$1` that have ended, and whether the event `$2` in each
 * is committed. A rollback to a savepoint may undo an event alone.
 */
const findCommitted = (schema: string): string => `
  SELECT a.n::integer, e.id IS NOT NULL AS is_committed
  FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS a (transaction_id, event_id, n)
  LEFT JOIN ${schema}.events e ON e.id = a.event_id
  -- Both conditions use the same snapshot.
  WHERE pg_visible_in_snapshot(a.transaction_id::xid8, pg_current_snapshot())
`

/** An event, and the transaction in which it was stored. */
interface StoredEvent {
  readonly transactionId: string
  readonly eventId: string
}

/** The parameters for `findCommitted`. */
const findCommittedParams = (stored: ReadonlyArray<StoredEvent>) => [
  textsParam(stored.map(({ transactionId }) => transactionId)),
  uuidsParam(stored.map(({ eventId }) => eventId)),
]

/** A row from `findCommitted`. */
interface CommittedRow {
  readonly n: number
  readonly is_committed: boolean
}

// How often commits are checked while something waits.
const pollMillis = 100

// Events beyond this number, in transactions that stay open, are not watched.
const maxWaiting = 10_000

interface Waiting extends StoredEvent {
  readonly effect: Effect.Effect<void>
}

/** Runs an effect once an event from a host's transaction is committed. */
type CommitWatcher = (waiting: Waiting) => Effect.Effect<void>

/**
 * Makes a function that runs an effect once an event is committed, and never if it is rolled back. Only the
 * host's library knows when a transaction ends, so the watcher polls for as long as the scope is open.
 *
 * @param executor - runs statements where the event is
 */
export const makeCommitWatcher = Effect.fnUntraced(function* (executor: Executor) {
  const sql = findCommitted(executor.schema)
  const waiting = new Set<Waiting>()
  const isWaiting = yield* Latch.make()

  const poll = Effect.gen(function* () {
    const asked = [...waiting]
    const rows = yield* executor.executeApart<CommittedRow>(sql, findCommittedParams(asked), {
      owner: "commits",
    })
    for (const { is_committed, n } of rows) {
      const one = asked[n - 1]
      if (one === undefined) continue
      waiting.delete(one)
      if (is_committed) yield* one.effect
    }
    if (waiting.size === 0) isWaiting.closeUnsafe()
  })

  yield* isWaiting.await.pipe(
    Effect.andThen(Effect.sleep(pollMillis)),
    // During an outage, it keeps polling.
    Effect.andThen(Effect.ignoreCause(poll)),
    Effect.forever,
    Effect.forkScoped,
  )

  const watcher: CommitWatcher = (one) => {
    if (waiting.size >= maxWaiting) {
      return Effect.logWarning("Too many transactions are open to wait for the commit of an event")
    }
    return Effect.sync(() => {
      waiting.add(one)
      isWaiting.openUnsafe()
    })
  }
  return watcher
})

const failedBy = (error: SqlError): TransactionFailed =>
  new TransactionFailed({ code: sqlStateOf(error), cause: error.reason.cause })

const toFailed = <E>(error: E): E | TransactionFailed =>
  error instanceof StoreUnavailable && isSqlError(error.cause) ? failedBy(error.cause) : error

/**
 * Makes the service that joins stores to a host's transaction, opened with a library of its choice.
 *
 * @param clients - the clients for all servers
 * @param watcherOf - returns the watcher for events in the project
 */
export const makeTransactions = (
  clients: readonly [PgClient, ...ReadonlyArray<PgClient>],
  watcherOf: (projectId: ProjectId) => CommitWatcher,
): Transactions["Service"] => {
  /** Makes all clients use one connection, whichever a statement is for. */
  const joined = (connection: Connection) => {
    const context = Context.empty()
    return clients.reduce(
      (all, { transactionService }) =>
        Context.add(all, transactionService, [connection, 0] as const),
      context,
    )
  }

  const joinTo = (transaction: HostTransaction): Join => {
    // Some libraries do not queue statements, and one call must not undo another's savepoint.
    const turn = Semaphore.makeUnsafe(1)
    return (work) =>
      work.pipe(
        Effect.mapError(toFailed),
        Effect.catchDefect((defect) =>
          isSqlError(defect) ? Effect.fail(failedBy(defect)) : Effect.die(defect),
        ),
        Effect.provideService(HostTransaction, transaction),
        Effect.provideContext(joined(transaction.connection)),
        turn.withPermit,
      )
  }

  return {
    within: (connection) => joinTo(makeHostTransaction(connection)),

    afterCommit: ({ id, projectId }, effect) =>
      Effect.flatMap(HostTransaction, (transaction) => {
        const transactionId = transaction?.id()
        return transactionId === undefined
          ? clients[0].afterCommit(effect)
          : watcherOf(projectId)({ transactionId, eventId: id, effect })
      }),
  }
}
