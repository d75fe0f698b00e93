/** The membership store on PostgreSQL, in which changes to single memberships share statements. */

import { endsLater, isReplayedResponse } from "@tenure/core/internal"
import {
  type BulkExtension,
  type Change,
  type DateChange,
  EndDate,
  EndDateConflict,
  type Ending,
  type Event,
  type Extension,
  type Grant,
  type GrantIfAbsent,
  type Import,
  type MemberChanges,
  MemberChangesConflict,
  MembershipNotFound,
  type MembershipStore,
  type MetadataChange,
  MetadataConflict,
  type Move,
  MoveConflict,
  PauseConflict,
  type Pausing,
  ProjectNotFound,
  type Resuming,
  StoreUnavailable,
  type Undo,
  alreadyMember,
  completeEvent,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { makeAuditTrail } from "./audit.ts"
import {
  type BulkChangeRow,
  type UndoRow,
  extendAll,
  extendAllParams,
  makeBulkExtensions,
  undo,
  undoFailure,
  undoParams,
} from "./bulk-extensions.ts"
import { makeSelectedChanges } from "./changed-members.ts"
import { hasRowAt, makeBatcher, rowsByPosition } from "./connection/batch.ts"
import { waitedForLock } from "./connection/errors.ts"
import { type ExecuteOptions, type Executor, readsOf } from "./connection/executor.ts"
import { makeListEnding } from "./ending-list.ts"
import { makeCountEnds } from "./ends.ts"
import { type ErasedRow, eraseMembership, makeErasures } from "./erasure.ts"
import { makePostgresExpiryStore } from "./expiry.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import { changeEach, changeEachParams } from "./member-changes.ts"
import { moveMembership, moveParams } from "./membership-moves.ts"
import * as statements from "./memberships.sql.ts"
import type { Notifications } from "./notifications.ts"
import {
  endPauses,
  pauseMembership,
  pauseParams,
  resumeMembership,
  resumeParams,
} from "./pauses.sql.ts"
import { makeProjects, rowsOfProject } from "./projects.ts"
import {
  type ChangeRow,
  type ItemRow,
  changeParams,
  pickForm,
  pickFormOfEach,
  withAndWithoutKey,
  withAndWithoutKeys,
} from "./sql/clauses.ts"
import { instantParam, integerParam, textParam, textsParam } from "./sql/values.ts"

/** Options for batches with one kind of change. */
export interface BatchedChangesOptions<Requested, Row> {
  /** The owner of the statements, outside the host's transactions. */
  readonly owner: string
  /**
   * Runs the statement for a batch in which all changes or none have an idempotency key. Returns a row for
   * each change whose target exists and whose key was unknown.
   */
  readonly run: (
    changes: ReadonlyArray<Requested>,
    options: ExecuteOptions,
  ) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  /** The statement that finds changes which need not wait for a lock. */
  readonly findUnlocked: string
  /** Whether a statement can contain several changes to one member, which it makes in order. Default: `false`. */
  readonly isStacking?: boolean
}

/** A text that is unique to the member. */
const memberOf = ({ projectId, userId }: DateChange): string => `${userId} ${projectId}`

/** A change's keys: its member, and its idempotency key. */
const keysOf = (change: DateChange): ReadonlyArray<string> => {
  const { idempotency } = change
  const member = memberOf(change)
  return idempotency === undefined ? [member] : [member, ` ${idempotency.owner} ${idempotency.key}`]
}

/**
 * Makes a function that makes a change, in one statement with others that arrive meanwhile. It returns the
 * change's row, or `null` if the target does not exist. In a host's transaction, the change is made there.
 * Changes with idempotency keys share statements with each other.
 */
const makeBatchedChanges = Effect.fnUntraced(function* <
  Requested extends DateChange,
  Row extends ItemRow,
>(
  executor: Executor,
  { findUnlocked, isStacking = false, owner, run }: BatchedChangesOptions<Requested, Row>,
) {
  // A batch has changes in many projects, and does not wait for locks while it holds theirs.
  const together: ExecuteOptions = { owner, isBrief: true }

  /** Makes changes in one project, and waits for its locks. */
  const changeApart = (changes: ReadonlyArray<Requested>) =>
    Effect.map(run(changes, { owner: changes[0]?.projectId }), (rows) =>
      rowsByPosition(changes, rows),
    )

  const makeGather = makeBatcher({
    run: (changes: ReadonlyArray<Requested>) =>
      Effect.map(run(changes, together), (rows) => rowsByPosition(changes, rows)),
    runAlone: changeApart,
    stackOf: isStacking ? memberOf : () => undefined,
    findRetryable: (changes) =>
      Effect.map(
        executor.executeApart<ItemRow>(
          findUnlocked,
          statements.findUnlockedParams(changes),
          together,
        ),
        (rows) => hasRowAt(changes, rows),
      ),
    keysOf,
    isItemError: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const gather = yield* makeGather
  const gatherOnce = yield* makeGather

  return (change: Requested): Effect.Effect<Row | null, StoreUnavailable> =>
    Effect.flatMap(executor.isInTransaction, (isJoined) => {
      if (isJoined) return Effect.map(changeApart([change]), ([row = null]) => row)
      return change.idempotency === undefined ? gather(change) : gatherOnce(change)
    })
})

/** Returns a change's event as the statement has stored it. */
const eventOf = ({ event }: Pick<Change, "event">, { metadata, seq }: ChangeRow): Event =>
  completeEvent(event, Number(seq), metadata ?? undefined)

/** Makes the store. */
export const makePostgresMembershipStore = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    find: statements.findMembership(schema),
    list: statements.listMemberships(schema),
    previewPublication: statements.previewPublication(schema),
    listWithPrefix: statements.listMembershipsWithPrefix(schema),
    listOf: statements.listMembershipsOf(schema),
    grant: withAndWithoutKeys(schema, statements.grant, 15),
    grantIfAbsent: withAndWithoutKeys(schema, statements.grantIfAbsent, 16),
    import: withAndWithoutKey(schema, statements.importAll, 15),
    extend: statements.extend(schema),
    extendInOrder: withAndWithoutKeys(schema, statements.extendInOrder, 12),
    extendIf: withAndWithoutKeys(schema, statements.extendIf, 14),
    extendIfForm: withAndWithoutKeys(schema, statements.extendIfForm, 16),
    findGrantable: statements.findGrantable(schema),
    findUnlocked: statements.findUnlocked(schema),
    extendAll: withAndWithoutKey(schema, extendAll, 13),
    undo: withAndWithoutKey(schema, undo, 12),
    end: withAndWithoutKey(schema, statements.endMembership, 10),
    setMetadata: withAndWithoutKey(schema, statements.setMetadata, 12),
    move: withAndWithoutKey(schema, moveMembership, 25),
    changeEach: withAndWithoutKey(schema, changeEach, 20),
    endPauses: endPauses(schema),
    pause: withAndWithoutKey(schema, pauseMembership, 12),
    resume: withAndWithoutKey(schema, resumeMembership, 13),
    eraseMembership: withAndWithoutKey(schema, eraseMembership, 10),
  }

  /** Runs a statement that changes memberships, and notifies dispatchers of new deliveries. */
  const change = Effect.fnUntraced(function* <
    Row extends Pick<ChangeRow, "deliveries"> = ChangeRow,
  >(form: ReturnType<typeof pickForm>, options: ExecuteOptions) {
    const rows = yield* executor.execute<Row>(...form, options)
    if (rows.some(({ deliveries }) => deliveries > 0)) {
      yield* executor.afterCommit(notifications.notify)
    }
    return rows
  })

  const grantOne = yield* makeBatchedChanges(executor, {
    owner: "grants",
    findUnlocked: sql.findGrantable,
    run: (grants: ReadonlyArray<Grant>, options) =>
      change<statements.GrantedRow>(
        pickFormOfEach(sql.grant, statements.grantParams(grants), grants),
        options,
      ),
  })

  const grantOneIfAbsent = yield* makeBatchedChanges(executor, {
    owner: "conditional grants",
    findUnlocked: sql.findGrantable,
    run: (grants: ReadonlyArray<GrantIfAbsent>, options) =>
      change<statements.GrantedIfAbsentRow>(
        pickFormOfEach(sql.grantIfAbsent, statements.grantIfAbsentParams(grants), grants),
        options,
      ),
  })

  const extendOne = yield* makeBatchedChanges(executor, {
    owner: "extensions",
    findUnlocked: sql.findUnlocked,
    isStacking: true,
    run: (extensions: ReadonlyArray<Extension>, options) => {
      const members = new Set(extensions.map(memberOf))
      const statement = members.size < extensions.length ? sql.extendInOrder : sql.extend
      return change<ItemRow>(
        pickFormOfEach(statement, statements.paramsOfEach(extensions), extensions),
        options,
      )
    },
  })

  const extendOneIf = yield* makeBatchedChanges(executor, {
    owner: "conditional extensions",
    findUnlocked: sql.findGrantable,
    run: (extensions: ReadonlyArray<Extension>, options) =>
      change<statements.ExtendedRow>(
        extensions.some(statements.isOfForm)
          ? pickFormOfEach(sql.extendIfForm, statements.extendIfFormParams(extensions), extensions)
          : pickFormOfEach(sql.extendIf, statements.extendIfParams(extensions), extensions),
        options,
      ),
  })

  /** Makes a change once if it has an idempotency key. */
  const changeOnce = <A, E>(
    work: Effect.Effect<A, E | StoreUnavailable>,
    { idempotency }: Pick<Change, "idempotency">,
  ) => idempotencyStore.change(idempotency, work)

  const endErased = Effect.fnUntraced(function* (erasure: Ending) {
    const { projectId, userId } = erasure
    const form = pickForm(
      sql.eraseMembership,
      changeParams(erasure, userId, undefined),
      erasure.idempotency,
    )
    const [row] = yield* change<ErasedRow>(form, { owner: projectId })
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    return row.seq === null ? undefined : completeEvent(erasure.event, Number(row.seq))
  })

  const { erase } = makeErasures(executor)

  const store: MembershipStore["Service"] = {
    ping: executor.ping,
    expiry: makePostgresExpiryStore(executor, notifications),
    ...(yield* makeProjects(executor, notifications, idempotencyStore)),
    ...makeAuditTrail(executor),

    grant: Effect.fnUntraced(function* (granted: Grant) {
      const { projectId } = granted
      const row = yield* grantOne(granted)
      if (row === null) return yield* new ProjectNotFound({ projectId })
      return { event: eventOf(granted, row), pause: statements.toPause(row) }
    }, changeOnce),

    grantIfAbsent: Effect.fnUntraced(function* (granted: GrantIfAbsent) {
      const { projectId } = granted
      const row = yield* grantOneIfAbsent(granted)
      if (row === null) return yield* new ProjectNotFound({ projectId })
      const { metadata = null } = row
      const found = { ...row, metadata: row.end_date === null ? null : (metadata ?? "{}") }
      const [membership] = statements.toMembership(projectId, found)
      return membership === undefined
        ? { event: eventOf(granted, row), pause: undefined }
        : alreadyMember(membership)
    }, changeOnce),

    import: Effect.fnUntraced(function* (imported: Import) {
      const { projectId } = imported
      const form = pickForm(sql.import, statements.importParams(imported), imported.idempotency)
      const [row] = yield* change(form, { owner: projectId, isLong: true })
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : eventOf(imported, row)
    }, changeOnce),

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
    }, changeOnce),

    changeEach: Effect.fnUntraced(function* (changed: MemberChanges) {
      const { changes, idempotency, projectId } = changed
      const form = pickForm(sql.changeEach, changeEachParams(changed), idempotency)
      const rows = yield* change(form, { owner: projectId, isLong: true })
      if (rows.length < changes.length) return yield* new MemberChangesConflict()
      return changes.flatMap((one, index) => {
        const row = rows[index]
        return row === undefined ? [] : eventOf(one, row)
      })
    }, changeOnce),

    extendAll: Effect.fnUntraced(function* (extension: BulkExtension) {
      const { projectId } = extension
      const form = pickForm(sql.extendAll, extendAllParams(extension), extension.idempotency)
      const [row] = yield* change<BulkChangeRow>(form, { owner: projectId })
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      return { total: Number(row.total), event: eventOf(extension, row) }
    }, changeOnce),

    undoBulkExtension: Effect.fnUntraced(function* (undoing: Undo) {
      const { bulkExtensionId, projectId } = undoing
      const form = pickForm(sql.undo, undoParams(undoing), undoing.idempotency)
      const [row] = yield* change<UndoRow>(form, { owner: projectId })
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      const failure = undoFailure(row.outcome, bulkExtensionId)
      if (failure !== undefined) return yield* failure
      return { total: Number(row.total), event: eventOf(undoing, row) }
    }, changeOnce),

    ...makeBulkExtensions(executor),
    ...makeSelectedChanges(executor),
    ...(yield* makeCountEnds(executor)),

    previewPublication: Effect.fnUntraced(function* (projectId, type, previewed) {
      const userId = previewed._tag === "One" ? previewed.userId : undefined
      const rows = yield* executor.execute<statements.PublicationRow>(
        sql.previewPublication,
        [textParam(projectId), textParam(userId), textParam(type)],
        { owner: readsOf(projectId) },
      )
      const [row] = yield* rowsOfProject(projectId, rows)
      return statements.toPublication(row)
    }),

    setMetadata: Effect.fnUntraced(function* (changed: MetadataChange) {
      const form = pickForm(
        sql.setMetadata,
        statements.setMetadataParams(changed),
        changed.idempotency,
      )
      const [row] = yield* change(form, { owner: changed.projectId })
      return row === undefined ? yield* new MetadataConflict() : eventOf(changed, row)
    }, changeOnce),

    pause: Effect.fnUntraced(function* (pausing: Pausing) {
      const { projectId } = pausing
      const form = pickForm(sql.pause, pauseParams(pausing), pausing.idempotency)
      yield* executor.execute(sql.endPauses, [textParam(projectId)], { owner: projectId })
      const [row] = yield* change(form, { owner: projectId })
      return row === undefined ? yield* new PauseConflict() : eventOf(pausing, row)
    }, changeOnce),

    resume: Effect.fnUntraced(function* (resuming: Resuming) {
      const form = pickForm(sql.resume, resumeParams(resuming), resuming.idempotency)
      const [row] = yield* change(form, { owner: resuming.projectId })
      return row === undefined ? yield* new PauseConflict() : eventOf(resuming, row)
    }, changeOnce),

    end: Effect.fnUntraced(function* (ending: Ending) {
      const { projectId, userId } = ending
      const form = pickForm(sql.end, changeParams(ending, userId, undefined), ending.idempotency)
      const [row] = yield* change(form, { owner: projectId })
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
      return eventOf(ending, row)
    }, changeOnce),

    move: Effect.fnUntraced(function* (move: Move) {
      const form = pickForm(sql.move, moveParams(move), move.idempotency)
      const [ended, granted] = yield* change(form, { owner: move.projectId })
      if (ended === undefined || granted === undefined) return yield* new MoveConflict()
      const events = [eventOf(move, ended), eventOf({ event: move.granted }, granted)] as const
      return events
    }, changeOnce),

    erase: Effect.fnUntraced(function* (erasure: Ending) {
      const { projectId, userId } = erasure
      const ended = yield* changeOnce(endErased(erasure), erasure)
      // A repetition completes what the first call may have left, but keeps what was written since then.
      const at = isReplayedResponse(ended) ? Number(ended.answer) : undefined
      yield* erase({ projectId, userId, at })
      return ended
    }),

    recall: idempotencyStore.recall,

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [textParam(projectId), textParam(userId)]
      const options = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<statements.MembershipRow>(sql.find, params, options)
      const [membership] = rows.flatMap((row) => statements.toMembership(projectId, row))
      return membership ?? (yield* new MembershipNotFound({ projectId, userId }))
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit, only, prefix, userIds }) {
      const params = [
        textParam(projectId),
        textParam(after ?? ""),
        integerParam(limit),
        textParam(only?.state),
        instantParam(only?.at),
      ]
      const options = { owner: readsOf(projectId) }
      const read = (statement: string, ...further: ReadonlyArray<unknown>) =>
        executor.execute<statements.MembershipRow>(statement, [...params, ...further], options)
      const reading = (): ReturnType<typeof read> => {
        if (userIds !== undefined) return read(sql.listOf, textsParam(userIds))
        if (prefix !== undefined) return read(sql.listWithPrefix, textParam(prefix))
        return read(sql.list)
      }
      const rows = yield* reading()
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) =>
        statements.toMembership(projectId, row),
      )
    }),

    listEnding: makeListEnding(executor),
  }
  return store
})
