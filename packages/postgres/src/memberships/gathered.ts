/** Changes of one membership each, which share statements. */

import type { Grant } from "@tenure/core/MembershipStore"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import type { Executor, Manner } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { isLockTimeout } from "../connection/sqlErrors.ts"
import { findUnlockedParams } from "./findUnlocked.sql.ts"
import type { EachRow } from "./fragments.sql.ts"

/** How changes of one kind are made. */
export interface Options<Change, Row> {
  /** Whose statements they are, outside of the host's transactions. */
  readonly owner: string
  /** Runs the statement of many changes, of which one alone may have an idempotency key. Returns a row for each that found what it changes. */
  readonly run: (
    changes: ReadonlyArray<Change>,
    manner: Manner,
  ) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  /** The statement that finds the changes that need not wait for a lock. */
  readonly findUnlocked: string
}

const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

const memberKey = ({ projectId, userId }: Grant): string => `${userId} ${projectId}`

/**
 * Makes a function that makes a change, in one statement with others that arrive meanwhile. It returns
 * the row of the change, or `null` if there is not what the change needs. In a transaction of the host,
 * the change is made there. One with an idempotency key has a statement of its own.
 */
export const make = Effect.fnUntraced(function* <Change extends Grant, Row extends EachRow>(
  executor: Executor,
  { findUnlocked, owner, run }: Options<Change, Row>,
) {
  // A batch has changes of many projects, and does not wait for locks with all of them.
  const together: Manner = { owner, isBrief: true }

  const changeOne = (change: Change) =>
    Effect.map(run([change], { owner: change.projectId }), ([row = null]) => row)

  const gather = yield* Gather.make({
    run: (changes: ReadonlyArray<Change>) =>
      Effect.map(run(changes, together), (rows) => Gather.rowsOf(changes, rows)),
    runAlone: changeOne,
    findSound: (changes) =>
      Effect.map(
        executor.executeApart<EachRow>(findUnlocked, findUnlockedParams(changes), together),
        (rows) => Gather.isAmong(changes, rows),
      ),
    keyOf: memberKey,
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  return (change: Change): Effect.Effect<Row | null, StoreUnavailable> =>
    Effect.flatMap(executor.isInTransaction, (isJoined) =>
      isJoined || change.once !== undefined ? changeOne(change) : gather(change),
    )
})
