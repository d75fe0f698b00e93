/** Memberships on PostgreSQL. */

import { ApiKeyId } from "@tenure/core/ApiKey"
import { EndDate } from "@tenure/core/EndDate"
import { type Action, MembershipNotFound, UserId } from "@tenure/core/Membership"
import type { Change, Grant, MembershipStore } from "@tenure/core/MembershipStore"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import type { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { end } from "../statements/end.ts"
import { extend } from "../statements/extend.ts"
import { extendAll, extendShorter } from "../statements/extendAll.ts"
import { grant } from "../statements/grant.ts"
import * as Statements from "../statements/memberships.ts"
import type { Database } from "./database.ts"
import * as Gather from "./gather.ts"
import type { Nudge } from "./nudge.ts"
import { instant, instants, integer, text, texts, uuid, uuids } from "./parameters.ts"

interface Told {
  readonly deliveries: number
}

interface AuditRow {
  readonly user_id: string | null
  readonly action: Action | null
  readonly from_date: Date | null
  readonly to_date: Date | null
  readonly at: Date
  readonly request_id: string | null
  readonly key_id: string | null
}

const endDateOf = (date: Date | null): EndDate | undefined =>
  date === null ? undefined : EndDate(Number(date))

/** The parameters of a change, of one user's membership or of all. */
const changeParams = (
  { at, event, origin, projectId }: Change,
  userId: UserId | undefined,
  endDate: EndDate | undefined,
) => [
  text(projectId),
  text(userId),
  instant(endDate),
  instant(at),
  text(origin.requestId),
  text(origin.keyId),
  uuid(event.id),
  text(event.type),
  text(event.body),
]

// How long an extension waits for a lock, such as that of a transaction of the host's: together with
// others a moment, so that they need not, and alone as long as a client may be asked to wait.
const shortLockTimeout = "100ms"
const longLockTimeout = "5s"

const isLockTimeout = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && cause.reason._tag === "LockTimeoutError"

const memberKey = ({ projectId, userId }: Grant): string => `${userId} ${projectId}`

/** The rows of a statement that gives none if there is no project. */
const projectRows = <Row>(
  projectId: ProjectId,
  rows: ReadonlyArray<Row>,
): Effect.Effect<ReadonlyArray<Row>, ProjectNotFound> =>
  rows.length === 0 ? Effect.fail(new ProjectNotFound({ projectId })) : Effect.succeed(rows)

/** Makes the store. */
export const make = Effect.fnUntraced(function* (database: Database, nudge: Nudge) {
  const { schema } = database
  const sql = {
    createProject: Statements.createProject(schema),
    find: Statements.findMembership(schema),
    list: Statements.listMemberships(schema),
    projectHistory: Statements.projectHistory(schema),
    userHistory: Statements.userHistory(schema),
    grant: grant(schema),
    extend: extend(schema),
    extendAll: { set: extendAll(schema), neverShorten: extendShorter(schema) },
    end: end(schema),
  }

  /** Tells of deliveries, once they are committed. */
  const tell = (rows: ReadonlyArray<Told>): Effect.Effect<void> =>
    rows.some(({ deliveries }) => deliveries > 0) ? database.afterCommit(nudge.tell) : Effect.void

  /** Runs a statement that changes something if it gives a row. */
  const change = Effect.fnUntraced(function* <Row extends Told>(
    statement: string,
    params: ReadonlyArray<unknown>,
  ) {
    const rows = yield* database.join<Row>(statement, params)
    yield* tell(rows)
    return rows[0]
  })

  /** Extends memberships; tells of each whether it exists. */
  const extendMany = Effect.fnUntraced(function* (
    extensions: ReadonlyArray<Grant>,
    lockTimeout: string | undefined,
  ) {
    const rows = yield* database.join<Told & { readonly n: number }>(sql.extend, [
      texts(extensions.map(({ projectId }) => projectId)),
      texts(extensions.map(({ userId }) => userId)),
      instants(extensions.map(({ endDate }) => endDate)),
      instants(extensions.map(({ at }) => at)),
      texts(extensions.map(({ origin }) => origin.requestId)),
      texts(extensions.map(({ origin }) => origin.keyId)),
      uuids(extensions.map(({ event }) => event.id)),
      texts(extensions.map(({ event }) => event.type)),
      texts(extensions.map(({ event }) => event.body)),
      text(lockTimeout),
    ])
    yield* tell(rows)
    return Gather.isAmong(extensions, rows)
  })

  const extendGathered = yield* Gather.make({
    run: (extensions) =>
      extendMany(extensions, extensions.length > 1 ? shortLockTimeout : longLockTimeout),
    keyOf: memberKey,
    isOwn: isLockTimeout,
    maxBatch: 256,
    maxInFlight: 2,
  })

  const store: MembershipStore["Service"] = {
    createProject: (projectId) =>
      Effect.asVoid(database.join(sql.createProject, [text(projectId)])),

    grant: Effect.fnUntraced(function* (granted) {
      const { endDate, projectId, userId } = granted
      const row = yield* change(sql.grant, changeParams(granted, userId, endDate))
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
    }),

    extend: Effect.fnUntraced(function* (extension) {
      const { projectId, userId } = extension
      const isFound = (yield* database.isJoined)
        ? (yield* extendMany([extension], undefined))[0]
        : yield* extendGathered(extension)
      if (isFound !== true) return yield* new MembershipNotFound({ projectId, userId })
    }),

    extendAll: Effect.fnUntraced(function* (extension) {
      const { endDate, mode, projectId } = extension
      const row = yield* change<Told & { readonly total: bigint }>(
        sql.extendAll[mode],
        changeParams(extension, undefined, endDate),
      )
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : Number(row.total)
    }),

    end: Effect.fnUntraced(function* (ending) {
      const { projectId, userId } = ending
      const row = yield* change(sql.end, changeParams(ending, userId, undefined))
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
    }),

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [text(projectId), text(userId)]
      const [row] = yield* database.join<{ readonly end_date: Date }>(sql.find, params)
      const endDate = row && endDateOf(row.end_date)
      return endDate === undefined
        ? yield* new MembershipNotFound({ projectId, userId })
        : { projectId, userId, endDate }
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit }) {
      const rows = yield* database.join<{ user_id: string | null; end_date: Date | null }>(
        sql.list,
        [text(projectId), text(after ?? ""), integer(limit)],
      )
      return (yield* projectRows(projectId, rows)).flatMap(({ end_date, user_id }) => {
        const endDate = endDateOf(end_date)
        return user_id === null || endDate === undefined
          ? []
          : [{ projectId, userId: UserId(user_id), endDate }]
      })
    }),

    history: Effect.fnUntraced(function* (projectId, { limit, userId }) {
      const params = [text(projectId), integer(limit)]
      const rows = yield* userId === undefined
        ? database.join<AuditRow>(sql.projectHistory, params)
        : database.join<AuditRow>(sql.userHistory, [...params, text(userId)])
      return (yield* projectRows(projectId, rows)).flatMap((row) =>
        row.action === null
          ? []
          : [
              {
                projectId,
                userId: row.user_id === null ? undefined : UserId(row.user_id),
                action: row.action,
                origin: {
                  requestId: row.request_id ?? undefined,
                  keyId: row.key_id === null ? undefined : ApiKeyId(row.key_id),
                },
                from: endDateOf(row.from_date),
                to: endDateOf(row.to_date),
                at: Number(row.at),
              },
            ],
      )
    }),
  }
  return store
})
