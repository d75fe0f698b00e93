/** Memberships on PostgreSQL. */

import { MembershipNotFound } from "@tenure/core/Membership"
import type { Grant, MembershipStore } from "@tenure/core/MembershipStore"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import type { Executor } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { integer, text } from "../connection/parameters.ts"
import { isLockTimeout } from "../connection/sqlErrors.ts"
import type { Notifications } from "../outbox/Notifications.ts"
import { createProject } from "./createProject.sql.ts"
import { end } from "./end.sql.ts"
import { extend, extendParams } from "./extend.sql.ts"
import { extendAll } from "./extendAll.sql.ts"
import { extendShorter } from "./extendShorter.sql.ts"
import { findMembership } from "./findMembership.sql.ts"
import { type ChangeRow, changeParams } from "./fragments.sql.ts"
import { grant } from "./grant.sql.ts"
import { type HistoryRow, projectHistory, toAuditRow, userHistory } from "./history.sql.ts"
import { listMemberships, type MembershipRow, toMembership } from "./listMemberships.sql.ts"

// How long an extension waits for a lock. In a batch the wait is short, because the others wait with
// it; alone it is as long as a client can be expected to wait.
const batchLockTimeout = "100ms"
const singleLockTimeout = "5s"

const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

const memberKey = ({ projectId, userId }: Grant): string => `${userId} ${projectId}`

/** Fails with `ProjectNotFound` if a statement returned no row, which means a missing project. */
const rowsOfProject = <Row>(
  projectId: ProjectId,
  rows: ReadonlyArray<Row>,
): Effect.Effect<ReadonlyArray<Row>, ProjectNotFound> =>
  rows.length === 0 ? Effect.fail(new ProjectNotFound({ projectId })) : Effect.succeed(rows)

/** Makes the store. */
export const make = Effect.fnUntraced(function* (executor: Executor, notifications: Notifications) {
  const { schema } = executor
  const sql = {
    createProject: createProject(schema),
    find: findMembership(schema),
    list: listMemberships(schema),
    projectHistory: projectHistory(schema),
    userHistory: userHistory(schema),
    grant: grant(schema),
    extend: extend(schema),
    extendAll: { set: extendAll(schema), neverShorten: extendShorter(schema) },
    end: end(schema),
  }

  /** Runs a statement that changes memberships, and notifies dispatchers of new deliveries. */
  const change = Effect.fnUntraced(function* <Row extends ChangeRow>(
    statement: string,
    params: ReadonlyArray<unknown>,
  ) {
    const rows = yield* executor.execute<Row>(statement, params)
    if (rows.some(({ deliveries }) => deliveries > 0)) {
      yield* executor.afterCommit(notifications.notify)
    }
    return rows
  })

  /** Extends memberships. Returns for each whether it exists. */
  const extendMany = Effect.fnUntraced(function* (
    extensions: ReadonlyArray<Grant>,
    lockTimeout: string | undefined,
  ) {
    const params = extendParams(extensions, lockTimeout)
    const rows = yield* change<ChangeRow & { readonly n: number }>(sql.extend, params)
    return Gather.isAmong(extensions, rows)
  })

  const extendGathered = yield* Gather.make({
    run: (extensions) =>
      extendMany(extensions, extensions.length > 1 ? batchLockTimeout : singleLockTimeout),
    keyOf: memberKey,
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
  })

  const store: MembershipStore["Service"] = {
    ping: executor.ping,

    createProject: (projectId) =>
      Effect.asVoid(executor.execute(sql.createProject, [text(projectId)])),

    grant: Effect.fnUntraced(function* (granted) {
      const { endDate, projectId, userId } = granted
      const rows = yield* change(sql.grant, changeParams(granted, userId, endDate))
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
    }),

    extend: Effect.fnUntraced(function* (extension) {
      const { projectId, userId } = extension
      const isFound = (yield* executor.isInTransaction)
        ? (yield* extendMany([extension], undefined))[0]
        : yield* extendGathered(extension)
      if (isFound !== true) return yield* new MembershipNotFound({ projectId, userId })
    }),

    extendAll: Effect.fnUntraced(function* (extension) {
      const { endDate, mode, projectId } = extension
      const [row] = yield* change<ChangeRow & { readonly total: bigint }>(
        sql.extendAll[mode],
        changeParams(extension, undefined, endDate),
      )
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : Number(row.total)
    }),

    end: Effect.fnUntraced(function* (ending) {
      const { projectId, userId } = ending
      const rows = yield* change(sql.end, changeParams(ending, userId, undefined))
      if (rows.length === 0) return yield* new MembershipNotFound({ projectId, userId })
    }),

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [text(projectId), text(userId)]
      const rows = yield* executor.execute<MembershipRow>(sql.find, params)
      const [membership] = rows.flatMap((row) => toMembership(projectId, row))
      return membership ?? (yield* new MembershipNotFound({ projectId, userId }))
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit }) {
      const params = [text(projectId), text(after ?? ""), integer(limit)]
      const rows = yield* executor.execute<MembershipRow>(sql.list, params)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toMembership(projectId, row))
    }),

    history: Effect.fnUntraced(function* (projectId, { limit, userId }) {
      const params = [text(projectId), integer(limit)]
      const rows = yield* userId === undefined
        ? executor.execute<HistoryRow>(sql.projectHistory, params)
        : executor.execute<HistoryRow>(sql.userHistory, [...params, text(userId)])
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toAuditRow(projectId, row))
    }),
  }
  return store
})
