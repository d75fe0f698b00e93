/** Changes of one membership each, which share statements. */

import {
  type BulkExtension,
  type Change,
  type ChangeContext,
  EndDate,
  EndDateConflict,
  type Ending,
  type Event,
  type Extension,
  type Grant,
  IdempotencyMismatch,
  type Import,
  MembershipNotFound,
  type MembershipStore,
  type ProjectId,
  ProjectNotFound,
  StoreUnavailable,
  completeEvent,
  endsLater,
  isReplayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { hasRowAt, makeBatcher, rowsByPosition } from "./connection/batch.ts"
import { isLockTimeout } from "./connection/errors.ts"
import { type ExecuteOptions, type Executor, readsOf } from "./connection/executor.ts"
import { makeListEnding } from "./ending-list.ts"
import { makeErasures } from "./erasure.ts"
import { makePostgresExpiryStore } from "./expiry.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import * as statements from "./memberships.sql.ts"
import type { Notifications } from "./notifications.ts"
import {
  type ChangeRow,
  type ItemRow,
  changeParams,
  paramsOfEach,
  pickForm,
  pickFormOfEach,
  withAndWithoutKey,
  withAndWithoutKeys,
} from "./sql/clauses.ts"
import {
  type Integer,
  flagParam,
  instantParam,
  integerParam,
  textParam,
  textsParam,
} from "./sql/values.ts"

/** How changes of one kind are made. */
export interface BatchedChangesOptions<Requested, Row> {
  /** Whose statements they are, outside of the host's transactions. */
  readonly owner: string
  /**
   * Runs the statement of many changes, of which all have an idempotency key or none has. Returns a row for
   * each that found what it changes and whose key was unknown.
   */
  readonly run: (
    changes: ReadonlyArray<Requested>,
    manner: ExecuteOptions,
  ) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  /** The statement that finds the changes that need not wait for a lock. */
  readonly findUnlocked: string
  /** Whether a statement can have several changes of one member, which it makes in order. Default: `false`. */
  readonly isStacking?: boolean
}

/** Whether an item of a batch may have met a lock, which the others need not wait for. */
const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

/** A text that no other member has. */
const memberOf = ({ projectId, userId }: Grant): string => `${userId} ${projectId}`

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
const makeBatchedChanges = Effect.fnUntraced(function* <
  Requested extends Grant,
  Row extends ItemRow,
>(
  executor: Executor,
  { findUnlocked, isStacking = false, owner, run }: BatchedChangesOptions<Requested, Row>,
) {
  // A batch has changes of many projects, and does not wait for locks with all of them.
  const together: ExecuteOptions = { owner, isBrief: true }

  /** Makes changes of one project, and waits for its locks. */
  const changeApart = (changes: ReadonlyArray<Requested>) =>
    Effect.map(run(changes, { owner: changes[0]?.projectId }), (rows) =>
      rowsByPosition(changes, rows),
    )

  const makeGather = makeBatcher({
    run: (changes: ReadonlyArray<Requested>) =>
      Effect.map(run(changes, together), (rows) => rowsByPosition(changes, rows)),
    runAlone: changeApart,
    stackOf: isStacking ? memberOf : () => undefined,
    findSound: (changes) =>
      Effect.map(
        executor.executeApart<ItemRow>(
          findUnlocked,
          statements.findUnlockedParams(changes),
          together,
        ),
        (rows) => hasRowAt(changes, rows),
      ),
    keysOf,
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const gather = yield* makeGather
  const gatherOnce = yield* makeGather

  return (change: Requested): Effect.Effect<Row | null, StoreUnavailable> =>
    Effect.flatMap(executor.isInTransaction, (isJoined) => {
      if (isJoined) return Effect.map(changeApart([change]), ([row = null]) => row)
      return change.once === undefined ? gather(change) : gatherOnce(change)
    })
})

/** Memberships on PostgreSQL. */

// Projects that are parked while they move have names that come before this one.
const lastParked = "\u001f"

/** Fails with `ProjectNotFound` if a statement returned no row, which means a missing project. */
const rowsOfProject = <Row>(
  projectId: ProjectId,
  [first, ...others]: ReadonlyArray<Row>,
): Effect.Effect<readonly [Row, ...ReadonlyArray<Row>], ProjectNotFound> =>
  first === undefined
    ? Effect.fail(new ProjectNotFound({ projectId }))
    : Effect.succeed([first, ...others])

/** Returns the event of a change, as its statement has stored it. */
const eventOf = ({ event }: Change, { seq }: ChangeRow): Event => completeEvent(event, Number(seq))

/** Makes the store. */
export const makePostgresMembershipStore = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  answers: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    createProject: withAndWithoutKey(schema, statements.createProject, 4),
    createProjects: statements.createProjects(schema),
    deleteProject: withAndWithoutKey(schema, statements.deleteProject, 5),
    findProject: statements.findProject(schema),
    listProjects: statements.listProjects(schema),
    find: statements.findMembership(schema),
    list: statements.listMemberships(schema),
    listOf: statements.listMembershipsOf(schema),
    recordShown: statements.recordDisclosure(schema),
    projectHistory: statements.projectHistory(schema),
    userHistory: statements.userHistory(schema),
    otherHistory: statements.otherHistory(schema),
    grant: withAndWithoutKeys(schema, statements.grant, 10),
    import: withAndWithoutKey(schema, statements.importAll, 10),
    extend: withAndWithoutKeys(schema, statements.extend, 10),
    extendInOrder: withAndWithoutKeys(schema, statements.extendInOrder, 10),
    extendIf: withAndWithoutKeys(schema, statements.extendIf, 12),
    findGrantable: statements.findGrantable(schema),
    findUnlocked: statements.findUnlocked(schema),
    count: statements.countMemberships(schema),
    extendAll: {
      set: withAndWithoutKey(schema, statements.extendAll("set"), 10),
      neverShorten: withAndWithoutKey(schema, statements.extendAll("neverShorten"), 10),
    },
    end: withAndWithoutKey(schema, statements.endMembership, 10),
    eraseMembership: withAndWithoutKey(schema, statements.eraseMembership, 10),
  }

  /** Runs a statement that changes memberships, and notifies dispatchers of new deliveries. */
  const change = Effect.fnUntraced(function* <
    Row extends Pick<ChangeRow, "deliveries"> = ChangeRow,
  >(form: ReturnType<typeof pickForm>, manner: ExecuteOptions) {
    const rows = yield* executor.execute<Row>(...form, manner)
    if (rows.some(({ deliveries }) => deliveries > 0)) {
      yield* executor.afterCommit(notifications.notify)
    }
    return rows
  })

  const createOne = Effect.fnUntraced(function* (projectId: ProjectId, occasion: ChangeContext) {
    const form = pickForm(
      sql.createProject,
      statements.createProjectParams(projectId, occasion),
      occasion.once,
    )
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new IdempotencyMismatch()
  })

  const createMany = (creations: ReadonlyArray<statements.Creation>, manner: ExecuteOptions) =>
    Effect.map(
      executor.execute(sql.createProjects, statements.createProjectsParams(creations), manner),
      () => creations.map(() => true),
    )

  const createGathered = yield* makeBatcher({
    run: (creations: ReadonlyArray<statements.Creation>) =>
      createMany(creations, { owner: "creations", isBrief: true }),
    // Each is alone, as none belongs to a stack.
    runAlone: (creations) => createMany(creations, { owner: creations[0]?.projectId }),
    isOwn: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  /** Creates a project, in one statement with others that are created meanwhile if it needs none of its own. */
  const create = Effect.fnUntraced(function* (projectId: ProjectId, occasion: ChangeContext) {
    const isApart = occasion.once !== undefined || (yield* executor.isInTransaction)
    if (isApart) return yield* createOne(projectId, occasion)
    yield* createGathered({ projectId, occasion })
  })

  const deleteOne = Effect.fnUntraced(function* (projectId: ProjectId, occasion: ChangeContext) {
    const params = statements.deleteProjectParams(projectId, notifications.channel, occasion)
    const form = pickForm(sql.deleteProject, params, occasion.once)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  const grantOne = yield* makeBatchedChanges(executor, {
    owner: "grants",
    findUnlocked: sql.findGrantable,
    run: (grants: ReadonlyArray<Grant>, manner) =>
      change<ItemRow>(pickFormOfEach(sql.grant, paramsOfEach(grants), grants), manner),
  })

  const extendOne = yield* makeBatchedChanges(executor, {
    owner: "extensions",
    findUnlocked: sql.findUnlocked,
    isStacking: true,
    run: (extensions: ReadonlyArray<Extension>, manner) => {
      const members = new Set(extensions.map(memberOf))
      const statement = members.size < extensions.length ? sql.extendInOrder : sql.extend
      return change<ItemRow>(
        pickFormOfEach(statement, paramsOfEach(extensions), extensions),
        manner,
      )
    },
  })

  const extendOneIf = yield* makeBatchedChanges(executor, {
    owner: "conditional extensions",
    findUnlocked: sql.findGrantable,
    run: (extensions: ReadonlyArray<Extension>, manner) =>
      change<statements.ExtendedRow>(
        pickFormOfEach(sql.extendIf, statements.extendIfParams(extensions), extensions),
        manner,
      ),
  })

  /** Makes a change once if it has an idempotency key. */
  const once = <A, E>(work: Effect.Effect<A, E | StoreUnavailable>, { once: key }: Change) =>
    answers.change(key, work)

  const endErased = Effect.fnUntraced(function* (erasure: Ending) {
    const { projectId, userId } = erasure
    const form = pickForm(
      sql.eraseMembership,
      changeParams(erasure, userId, undefined),
      erasure.once,
    )
    const [row] = yield* change<statements.ErasedRow>(form, { owner: projectId })
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    return row.seq === null ? undefined : completeEvent(erasure.event, Number(row.seq))
  })

  const { erase } = makeErasures(executor)

  const store: MembershipStore["Service"] = {
    ping: executor.ping,
    expiry: makePostgresExpiryStore(executor, notifications),

    createProject: (projectId, occasion) =>
      answers.change(occasion.once, create(projectId, occasion)),

    deleteProject: (projectId, occasion) =>
      answers.change(occasion.once, deleteOne(projectId, occasion)),

    findProject: Effect.fnUntraced(function* (projectId) {
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<statements.ProjectRow>(
        sql.findProject,
        [textParam(projectId)],
        manner,
      )
      const [row] = yield* rowsOfProject(projectId, rows)
      if (row.id === projectId) return statements.toSummary(row)
      return yield* new StoreUnavailable({ cause: `The project ${projectId} is being moved` })
    }),

    listProjects: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<statements.ProjectRow>(sql.listProjects, [
          textParam(after ?? lastParked),
          integerParam(limit),
          within === "all" ? textParam(undefined) : textsParam([...within]),
        ]),
        (rows) => rows.map(statements.toSummary),
      ),

    grant: Effect.fnUntraced(function* (granted: Grant) {
      const { projectId } = granted
      const row = yield* grantOne(granted)
      return row === null ? yield* new ProjectNotFound({ projectId }) : eventOf(granted, row)
    }, once),

    import: Effect.fnUntraced(function* (imported: Import) {
      const { projectId } = imported
      const form = pickForm(sql.import, statements.importParams(imported), imported.once)
      const [row] = yield* change(form, { owner: projectId, isLong: true })
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : eventOf(imported, row)
    }, once),

    extend: Effect.fnUntraced(function* (extension: Extension) {
      const { projectId, userId } = extension
      if (!statements.isConditional(extension)) {
        const made = yield* extendOne(extension)
        return made === null
          ? yield* new MembershipNotFound({ projectId, userId })
          : eventOf(extension, made)
      }
      const row = yield* extendOneIf(extension)
      if (row === null) return yield* new MembershipNotFound({ projectId, userId })
      if (row.conflicting_date !== null) {
        const currentEndDate = EndDate(Number(row.conflicting_date))
        return yield* new EndDateConflict({ projectId, userId, currentEndDate })
      }
      if (row.later_date !== null) return endsLater(EndDate(Number(row.later_date)))
      return eventOf(extension, row)
    }, once),

    extendAll: Effect.fnUntraced(function* (extension: BulkExtension) {
      const { endDate, mode, projectId } = extension
      const params = changeParams(extension, undefined, endDate)
      const [row] = yield* change<ChangeRow & { readonly total: Integer }>(
        pickForm(sql.extendAll[mode], params, extension.once),
        { owner: projectId },
      )
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      return { total: Number(row.total), event: eventOf(extension, row) }
    }, once),

    count: Effect.fnUntraced(function* (projectId, endDate) {
      const params = [textParam(projectId), instantParam(endDate)]
      // One owner for all projects, so that the counts leave half of the connections to others.
      const manner = { owner: "counts", isLong: true }
      const [row] = yield* executor.execute<statements.CountsRow>(sql.count, params, manner)
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      return { total: Number(row.total), later: Number(row.later) }
    }),

    end: Effect.fnUntraced(function* (ending: Ending) {
      const { projectId, userId } = ending
      const form = pickForm(sql.end, changeParams(ending, userId, undefined), ending.once)
      const [row] = yield* change(form, { owner: projectId })
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
      return eventOf(ending, row)
    }, once),

    erase: Effect.fnUntraced(function* (erasure: Ending) {
      const { projectId, userId } = erasure
      const ended = yield* once(endErased(erasure), erasure)
      // A repetition completes what the first may have left, and leaves what was written since then.
      const at = isReplayedResponse(ended) ? Number(ended.answer) : undefined
      yield* erase({ projectId, userId, at })
      return ended
    }),

    recall: answers.recall,

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [textParam(projectId), textParam(userId)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<statements.MembershipRow>(sql.find, params, manner)
      const [membership] = rows.flatMap((row) => statements.toMembership(projectId, row))
      return membership ?? (yield* new MembershipNotFound({ projectId, userId }))
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit, only, userIds }) {
      const params = [
        textParam(projectId),
        textParam(after ?? ""),
        integerParam(limit),
        flagParam(only && only.state === "active"),
        instantParam(only?.at),
      ]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userIds === undefined
        ? executor.execute<statements.MembershipRow>(sql.list, params, manner)
        : executor.execute<statements.MembershipRow>(
            sql.listOf,
            [...params, textsParam(userIds)],
            manner,
          )
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) =>
        statements.toMembership(projectId, row),
      )
    }),

    listEnding: makeListEnding(executor),

    recordShown: Effect.fnUntraced(function* (projectId, shown, occasion) {
      const params = statements.recordDisclosureParams(projectId, shown, occasion)
      const rows = yield* executor.execute(sql.recordShown, params, { owner: projectId })
      yield* rowsOfProject(projectId, rows)
    }),

    history: Effect.fnUntraced(function* (projectId, { after, limit, userId }) {
      if (projectId === undefined) {
        const rows = yield* executor.execute<statements.HistoryRow>(sql.otherHistory, [
          integerParam(limit),
          ...statements.cursorParams(after),
        ])
        return rows.flatMap((row) => statements.toAuditRow(undefined, row))
      }
      const params = [textParam(projectId), integerParam(limit), ...statements.cursorParams(after)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userId === undefined
        ? executor.execute<statements.HistoryRow>(sql.projectHistory, params, manner)
        : executor.execute<statements.HistoryRow>(
            sql.userHistory,
            [...params, textParam(userId)],
            manner,
          )
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) =>
        statements.toAuditRow(projectId, row),
      )
    }),
  }
  return store
})
