/** The projects of other databases, on PostgreSQL. */

import { IdempotencyMismatch } from "@tenure/core/Once"
import type { Occasion } from "@tenure/core/Origin"
import { ProjectId } from "@tenure/core/Project"
import type { ProjectDirectory } from "@tenure/core/ProjectDirectory"
import * as Effect from "effect/Effect"
import { type Executor, readsOf } from "../connection/Executor.ts"
import { integer, text, texts } from "../connection/parameters.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { type Forms, formOf, forms } from "../idempotency/fragments.sql.ts"
import {
  addElsewhere,
  elsewhereParams,
  findElsewhere,
  listElsewhere,
  removeElsewhere,
} from "./statements.sql.ts"

/** Makes the directory. */
export const make = (executor: Executor, answers: Answers): ProjectDirectory["Service"] => {
  const { schema } = executor
  const sql = {
    add: forms(schema, addElsewhere, 4),
    remove: forms(schema, removeElsewhere, 4),
    find: findElsewhere(schema),
    list: listElsewhere(schema),
  }

  const change = Effect.fnUntraced(
    function* (statement: Forms, projectId: ProjectId, occasion: Occasion) {
      const form = formOf(statement, elsewhereParams(projectId, occasion), occasion.once)
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
        executor.execute(sql.find, [text(projectId)], { owner: readsOf(projectId) }),
        (rows) => rows.length > 0,
      ),

    list: ({ after, limit, within }) =>
      Effect.map(
        executor.execute<{ readonly id: string }>(sql.list, [
          text(after ?? ""),
          integer(limit),
          within === "all" ? text(undefined) : texts([...within]),
        ]),
        (rows) => rows.map(({ id }) => ProjectId(id)),
      ),
  }
}
