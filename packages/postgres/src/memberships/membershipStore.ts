/** Memberships on PostgreSQL. */

import { EndDate } from "@tenure/core/EndDate"
import * as Event from "@tenure/core/Event"
import { EndDateConflict, endsLater, MembershipNotFound } from "@tenure/core/Membership"
import type {
  BulkExtension,
  Change,
  Ending,
  Extension,
  Grant,
  Import,
  MembershipStore,
} from "@tenure/core/MembershipStore"
import { IdempotencyMismatch, isReplayed } from "@tenure/core/Once"
import type { Occasion } from "@tenure/core/Origin"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import { recordShown, recordShownParams } from "../audit/recordShown.sql.ts"
import { type Executor, type Manner, readsOf } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { flag, instant, integer, text, texts } from "../connection/parameters.ts"
import type { Integer } from "../connection/results.ts"
import * as listEnding from "../ending/listEnding.ts"
import * as Expiry from "../expiry/expiryStore.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { formOf, formOfEach, forms, formsOfEach } from "../idempotency/fragments.sql.ts"
import type { Notifications } from "../outbox/Notifications.ts"
import { countMemberships, type CountsRow } from "./countMemberships.sql.ts"
import {
  createProject,
  createProjectParams,
  createProjects,
  createProjectsParams,
  type Creation,
} from "./createProject.sql.ts"
import { deleteProject, deleteProjectParams } from "./deleteProject.sql.ts"
import { end } from "./end.sql.ts"
import { type ErasedRow, eraseMembership } from "./erase.sql.ts"
import * as Erasing from "./erasing.ts"
import {
  extend,
  type ExtendedRow,
  extendIf,
  extendIfParams,
  extendInOrder,
  isConditional,
} from "./extend.sql.ts"
import { extendAll } from "./extendAll.sql.ts"
import { findMembership } from "./findMembership.sql.ts"
import { findGrantable, findUnlocked } from "./findUnlocked.sql.ts"
import { type ChangeRow, changeParams, type EachRow, paramsOfEach } from "./fragments.sql.ts"
import * as Gathered from "./gathered.ts"
import { grant } from "./grant.sql.ts"
import {
  cursorParams,
  type HistoryRow,
  otherHistory,
  projectHistory,
  toAuditRow,
  userHistory,
} from "./history.sql.ts"
import { importAll, importParams } from "./import.sql.ts"
import {
  listMemberships,
  listMembershipsOf,
  type MembershipRow,
  toMembership,
} from "./listMemberships.sql.ts"
import { findProject, listProjects, type ProjectRow, toSummary } from "./projects.sql.ts"

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
const eventOf = ({ event }: Change, { seq }: ChangeRow): Event.Event =>
  Event.complete(event, Number(seq))

