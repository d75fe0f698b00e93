/** Creates, deletes, finds and lists projects on PostgreSQL. */

import {
  type ChangeContext,
  EndDate,
  IdempotencyMismatch,
  type MembershipStore,
  type ProjectChange,
  ProjectConflict,
  ProjectId,
  ProjectNotFound,
  type ProjectSummary,
  StoreUnavailable,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { makeBatcher } from "./connection/batch.ts"
import { waitedForLock } from "./connection/errors.ts"
import { type ExecuteOptions, type Executor, readsOf } from "./connection/executor.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import { type SettingsRow, graceSeconds, settingsColumns, toSettings } from "./project-settings.ts"
import {
  type KeyClause,
  auditRow,
  changeContextParams,
  noProjectNumber,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import {
  type Integer,
  instantsParam,
  integerParam,
  millisOf,
  textParam,
  textsParam,
} from "./sql/values.ts"

/** Creates a project, unless it exists. Returns one row, unless the idempotency key is known. */
const createProject = (schema: string, idempotency: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${idempotency.condition}),
  created AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ON CONFLICT DO NOTHING
    RETURNING ${noProjectNumber} AS project_number, id AS subject
  ),${auditRow(schema, "created", 2, "'project_created'")}${idempotency.keeping("asked", undefined, noProjectNumber)}
  SELECT FROM asked
`

/** The parameters for `createProject`. */
const createProjectParams = (projectId: ProjectId, context: ChangeContext) => [
  textParam(projectId),
  ...changeContextParams(context),
]

/** A project to create, and its change context. */
interface Creation {
  readonly projectId: ProjectId
  readonly context: ChangeContext
}

/** Creates projects that do not exist, ordered by id so that two such statements do not deadlock. */
const createProjects = (schema: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, at, request_id, key_id
    FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[]) AS a (id, at, request_id, key_id)
    ORDER BY id
  ),
  inserted AS (
    INSERT INTO ${schema}.projects (id) SELECT id FROM asked ORDER BY id ON CONFLICT DO NOTHING
    RETURNING id
  ),
  created AS (
    SELECT ${noProjectNumber} AS project_number, id AS subject, at, request_id, key_id
    FROM inserted JOIN asked USING (id)
  ),${auditRow(schema, "created", undefined, "'project_created'")}
  SELECT
`

/** The parameters for `createProjects`. */
const createProjectsParams = (creations: ReadonlyArray<Creation>) => [
  textsParam(creations.map(({ projectId }) => projectId)),
  instantsParam(creations.map(({ context }) => context.at)),
  textsParam(creations.map(({ context }) => context.origin.requestId)),
  textsParam(creations.map(({ context }) => context.origin.keyId)),
]

/**
 * Replaces a project's settings, if they are as expected. `$4` has the differences as JSON, or NULL. Returns one row if
 * the settings were as expected.
 */
const updateProject = (schema: string, idempotency: KeyClause): string => {
  const isArmed = `$10::integer <> p.grace_seconds AND EXISTS (SELECT FROM ${schema}.expiry_settings)`
  return `
  WITH changed AS (
    UPDATE ${schema}.projects p
    SET time_zone = $3::text, grace_seconds = $10::integer,
        grace_set_at = CASE WHEN $10::integer <> p.grace_seconds THEN statement_timestamp() ELSE p.grace_set_at END,
        -- Memberships may have expired by a shorter grace, and may be active again by a longer one. The pass takes
        -- those for over before that were so by the grace until now.
        next_check_at = CASE WHEN ${isArmed} THEN '-infinity' ELSE p.next_check_at END,
        bulk_unseen_since = CASE WHEN ${isArmed} THEN least(p.bulk_unseen_since, statement_timestamp())
                                 - greatest(p.grace_seconds - $10::integer, 0) * interval '1 second'
                            ELSE p.bulk_unseen_since END
    WHERE id = $1::text AND time_zone = $2::text AND grace_seconds = $9::integer ${idempotency.condition}
    RETURNING number AS project_number, id AS subject
  ),${auditRow(schema, "(SELECT * FROM changed WHERE $4::text IS NOT NULL)", 6, "'project_changed'", "$4::text", "$5::text")}${idempotency.keeping("changed")}
  SELECT FROM changed
`
}

/** The parameters for `updateProject`. */
const updateProjectParams = (change: ProjectChange) => [
  textParam(change.projectId),
  textParam(change.expected.timeZone),
  textParam(change.settings.timeZone),
  textParam(change.changes.length === 0 ? undefined : JSON.stringify(change.changes)),
  textParam(change.reason),
  ...changeContextParams(change),
  integerParam(graceSeconds(change.expected)),
  integerParam(graceSeconds(change.settings)),
]

/**
 * Deletes a project with the function `delete_project` in the migrations, which describes it. Returns one row
 * if the project existed.
 */
const deleteProject = (schema: string, idempotency: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT WHERE true ${idempotency.condition}),
  deleted AS MATERIALIZED (
    SELECT ${noProjectNumber} AS project_number, $1::text AS subject
    FROM asked, ${schema}.delete_project($1::text, $2::text)
  ),${auditRow(schema, "deleted", 3, "'project_deleted'")}${idempotency.keeping("deleted")}
  SELECT FROM deleted
`

/** The parameters for `deleteProject`. */
const deleteProjectParams = (projectId: ProjectId, channel: string, context: ChangeContext) => [
  textParam(projectId),
  textParam(channel),
  ...changeContextParams(context),
]

/**
 * The columns with a project's settings and figures, from a project `p`. Its last bulk extension may be undone, or have no
 * end date.
 */
const figures = (
  schema: string,
): string => `${settingsColumns("p")}, p.membership_count, p.webhook_count, (
    SELECT ${millisOf("b.end_date")} FROM ${schema}.bulk_extensions b
    WHERE b.project_number = p.number AND b.undone_at IS NULL AND b.end_date IS NOT NULL
    ORDER BY b.seq DESC LIMIT 1
  ) AS last_bulk_end_date`

/** Returns the project `$1`, if it exists. */
const findProject = (schema: string): string => `
  SELECT p.id, ${figures(schema)} FROM ${schema}.projects p WHERE p.id = $1::text
`

/** Returns at most `$2` projects after the id `$1`. If `$3` is not NULL, only those with these ids. */
const listProjects = (schema: string): string => `
  SELECT p.id, ${figures(schema)} FROM ${schema}.projects p
  WHERE p.id > $1::text AND ($3::text[] IS NULL OR p.id = ANY ($3::text[]))
  ORDER BY p.id
  LIMIT $2::integer
`

/** A row from `findProject` and `listProjects`. */
interface ProjectRow extends SettingsRow {
  readonly id: string
  readonly membership_count: Integer
  readonly webhook_count: number
  readonly last_bulk_end_date: Integer | null
}

/** Converts a project row. */
const toSummary = (row: ProjectRow): ProjectSummary => ({
  id: ProjectId(row.id),
  ...toSettings(row),
  memberships: Number(row.membership_count),
  webhooks: row.webhook_count,
  lastBulkEndDate:
    row.last_bulk_end_date === null ? undefined : EndDate(Number(row.last_bulk_end_date)),
})

/** Fails with `ProjectNotFound` if a statement returned no row, which means a missing project. */
export const rowsOfProject = <Row>(
  projectId: ProjectId,
  [first, ...others]: ReadonlyArray<Row>,
): Effect.Effect<readonly [Row, ...ReadonlyArray<Row>], ProjectNotFound> =>
  first === undefined
    ? Effect.fail(new ProjectNotFound({ projectId }))
    : Effect.succeed([first, ...others])

/** Makes the store's project operations. */
export const makeProjects = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  idempotencyStore: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    createProject: withAndWithoutKey(schema, createProject, 4),
    createProjects: createProjects(schema),
    updateProject: withAndWithoutKey(schema, updateProject, 10),
    deleteProject: withAndWithoutKey(schema, deleteProject, 5),
    findProject: findProject(schema),
    listProjects: listProjects(schema),
  }

  const createOne = Effect.fnUntraced(function* (projectId: ProjectId, context: ChangeContext) {
    const form = pickForm(
      sql.createProject,
      createProjectParams(projectId, context),
      context.idempotency,
    )
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new IdempotencyMismatch()
  })

  const createMany = (creations: ReadonlyArray<Creation>, options: ExecuteOptions) =>
    Effect.map(executor.execute(sql.createProjects, createProjectsParams(creations), options), () =>
      creations.map(() => true),
    )

  const createGathered = yield* makeBatcher({
    run: (creations: ReadonlyArray<Creation>) =>
      createMany(creations, { owner: "creations", isBrief: true }),
    // Each is alone, because creations have no stacks.
    runAlone: (creations) => createMany(creations, { owner: creations[0]?.projectId }),
    isItemError: waitedForLock,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  /** Creates a project, in one statement with others that arrive meanwhile, unless it needs its own. */
  const create = Effect.fnUntraced(function* (projectId: ProjectId, context: ChangeContext) {
    const isApart = context.idempotency !== undefined || (yield* executor.isInTransaction)
    if (isApart) return yield* createOne(projectId, context)
    yield* createGathered({ projectId, context })
  })

  const updateOne = Effect.fnUntraced(function* (change: ProjectChange) {
    const form = pickForm(sql.updateProject, updateProjectParams(change), change.idempotency)
    const rows = yield* executor.execute(...form, { owner: change.projectId })
    if (rows.length === 0) return yield* new ProjectConflict()
  })

  const deleteOne = Effect.fnUntraced(function* (projectId: ProjectId, context: ChangeContext) {
    const params = deleteProjectParams(projectId, notifications.channel, context)
    const form = pickForm(sql.deleteProject, params, context.idempotency)
    const rows = yield* executor.execute(...form, { owner: projectId })
    if (rows.length === 0) return yield* new ProjectNotFound({ projectId })
  })

  const projects: Pick<
    MembershipStore["Service"],
    "createProject" | "updateProject" | "deleteProject" | "findProject" | "listProjects"
  > = {
    createProject: (projectId, context) =>
      idempotencyStore.change(context.idempotency, create(projectId, context)),

    updateProject: (change) => idempotencyStore.change(change.idempotency, updateOne(change)),

    deleteProject: (projectId, context) =>
      idempotencyStore.change(context.idempotency, deleteOne(projectId, context)),

    findProject: Effect.fnUntraced(function* (projectId) {
      const options = { owner: readsOf(projectId) }
      const rows = yield* executor.execute<ProjectRow>(
        sql.findProject,
        [textParam(projectId)],
        options,
      )
      return toSummary((yield* rowsOfProject(projectId, rows))[0])
    }),

    listProjects: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<ProjectRow>(sql.listProjects, [
          textParam(after ?? ""),
          integerParam(limit),
          within === "all" ? textParam(undefined) : textsParam([...within]),
        ]),
        (rows) => rows.map(toSummary),
      ),
  }
  return projects
})
