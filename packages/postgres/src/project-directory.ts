/** Statements about projects that are in other databases. */

import {
  type ChangeContext,
  IdempotencyMismatch,
  type ProjectDirectory,
  ProjectId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "./connection/executor.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import {
  type KeyClause,
  type StatementForms,
  auditRow,
  changeContextParams,
  noProjectNumber,
  pickForm,
  withAndWithoutKey,
} from "./sql/clauses.ts"
import { integerParam, textParam, textsParam } from "./sql/values.ts"

/** Adds a project, unless it is known. Returns one row, unless the idempotency key is known. */
const addElsewhere = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  added AS (
    INSERT INTO ${schema}.projects_elsewhere (id) SELECT id FROM asked ON CONFLICT DO NOTHING
    RETURNING ${noProjectNumber} AS project_number, id AS subject
  ),${auditRow(schema, "added", 2, "'project_created'")}${once.keeping("asked", undefined, noProjectNumber)}
  SELECT FROM asked
`

/** Removes a project, with the access of keys to it. Returns one row, unless the idempotency key is known. */
const removeElsewhere = (schema: string, once: KeyClause): string => `
  WITH asked AS MATERIALIZED (SELECT $1::text AS id WHERE true ${once.condition}),
  removed AS (
    DELETE FROM ${schema}.projects_elsewhere e USING asked a WHERE e.id = a.id
    RETURNING ${noProjectNumber} AS project_number, e.id AS subject, e.number
  ),
  closed AS (
    DELETE FROM ${schema}.api_key_projects k USING removed r WHERE k.project_number = r.number
  ),${auditRow(schema, "removed", 2, "'project_deleted'")}${once.keeping("asked", undefined, noProjectNumber)}
  SELECT FROM asked
`

/** The parameters of both. */
const elsewhereParams = (projectId: ProjectId, occasion: ChangeContext) => [
  textParam(projectId),
  ...changeContextParams(occasion),
]

/** Returns one row if the project `$1` is in another database. */
const findElsewhere = (schema: string): string => `
  SELECT FROM ${schema}.projects_elsewhere WHERE id = $1::text
`

/** Returns the ids of at most `$2` projects after the id `$1`, of those in `$3`, which is NULL for all. */
const listElsewhere = (schema: string): string => `
  SELECT id FROM ${schema}.projects_elsewhere
  WHERE id > $1::text AND ($3::text[] IS NULL OR id = ANY ($3::text[]))
  ORDER BY id
  LIMIT $2::integer
`

/** The projects of other databases, on PostgreSQL. */

/** Makes the directory. */
export const makePostgresProjectDirectory = (
  executor: Executor,
  answers: IdempotencyStore,
): ProjectDirectory["Service"] => {
  const { schema } = executor
  const sql = {
    add: withAndWithoutKey(schema, addElsewhere, 4),
    remove: withAndWithoutKey(schema, removeElsewhere, 4),
    find: findElsewhere(schema),
    list: listElsewhere(schema),
  }

  const change = Effect.fnUntraced(
    function* (statement: StatementForms, projectId: ProjectId, occasion: ChangeContext) {
      const form = pickForm(statement, elsewhereParams(projectId, occasion), occasion.once)
      const rows = yield* executor.execute(...form, { owner: projectId })
      if (rows.length === 0) return yield* new IdempotencyMismatch()
    },
    (work, _statement, _projectId, { once }) => answers.change(once, work),
  )

  return {
    add: (projectId, occasion) => change(sql.add, projectId, occasion),

    remove: (projectId, occasion) => change(sql.remove, projectId, occasion),

    has: (projectId) =>
      Effect.map(
        executor.execute(sql.find, [textParam(projectId)], { owner: readsOf(projectId) }),
        (rows) => rows.length > 0,
      ),

    list: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<{ readonly id: string }>(sql.list, [
          textParam(after ?? ""),
          integerParam(limit),
          within === "all" ? textParam(undefined) : textsParam([...within]),
        ]),
        (rows) => rows.map(({ id }) => ProjectId(id)),
      ),
  }
}