/** Makes the store. */
export const make = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  answers: Answers,
) {
  const { schema } = executor
  const sql = {
    createProject: forms(schema, createProject, 4),
    createProjects: createProjects(schema),
    deleteProject: forms(schema, deleteProject, 5),
    findProject: findProject(schema),
    listProjects: listProjects(schema),
    find: findMembership(schema),
    list: listMemberships(schema),
    listOf: listMembershipsOf(schema),
    recordShown: recordShown(schema),
    projectHistory: projectHistory(schema),
    userHistory: userHistory(schema),
    otherHistory: otherHistory(schema),
    grant: formsOfEach(schema, grant, 10),
    import: forms(schema, importAll, 10),
    extend: formsOfEach(schema, extend, 10),
    extendInOrder: formsOfEach(schema, extendInOrder, 10),
    extendIf: formsOfEach(schema, extendIf, 12),
    findGrantable: findGrantable(schema),
    findUnlocked: findUnlocked(schema),
    count: countMemberships(schema),
    extendAll: {
      set: forms(schema, extendAll("set"), 10),
      neverShorten: forms(schema, extendAll("neverShorten"), 10),
    },
    end: forms(schema, end, 10),
    eraseMembership: forms(schema, eraseMembership, 10),
  }

  /** Runs a statement that changes memberships, and notifies dispatchers of new deliveries. */
  const change = Effect.fnUntraced(function* <
    Row extends Pick<ChangeRow, "deliveries"> = ChangeRow,
  >(form: ReturnType<typeof formOf>, manner: Manner) {
    const rows = yield* executor.execute<Row>(...form, manner)
    if (rows.some(({ deliveries }) => deliveries > 0)) {
      yield* executor.afterCommit(notifications.notify)
    }
    return rows
  })

  const createOne = Effect.fnUntraced(function* (projectId: ProjectId, occasion: Occasion) {
    const form = formOf(sql.createProject, createProjectParams(projectId, occasion), occasion.once)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new IdempotencyMismatch()
  })

  const createMany = (creations: ReadonlyArray<Creation>, manner: Manner) =>
    Effect.map(executor.execute(sql.createProjects, createProjectsParams(creations), manner), () =>
      creations.map(() => true),
    )

  const createGathered = yield* Gather.make({
    run: (creations: ReadonlyArray<Creation>) =>
      createMany(creations, { owner: "creations", isBrief: true }),
    // Each is alone, as none belongs to a stack.
    runAlone: (creations) => createMany(creations, { owner: creations[0]?.projectId }),
    isOwn: Gathered.waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  /** Creates a project, in one statement with others that are created meanwhile if it needs none of its own. */
  const create = Effect.fnUntraced(function* (projectId: ProjectId, occasion: Occasion) {
    const isApart = occasion.once !== undefined || (yield* executor.isInTransaction)
    if (isApart) return yield* createOne(projectId, occasion)
    yield* createGathered({ projectId, occasion })
  })

  const deleteOne = Effect.fnUntraced(function* (projectId: ProjectId, occasion: Occasion) {
    const params = deleteProjectParams(projectId, notifications.channel, occasion)
    const form = formOf(sql.deleteProject, params, occasion.once)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  const grantOne = yield* Gathered.make(executor, {
    owner: "grants",
    findUnlocked: sql.findGrantable,
    run: (grants: ReadonlyArray<Grant>, manner) =>
      change<EachRow>(formOfEach(sql.grant, paramsOfEach(grants), grants), manner),
  })

  const extendOne = yield* Gathered.make(executor, {
    owner: "extensions",
    findUnlocked: sql.findUnlocked,
    isStacking: true,
    run: (extensions: ReadonlyArray<Extension>, manner) => {
      const members = new Set(extensions.map(Gathered.memberOf))
      const statement = members.size < extensions.length ? sql.extendInOrder : sql.extend
      return change<EachRow>(formOfEach(statement, paramsOfEach(extensions), extensions), manner)
    },
  })

  const extendOneIf = yield* Gathered.make(executor, {
    owner: "conditional extensions",
    findUnlocked: sql.findGrantable,
    run: (extensions: ReadonlyArray<Extension>, manner) =>
      change<ExtendedRow>(formOfEach(sql.extendIf, extendIfParams(extensions), extensions), manner),
  })

  /** Makes a change once if it has an idempotency key. */
  const once = <A, E>(work: Effect.Effect<A, E | StoreUnavailable>, { once: key }: Change) =>
    answers.change(key, work)

  const endErased = Effect.fnUntraced(function* (erasure: Ending) {
    const { projectId, userId } = erasure
    const form = formOf(sql.eraseMembership, changeParams(erasure, userId, undefined), erasure.once)
    const [row] = yield* change<ErasedRow>(form, { owner: projectId })
    if (row === undefined) return yield* new ProjectNotFound({ projectId })
    return row.seq === null ? undefined : Event.complete(erasure.event, Number(row.seq))
  })

  const { erase } = Erasing.make(executor)

  const store: MembershipStore["Service"] = {
    ping: executor.ping,
    expiry: Expiry.make(executor, notifications),

    createProject: (projectId, occasion) =>
      answers.change(occasion.once, create(projectId, occasion)),

    deleteProject: (projectId, occasion) =>
      answers.change(occasion.once, deleteOne(projectId, occasion)),

    findProject: Effect.fnUntraced(function* (projectId) {
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<ProjectRow>(sql.findProject, [text(projectId)], manner)
      const [row] = yield* rowsOfProject(projectId, rows)
      if (row.id === projectId) return toSummary(row)
      return yield* new StoreUnavailable({ cause: `The project ${projectId} is being moved` })
    }),

    listProjects: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<ProjectRow>(sql.listProjects, [
          text(after ?? lastParked),
          integer(limit),
          within === "all" ? text(undefined) : texts([...within]),
        ]),
        (rows) => rows.map(toSummary),
      ),

    grant: Effect.fnUntraced(function* (granted: Grant) {
      const { projectId } = granted
      const row = yield* grantOne(granted)
      return row === null ? yield* new ProjectNotFound({ projectId }) : eventOf(granted, row)
    }, once),

    import: Effect.fnUntraced(function* (imported: Import) {
      const { projectId } = imported
      const form = formOf(sql.import, importParams(imported), imported.once)
      const [row] = yield* change(form, { owner: projectId, isLong: true })
      return row === undefined ? yield* new ProjectNotFound({ projectId }) : eventOf(imported, row)
    }, once),

    extend: Effect.fnUntraced(function* (extension: Extension) {
      const { projectId, userId } = extension
      if (!isConditional(extension)) {
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
        formOf(sql.extendAll[mode], params, extension.once),
        { owner: projectId },
      )
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      return { total: Number(row.total), event: eventOf(extension, row) }
    }, once),

    count: Effect.fnUntraced(function* (projectId, endDate) {
      const params = [text(projectId), instant(endDate)]
      // One owner for all projects, so that the counts leave half of the connections to others.
      const manner = { owner: "counts", isLong: true }
      const [row] = yield* executor.execute<CountsRow>(sql.count, params, manner)
      if (row === undefined) return yield* new ProjectNotFound({ projectId })
      return { total: Number(row.total), later: Number(row.later) }
    }),

    end: Effect.fnUntraced(function* (ending: Ending) {
      const { projectId, userId } = ending
      const form = formOf(sql.end, changeParams(ending, userId, undefined), ending.once)
      const [row] = yield* change(form, { owner: projectId })
      if (row === undefined) return yield* new MembershipNotFound({ projectId, userId })
      return eventOf(ending, row)
    }, once),

    erase: Effect.fnUntraced(function* (erasure: Ending) {
      const { projectId, userId } = erasure
      const ended = yield* once(endErased(erasure), erasure)
      // A repetition completes what the first may have left, and leaves what was written since then.
      const at = isReplayed(ended) ? Number(ended.answer) : undefined
      yield* erase({ projectId, userId, at })
      return ended
    }),

    recall: answers.recall,

    find: Effect.fnUntraced(function* (projectId, userId) {
      const params = [text(projectId), text(userId)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<MembershipRow>(sql.find, params, manner)
      const [membership] = rows.flatMap((row) => toMembership(projectId, row))
      return membership ?? (yield* new MembershipNotFound({ projectId, userId }))
    }),

    list: Effect.fnUntraced(function* (projectId, { after, limit, only, userIds }) {
      const params = [
        text(projectId),
        text(after ?? ""),
        integer(limit),
        flag(only && only.state === "active"),
        instant(only?.at),
      ]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userIds === undefined
        ? executor.execute<MembershipRow>(sql.list, params, manner)
        : executor.execute<MembershipRow>(sql.listOf, [...params, texts(userIds)], manner)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toMembership(projectId, row))
    }),

    listEnding: listEnding.make(executor),

    recordShown: Effect.fnUntraced(function* (projectId, shown, occasion) {
      const params = recordShownParams(projectId, shown, occasion)
      const rows = yield* executor.execute(sql.recordShown, params, { owner: projectId })
      yield* rowsOfProject(projectId, rows)
    }),

    history: Effect.fnUntraced(function* (projectId, { after, limit, userId }) {
      if (projectId === undefined) {
        const rows = yield* executor.execute<HistoryRow>(sql.otherHistory, [
          integer(limit),
          ...cursorParams(after),
        ])
        return rows.flatMap((row) => toAuditRow(undefined, row))
      }
      const params = [text(projectId), integer(limit), ...cursorParams(after)]
      const manner = { owner: readsOf(projectId) }
      const rows = yield* userId === undefined
        ? executor.execute<HistoryRow>(sql.projectHistory, params, manner)
        : executor.execute<HistoryRow>(sql.userHistory, [...params, text(userId)], manner)
      return (yield* rowsOfProject(projectId, rows)).flatMap((row) => toAuditRow(projectId, row))
    }),
  }
  return store
})
