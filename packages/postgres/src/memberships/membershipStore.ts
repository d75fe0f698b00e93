/** Memberships on PostgreSQL. */

import { MembershipNotFound } from "@tenure/core/Membership"
import type { Grant, MembershipStore } from "@tenure/core/MembershipStore"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { type Executor, type Manner, readsOf } from "../connection/Executor.ts"
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
import { findUnlocked, findUnlockedParams } from "./findUnlocked.sql.ts"
import { type ChangeRow, changeParams } from "./fragments.sql.ts"
import { grant } from "./grant.sql.ts"
import { type HistoryRow, projectHistory, toAuditRow, userHistory } from "./history.sql.ts"
import { listMemberships, type MembershipRow, toMembership } from "./listMemberships.sql.ts"

// A batch has extensions of many projects, and does not wait for locks with all of them.
const gathered: Manner = { owner: "extensions", isBrief: true }

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
    findUnlocked: findUnlocked(schema),
    extendAll: { set: extendAll(schema), neverShorten: extendShorter(schema) },
    end: end(schema),
  }

  /** Runs a statement that changes memberships, and notifies dispatchers of new deliveries. */
  const change = Effect.fnUntraced(function* <Row extends ChangeRow>(
    statement: string,
    params: ReadonlyArray<unknown>,
    manner: Manner,
  ) {
    const rows = yield* executor.execute<Row>(statement, params, manner)
    if (rows.some(({ deliveries }) => deliveries > 0)) {
      yield* executor.afterCommit(notifications.notify)
    }
    return rows
  })

  /** Extends memberships. Returns for each whether it exists. */
  const extendMany = Effect.fnUntraced(function* (
    extensions: ReadonlyArray<Grant>,
    manner: Manner,
  ) {
    const params = extendParams(extensions)
    const rows = yield* change<ChangeRow & { readonly n: number }>(sql.extend, params, manner)
    return Gather.isAmong(extensions, rows)
  })

  const extendOne = (extension: Grant) =>
    Effect.map(extendMany([extension], { owner: extension.projectId }), ([isFound]) => isFound)

  const extendGathered = yield* Gather.make({
    run: (extensions: ReadonlyArray<Grant>) => extendMany(extensions, gathered),
    runAlone: (extension) => Effect.map(extendOne(extension), (isFound) => isFound === true),
    findSound: (extensions) =>
      executor
        .executeApart<{ readonly n: number }>(
          sql.findUnlocked,
          findUnlockedParams(extensions),
          gathered,
        )
        .pipe(Effect.map((rows) => Gather.isAmong(extensions, rows))),
    keyOf: memberKey,
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
  })

  const store: MembershipStore["Service"] = {
    ping: executor.ping,

    createProject: (projectId) =>
      Effect.asVoid(executor.execute(sql.createProject, [text(projectId)], { owner: projectId })),

    grant: Effect.fnUntraced(function* (granted) {
      const { endDate, projectId, userId } = granted
      const params = changeParams(granted, userId, endDate)
      const rows = yield* change(sql.grant, params, { owner: projectId })
      if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
    }),

    extend: Effect.fnUntraced(function* (extension) {
      const { projectId, userId } = extension
      const isFound = (yield* executor.isInTransaction)
        ? yield* extendOne(extension)
        : yield* extendGathered(extension)
      if (isFound !== true) return yield* new MembershipNotFound({ projectId, userId })
    }),

    extendAll: Effect.fnUntraced(function* (extension) {
      const { endDate, mode, projectId } = extension
      const [row] = yield* change<ChangeRow & { readonly total: bigint }>(
        sql.extendAll[mode],
        changeParams(extension, undefined, endDate),
        { owner: projectId, isLong: mode === "neverShorten" },
      )
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : Number(row.total)
    }),

    end: Effect.fnUntraced(function* (ending) {
      const { projectId, userId } = ending
      const params = changeParams(ending, userId, undefined)
      const rows = yield* change(sql.end, params, { owner: projectId })
      if (rows.length === 0) return yield* new MembershipNotFound({ projectId, userId })
    }),

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [text(projectId), text(userId)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<MembershipRow>(sql.find, params, manner)
      const [membership] = rows.flatMap((row) => toMembership(projectId, row))
      return membership ?? (yield* new MembershipNotFound({ projectId, userId }))
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit }) {
      const params = [text(projectId), text(after ?? ""), integer(limit)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<MembershipRow>(sql.list, params, manner)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toMembership(projectId, row))
    }),

    history: Effect.fnUntraced(function* (projectId, { limit, userId }) {
      const params = [text(projectId), integer(limit)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userId === undefined
        ? executor.execute<HistoryRow>(sql.projectHistory, params, manner)
        : executor.execute<HistoryRow>(sql.userHistory, [...params, text(userId)], manner)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toAuditRow(projectId, row))
    }),
  }
  return store
})
