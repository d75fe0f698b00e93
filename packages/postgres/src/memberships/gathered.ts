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
  /**
   * Runs the statement of many changes, of which all have an idempotency key or none has. Returns a row for
   * each that found what it changes and whose key was unknown.
   */
  readonly run: (
    changes: ReadonlyArray<Change>,
    manner: Manner,
  ) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  /** The statement that finds the changes that need not wait for a lock. */
  readonly findUnlocked: string
  /** Whether a statement can have several changes of one member, which it makes in order. Default: `false`. */
  readonly isStacking?: boolean
}

/** Whether an item of a batch may have met a lock, which the others need not wait for. */
export const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

/** A text that no other member has. */
export const memberOf = ({ projectId, userId }: Grant): string => `${userId} ${projectId}`

/** The member of a change, and its idempotency key. */
const keysOf = (change: Grant): ReadonlyArray<string> => {
  const { once } = change
  const member = memberOf(change)
  return once === undefined ? [member] : [member, ` ${once.owner} ${once.key}`]
}

/**
 * Makes a function that makes a change, in one statement with others that arrive meanwhile. It returns
 * the row of the change, or `null` if there is not what the change needs. In a transaction of the host,
 * the change is made there. Changes with idempotency keys share statements with each other.
 */
export const make = Effect.fnUntraced(function* <Change extends Grant, Row extends EachRow>(
  executor: Executor,
  { findUnlocked, isStacking = false, owner, run }: Options<Change, Row>,
) {
  // A batch has changes of many projects, and does not wait for locks with all of them.
  const together: Manner = { owner, isBrief: true }

  /** Makes changes of one project, and waits for its locks. */
  const changeApart = (changes: ReadonlyArray<Change>) =>
    Effect.map(run(changes, { owner: changes[0]?.projectId }), (rows) =>
      Gather.rowsOf(changes, rows),
    )

  const makeGather = Gather.make({
    run: (changes: ReadonlyArray<Change>) =>
      Effect.map(run(changes, together), (rows) => Gather.rowsOf(changes, rows)),
    runAlone: changeApart,
    stackOf: isStacking ? memberOf : () => undefined,
    findSound: (changes) =>
      Effect.map(
        executor.executeApart<EachRow>(findUnlocked, findUnlockedParams(changes), together),
        (rows) => Gather.isAmong(changes, rows),
      ),
    keysOf,
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const gather = yield* makeGather
  const gatherOnce = yield* makeGather

  return (change: Change): Effect.Effect<Row | null, StoreUnavailable> =>
    Effect.flatMap(executor.isInTransaction, (isJoined) => {
      if (isJoined) return Effect.map(changeApart([change]), ([row = null]) => row)
      return change.once === undefined ? gather(change) : gatherOnce(change)
    })
})
